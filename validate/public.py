"""The public names of this package. They stand here as another distribution may overwrite ``__init__.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmodels.systems.spec.named import attached

if TYPE_CHECKING:
    from qmodels.systems.spec.estimate import Estimate as Estimate
    from validate.calibration import Calibration as Calibration
    from validate.calibration import calibrate as calibrate
    from validate.campaigns.experiment import Campaign as Campaign
    from validate.campaigns.experiment import CampaignInterrupted as CampaignInterrupted
    from validate.campaigns.experiment import write_parquet as write_parquet
    from validate.campaigns.simulate import simulate as simulate
    from validate.comparison.model import compare as compare
    from validate.comparison.paired import PairComparison as PairComparison
    from validate.comparison.result import Comparison as Comparison
    from validate.comparison.result import SweepComparison as SweepComparison
    from validate.noc.saturation import saturation_rate as saturation_rate
    from validate.readers import RunSet as RunSet
    from validate.readers import read_booksim as read_booksim
    from validate.readers import read_dramsim3 as read_dramsim3
    from validate.readers import read_gem5 as read_gem5
    from validate.readers import read_ramulator as read_ramulator
    from validate.readers import read_table as read_table
else:
    __getattr__, __dir__, __all__ = attached(
        "validate",
        {
            "validate.calibration": "Calibration calibrate",
            "qmodels.systems.spec.estimate": "Estimate",
            "validate.campaigns.experiment": "Campaign CampaignInterrupted write_parquet",
            "validate.campaigns.simulate": "simulate",
            "validate.comparison.model": "compare",
            "validate.comparison.paired": "PairComparison",
            "validate.comparison.result": "Comparison SweepComparison",
            "validate.noc.saturation": "saturation_rate",
            "validate.readers": "RunSet read_booksim read_dramsim3 read_gem5 read_ramulator read_table",
        },
    )
