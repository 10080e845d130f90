"""Caches under independent references: single ones, hierarchies, slices, and what the LLC is worth."""

from qmodels.llc.characteristic_time import hit_ratios
from qmodels.llc.exact_lru import exact_lru_hit_ratios
from qmodels.llc.hierarchy import copy_levels, exclusive_levels, inclusive_levels
from qmodels.llc.miss_curve import hit_ratio_curve, recorded_hit_ratio_curve
from qmodels.llc.partition import best_division, divided_cache, shared_cache
from qmodels.llc.skip import highest_miss_ratio
from qmodels.llc.slices import slice_shares

__all__ = [
    "best_division",
    "copy_levels",
    "divided_cache",
    "exact_lru_hit_ratios",
    "exclusive_levels",
    "highest_miss_ratio",
    "hit_ratio_curve",
    "hit_ratios",
    "inclusive_levels",
    "recorded_hit_ratio_curve",
    "shared_cache",
    "slice_shares",
]
