"""Response of a part to its streams, by its kind; shares of look-ups by where lines are found."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.composed.parts.bursty import with_bursts
from qmodels.composed.parts.dram import dram_load, respond_dram
from qmodels.composed.parts.free_list import pointer_memory
from qmodels.composed.parts.serving import respond_banks, serving_copy
from qmodels.composed.parts.station import over_copies, station_copy, station_load
from qmodels.composed.streams import PartAnswer, Stream
from qmodels.llc.solve_cache import solve_cache
from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.parts import ServingPart
from qmodels.systems.composed.program_form import LookupShares
from qmodels.systems.composed.steps import Acquire
from qmodels.systems.composed.system import System
from qmodels.systems.laws.kinds import scaled
from qmodels.systems.laws.times import Exponential, Law
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station


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


ALIKE = 1e-4
"""SCVs that differ by less are the same."""


def respond(part_name: str, system: System, streams: tuple[Stream, ...]) -> PartAnswer:
    """Return the answer of a part of a system to the streams of requests to it.

    ``part_name``: a memory, free lists, a station or a part of another package; ``system``: the system: where
    the copies of the part are; ``streams``: all that is asked of it.
    """
    part = system.parts[part_name]
    nodes = system.place.get(part_name, ())
    match part:
        case DramSystem():
            return with_bursts(respond_dram(part, streams), streams, part.geometry.channels)
        case BankedChannels():
            return with_bursts(respond_banks(part, streams), streams, part.channels)
        case FreeList():
            return with_bursts(pointer_memory(part, streams), streams)
        case Station():
            arrivals = _arrivals(system, streams) if len(nodes) < 2 else None
            return over_copies(nodes, streams, lambda here: station_copy(part, here, arrivals))
        case ServingPart():
            return over_copies(nodes, streams, lambda here: with_bursts(serving_copy(part, here), here))
    raise ValueError(f"parts.{part_name} must be visited, read, written or allocated from, got {part!r}")


def load_of(part_name: str, system: System, streams: tuple[Stream, ...]) -> float | None:
    """Return the intensity of the fullest resource of a part, None where it follows from the times."""
    part = system.parts[part_name]
    if isinstance(part, Station):
        return station_load(part, system.place.get(part_name, ()), streams)
    return dram_load(part, streams) if isinstance(part, DramSystem) else None


def _arrivals(system: System, streams: tuple[Stream, ...]) -> Any:
    """Return the law of the arrivals, where they are those of a flow that begins with the step.

    Tokens may be taken before: a window takes them likewise, and a pool that never binds changes nothing.
    """
    if len(streams) > 1:
        return None
    (stream,) = streams
    flow = system.flow(stream.flow)
    law = flow.arrivals if stream.peak <= 1 else None
    first = next((step for step in flow.program if not isinstance(step, Acquire)), None)
    if law is None or first is not stream.step or abs(stream.scv - law.scv) > ALIKE:
        return None
    if not isinstance(law, Law) or isinstance(law, Exponential):
        return None
    return scaled(law, 1 / (stream.rate * law.mean)) if stream.rate > 0 else None
