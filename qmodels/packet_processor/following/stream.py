"""The packets that a model follows: those of a trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.sizes import segment_count
from qmodels.systems.traffic.trace import Trace
from qmodels.systems.traffic.workload import Workload

LONGEST, PIECES = 48_000, 8
"""Packets of a trace that are followed; of a longer one so many pieces, evenly placed."""
SEED = 11
"""Of what is drawn for each packet of a trace."""
WINDOWS, ERRORS = 512, 2.0
"""Most windows in which a trace's load is looked at, and the standard errors that it has to exceed 1 by."""
HOLDS = 5.0
"""Mean holds at the begin and at the end that are not measured: the store fills, and reads are missing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Packets in the order of their arrival, and what is drawn for each; equal only to itself."""

    times: FloatArray  # arrival times [mean gaps]
    segments: IntArray  # segments
    drawn: FloatArray  # uniform numbers: engine, egress, whether a lookup misses, its channel, its bank
    hold: FloatArray  # holds [mean hold]
    spread: FloatArray  # exponential numbers of mean 1, for the writes and for the reads

    def measured(self, hold: float) -> Any:
        """Return which packets count, with holds of that mean [mean gaps]: at least the middle half."""
        end = float(self.times[-1])
        margin = min(HOLDS * hold, end / 4.0)
        inside = (self.times >= margin) & (self.times <= end - margin)
        return inside if inside.any() else np.ones(inside.size, dtype=bool)


def overloaded(stream: Stream, load: FloatArray, hold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the part of the time in which a trace offers more than a design carries, and the backlog.

    Looked at in windows of `HOLDS` mean holds, in which writes have become reads, a hold being given in
    mean gaps; the backlog is the most work that the windows leave undone on the way, as time of the
    fullest resource [mean gaps].
    """
    part, worst = np.zeros_like(load), np.zeros_like(load)
    end = float(stream.times[-1])
    for mean in np.unique(hold):
        count = max(int(end / max(HOLDS * mean, end / WINDOWS)), 1) if end > 0 else 1
        mine = hold == mean
        window = np.minimum((stream.times / max(end, 1e-300) * count).astype(np.int64), count - 1)
        work = np.bincount(window, weights=stream.segments, minlength=count)
        each = stream.segments.size / count
        square = float((stream.segments.astype(float) ** 2).mean() / stream.segments.mean() ** 2)
        offered = load[mine] * (work / work.mean())[:, None]
        part[mine] = (offered > 1.0 + ERRORS * np.sqrt(square / each)).mean(axis=0)
        left = np.zeros(offered.shape[1])
        for now in offered:
            left = np.maximum(left + (now - 1.0) * end / count, 0.0)
            worst[mine] = np.maximum(worst[mine], left)
    return part, np.where(part > 0, worst, 0.0)


def recorded_stream(workload: Workload) -> Stream:
    """Return the stream of a workload whose arrivals are a trace."""
    arrivals = workload.arrivals
    assert isinstance(arrivals, Recorded)
    return _recorded(arrivals.trace, int(workload.segment_bytes))


@lru_cache(maxsize=16)
def _recorded(trace: Trace, segment_bytes: int) -> Stream:
    times, sizes = trace.times_ns * trace.packet_rate, trace.bytes
    if len(trace) > LONGEST:
        each = LONGEST // PIECES
        starts = np.linspace(0, len(trace) - each - 1, PIECES).astype(int)
        picked = starts[:, None] + np.arange(each)
        gaps = np.diff(times)[picked]
        times, sizes = np.cumsum(gaps.reshape(-1)), sizes[picked.reshape(-1)]
    return _stream(times, segment_count(sizes, segment_bytes))


def _stream(times: FloatArray, segments: IntArray) -> Stream:
    rng = np.random.default_rng((SEED, 1))
    return Stream(
        times=np.asarray(times, dtype=float),
        segments=np.asarray(segments, dtype=np.int64),
        drawn=rng.random((5, times.size)),
        hold=rng.exponential(size=times.size),
        spread=rng.exponential(size=(2, times.size)),
    )
