"""Where a line is found, and which lines move when a core gets it."""

from __future__ import annotations

from typing import Any

from validate.cache.lru_kernel import NONE, find, insert, take, use
from validate.engine.jit import lean

MISS = 2
"""The level of a line that no private cache of the core has."""


@lean
def level_of(caches: Any, slots: Any, table: Any, core: int, line: int) -> int:
    """Return the private level of a core that has a line, 0 or 1, or `MISS`."""
    for level in range(MISS):
        if find(caches, slots, table, MISS * core + level, line) != NONE:
            return level
    return MISS


@lean
def found_in_llc(plan: Any, caches: Any, slots: Any, table: Any, line: int) -> bool:
    """Look for a line in its slice; one that is there becomes the newest or leaves."""
    home = MISS * plan[0]["cores"] + line % plan[0]["slices"]
    slot = find(caches, slots, table, home, line)
    if slot == NONE:
        return False
    if plan[0]["keep"]:
        use(caches, slots, home, slot)
    else:
        take(caches, slots, table, home, slot)
    return True


@lean
def fill(
    plan: Any, caches: Any, slots: Any, table: Any, streams: Any, core: int, line: int, level: int
) -> None:
    """Make a line, found at this level, the newest of the core's L1; each level's oldest goes to the next."""
    first = MISS * core
    if level == 0:
        use(caches, slots, first, find(caches, slots, table, first, line))
        return
    if level == 1:
        take(caches, slots, table, first + 1, find(caches, slots, table, first + 1, line))
    evicted = insert(caches, slots, table, streams, first, line)
    if evicted != NONE:
        evicted = insert(caches, slots, table, streams, first + 1, evicted)
    if evicted != NONE and plan[0]["slices"] > 0:
        home = MISS * plan[0]["cores"] + evicted % plan[0]["slices"]
        slot = find(caches, slots, table, home, evicted)
        if slot == NONE:
            insert(caches, slots, table, streams, home, evicted)
        else:
            use(caches, slots, home, slot)
