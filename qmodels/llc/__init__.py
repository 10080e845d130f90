"""Last-level-cache models."""

from qmodels.llc.lru import lru_hit_ratios

__all__ = ["lru_hit_ratios"]
