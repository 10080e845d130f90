"""Statistics of finite runs that the simulators use, in one place."""

from qmodels.systems.spec.estimate import Estimate, exactly
from validate.engine.histogram import INF, Histogram, bins_of, merged
from validate.estimates.batch_means import BatchMeans, batch_means, lag_one_correlation, memory_doubt, warm_up
from validate.estimates.intervals import (
    PairedDifference,
    busy_interval,
    mean_interval,
    paired_difference,
    probability_interval,
    quantile_interval,
    ratio_interval,
)
from validate.estimates.stopping import (
    early_and_late,
    more_replications,
    periodic_stability,
    stability,
    worst,
)

__all__ = [
    "INF",
    "BatchMeans",
    "Estimate",
    "Histogram",
    "PairedDifference",
    "batch_means",
    "bins_of",
    "busy_interval",
    "exactly",
    "early_and_late",
    "lag_one_correlation",
    "mean_interval",
    "memory_doubt",
    "merged",
    "more_replications",
    "paired_difference",
    "probability_interval",
    "quantile_interval",
    "ratio_interval",
    "periodic_stability",
    "stability",
    "warm_up",
    "worst",
]
