"""The answer of a cache system: hit ratios of every level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.error_map import ErrorMap, MeasuredError
from qmodels.llc.characteristic_time import hit_ratios
from qmodels.llc.hierarchy import copy_levels, exclusive_levels, inclusive_levels
from qmodels.llc.slices import slice_shares
from qmodels.systems.cache.lines import line_popularity, slice_of
from qmodels.systems.cache.spec import CacheSystem

MOST_SLICED_LINES = 200_000
"""Above, a sliced level is taken as one cache: the more lines, the less that matters."""
FEWEST_LINES = 40
"""Smallest cache (of each slice) for which the errors below were measured."""
FEWEST_EXCLUSIVE = {"level": 2, "shared": 64, "catalogue": 500}
"""The same for exclusive levels: lines of a level or slice, of the shared level, and of the table."""
ERRORS = ErrorMap(Path(__file__).with_name("cache_error_map.csv"))
"""By inclusion. Of smaller caches: of two lines in each slice with copies 0.5 points, of ten lines 0.1; of
exclusive ones with 8 lines in all 1.3."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CacheAnswer:
    """Hit ratios of a cache system.

    Parameters
    ----------
    metrics : mapping of str to float
        ``hit_ratio`` (served by any level), ``miss_ratio`` (served by memory), and for each level
        ``hit_ratio_<level>``: hits of the requests that reach it. Also attributes.
    slice_shares : ndarray
        Share of the requests to the shared level that go to each slice; empty without one or where
        all are taken as one cache.
    validated : bool
        Whether the system is in the range in which the error was measured.
    error : mapping of str to MeasuredError
        By metric, the error against simulation of caches with such an inclusion.
    """

    metrics: Mapping[str, float]
    slice_shares: FloatArray
    validated: bool
    error: Mapping[str, MeasuredError]

    def __getattr__(self, name: str) -> float:
        try:
            return float(self.__dict__["metrics"][name])
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    @property
    def slice_imbalance(self) -> float:
        """Requests to the busiest slice over those to the mean slice; 1 where there is one."""
        return float(self.slice_shares.max() * len(self.slice_shares)) if len(self.slice_shares) else 1.0

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: name, unit, value."""
        return [{"metric": name, "unit": "1", "value": value} for name, value in self.metrics.items()]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        trust = (
            f"within {self.error['hit_ratio'].largest:g} points of simulation"
            if self.validated
            else "outside the range in which its error was measured"
        )
        lines = [f"caches by characteristic time, {trust}"]
        lines += [f"  {name:<14} {value:.5f}" for name, value in self.metrics.items()]
        if len(self.slice_shares) > 1:
            lines.append(f"  busiest slice  {self.slice_imbalance:.3f} of the mean")
        return "\n".join(lines)


def solve_cache(spec: CacheSystem) -> CacheAnswer:
    """Return the hit ratios of a cache system.

    Parameters
    ----------
    spec : CacheSystem
        What is cached, and where.

    Returns
    -------
    CacheAnswer
        Hit ratios by level.

    Raises
    ------
    ValueError
        If no model covers the combination: several levels need LRU and certain insertion, and
        inclusive ones two levels of one core.

    Notes
    -----
    See `qmodels.llc.characteristic_time.hit_ratios` for one level and `qmodels.llc.hierarchy` for
    several. A request that finds its line in no slice goes to memory.

    Examples
    --------
    >>> from qmodels.systems.cache.spec import CacheLevel
    >>> solve_cache(CacheSystem(private=(CacheLevel(lines=200),)))
    caches by characteristic time, within 0.05 points of simulation
      hit_ratio      0.20510
      miss_ratio     0.79490
      hit_ratio_l1   0.20510
    """
    p, count = line_popularity(
        spec.popularity, int(spec.entries_per_line), spec.assignment, int(spec.assignment_seed)
    )
    where = None
    if spec.shared and spec.shared.slices > 1 and len(p) <= min(MOST_SLICED_LINES, spec.line_count):
        where = slice_of(np.arange(len(p)), slices=spec.shared.slices, hashing=spec.shared.hashing)
    hits = _local_hits(spec, p, count, where)
    metrics: dict[str, float] = {"hit_ratio": 0.0, "miss_ratio": 1.0}
    reach = count * p
    at_shared = reach
    for name, hit in zip(spec.level_names, hits, strict=True):
        at_shared, before = reach, float(reach.sum())
        metrics[f"hit_ratio_{name}"] = float(reach @ hit) / before if before > 0 else 0.0
        reach = reach * (1.0 - hit)
    metrics["miss_ratio"] = min(1.0, float(reach.sum()))
    metrics["hit_ratio"] = 1.0 - metrics["miss_ratio"]
    shares = np.empty(0)
    if spec.shared and where is not None and at_shared.sum() > 0:
        shares = slice_shares(
            popularity=at_shared / at_shared.sum(), slices=spec.shared.slices, hashing=spec.shared.hashing
        )
    error = ERRORS.at(region=spec.inclusion)["hit_ratio"]
    return CacheAnswer(
        metrics=metrics,
        slice_shares=shares,
        validated=_is_validated(spec),
        error={name: replace(error, metric=name) for name in metrics},
    )


def _is_validated(spec: CacheSystem) -> bool:
    smallest = min(level.lines // level.slices for level in spec.levels)
    if spec.inclusion != "exclusive" or len(spec.levels) == 1 or spec.shared is None:
        return bool(smallest >= FEWEST_LINES)
    sizes = {"level": smallest, "shared": spec.shared.lines, "catalogue": spec.line_count}
    return all(sizes[name] >= least for name, least in FEWEST_EXCLUSIVE.items())


def _local_hits(spec: CacheSystem, p: FloatArray, count: FloatArray, where: Any) -> FloatArray:
    """Return the hit probability of each line at each level, given that a request reaches it."""
    if len(spec.levels) == 1:
        return _one_level(spec, p, count, where)[None, :]
    for level in spec.levels:
        if level.replacement != "lru" or level.insertion_probability < 1:
            given = f"{level.replacement} with insertion {level.insertion_probability:g}"
            raise ValueError(
                f"level.replacement must be lru with insertion 1 in a hierarchy, got {given}; simulate it"
            )
    private = [level.lines for level in spec.private]
    shared = spec.shared.lines if spec.shared else 0
    if spec.inclusion == "exclusive":
        sliced = shared if where is None or spec.shared is None else spec.shared.slice_lines
        return exclusive_levels(
            popularity=p, count=count, cores=spec.cores, private=private, shared=sliced, slice_of_line=where
        )
    if spec.inclusion == "inclusive":
        sizes = [level.lines for level in spec.levels]
        if len(sizes) != 2 or spec.cores > 1:
            rule = "copy or exclusive for more than two levels or one core"
            raise ValueError(
                f"inclusion must be {rule}, got inclusive with {len(sizes)} levels of {spec.cores} cores"
            )
        return inclusive_levels(popularity=p, count=count, first=sizes[0], second=sizes[1])
    return copy_levels(popularity=p, count=count, cores=spec.cores, private=private, shared=shared)


def _one_level(spec: CacheSystem, p: FloatArray, count: FloatArray, where: Any) -> FloatArray:
    level = spec.levels[0]
    options: dict[str, Any] = {
        "replacement": level.replacement,
        "insertion_probability": level.insertion_probability,
    }
    if where is None:
        return hit_ratios(popularity=p, count=count, capacity=level.lines, **options)
    hits = np.zeros(len(p))
    for slice_number, lines in enumerate(level.slice_lines):
        here = where == slice_number
        total = p[here].sum()
        if total > 0:
            hits[here] = hit_ratios(popularity=p[here] / total, capacity=int(lines), **options)
    return hits
