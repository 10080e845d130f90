"""The answer of a cache system: hit ratios of every level."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.llc.characteristic_time import hit_ratios
from qmodels.llc.hierarchy import copy_levels, exclusive_levels, inclusive_levels, kept_levels, smooth_nodes
from qmodels.systems.cache.spec import HASHES, CacheSystem, line_popularity, slice_of
from qmodels.systems.spec.answer import Answer


def slice_shares(*, popularity: npt.ArrayLike, slices: int, hashing: str = "modulo") -> FloatArray:
    """Share of the requests that go to each slice.

    ``popularity``: probability of a request for each line, in the order of line numbers; ``slices``: slices;
    a power of two for XOR folding; ``hashing``: "modulo", "xor" or "mixed", see
    `qmodels.systems.cache.spec.slice_of`. Returns one share per slice. The largest times the slices is the
    imbalance: slices of one server each carry at most one over it of what balanced ones would.

    Exact.

    >>> slice_shares(popularity=[0.4, 0.3, 0.2, 0.1], slices=2)
    array([0.6, 0.4])
    """
    p = checks.nonnegative("popularity", popularity)
    number = int(checks.count("slices", slices))
    checks.choice("hashing", hashing, HASHES)
    if hashing == "xor" and number & (number - 1):
        raise ValueError(f"slices must be a power of two for XOR hashing, got {slices!r}")
    where = slice_of(np.arange(len(p)), slices=number, hashing=hashing)
    return np.asarray(np.bincount(where, weights=p, minlength=number), dtype=float)


MOST_SLICED_LINES = 200_000
"""Above, a sliced level is taken as one cache: the more lines, the less that matters."""
MOST_SINGLE_LINES = 5_000
"""Above, lines of nearly the same popularity are taken together; that moves no ratio by more than 1e-8."""


def solve_cache(spec: CacheSystem) -> Answer:
    """Return the hit ratios of a cache system.

    ``spec``: what is cached, and where. Returns hit ratios by level.

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
    caches by characteristic time
      hit_ratio      0.2051
      miss_ratio     0.7949
      hit_ratio[l1]  0.2051
      stable
    """
    p, count = line_popularity(
        spec.popularity, int(spec.entries_per_line), spec.assignment, int(spec.assignment_seed)
    )
    where = None
    if spec.shared and spec.shared.slices > 1 and len(p) <= min(MOST_SLICED_LINES, spec.line_count):
        where = slice_of(np.arange(len(p)), slices=spec.shared.slices, hashing=spec.shared.hashing)
    elif len(p) > MOST_SINGLE_LINES:
        p, count = smooth_nodes(p, count)
    hits = _local_hits(spec, p, count, where)
    metrics: dict[str, float] = {"hit_ratio": 0.0, "miss_ratio": 1.0}
    reach = count * p
    at_shared = reach
    for name, hit in zip(spec.level_names, hits, strict=True):
        at_shared, before = reach, float(reach.sum())
        metrics[f"hit_ratio[{name}]"] = float(reach @ hit) / before if before > 0 else 0.0
        reach = reach * (1.0 - hit)
    metrics["miss_ratio"] = min(1.0, float(reach.sum()))
    metrics["hit_ratio"] = 1.0 - metrics["miss_ratio"]
    shares = np.empty(0)
    if spec.shared and where is not None and at_shared.sum() > 0:
        shares = slice_shares(
            popularity=at_shared / at_shared.sum(), slices=spec.shared.slices, hashing=spec.shared.hashing
        )
    uneven = float(shares.max() * len(shares)) if len(shares) else 1.0
    return Answer(
        model="caches by characteristic time",
        spec=spec,
        metrics=metrics,
        details={"slice_shares": shares, "slice_imbalance": uneven},
        facts=(f"busiest slice {uneven:.3f} of the mean",) if len(shares) > 1 else (),
    )


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
    if spec.inclusion in ("exclusive", "kept"):
        sliced = shared if where is None or spec.shared is None else spec.shared.slice_lines
        levels = exclusive_levels if spec.inclusion == "exclusive" else kept_levels
        return levels(
            popularity=p, count=count, cores=spec.cores, private=private, shared=sliced, slice_of_line=where
        )
    if spec.inclusion == "inclusive":
        sizes = [level.lines for level in spec.levels]
        if len(sizes) != 2 or spec.cores > 1:
            rule = "copy, exclusive or kept for more than two levels or one core"
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
