"""The public names of this package. They stand here as another distribution may overwrite ``__init__.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodels.systems.spec.lazy_names import attached

if TYPE_CHECKING:
    from validate.calibration import Calibration, calibrate
    from validate.campaigns.result import Campaign, CampaignInterrupted
    from validate.campaigns.simulate import simulate
    from validate.campaigns.table_files import write_parquet
    from validate.comparison.model import compare
    from validate.comparison.result import Comparison, SweepComparison
    from validate.estimates.statistics import Estimate
    from validate.noc.saturation import saturation_rate
    from validate.readers import RunSet, read_booksim, read_dramsim3, read_gem5, read_ramulator, read_table

__all__ = [
    "Calibration",
    "Campaign",
    "CampaignInterrupted",
    "Comparison",
    "Estimate",
    "RunSet",
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


# The compiler behind the kernels is slow to load.
__getattr__, __dir__ = attached("validate", __file__, __all__)
