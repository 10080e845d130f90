"""The conclusions of each paper by the name of its case."""

from __future__ import annotations

from importlib import import_module

from cases.published.cases import CASES, published_case
from cases.published.conclusions.conclusion import Conclusion

PAPERS = tuple(CASES)


def conclusions_of(case: str) -> tuple[Conclusion, ...]:
    """Return the conclusions of a paper."""
    published_case(case)
    found: tuple[Conclusion, ...] = import_module(f"cases.published.{case}.conclusions").CONCLUSIONS
    return found


def contradictions_of(case: str) -> tuple[str, ...]:
    """Return where a paper contradicts itself, in words."""
    published_case(case)
    return tuple(import_module(f"cases.published.{case}.conclusions").CONTRADICTIONS)
