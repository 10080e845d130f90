"""DRAM: what reads and writes of all streams meet at its channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from itertools import combinations
from math import isclose
from operator import mul
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtrc

from qmodels.composed.parts.dram_times import Together, access_times, batches_together, last_times
from qmodels.composed.stalls import Stall, one_stall
from qmodels.composed.streams import InOrder, PartAnswer, Response, Stream
from qmodels.memory.dram.limits import binding
from qmodels.memory.dram.mixture import Kind, Mixed, alone_columns, mixed_waits, pure_waits
from qmodels.networks.open.qna import departing_scv, merging_weight, service_noise, split_scv
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import DramSystem, Packets, RandomBlocks, StridedBlocks

INF = float("inf")
GROUPS = 3
"""Sizes of batches that a stream is told apart by, at most."""
ALLOCATED = (
    "steps that access the same allocated blocks are taken to find no rows open for each other: "
    "times at the memory are up to 2.3 times too long"
)
DISTANCE = (
    "streams of addresses along which a job reads or writes in turn keep their distance: "
    "times at the memory are from 0.6 to 2.6 times those of a run"
)
SMALL = (
    "rows that hold all of a small free list are taken to be closed: "
    "times at the memory are up to 1.7 times too long"
)
FEW_ROWS = 16
"""Rows of each bank that a free list fills, at least, if its blocks hardly find them open."""
JOINED = (
    "steps that share a stream of addresses are taken for streams of their own or one: "
    "times at the memory are up to 3.3 times too long"
)
IN_ORDER = "accesses of several kinds in order are taken for batches of their mean size"


@dataclass(frozen=True, kw_only=True, eq=False)
class Offered:
    """Accesses that the streams ask for, by kind."""

    kinds: tuple[Kind, ...]  # all kinds of packets with the accesses of each [blocks/cycle]
    # Of each stream its kinds, each with the share of the issues.
    of: tuple[tuple[tuple[int, float], ...], ...]
    together: tuple[Together, ...]  # of each kind, how far its channels and banks have the same batches
    scv: float  # squared coefficient of variation of the times between issues, all streams together


def respond_dram(spec: DramSystem, streams: tuple[Stream, ...]) -> PartAnswer:
    """Return the answer of a DRAM to streams of reads and writes; its own traffic does not count.

    ``streams``: accesses: a batch is that many consecutive blocks.

    Streams of one kind, random accesses, sequential ones or batches, are answered as
    `qmodels.memory.dram.solve.solve_dram` answers to `RandomBlocks`, `StridedBlocks` and `Packets`; several
    kinds by `qmodels.memory.dram.mixture.mixed_waits`. Batches of many sizes are told apart by `GROUPS`
    sizes. The spread of a latency is that of the law that `solve_dram` gives quantiles of. Arrivals that are
    burstier or smoother than Poisson ones multiply waits by what two moments say of M/G/1, with the SCV
    that is left of them where streams meet and are split among channels and banks.
    """
    streams, g = _some(streams), spec.geometry
    few = FEW_ROWS * g.channels * g.channel_banks * g.row_blocks
    small = (SMALL,) * any(s.blocks < few and not _goes_along(s) for s in streams)
    spec = rows_of_reads(spec, streams)
    offered = _offered(spec, streams)
    mixed, doubts = _waits(spec, offered, streams)
    load = mixed.load
    left = split_scv(offered.scv, 1 / spec.geometry.channels)
    total = sum(s.rate for s in streams)
    departing = departing_scv(left, service_noise(0.0, 1), min(load, 1.0))
    weight = merging_weight(1 / spec.geometry.channels, min(load, 1.0))
    # Bursts are the same ones at all channels, and are one again behind them.
    bursts = (1 - min(load, 1.0) ** 2) * max(offered.scv - left, 0.0)
    leaving = 1 - weight + weight * float(departing) + bursts
    keys = [
        (kinds, float(split_scv(leaving, stream.rate / total)), _each(stream))
        for stream, kinds in zip(streams, offered.of, strict=True)
    ]

    times_of = cache(partial(_times_of, spec, offered, mixed))

    def find(key: Any) -> Response:
        kinds, scv, each = key
        stable = mixed.load < 1
        found = _response(spec, mixed, [(share, times_of(k)) for k, share in kinds if stable], scv)
        return _scattered(spec, offered, mixed, kinds, each, found) if each else found

    return PartAnswer(responses=InOrder(keys, find), intensity=dram_loads(mixed), doubts=doubts + small)


def _each(stream: Stream) -> int:
    """Return the blocks of a read at random addresses, of which several are issued at once; 0 if not so."""
    if not _is_anywhere(stream):
        return 0
    blocks = max(round(stream.run), 1) if _allocated(stream) else getattr(stream.step, "blocks", None)
    if not isinstance(blocks, int):
        return 0
    return blocks if stream.batch[blocks + 1 :].any() else 0


def _scattered(
    spec: DramSystem,
    offered: Offered,
    mixed: Mixed,
    kinds: Sequence[tuple[int, float]],
    each: int,
    found: Response,
) -> Response:
    r"""Return a response to reads issued at once that are at random banks, from one to consecutive blocks.

    Of m reads at B banks the fullest has j or more with :math:`1 - (1 - P(N \ge j))^B`, N binomial of m
    and :math:`1/B`, and they pass a row cycle apart; the last is done no sooner than the batch takes its
    channels. It is also the last to open a row: each finds another one open with the probability of any.
    """
    if not np.isfinite(found.last_mean):
        return found
    t, g = spec.timing, spec.geometry
    banks = max(g.channels * g.channel_banks / (2 * each - 1), 1.0)
    span, mean, last = 2 * max(found.last_mean - found.mean, 0.0) * spec.clock_ghz, 0.0, 0.0
    for k, share in kinds:
        reads = max(round(offered.kinds[k].blocks / each), 1)
        fuller = 1 - (1 - bdtrc(np.arange(reads), reads, 1 / banks)) ** banks
        at_most = np.append(fuller[1:], 0.0)
        law = np.maximum(fuller - at_most, 0.0)
        late = np.maximum(np.arange(reads) * t.t_rc, span)
        waits, hits = mixed.waits[min(k, len(mixed.waits) - 1)], mixed.row_hit_ratio
        closes = float(waits.row) / max(1 - hits[min(k, len(hits) - 1)], 1e-12) - t.t_rcd
        closes = min(max(closes / t.t_rp, 0.0), 1.0)
        last += share * (float(law @ late) / float(law.sum()) - span)
        last += share * t.t_rp * (1 - (1 - closes) ** reads - closes)
        mean += share * (reads - 1) / 2 / banks * t.t_rc
    mean, last = mean / spec.clock_ghz, last / spec.clock_ghz
    return replace(
        found,
        mean=found.mean + min(mean, last),
        last_mean=found.last_mean + last,
        alone_mean=found.alone_mean + min(mean, last),
        alone_last=found.alone_last + last,
    )


def dram_load(spec: DramSystem, streams: tuple[Stream, ...]) -> float:
    """Return the intensity of the fullest resource of a DRAM."""
    streams = _some(streams)
    spec = rows_of_reads(spec, streams)
    return _waits(spec, _offered(spec, streams), streams)[0].load


def rows_of_reads(spec: DramSystem, streams: tuple[Stream, ...]) -> DramSystem:
    """Return a DRAM whose rows hold no more than one read has there, where several are issued at once.

    Only the blocks of one read are consecutive: those of others at random addresses are in other rows, while
    a batch of consecutive blocks would find its own rows open.
    """
    several = [each for each in map(_each, streams) if each]
    random = all(map(_is_anywhere, streams))
    if not random or not several or not isinstance(spec.address_map, Interleaved):
        return spec
    each, old, g = max(several), spec.address_map, spec.geometry
    bank_step = min(old.bank_step, each)
    row = max(-(-each // (g.channels * g.channel_banks)), bank_step)
    return replace(
        spec,
        geometry=replace(g, row_blocks=min(row, g.row_blocks)),
        address_map=replace(old, step=min(old.step, each), bank_step=bank_step),
    )


def _some(streams: tuple[Stream, ...]) -> tuple[Stream, ...]:
    """Return streams of which one has requests."""
    if any(s.request_rate > 0 for s in streams):
        return streams
    return tuple(replace(s, rate=1e-12) for s in streams)


def dram_loads(mixed: Mixed) -> dict[str, float]:
    """Return the traffic intensities of a DRAM's resources."""
    top = binding(mixed.limits)
    return {"": mixed.load} | {
        name: mixed.rate / (top[1] if name == top[0] else limit)
        for name, limit in mixed.limits.items()
        if name != "refresh"
    }


