"""Caches under independent references: single ones, hierarchies, slices, and what the LLC is worth."""

from qmodels.llc.characteristic_time import hit_ratios
from qmodels.llc.hierarchy import copy_levels, exclusive_levels, inclusive_levels
from qmodels.llc.solve_cache import slice_shares

__all__ = [
    "copy_levels",
    "exclusive_levels",
    "hit_ratios",
    "inclusive_levels",
    "slice_shares",
]
