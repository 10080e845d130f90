"""A request to a hierarchy of private and shared caches: where it hits, and which lines move."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.systems.memory.memory_map import scatter
from validate.cache.lru_kernel import NONE, alias_line, find, insert, take, use, zipf_line
from validate.engine.jit import jit, lean, lean_part
from validate.engine.streams import uniform

COPY, INCLUSIVE, EXCLUSIVE, KEPT = range(4)
INCLUSIONS = ("copy", "inclusive", "exclusive", "kept")
MODULO, XOR, MIXED = range(3)
HASHES = ("modulo", "xor", "mixed")
BLOCK = 256
PLAN = np.dtype(
    [("cores", "i8"), ("private", "i8"), ("slices", "i8"), ("hashing", "i8"), ("inclusion", "i8")]
)
"""Cores, private levels of each, slices of the shared level (0: none), hash, and what levels hold."""


@lean
def slice_number(line: int, slices: int, hashing: int) -> int:
    """Return the slice of a line, as `qmodels.systems.cache.lines.slice_of` does."""
    if slices == 1:
        return 0
    if hashing == MODULO:
        return line % slices
    if hashing == MIXED:
        return scatter_(line % 2147483648) % slices
    bits = 0
    while (1 << bits) < slices:
        bits += 1
    folded = line % slices
    rest = line >> bits
    while rest:
        folded ^= rest % slices
        rest >>= bits
    return folded


scatter_ = lean_part(scatter)


@lean
def access(plan: Any, caches: Any, slots: Any, table: Any, streams: Any, core: int, line: int) -> int:
    """Let a core request a line; return the level that had it, from 0; past the last one: memory."""
    private, inclusion = plan[0]["private"], plan[0]["inclusion"]
    own = core * private
    levels = private + (plan[0]["slices"] > 0)
    home = plan[0]["cores"] * private
    if plan[0]["slices"] > 0:
        home += slice_number(line, plan[0]["slices"], plan[0]["hashing"])
    hit = levels
    for level in range(levels):
        cache = own + level if level < private else home
        slot = find(caches, slots, table, cache, line)
        if slot != NONE:
            hit = level
            if level > 0 and (inclusion == EXCLUSIVE or (inclusion == KEPT and level < private)):
                take(caches, slots, table, cache, slot)
            else:
                use(caches, slots, cache, slot)
            break
    if hit == 0:
        return hit
    if inclusion >= EXCLUSIVE:
        _push_down(plan, caches, slots, table, streams, own, line)
        return hit
    for level in range(hit - 1, -1, -1):
        cache = own + level if level < private else home
        evicted = insert(caches, slots, table, streams, cache, line)
        if inclusion == INCLUSIVE and evicted != NONE and evicted != line:
            first, last = (own, own + level) if level < private else (0, plan[0]["cores"] * private)
            for other in range(first, last):
                slot = find(caches, slots, table, other, evicted)
                if slot != NONE:
                    take(caches, slots, table, other, slot)
    return hit


@lean_part
def _push_down(plan: Any, caches: Any, slots: Any, table: Any, streams: Any, own: int, line: int) -> None:
    """Put a line into the first level; each level's victim goes to the next one, the last one's to memory."""
    private, slices = plan[0]["private"], plan[0]["slices"]
    for level in range(private):
        line = insert(caches, slots, table, streams, own + level, line)
        if line == NONE:
            return
    if slices > 0:
        cache = plan[0]["cores"] * private + slice_number(line, slices, plan[0]["hashing"])
        slot = find(caches, slots, table, cache, line)
        if slot == NONE:
            insert(caches, slots, table, streams, cache, line)
        else:
            use(caches, slots, cache, slot)


@jit
def run(
    plan: Any,
    caches: Any,
    slots: Any,
    table: Any,
    streams: Any,
    cut: Any,
    other: Any,
    law: Any,
    keys: Any,
    hits: Any,
    slice_requests: Any,
    requests: int,
) -> None:
    """Draw requests of random cores for random lines and count where they hit.

    ``cut`` and ``other`` are the alias table of the lines, empty where they follow ``law``;
    ``hits`` has a row per core, a column per level and one for memory; ``slice_requests`` counts
    what reaches each slice.
    """
    cores, private, slices = plan[0]["cores"], plan[0]["private"], plan[0]["slices"]
    huge = cut.size == 0
    drawn = np.empty(BLOCK, dtype=np.int64)
    left = requests
    while left > 0:
        block = min(left, BLOCK)
        left -= block
        # Drawn apart from their use, so that the processor waits for many of them at once.
        for k in range(block):
            if huge:
                drawn[k] = zipf_line(law, keys, streams, 2)
            else:
                drawn[k] = alias_line(cut, other, streams, 2)
        for k in range(block):
            core = int(uniform(streams, 1) * cores) if cores > 1 else 0
            level = access(plan, caches, slots, table, streams, core, drawn[k])
            hits[core, level] += 1
            if level >= private and slices > 1:
                slice_requests[slice_number(drawn[k], slices, plan[0]["hashing"])] += 1


@jit
def replay(
    plan: Any, caches: Any, slots: Any, table: Any, streams: Any, cores: Any, lines: Any, hits: Any
) -> None:
    """Let given cores request given lines, in order, and count where they hit."""
    for k in range(lines.size):
        level = access(plan, caches, slots, table, streams, cores[k], lines[k])
        hits[cores[k], level] += 1
