"""Caches: where look-ups find their lines."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from qmodels.llc.solve_cache import solve_cache
from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.program_form import LookupShares
from qmodels.systems.composed.system import System


def lookup_shares_of(system: System) -> dict[str, LookupShares]:
    """Return where look-ups find their lines, by cache."""
    return {name: lookup_shares(part) for name, part in system.parts.items() if isinstance(part, CacheSystem)}


@lru_cache(maxsize=256)
def lookup_shares(caches: CacheSystem) -> LookupShares:
    """Return where the look-ups of a flow find their lines.

    By `qmodels.llc.solve_cache.solve_cache`. Its slices' shares are those of the lines' popularity behind
    the private levels, hot lines included; where it takes the slices as one cache they are equal.

    >>> from qmodels.systems.cache.spec import CacheLevel
    >>> shares = lookup_shares(CacheSystem(private=(CacheLevel(lines=200),)))
    >>> round(shares.private, 4), shares.hit, round(shares.miss, 4), shares.slices
    (0.2051, 0.0, 0.7949, array([1.]))
    """
    answer = solve_cache(caches)
    past, levels = 1.0, []
    for name in caches.level_names[: len(caches.private)]:
        levels.append(past * answer.metrics[f"hit_ratio[{name}]"])
        past -= levels[-1]
    miss = min(answer.metrics["miss_ratio"], past)
    number = caches.shared.slices if caches.shared is not None else 1
    slices = answer.slice_shares if answer.slice_shares.size else np.full(number, 1.0 / number)
    hit = past - miss if caches.shared is not None else 0.0
    return LookupShares(private=1.0 - past, hit=hit, miss=past - hit, slices=slices, levels=tuple(levels))
