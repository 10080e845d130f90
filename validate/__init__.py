"""Simulation of the systems that ``qmodels`` solves, and the comparison of the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validate.compare_model import Comparison, compare
    from validate.packet_processor import simulate
    from validate.result import SimulationResult
    from validate.statistics import Estimate

_HOMES = {
    "Comparison": "validate.compare_model",
    "compare": "validate.compare_model",
    "Estimate": "validate.statistics",
    "SimulationResult": "validate.result",
    "simulate": "validate.packet_processor",
}

__all__ = ["Comparison", "Estimate", "SimulationResult", "compare", "simulate"]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the compiler behind the kernels is slow to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