class _OfKind(NamedTuple):
    """Times of the accesses of a kind. [cycles, cycles2]."""

    blocks: int
    # access, last: mean and variance, and those until the last of a batch is done.
    access: tuple[float, float]
    last: tuple[float, float]
    # alone, alone_last: the same means of a batch that meets no other.
    alone: float
    alone_last: float
    # paused, alone_paused: what is waited for refreshes, and if one meets no other.
    paused: float
    alone_paused: float
    stall: Stall


def _times_of(spec: DramSystem, offered: Offered, mixed: Mixed, k: int) -> _OfKind:
    """Return the times of a kind, by its number."""
    kind, waits = offered.kinds[k], mixed.waits[min(k, len(mixed.waits) - 1)]
    hits = mixed.row_hit_ratio[min(k, len(mixed.row_hit_ratio) - 1)]
    opened = mixed.opened[min(k, len(mixed.opened) - 1)]
    times = access_times(spec, waits, hits, write=kind.write, scv=offered.scv)
    first, last, size, rows = alone_columns(spec, kind, opened)
    reach = max(last - first, 0.0) if kind.blocks > 1 else 0.0
    refresh = float(waits.refresh)
    # Alone an access meets refreshes and the rows that others have left open.
    alone = times.fixed + times.opening + times.alone + refresh
    return _OfKind(
        blocks=kind.blocks,
        access=(times.mean, times.variance),
        last=last_times(kind, times, offered.together[k], reach=reach, size=size, rows=rows),
        alone=alone,
        alone_last=alone + reach,
        paused=refresh + float(waits.backlog),
        alone_paused=refresh,
        stall=Stall(float(waits.refreshed), float(waits.reach["refresh"]) / 2 / spec.clock_ghz),
    )


