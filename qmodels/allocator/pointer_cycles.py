"""Pointer accesses beside segment accesses: which fit, and the cycles of those that do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class PointerCycles:
    """Cycles of a segment access with its pointer accesses."""

    mean_cycles: float  # mean over writes and reads [pointer-memory cycles]
    overrun_probability: float  # share of them whose pointer accesses do not fit beside them


def pointer_cycles(
    *,
    segments: IntArray,
    share: FloatArray,
    freeing: IntArray,
    allocation: FloatArray,
    write_conflict: float,
    read_conflict: float,
    queue_empty: float,
    free_accesses: int,
    conflict_accesses: int,
) -> PointerCycles:
    """Cycles of segment accesses that run in parallel with their pointer accesses.

    ``segments``, ``share``: sizes of the packets stored, and their shares; ``freeing``: accesses that free a
    packet of each size; ``allocation``: law of an allocation's accesses; ``queue_empty``: probability that a
    packet finds its queue empty, and leaves it so; ``free_accesses``, ``conflict_accesses``: accesses that
    fit beside a segment access without and with a conflict.

    Linking a packet's first segment takes 3 accesses in an empty queue and 5 in another, its
    second one 4, any other 5; reading a segment's link 1, the first of a packet 2; taking the
    packet off 3 from a queue that becomes empty, otherwise 4. The parts of an operation are taken as
    independent.
    """
    mean = float(segments @ share)
    linking = np.zeros(6)
    linking[3] += queue_empty
    linking[5] += 1.0 - queue_empty
    second = float(share[segments > 1].sum())
    linking[4] += second
    linking[5] += mean - 1.0 - second
    write = np.convolve(linking / mean, allocation)
    read = np.zeros(int(freeing.max(initial=1)) + 7)
    for count, weight, freed in zip(segments, share, freeing, strict=True):
        if count > 1:
            read[2] += weight
            read[1] += weight * (count - 2)
        last = (2 if count == 1 else 1) + int(freed)
        read[last + 3] += weight * queue_empty
        read[last + 4] += weight * (1.0 - queue_empty)
    read /= mean
    cycles = overrun = 0.0
    for law, conflict in ((write, write_conflict), (read, read_conflict)):
        accesses = np.arange(len(law))
        for fits, chance in ((free_accesses, 1.0 - conflict), (conflict_accesses, conflict)):
            cycles += chance * float(law @ np.maximum(accesses, fits)) / 2.0
            overrun += chance * float(law[fits + 1 :].sum()) / 2.0
    return PointerCycles(mean_cycles=cycles, overrun_probability=overrun)
