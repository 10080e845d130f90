"""The packets that a model follows: those of a trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, IntArray

SEED = 11
"""Of what is drawn for each packet of a trace."""
WINDOWS, ERRORS = 512, 2.0
"""Most windows in which a trace's load is looked at, and the standard errors that it has to exceed 1 by."""
HOLDS = 5.0
"""Mean holds until the store is filled, and as many reads come as writes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """Packets in the order of their arrival, and what is drawn for each; equal only to itself."""

    times: FloatArray  # arrival times [mean gaps]
    segments: IntArray  # segments
    drawn: FloatArray  # uniform numbers: engine, egress, whether a lookup misses, its channel, its bank
    hold: FloatArray  # holds [mean hold]
    spread: FloatArray  # exponential numbers of mean 1, for the writes and for the reads


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