def _response(
    spec: DramSystem, mixed: Mixed, found: Sequence[tuple[float, _OfKind]], departure_scv: float
) -> Response:
    """Return the response to a stream: means over its kinds, of accesses and of issues."""
    if mixed.load >= 1:
        return Response(mean=INF, variance=INF, last_mean=INF, last_variance=INF, departure_scv=departure_scv)
    clock, total = spec.clock_ghz, sum(share for share, _ in found)
    accesses = [(share * one.blocks, one) for share, one in found]
    mean, variance = _mixture([(weight, *one.access) for weight, one in accesses])
    last_mean, last_variance = _mixture([(share, *one.last) for share, one in found])
    stall = one_stall([share / total for share, _ in found], [one.stall for _, one in found])
    return Response(
        mean=mean / clock,
        variance=variance / clock**2,
        last_mean=last_mean / clock,
        last_variance=last_variance / clock**2,
        departure_scv=departure_scv,
        stall=replace(stall, every=spec.timing.t_refi / clock or INF),
        alone_mean=_mean((weight, one.alone) for weight, one in accesses) / clock,
        alone_last=_mean((share, one.alone_last) for share, one in found) / clock,
        paused=_mean((weight, one.paused) for weight, one in accesses) / clock,
        alone_paused=_mean((weight, one.alone_paused) for weight, one in accesses) / clock,
        pause=float(mixed.waits[0].blocked) / spec.geometry.ranks / clock,
    )


def _mean(parts: Iterable[tuple[float, float]]) -> float:
    weights, values = zip(*parts, strict=True)
    return sum(map(mul, weights, values)) / sum(weights)


