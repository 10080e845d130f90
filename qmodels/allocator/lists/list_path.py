"""A free list followed along one sample path, where the chain of its neighbours has too many states."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.packets.free_list import RETURN_ORDERS

ALLOCATIONS = 2**21
"""Allocations counted: a probability of .001 has a standard error of some 2 %."""
TURNS = 16
"""Times that the list is used up before counting begins."""
FREE = 8192
"""Free blocks of the list, at least: longer lists give the same."""
SEED = 1
"""All lists meet the same random numbers, so that differences between lists are known better than either."""
TOGETHER, AS_READ = (RETURN_ORDERS.index(order) for order in ("together", "as-read"))


@lru_cache(maxsize=4096)
def path_heads(
    *,
    banks: int,
    trials: int,
    busy: int,
    law: tuple[tuple[int, ...], tuple[float, ...]],
    other_access: float,
    other_packet: float,
    read_last: float,
    access_within: float,
    order: int,
    readers: int,
) -> tuple[FloatArray, float]:
    """Return the probability of 0, 1, ... busy heads in turn, and of a block on the bank of the one before.

    ``order``: place of the return order in `RETURN_ORDERS`; the other arguments are those of `free_list`.
    """
    from qmodels.allocator.lists._path_kernel import follow

    sizes, cumulative = np.array(law[0]), np.cumsum(law[1])
    mean = float(sizes @ np.array(law[1]))
    # In the mean over all gaps there are as many other accesses as ``other_access`` says.
    own = (1.0 - other_packet) * (1.0 - 1.0 / mean)
    between = min(max((other_access - own * access_within) / (1.0 - own), 0.0), 1.0) if own < 1 else 0.0
    free = -(-max(FREE, 8 * int(sizes[-1]) + trials) // banks) * banks
    rng = np.random.default_rng(SEED)
    heads, near, pairs = follow(
        rng.integers(0, 2**63, 1).astype(np.uint64),
        rng.permutation(2 * free) % banks,
        banks,
        trials,
        busy,
        sizes,
        cumulative,
        access_within if other_access > 0 else 0.0,
        between,
        other_packet,
        read_last if other_access > 0 else 0.0,
        order,
        readers if order == AS_READ else 1,
        round(free / mean),
        TURNS * free,
        ALLOCATIONS,
    )
    return heads / ALLOCATIONS, near / max(pairs, 1)
