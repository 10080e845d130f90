"""Simulation of the systems that ``qmodels`` solves, and the comparison of the two."""

# A package of qmodels-toolkit: `import cases` looks for this line.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from validate.calibration.calibrate import calibrate
    from validate.calibration.result import Calibration
    from validate.campaigns.parquet import write_parquet
    from validate.campaigns.result import Campaign, CampaignInterrupted
    from validate.campaigns.simulate import simulate
    from validate.comparison.model import compare
    from validate.comparison.result import Comparison, SweepComparison
    from validate.data_queueing.result import DataQueueingSimulation
    from validate.estimates.statistics import Estimate
    from validate.network.result import NetworkSimulation
    from validate.packet_processor.result import PacketSimulation
    from validate.readers import RunSet, read_booksim, read_dramsim3, read_gem5, read_ramulator, read_table

_HOMES = {
    "Calibration": "validate.calibration.result",
    "Campaign": "validate.campaigns.result",
    "CampaignInterrupted": "validate.campaigns.result",
    "Comparison": "validate.comparison.result",
    "DataQueueingSimulation": "validate.data_queueing.result",
    "Estimate": "validate.estimates.statistics",
    "NetworkSimulation": "validate.network.result",
    "RunSet": "validate.readers",
    "PacketSimulation": "validate.packet_processor.result",
    "SweepComparison": "validate.comparison.result",
    "calibrate": "validate.calibration.calibrate",
    "compare": "validate.comparison.model",
    "read_booksim": "validate.readers",
    "read_dramsim3": "validate.readers",
    "read_gem5": "validate.readers",
    "read_ramulator": "validate.readers",
    "read_table": "validate.readers",
    "saturation_rate": "validate.noc.saturation",
    "simulate": "validate.campaigns.simulate",
    "write_parquet": "validate.campaigns.parquet",
}

__all__ = [
    "Calibration",
    "Campaign",
    "CampaignInterrupted",
    "Comparison",
    "DataQueueingSimulation",
    "Estimate",
    "NetworkSimulation",
    "RunSet",
    "PacketSimulation",
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
