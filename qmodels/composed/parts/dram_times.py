"""The times of DRAM accesses from where they wait: means, variances and the last of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.memory.dram.channel_waits import ChannelWaits
from qmodels.memory.dram.mixture import Kind, alone_columns
from qmodels.memory.dram.write_queue import LastWrites
from qmodels.networks.open.qna import split_scv
from qmodels.numerics.largest import largest_moments
from qmodels.systems.memory.dram_system import DramSystem


@dataclass(frozen=True, kw_only=True)
class Times:
    """Of an access in cycles: what it takes alone, and the waits at what its batch shares and does not."""

    # fixed, opening, alone: controller, column access and burst; opening its row; and what its own batch
    # delays it by.
    fixed: float
    opening: float
    alone: float
    # apart, shared, common: mean and variance of the wait at its bank; of those for others in its channel;
    # and of those for refreshes, which all channels have at the same time.
    apart: tuple[float, float]
    shared: tuple[float, float]
    common: tuple[float, float]
    spread: float  # variance of opening the row
    written: tuple[float, float]  # mean and variance of a write's wait for a moment without reads
    last: LastWrites | None  # the last of the writes of a batch at a channel; None if none wait

    @property
    def mean(self) -> float:
        """Mean latency."""
        waits = (self.apart, self.shared, self.common, self.written)
        return self.fixed + self.opening + self.alone + sum(mean for mean, _ in waits)

    @property
    def variance(self) -> float:
        """Variance of the latency, waits being independent."""
        waits = (self.apart, self.shared, self.common, self.written)
        return sum(variance for _, variance in waits) + self.spread + self.alone**2 / 3


def access_times(spec: DramSystem, waits: ChannelWaits, hits: float, *, write: bool, scv: float) -> Times:
    """Return the times of an access whose issues come with a squared coefficient of variation."""
    t, g = spec.timing, spec.geometry
    one = {name: float(getattr(waits, name)) for name in ("row", "bank", "activation", "bus", "refresh")}
    backlog, late = float(waits.backlog), float(waits.refreshed)
    alone = float(waits.alone)
    here = float(split_scv(scv, 1 / g.channels))
    at_bank = float(split_scv(scv, 1 / (g.channels * g.channel_banks)))
    bus = max(one["bus"] - alone, 0.0) * here
    activation, bank = one["activation"] * here, one["bank"] * at_bank
    reach = {name: float(value) for name, value in waits.reach.items()}
    common, drain = _refresh(one["refresh"], backlog, late, reach["refresh"]), (0.0, 0.0)
    if not write and waits.queue > 0:
        behind, drain, refresh = waits.delays
        bank, common = bank + float(behind), _uniform(refresh)
    apart = _wait(bank, reach["bank"])
    shared = _sum(_wait(bus, reach["bus"]), _wait(activation, reach["activation"]), _uniform(drain))
    fixed = spec.controller_cycles + (t.cwl if write else t.cl) + t.burst
    waiting = float(waits.write_queue) if write else 0.0
    row = one["row"] / max(1 - hits, 1e-12) if hits < 1 else 0.0
    return Times(
        fixed=float(fixed),
        opening=one["row"],
        alone=alone,
        apart=apart,
        shared=shared,
        common=common,
        spread=hits * (1 - hits) * row**2,
        written=(waiting, waiting**2),
        last=waits.write_last[0] if write and waits.write_last else None,
    )


def _sum(*parts: tuple[float, float]) -> tuple[float, float]:
    return sum(mean for mean, _ in parts), sum(variance for _, variance in parts)


def _wait(mean: float, longest: float) -> tuple[float, float]:
    """Return a wait as `qmodels.memory.dram.solve.latency_law` takes it: sums of uniform times."""
    if mean <= 0:
        return 0.0, 0.0
    half = max(longest, 1e-12) / 2
    number = mean / half
    return mean, number * half**2 / 3 + number * (1 + number) * half**2


def _uniform(delay: tuple[Any, Any]) -> tuple[float, float]:
    """Return a delay that happens with a probability, uniform up to the longest."""
    probability, longest = float(delay[0]), float(delay[1])
    mean = probability * longest / 2
    return mean, max(probability * longest**2 / 3 - mean**2, 0.0)


def _refresh(mean: float, backlog: float, late: float, block: float) -> tuple[float, float]:
    if block <= 0 or late <= 0:
        return mean + backlog, 0.0
    return mean + backlog, _uniform((late, block))[1]


INF = float("inf")


class Together(NamedTuple):
    """Overlap of the busy times of channels, and of the banks of a channel, with the same batches."""

    # channels, rows: chance that a batch that is at one of the channels in use, or at the bank in use there,
    # is at another of them: blocks side by side on channels are at banks of one number.
    channels: float
    rows: float
    banks: float  # accesses that are not the only one of their batch at their channel, but for one of each


def last_times(
    kind: Kind, times: Times, together: Together, *, reach: float, size: float, rows: float
) -> tuple[float, float]:
    """Return mean and variance until the last of a batch is done. [cycles, cycles2].

    ``reach``: how much later than its mean access the last of a batch alone is done [cycles]; ``size``,
    ``rows``: accesses of a batch at a channel, and the banks that they are at.

    The accesses of a batch at a channel follow one another as they do alone, evenly from the first to the
    last. They wait for their banks and channels independently unless these are busy with the same batches,
    and all for the same refreshes: an approximation.
    """
    if kind.blocks == 1:
        return times.mean, times.variance
    number = max(round(size), 1)
    begin = times.opening + times.alone
    queued = times.written
    if times.last is not None and number > 1:
        # Writes wait one by one for a moment without reads.
        later, noise = times.last.beyond(number, rows, reach)
        queued = queued[0] + later, noise
    shared = _sum(times.shared, queued)
    starts = begin + reach * np.linspace(-1.0, 1.0, number) if number > 1 else np.array([begin + reach])
    bank, banks = _split(times.apart, together.banks)
    first, spread = largest_moments(mean=bank[0], variance=bank[1], count=1, start=starts)
    latest, channels = float(starts[-1]), max(kind.blocks / size, 1.0)
    rest, both = _split(shared, together.channels)
    at_banks, same = _split((first - latest, spread), together.rows)
    more, noise = _sum(at_banks, rest)
    result, variance = largest_moments(mean=more, variance=noise, count=channels, start=latest)
    mean, noise = _sum(times.common, both, same, banks)
    return times.fixed + result + mean, variance + times.spread / number + noise


def _split(wait: tuple[float, float], together: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the part of a wait that accesses have apart, and the part they have together."""
    mean, variance = wait
    return ((1 - together) * mean, (1 - together) * variance), (together * mean, together * variance)


