"""Simulation of the systems that ``qmodels`` solves, and the comparison of the two."""

# A package of qmodels-toolkit: `import cases` looks for this line.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validate.calibration import calibrate
    from validate.calibration_result import Calibration
    from validate.campaign import simulate
    from validate.campaign_parquet import write_parquet
    from validate.campaign_result import Campaign, CampaignInterrupted
    from validate.compare_model import compare
    from validate.compare_result import Comparison, SweepComparison
    from validate.data_queueing_result import DataQueueingResult
    from validate.network_result import NetworkSimulation
    from validate.readers import RunSet, read_booksim, read_dramsim3, read_gem5, read_ramulator, read_table
    from validate.result import SimulationResult
    from validate.statistics import Estimate

_HOMES = {
    "Calibration": "validate.calibration_result",
    "Campaign": "validate.campaign_result",
    "CampaignInterrupted": "validate.campaign_result",
    "Comparison": "validate.compare_result",
    "DataQueueingResult": "validate.data_queueing_result",
    "Estimate": "validate.statistics",
    "NetworkSimulation": "validate.network_result",
    "RunSet": "validate.readers",
    "SimulationResult": "validate.result",
    "SweepComparison": "validate.compare_result",
    "calibrate": "validate.calibration",
    "compare": "validate.compare_model",
    "read_booksim": "validate.readers",
    "read_dramsim3": "validate.readers",
    "read_gem5": "validate.readers",
    "read_ramulator": "validate.readers",
    "read_table": "validate.readers",
    "saturation_rate": "validate.noc.saturation",
    "simulate": "validate.campaign",
    "write_parquet": "validate.campaign_parquet",
}

__all__ = [
    "Calibration",
    "Campaign",
    "CampaignInterrupted",
    "Comparison",
    "DataQueueingResult",
    "Estimate",
    "NetworkSimulation",
    "RunSet",
    "SimulationResult",
    "SweepComparison",
    "calibrate",
    "compare",
    "read_booksim",
    "read_dramsim3",
    "read_gem5",
    "read_ramulator",
    "read_table",
    "saturation_rate",
    "simulate",
    "write_parquet",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: the compiler behind the kernels is slow to load."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