def _mixture(parts: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    total = sum(weight for weight, _, _ in parts)
    mean = sum(weight * first for weight, first, _ in parts) / total
    spread = sum(weight * (second + (first - mean) ** 2) for weight, first, second in parts) / total
    return mean, spread


def _waits(spec: DramSystem, offered: Offered, streams: tuple[Stream, ...]) -> tuple[Mixed, tuple[str, ...]]:
    """Return the waits of all kinds, those of one kind of traffic as the DRAM's own model has them."""
    kinds = offered.kinds
    doubts = [ALLOCATED] if sum(map(_allocated, streams)) > 1 else []
    if _split(streams):
        doubts.append(JOINED)
    if _keep_distance(streams):
        doubts.append(DISTANCE)
    traffic = _own_traffic(kinds, ordered=spec.scheduler == "in-order")
    if traffic is None:
        return mixed_waits(spec, kinds), tuple(doubts)
    if len({(k.blocks, k.follows) for k in kinds}) > 1:
        doubts.append(IN_ORDER)
    return pure_waits(_with_traffic(spec, traffic), sum(k.rate for k in kinds)), tuple(doubts)


@lru_cache(maxsize=256)
def _with_traffic(spec: DramSystem, traffic: Any) -> DramSystem:
    return replace(spec, traffic=traffic)


def _own_traffic(kinds: Sequence[Kind], *, ordered: bool) -> Any:
    """Return accesses as the traffic of a DRAM alone at any rate, or None if no such traffic is like them."""
    total = sum(k.rate for k in kinds)
    writes = min(sum(k.rate for k in kinds if k.write) / total, 1.0)
    if all(k.blocks == 1 and not k.follows for k in kinds):
        return RandomBlocks(arrival_rate=1.0, write_fraction=writes)
    if len(kinds) == 1 and kinds[0].blocks == 1 and kinds[0].run == INF:
        return StridedBlocks(arrival_rate=1.0, write_fraction=writes)
    blocks = {k.blocks for k in kinds}
    if ordered or (len(blocks) == 1 and len(kinds) == 1 and not kinds[0].follows):
        size = total / sum(k.rate / k.blocks for k in kinds)
        return Packets(arrival_rate=1.0, blocks=max(round(size), 1), write_fraction=writes)
    return None


def _allocated(stream: Stream) -> bool:
    return getattr(stream.step, "addresses", "random") == "allocated"


def _goes_along(stream: Stream) -> bool:
    """Return whether a batch begins where the one before it ended: runs of a free list hold several."""
    return stream.run > stream.mean_batch


def _is_anywhere(stream: Stream) -> bool:
    """Return whether a batch begins anywhere, and is of one read or of several short runs of a free list."""
    addresses = getattr(stream.step, "addresses", "random")
    return addresses == "random" or (addresses == "allocated" and not _goes_along(stream))


def _joined(stream: Stream) -> str:
    """Return the name of a stream of sequential addresses, "" for one of the step's own."""
    return str(getattr(stream.step, "stream", ""))


def _split(streams: tuple[Stream, ...]) -> bool:
    """Return whether several steps share a stream of addresses."""
    names = [_joined(s) for s in streams if _joined(s)]
    return len(set(names)) < len(names)


def _keep_distance(streams: tuple[Stream, ...]) -> bool:
    """Return whether a flow has several streams of addresses without end that go on at one pace."""
    endless = [(s, _joined(s) or number) for number, s in enumerate(streams) if s.run == INF and s.rate > 0]
    return any(
        name != other_name and one.flow == other.flow and isclose(one.request_rate, other.request_rate)
        for (one, name), (other, other_name) in combinations(endless, 2)
    )


def _offered(spec: DramSystem, streams: tuple[Stream, ...]) -> Offered:
    found: dict[Any, float] = {}
    of = []
    for number, stream in enumerate(streams):
        along = _goes_along(stream)
        mine = []
        for blocks, accesses, share in batch_groups(stream):
            # Streams of one kind of random packets are one; each that goes on has places of its own.
            own = (stream.run, _joined(stream) or number) if along else (0.0, -1)
            key = (blocks, stream.write, *own)
            found[key] = found.get(key, 0.0) + accesses / spec.clock_ghz
            mine.append((key, share))
        of.append(mine)
    kinds = {key: Kind(blocks=key[0], write=key[1], rate=rate, run=key[2]) for key, rate in found.items()}
    order = list(kinds)
    rates = np.array([s.rate for s in streams])
    share = rates / rates.sum()
    weight = merging_weight(float(share @ share), 0.5)
    return Offered(
        kinds=tuple(kinds.values()),
        of=tuple(tuple((order.index(key), part) for key, part in mine) for mine in of),
        together=batches_together(spec, tuple(kinds.values())),
        scv=1 - weight + weight * float(share @ [s.scv for s in streams]),
    )


def batch_groups(stream: Stream) -> list[tuple[int, float, float]]:
    """Return the sizes that stand for a stream's batches: blocks, accesses per ns, share of the issues."""
    return [(size, stream.rate * each, share) for size, each, share in _sizes(stream.batch.tobytes())]


@lru_cache(maxsize=1024)
def _sizes(batch: bytes) -> list[tuple[int, float, float]]:
    """Return the sizes that stand for a law of batches: blocks, accesses of an issue, share of the issues."""
    law = np.frombuffer(batch)
    used = np.flatnonzero(law[1:] > 0) + 1
    weight = law[used]
    if used.size <= GROUPS:
        groups = [np.array([k]) for k in range(used.size)]
    else:
        middle = np.cumsum(weight * used) - weight * used / 2
        of = np.minimum((GROUPS * middle / (weight @ used)).astype(int), GROUPS - 1)
        groups = [np.flatnonzero(of == g) for g in range(GROUPS) if (of == g).any()]
    result = []
    for group in groups:
        issues, accesses = float(weight[group].sum()), float(weight[group] @ used[group])
        result.append((max(round(accesses / issues), 1), accesses, issues))
    return result