def batches_together(spec: DramSystem, kinds: Sequence[Kind]) -> tuple[Together, ...]:
    """Return of each kind the overlap of the busy times of its channels and banks with the same batches."""
    total = sum(kind.rate for kind in kinds)
    sizes = [alone_columns(spec, kind)[2] for kind in kinds]
    used = [max(kind.blocks / size, 1.0) for kind, size in zip(kinds, sizes, strict=True)]
    shares = np.array([kind.rate / total for kind in kinds])
    banks = float(shares @ [1 - 1 / max(size, 1.0) for size in sizes])
    channels, rows = (_overlaps(tuple(used), most) @ shares for most in (spec.geometry.channels, INF))
    return tuple(Together(*both, banks=banks) for both in zip(channels.tolist(), rows.tolist(), strict=True))


@lru_cache(maxsize=256)
def _overlaps(used: tuple[float, ...], channels: float) -> FloatArray:
    """Return the chances of `_side_by_side`, (of, with); they do not depend on the rates."""
    return np.array([[_side_by_side(own, other, channels) for other in used] for own in used])


def _side_by_side(own: float, other: float, channels: float) -> float:
    r"""Return the chance that a batch which is at one of the channels of another is at a further one too.

    Batches use consecutive channels, of :math:`C` that go round, infinite if what follows on the first is at
    another bank: two that are :math:`d` apart both with :math:`((m - d)^+ + (m + d - C)^+) / m` where the
    other has :math:`m`, a mean over pairs of the own ones.
    """
    apart = np.arange(1, max(round(own), 1))
    if not apart.size:
        return 0.0
    both = np.maximum(other - apart, 0.0) + np.maximum(other + apart - channels, 0.0)
    pairs = round(own) - apart
    return float(min(pairs @ both / pairs.sum() / other, 1.0))
