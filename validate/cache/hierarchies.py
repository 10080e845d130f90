"""The caches of some systems side by side, for kernels that look lines up one at a time.

`draw_core` and `draw_line` draw who asks for what, `look_up` lets a core ask: it says where the line was and
in which slice it belongs, moves the lines as the system's inclusion says, and counts. All of it happens at
once: whoever has the request travel keeps the answer until it arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from qmodels.systems.cache.spec import HASHES, INCLUSIONS, REPLACEMENTS, CacheSystem, feistel, line_popularity
from qmodels.systems.traffic.popularity import MOST_ENTRIES, Zipf
from validate.cache.kernels import (
    CACHE,
    LAW,
    PLAN,
    SLOT,
    access,
    alias_line,
    new_caches,
    run,
    slice_number,
    zipf_law,
    zipf_line,
)
from validate.engine.jit import lean
from validate.engine.sampling import alias_table
from validate.engine.streams import uniform

SOURCES = ("replacement", "cores", "lines")
"""What draws from the three streams of each system."""
REPLACEMENT, CORES, LINES = range(3)
MOST_LEVELS = 4
HELD = ("caches", "slots", "table")
DRAWN = ("cut", "other", "law", "keys")
LAPS, LEAST = 20, 200_000
"""Most requests of a warm-up, for each line of all caches; and in all, where few go beyond a first level."""


class Hierarchies(NamedTuple):
    """Caches, what they hold, and the popularity of their lines."""

    plan: Annotated[Any, PLAN, 1]  # of each system
    # bounds, drawn: where the caches, and the alias table, of each system begin, and the end; a system whose
    # table is empty draws by its law.
    bounds: Annotated[Any, "i8", 1]
    drawn: Annotated[Any, "i8", 1]
    # caches, slots, table: see `validate.cache.kernels`.
    caches: Annotated[Any, CACHE, 1]
    slots: Annotated[Any, SLOT, 1]
    table: Annotated[Any, "i4", 1]
    streams: Annotated[Any, "u8", 2]  # three for each system, see `SOURCES`
    # cut, other, law, keys: alias tables, laws and the keys of their assignments, see
    # `validate.cache.kernels`.
    cut: Annotated[Any, "f8", 1]
    other: Annotated[Any, "i4", 1]
    law: Annotated[Any, LAW, 1]
    keys: Annotated[Any, "i8", 2]
    hits: Annotated[Any, "i8", 2]  # lookups by the level that had the line, the last of a system its memory


def new_hierarchies(
    specs: Sequence[CacheSystem], streams: Any, *, most_entries: int = MOST_ENTRIES
) -> Hierarchies:
    """Return the empty caches of some systems.

    ``streams``: three for each, in the order of `SOURCES`; ``most_entries``: for which lines are drawn from a
    table, at most `MOST_ENTRIES`.
    """
    each = [_empty_caches(spec) for spec in specs]
    laws = [_popularity(spec, most_entries) for spec in specs]
    slots, table = (np.cumsum([0, *(arrays[k].size for arrays in each)]) for k in (1, 2))
    for k, (caches, _, _) in enumerate(each):
        caches["first"] += slots[k]
        caches["table"] += table[k]
    return Hierarchies(
        plan=np.concatenate([_plan(spec) for spec in specs]),
        bounds=np.cumsum([0, *(caches.size for caches, _, _ in each)]),
        drawn=np.cumsum([0, *(cut.size for cut, _, _, _ in laws)]),
        **{name: _joined(arrays) for name, arrays in zip(HELD, zip(*each, strict=True), strict=True)},
        streams=streams,
        **{name: _joined(arrays) for name, arrays in zip(DRAWN, zip(*laws, strict=True), strict=True)},
        hits=np.zeros((len(specs), MOST_LEVELS + 1), dtype=np.int64),
    )


def _joined(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _plan(spec: CacheSystem) -> Any:
    plan, shared = np.zeros(1, dtype=PLAN), spec.shared
    plan["cores"], plan["private"] = int(spec.cores), len(spec.private)
    plan["slices"] = shared.slices if shared else 0
    plan["hashing"] = HASHES.index(shared.hashing) if shared else 0
    plan["inclusion"] = INCLUSIONS.index(spec.inclusion)
    return plan


def _empty_caches(spec: CacheSystem) -> tuple[Any, Any, Any]:
    """Return the caches of a system: the private ones of each core, then the slices."""
    cores, shared = int(spec.cores), spec.shared
    sizes = [level.lines for level in spec.private] * cores + (shared.slice_lines.tolist() if shared else [])
    kinds = [*spec.private * cores, *([shared] * shared.slices if shared else [])]
    return new_caches(
        sizes,
        [REPLACEMENTS.index(level.replacement) for level in kinds],
        [level.insertion_probability for level in kinds],
        lines=spec.line_count,
    )


def _popularity(spec: CacheSystem, most_entries: int) -> tuple[Any, Any, Any, Any]:
    """Return the alias table of a system's lines, or an empty one and its law, and the law's keys."""
    law, keys = np.zeros(1, dtype=LAW), np.zeros((1, 4), dtype=np.int64)
    per_line, seed = int(spec.entries_per_line), int(spec.assignment_seed)
    if spec.popularity.entries <= most_entries:
        p, _ = line_popularity(spec.popularity, per_line, spec.assignment, seed)
        return *alias_table(p / np.cumsum(p)[-1] * len(p)), law, keys
    half, keys[0] = feistel(spec.popularity.entries, seed)
    zipf = spec.popularity
    assert isinstance(zipf, Zipf)
    law = zipf_law(zipf, entries_per_line=per_line, half=half, scattered=spec.assignment == "random")
    return np.empty(0), np.empty(0, dtype=np.int32), law, keys


@lean
def draw_core(h: Hierarchies, k: int) -> int:
    """Return a random core of a system."""
    return int(uniform(h.streams, 3 * k + CORES) * h.plan[k]["cores"])


@lean
def draw_line(h: Hierarchies, k: int) -> int:
    """Return a random line of a system, by its popularity."""
    first, end = h.drawn[k], h.drawn[k + 1]
    if first == end:
        return zipf_line(h.law[k : k + 1], h.keys[k], h.streams, 3 * k + LINES)
    return alias_line(h.cut[first:end], h.other[first:end], h.streams, 3 * k + LINES)


@lean
def look_up(h: Hierarchies, k: int, core: int, line: int) -> tuple[int, int]:
    """Let a core of a system ask for a line; return the level that had it, and its slice (0 without slices).

    The shared level comes after the private ones, whether there is one or not, and memory after that.
    """
    private, slices = h.plan[k]["private"], h.plan[k]["slices"]
    caches = h.caches[h.bounds[k] : h.bounds[k + 1]]
    level = access(h.plan[k : k + 1], caches, h.slots, h.table, h.streams[3 * k :], core, line)
    h.hits[k, level] += 1
    home = slice_number(line, slices, h.plan[k]["hashing"]) if slices > 0 else 0
    return level + (level == private and slices == 0), home


def request(h: Hierarchies, k: int, requests: int) -> tuple[Any, Any]:
    """Let random cores of a system ask for random lines.

    Returns served, to_slices: requests of each core by the level that had the line, and those that reached
    each slice.
    """
    plan, (first, end) = h.plan[k], h.drawn[k : k + 2]
    levels = plan["private"] + (plan["slices"] > 0)
    served = np.zeros((plan["cores"], levels + 1), dtype=np.int64)
    to_slices = np.zeros(max(1, plan["slices"]), dtype=np.int64)
    run(
        h.plan[k : k + 1],
        h.caches[h.bounds[k] : h.bounds[k + 1]],
        h.slots,
        h.table,
        h.streams[3 * k :],
        h.cut[first:end],
        h.other[first:end],
        h.law[k : k + 1],
        h.keys[k],
        served,
        to_slices,
        requests,
    )
    return served, to_slices


def warm_up(h: Hierarchies, k: int) -> int:
    """Let the caches of a system fill up, and as many requests pass again; return how many passed.

    A full LRU cache holds the lines that were wanted last: from then on it is in its stationary state, and
    caches behind it are after as long again. Caches that do not fill, because the lines above them never
    leave, stop this after `LAPS` requests for each line of all of them, and `LEAST` in all.
    """
    caches = h.caches[h.bounds[k] : h.bounds[k + 1]]
    lines = int(caches["capacity"].sum())
    passed = 0
    while passed < max(LAPS * lines, LEAST) // 2 and (caches["used"] < caches["capacity"]).any():
        request(h, k, lines)
        passed += lines
    request(h, k, passed)
    return 2 * passed
