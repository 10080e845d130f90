"""Caches in kernels: sets with their replacement, and levels of private and shared caches."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.systems.cache.spec import feistel_step
from qmodels.systems.memory.memory_map import scatter
from qmodels.systems.traffic.popularity import Zipf
from validate.engine.jit import inlined, jit, lean, lean_part
from validate.engine.streams import uniform

LAW = np.dtype(
    [
        ("entries", "i8"),
        ("per_line", "i8"),
        ("exponent", "f8"),
        ("shift", "f8"),
        ("low", "f8"),
        ("high", "f8"),
        ("accept", "f8"),
        ("half", "i8"),
        ("scattered", "i8"),
    ]
)
"""A Zipf-like law, its entries per line, and the constants of `zipf_rank`."""

_step = lean_part(feistel_step)


@lean
def alias_line(cut: Any, other: Any, streams: Any, stream: int) -> Any:
    """Return a random line of an alias table."""
    at = uniform(streams, stream) * cut.size
    line = np.int64(at)
    return line if at - line <= cut[line] else np.int64(other[line])


@lean
def integral(x: float, exponent: float) -> float:
    """Return the integral of ``y**-exponent`` from 1 to x."""
    scaled = (1.0 - exponent) * log(x)
    if abs(scaled) < 1e-8:
        return log(x) * (1.0 + scaled / 2.0)
    return (exp(scaled) - 1.0) / (1.0 - exponent)


@lean
def inverse(area: float, exponent: float) -> float:
    """Return the x up to which `integral` is that area."""
    scaled = area * (1.0 - exponent)
    if abs(scaled) < 1e-8:
        return exp(area * (1.0 - scaled / 2.0))
    return exp(log(max(1.0 + scaled, 1e-300)) / (1.0 - exponent))


def zipf_law(zipf: Zipf, *, entries_per_line: int, half: int, scattered: bool) -> Any:
    """Return the constants to draw lines of a Zipf-like law with."""
    law = np.zeros(1, dtype=LAW)
    entries, exponent, shift = int(zipf.entries), float(zipf.exponent), float(zipf.shift)
    law["entries"], law["exponent"], law["shift"] = entries, exponent, shift
    law["per_line"] = entries_per_line
    law["low"] = integral(1.5 + shift, exponent) - (1.0 + shift) ** -exponent
    law["high"] = integral(entries + 0.5 + shift, exponent)
    second = inverse(integral(2.5 + shift, exponent) - (2.0 + shift) ** -exponent, exponent)
    law["accept"] = 2.0 + shift - second
    law["half"], law["scattered"] = half, scattered
    return law


@lean
def zipf_rank(law: Any, streams: Any, stream: int) -> int:
    """Return a random rank, from 1, of a Zipf-like law, without a table.

    Rejection-inversion [1]_: fewer than 1.1 pairs of logarithm and exponential on average.

    References
    ----------
    .. [1] W. Hoermann, G. Derflinger, "Rejection-inversion to generate variates from monotone
       discrete distributions", ACM Transactions on Modeling and Computer Simulation 6(3), 1996.
    """
    exponent, shift = law[0]["exponent"], law[0]["shift"]
    while True:
        area = law[0]["high"] + uniform(streams, stream) * (law[0]["low"] - law[0]["high"])
        x = inverse(area, exponent)
        rank = min(max(np.int64(x - shift + 0.5), 1), law[0]["entries"])
        y = rank + shift
        if y - x <= law[0]["accept"] or area >= integral(y + 0.5, exponent) - exp(-exponent * log(y)):
            return rank


@lean
def zipf_line(law: Any, keys: Any, streams: Any, stream: int) -> int:
    """Return the line of a random entry, as `qmodels.systems.cache.spec.line_of` places it."""
    entry = zipf_rank(law, streams, stream) - 1
    if law[0]["scattered"]:
        entry = _step(entry, law[0]["half"], keys)
        while entry >= law[0]["entries"]:
            entry = _step(entry, law[0]["half"], keys)
    return entry // law[0]["per_line"]


NONE = -1
DIRECT = 0
"""The mask of an index that has a place for every line."""
MOST_DIRECT = 4_000_000
LRU, FIFO, RANDOM = range(3)
"""As `qmodels.systems.cache.spec.REPLACEMENTS`; those below are as `INCLUSIONS` and `HASHES` there."""
CACHE = np.dtype(
    [
        ("first", "i8"),
        ("capacity", "i8"),
        ("used", "i8"),
        ("newest", "i4"),
        ("oldest", "i4"),
        ("free", "i4"),
        ("replacement", "i4"),
        ("table", "i8"),
        ("mask", "i8"),
        ("shift", "i8"),
        ("insertion", "f8"),
    ]
)
SLOT = np.dtype([("line", "i8"), ("newer", "i4"), ("older", "i4")])
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


def new_caches(
    capacities: Sequence[int], replacements: Sequence[int], insertions: Sequence[float], *, lines: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[np.int32]]:
    """Return the records, slots and index of empty caches.

    ``capacities``: lines of each cache, at least 1; ``replacements``: `LRU`, `FIFO` or `RANDOM`;
    ``insertions``: probability that a missing line is inserted; ``lines``: line numbers are below this. Where
    it takes little more memory, the index has a place for each.
    """
    caches = np.zeros(len(capacities), dtype=CACHE)
    bits = [max(1, (2 * int(capacity) - 1).bit_length()) for capacity in capacities]
    caches["capacity"] = capacities
    caches["replacement"] = replacements
    caches["insertion"] = insertions
    caches["first"] = np.cumsum([0, *capacities[:-1]])
    caches["table"] = np.cumsum([0, *(1 << b for b in bits[:-1])])
    caches["mask"] = [(1 << b) - 1 for b in bits]
    if lines * len(capacities) <= MOST_DIRECT:
        caches["mask"] = DIRECT
        caches["table"] = np.arange(len(capacities)) * lines
    caches["shift"] = [64 - b for b in bits]
    for name in ("newest", "oldest", "free"):
        caches[name] = NONE
    slots = np.zeros(int(np.sum(capacities)), dtype=SLOT)
    places = sum(1 << b for b in bits) if caches["mask"].all() else lines * len(capacities)
    return caches, slots, np.full(places, NONE, dtype=np.int32)


@inlined
def _home(caches: Any, cache: int, line: int) -> Any:
    return np.int64((np.uint64(line) * _SPREAD) >> np.uint64(caches[cache]["shift"]))


@inlined
def find(caches: Any, slots: Any, table: Any, cache: int, line: int) -> int:
    """Return the slot of a line, or -1."""
    first, mask = caches[cache]["table"], caches[cache]["mask"]
    if mask == DIRECT:
        return table[first + line]
    at = _home(caches, cache, line)
    slot = table[first + at]
    while slot != NONE and slots[slot]["line"] != line:
        at = (at + 1) & mask
        slot = table[first + at]
    return slot


@inlined
def use(caches: Any, slots: Any, cache: int, slot: int) -> None:
    """Note that a line was requested: the newest one of an LRU cache, nothing in the others."""
    if caches[cache]["replacement"] == LRU and caches[cache]["newest"] != slot:
        _unlink(caches, slots, cache, slot)
        _link(caches, slots, cache, slot)


@inlined
def _unlink(caches: Any, slots: Any, cache: int, slot: int) -> None:
    newer, older = slots[slot]["newer"], slots[slot]["older"]
    if newer == NONE:
        caches[cache]["newest"] = older
    else:
        slots[newer]["older"] = older
    if older == NONE:
        caches[cache]["oldest"] = newer
    else:
        slots[older]["newer"] = newer


@inlined
def _link(caches: Any, slots: Any, cache: int, slot: int) -> None:
    newest = caches[cache]["newest"]
    slots[slot]["newer"] = NONE
    slots[slot]["older"] = newest
    if newest == NONE:
        caches[cache]["oldest"] = slot
    else:
        slots[newest]["newer"] = slot
    caches[cache]["newest"] = slot


@inlined
def insert(caches: Any, slots: Any, table: Any, streams: Any, cache: int, line: int) -> int:
    """Put a line that is not there into a cache as its newest; return the line evicted for it, or -1.

    With an insertion probability below 1 the line itself may be the one that stays out.
    """
    if caches[cache]["insertion"] < 1.0 and uniform(streams, 0) > caches[cache]["insertion"]:
        return line
    evicted = NONE
    used = caches[cache]["used"]
    slot = caches[cache]["free"]
    if slot != NONE:
        caches[cache]["free"] = slots[slot]["older"]
        caches[cache]["used"] = used + 1
    elif used < caches[cache]["capacity"]:
        slot = np.int32(caches[cache]["first"] + used)
        caches[cache]["used"] = used + 1
    else:
        slot = caches[cache]["oldest"]
        if caches[cache]["replacement"] == RANDOM:
            slot = np.int32(caches[cache]["first"] + np.int64(uniform(streams, 0) * used))
        evicted = slots[slot]["line"]
        _forget(caches, slots, table, cache, evicted)
        _unlink(caches, slots, cache, slot)
    slots[slot]["line"] = line
    _link(caches, slots, cache, slot)
    first, mask = caches[cache]["table"], caches[cache]["mask"]
    if mask == DIRECT:
        table[first + line] = slot
        return evicted
    at = _home(caches, cache, line)
    while table[first + at] != NONE:
        at = (at + 1) & mask
    table[first + at] = slot
    return evicted


@inlined
def take(caches: Any, slots: Any, table: Any, cache: int, slot: int) -> None:
    """Remove a line from a cache."""
    _forget(caches, slots, table, cache, slots[slot]["line"])
    _unlink(caches, slots, cache, slot)
    slots[slot]["older"] = caches[cache]["free"]
    caches[cache]["free"] = slot
    caches[cache]["used"] -= 1


@inlined
def _forget(caches: Any, slots: Any, table: Any, cache: int, line: int) -> None:
    """Take a line out of the index; entries behind it move up so that none is cut off from its home."""
    first, mask = caches[cache]["table"], caches[cache]["mask"]
    if mask == DIRECT:
        table[first + line] = NONE
        return
    hole = _home(caches, cache, line)
    while slots[table[first + hole]]["line"] != line:
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        slot = table[first + at]
        if slot == NONE:
            break
        if ((at - _home(caches, cache, slots[slot]["line"])) & mask) >= ((at - hole) & mask):
            table[first + hole] = slot
            hole = at
    table[first + hole] = NONE


COPY, INCLUSIVE, EXCLUSIVE, KEPT = range(4)
MODULO, XOR, MIXED = range(3)
BLOCK = 256
PLAN = np.dtype(
    [("cores", "i8"), ("private", "i8"), ("slices", "i8"), ("hashing", "i8"), ("inclusion", "i8")]
)
"""Cores, private levels of each, slices of the shared level (0: none), hash, and what levels hold."""


@lean
def slice_number(line: int, slices: int, hashing: int) -> int:
    """Return the slice of a line, as `qmodels.systems.cache.spec.slice_of` does."""
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
