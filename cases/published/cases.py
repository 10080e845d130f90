"""The published cases by name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cases.published.reproduction import Paper

CASES = {name: f"cases.published.{name}.paper" for name in ("dqm", "srp", "llc3d", "ocmpi", "stnoc")}
"""The module of each case; only the one that is asked for is imported."""


def published_case(name: str) -> Paper:
    """Return a case."""
    if name not in CASES:
        # Not at the top: --help needs no NumPy.
        from qmodels import checks

        raise ValueError(f"case must be one of {', '.join(CASES)}, got {name!r}{checks.nearest(name, CASES)}")
    paper: Paper = import_module(CASES[name]).PAPER
    return paper
