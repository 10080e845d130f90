"""Where a line is found, and which lines move when a core gets it."""

from __future__ import annotations

from validate.cache.lru_kernel import NONE, find, insert, take, use
from validate.engine.jit import lean
from validate.llc_processor.state import World

MISS = 2
"""The level of a line that no private cache of the core has."""


@lean
def level_of(w: World, core: int, line: int) -> int:
    """Return the private level of a core that has a line, 0 or 1, or `MISS`."""
    for level in range(MISS):
        if find(w.caches, w.slots, w.table, MISS * core + level, line) != NONE:
            return level
    return MISS


@lean
def found_in_llc(w: World, line: int) -> bool:
    """Look for a line in its slice; one that is there becomes the newest or leaves."""
    home = MISS * w.plan[0]["cores"] + line % w.plan[0]["slices"]
    slot = find(w.caches, w.slots, w.table, home, line)
    if slot == NONE:
        return False
    if w.plan[0]["keep"]:
        use(w.caches, w.slots, home, slot)
    else:
        take(w.caches, w.slots, w.table, home, slot)
    return True


@lean
def fill(w: World, core: int, line: int, level: int) -> None:
    """Make a line, found at this level, the newest of the core's L1; each level's oldest goes to the next."""
    first = MISS * core
    if level == 0:
        use(w.caches, w.slots, first, find(w.caches, w.slots, w.table, first, line))
        return
    if level == 1:
        take(w.caches, w.slots, w.table, first + 1, find(w.caches, w.slots, w.table, first + 1, line))
    evicted = insert(w.caches, w.slots, w.table, w.streams, first, line)
    if evicted != NONE:
        evicted = insert(w.caches, w.slots, w.table, w.streams, first + 1, evicted)
    if evicted != NONE and w.plan[0]["slices"] > 0:
        home = MISS * w.plan[0]["cores"] + evicted % w.plan[0]["slices"]
        slot = find(w.caches, w.slots, w.table, home, evicted)
        if slot == NONE:
            insert(w.caches, w.slots, w.table, w.streams, home, evicted)
        else:
            use(w.caches, w.slots, home, slot)
