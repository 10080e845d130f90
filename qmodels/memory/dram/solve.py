"""The model of a DRAM system: latency with its parts, bandwidth and what limits it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.memory.dram.access_pattern import AccessPattern, access_pattern
from qmodels.memory.dram.channel_waits import ChannelWaits, channel_waits
from qmodels.memory.dram.limits import binding, channel_limits
from qmodels.systems.memory.dram_system import AddressTrace, DramSystem
from qmodels.systems.spec.answer import Answer

MOST_CELLS = 1 << 16
"""Cells of a law; those of longer latencies are wider, so that memory is bounded."""

Waits = list[tuple[float, float]]


def _longest(waits: Waits, delays: Waits, fixed: float, row: float) -> float:
    mean = fixed + row + sum(wait for wait, _ in waits) + sum(p * last for p, last in delays)
    return 16 * mean + 4 * max((last for _, last in waits + delays), default=0.0) + 64


def grid(*, waits: Waits, delays: Waits, fixed: float, hits: float, row: float) -> int:
    """Return the width of a cell of `latency_law`: 1 cycle, or a power of two if latencies are long."""
    return 1 << max(0, math.ceil(math.log2(_longest(waits, delays, fixed, row) / MOST_CELLS)))


def mixture(laws: list[tuple[float, FloatArray]]) -> FloatArray:
    """Return the sum of laws of whole numbers, each times its share."""
    total = np.zeros(max(law.size for _, law in laws))
    for share, law in laws:
        total[: law.size] += share * law
    return total


def latency_law(
    *, waits: Waits, delays: Waits, fixed: float, hits: float, row: float, cell: int = 1
) -> FloatArray:
    r"""Return the probabilities of latencies of 0, 1, 2, ... cells.

    ``waits``: of each independent wait behind others: its mean and the longest time one of them causes;
    ``delays``: of each independent delay that happens or not: its probability, and up to when it lasts;
    ``fixed``: time that every access takes [cycles]; ``hits``, ``row``: share of the accesses that open no
    row, and the time that opening takes the others; ``cell``: width of a cell; `grid` gives one of which at
    most `MOST_CELLS` are needed [cycles]. Returns probabilities of 0, 1, 2, ... cells.

    A wait has the form of that in M/D/1, a geometric number of residual service times, each uniform
    up to the longest; their mean number is what makes up the mean wait. A delay is uniform.
    Approximate: waits are taken to be independent.

    >>> law = latency_law(waits=[(1.0, 4.0)], delays=[], fixed=10.0, hits=1.0, row=0.0)
    >>> round(float(law @ np.arange(law.size)), 6)
    11.0
    """
    # A cell may be wider than all latencies here, where another channel has longer ones.
    size = 1 << max(2, math.ceil(math.log2(_longest(waits, delays, fixed, row) / cell)))
    opening = np.zeros(size)
    for at, probability in ((fixed / cell, hits), ((fixed + row) / cell, 1 - hits)):
        low = int(at)
        opening[low] += probability * (low + 1 - at)
        opening[low + 1] += probability * (at - low)
    spectrum = np.fft.rfft(opening)
    for wait, longest in waits:
        if wait > 0:
            more = wait / (wait + longest / 2)
            spectrum = spectrum * (1 - more) / (1 - more * np.fft.rfft(_uniform(longest / cell, size)))
    for probability, last in delays:
        if probability > 0:
            spectrum = spectrum * (1 - probability + probability * np.fft.rfft(_uniform(last / cell, size)))
    return np.asarray(np.maximum(np.fft.irfft(spectrum, size), 0.0))


def _uniform(top: float, size: int) -> FloatArray:
    """Return a uniform law up to a time, spread over whole cycles so that its mean is kept."""
    x = np.arange(size, dtype=float)
    twice = np.where(x < top, x**2 / (2 * top), x - top / 2)
    law = np.diff(twice, n=2, prepend=[0.0, 0.0])
    return np.append(law[1:], 0.0)


Laws = Callable[[int], tuple[FloatArray, int]]
"""Of a point by its number: probabilities of the read latencies 0, 1, 2, ... cells, and their cycles."""
NEARLY_FULL = 0.999
PARTS = ("fixed", "row", "bank", "activation", "bus", "refresh", "queue")


def solve_dram(spec: DramSystem) -> Answer:
    """Return latencies, bandwidth and limits of a DRAM system.

    Parameters
    ----------
    spec : DramSystem
        The system; its traffic's arrival rate may be an array, a bandwidth-latency curve.

    Returns
    -------
    Answer
        Where a channel is overloaded latencies are ``inf`` and the delivered rate is what the channels
        can serve.

    Notes
    -----
    The parts of the mean read latency are ``fixed`` (controller, column access, burst), ``row`` (opening
    it), waiting for the ``bank``, for the rank's row commands (``activation``: tFAW, tRRD), for the ``bus``,
    for ``refresh`` while it lasts, and behind batches of writes (``queue``). In order, ``bank`` is what the
    banks add to the wait for the bus alone. Of ``limits`` ``refresh`` is the smallest of the others less
    what refreshes take.

    See `qmodels.memory.dram.channel_waits.channel_waits` for the waits and
    `qmodels.memory.dram.limits.channel_limits` for the limits. The mean latency of random reads of
    DDR4-3200, closed and open pages, one and two ranks, was measured within 1.3 % of two cycle
    simulators and ours without refresh, and within 3.8 % with it, up to 0.8 of the largest rate (at 0.89
    within 7 %, where the simulators differ by 4 %). With writes latencies are 15 to 30 % off above 0.5 of
    the largest rate: `qmodels.memory.dram.write_queue`.

    Examples
    --------
    >>> from qmodels.systems.memory.dram_system import dram
    >>> from qmodels.systems.memory.dram_system import RandomBlocks
    >>> load = RandomBlocks(arrival_rate=np.array([0.02, 0.08, 0.15]))
    >>> curve = solve_dram(dram("DDR4-3200", page_policy="closed", traffic=load))
    >>> curve.read_latency.round(1), curve.bottleneck
    (array([43.9, 81.1,  inf]), 'activation')
    """
    pattern = access_pattern(spec)
    limits = channel_limits(spec, pattern)
    limited_by, top = binding(limits)
    rate = np.asarray(spec.arrival_rate, dtype=float)
    stable = rate * pattern.channel_share.max() < top
    # Beyond the largest rate the channels are as busy as at it.
    safe = np.where(stable, rate, NEARLY_FULL * top / pattern.channel_share.max())
    channels = _channels(spec, pattern, safe)
    t = spec.timing
    fixed = float(spec.controller_cycles + t.cl + t.burst)
    parts = {"fixed": fixed + 0.0 * rate}
    for name in PARTS[1:]:
        parts[name] = sum(share * getattr(waits, name) for share, waits in channels)
    # What refreshes have held up waits where others wait.
    backlog = sum(share * waits.backlog for share, waits in channels)
    of_rank = parts["activation"] / np.maximum(parts["bank"] + parts["activation"], 1e-12)
    parts["activation"] = parts["activation"] + backlog * of_rank
    parts["bank"] = parts["bank"] + backlog * (1 - of_rank)
    parts = {name: np.where(stable, value, np.inf if name != "fixed" else fixed)
             for name, value in parts.items()}  # fmt: skip
    latency = sum(parts.values())
    write = sum(value for name, value in parts.items() if name != "queue") - t.cl + t.cwl
    write = write + sum(share * waits.write_queue for share, waits in channels)
    served = sum(np.minimum(rate * share, top) for share in pattern.channel_share)
    busiest = rate * pattern.channel_share.max()
    laws = partial(_laws, channels, fixed)
    conflicts = _conflicts(spec, pattern, safe, channels)
    if spec.scheduler != "in-order":
        # Accesses wait at their banks without end.
        conflicts = np.where(stable, conflicts, 1.0)
    opened = sum(share * waits.row_hit_ratio for share, waits in channels)
    middle, late = quantiles(laws, stable, (0.5, 0.99))
    clock = spec.clock_ghz
    metrics = {
        "read_latency": latency / clock,
        "read_latency_p50": middle / clock,
        "read_latency_p99": late / clock,
        "delivered_rate": served * clock,
        "bandwidth": spec.gbytes(served),
        "bus_utilization": served * t.burst / spec.geometry.channels,
        "row_hit_ratio": opened,
    }
    writes = spec.traffic.write_fraction
    if writes < 1:
        metrics["read_conflict_probability"] = conflicts
    if writes:
        metrics["write_latency"] = np.where(stable, write, np.inf) / clock
        metrics["write_conflict_probability"] = conflicts
    metrics["saturation_rate"] = np.full(rate.shape, top / pattern.channel_share.max()) * clock
    return Answer(
        model="DRAM model",
        spec=spec,
        metrics={name: np.asarray(value)[()] for name, value in metrics.items()},
        latency_parts={name: value[()] / clock for name, value in parts.items()},
        utilization={"bus": (np.minimum(busiest, top) * t.burst)[()]},
        # Refreshes take their part of what the bottleneck could carry.
        traffic_intensity={
            name: (busiest / (top if name == limited_by else limit))[()]
            for name, limit in limits.items()
            if name != "refresh"
        },
        bottleneck=limited_by,
        details={"limits": limits, "channel_share": pattern.channel_share, "laws": laws},
        stable=stable[()],
        quantile=partial(_quantile, laws, stable[()], clock),
    )


def _quantile(laws: Laws, stable: Any, clock: float, probability: float) -> Any:
    """Return a quantile of the read latency; ``inf`` where a channel is overloaded. [ns]."""
    checks.probability("probability", probability)
    if probability == 1:
        raise ValueError("probability must be below 1, got 1")
    return quantiles(laws, stable, (probability,))[0] / clock


def quantiles(laws: Laws, stable: Any, probabilities: tuple[float, ...]) -> list[Any]:
    """Return quantiles of the latencies of all points, each of the shape of ``stable``. [cycles]."""
    shape = np.shape(stable)
    values = np.full((len(probabilities), int(np.prod(shape))), np.inf)
    for k in np.flatnonzero(stable):
        law, cell = laws(int(k))
        below = np.cumsum(law)
        values[:, k] = cell * np.searchsorted(below, np.multiply(probabilities, below[-1]))
    return [row.reshape(shape)[()] for row in values]


def _channels(spec: DramSystem, pattern: AccessPattern, rate: FloatArray) -> list[tuple[float, ChannelWaits]]:
    """Return the waits of channels, those that are alike once, each with its share of the accesses."""
    alike = not isinstance(spec.traffic, AddressTrace)
    return [
        (of_all, channel_waits(spec, pattern, channel, rate * share))
        for channel, share, of_all in pattern.channels(alike=alike)
    ]


def _law_parts(waits: ChannelWaits, point: int, fixed: float) -> dict[str, Any]:
    def at(value: Any) -> float:
        return float(np.ravel(np.broadcast_to(value, np.shape(waits.bus)))[point])

    alone = waits.alone
    means = {"bank": at(waits.bank), "activation": at(waits.activation), "bus": at(waits.bus) - alone}
    hits = at(waits.row_hit_ratio)
    behind, *delays = waits.delays
    means["bank"] += at(behind)
    return dict(
        waits=[(max(mean, 0.0), at(waits.reach[name])) for name, mean in means.items()],
        delays=[
            (1.0 if alone else 0.0, 2 * alone),
            *((at(often), at(longest)) for often, longest in delays),
        ],
        fixed=fixed,
        hits=hits,
        row=at(waits.row) / (1 - hits) if hits < 1 else 0.0,
    )


def _conflicts(
    spec: DramSystem, pattern: AccessPattern, rate: FloatArray, channels: list[tuple[float, ChannelWaits]]
) -> Any:
    """Return the share of the accesses that find their bank busy, or open at another row."""
    t = spec.timing
    miss = 1 - pattern.row_hit_ratio
    bank_rate = rate * float(pattern.channel_share.max()) * pattern.bank_share
    waits = channels[-1][1]
    is_open = waits.row_open
    kept = np.minimum(bank_rate * t.read_cycle, 1.0)
    if waits.bank_conflict is not None:
        found = sum(share * channel.bank_conflict for share, channel in channels)
        if spec.page_policy == "open" and (t.t_rp or spec.scheduler != "in-order"):
            # Rows that a refresh has closed are no conflict.
            found = found - miss * (1 - is_open) * (1 - kept)
    elif spec.page_policy == "closed":
        # An access keeps its bank also while it waits for row commands and bus behind those of others.
        behind = bank_rate * (waits.activation + waits.bus)
        found = (kept + behind) / (1 + behind)
    else:
        held = np.minimum(bank_rate * (waits.row + waits.bank + waits.activation + waits.bus), 1.0)
        found = miss * (is_open + (1 - is_open) * held) + (1 - miss) * held
    if (
        t.t_rfc
        and spec.scheduler != "in-order"
        and (spec.page_policy == "closed" or waits.bank_conflict is not None)
    ):
        # A refresh, and then one of the accesses that it has held up to this bank.
        block = waits.blocked
        held_up = bank_rate * block / 2
        draining = waits.refreshed - block / t.t_refi
        found = found + (1 - found) * (block / t.t_refi + draining * held_up / (1 + held_up))
    return np.clip(found, 0.0, 1.0)


def _laws(channels: Any, fixed: Any, point: int) -> tuple[FloatArray, int]:
    """Return the law of the read latency at a point of a sweep, and the width of its cells."""
    parts = [(share, _law_parts(waits, point, fixed)) for share, waits in channels]
    # All channels on one grid, as fine as the slowest of them allows.
    cell = max(grid(**part) for _, part in parts)
    return mixture([(share, latency_law(**part, cell=cell)) for share, part in parts]), cell
