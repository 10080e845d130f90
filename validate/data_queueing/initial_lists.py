"""Lists of free blocks before anything happens: runs of consecutive blocks in random order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import IntArray
from qmodels.systems.packets.free_list import FreeList
from validate.data_queueing.free_lists import BLOCK, LIST, NONE
from validate.engine.jit import jit


def new_lists(
    free_list: FreeList,
    locate: Callable[[IntArray], tuple[Any, Any, Any]],
    banks: int,
    rng: np.random.Generator,
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], IntArray]:
    """Return the table of blocks, the lists VMS1 to VMS3, and the addresses of the table's blocks.

    Each list is made of runs of consecutive ones of its blocks, the runs in random order.

    ``locate``: channel, bank and row of blocks; ``banks``: banks of a channel.
    """
    kept, mean = int(free_list.vms1_segments), float(free_list.mean_run_length)
    others = np.arange(kept, int(free_list.segments))
    channel, bank, _ = locate(others)
    upper = 2 * bank >= banks if banks > 1 else np.zeros(others.size, dtype=bool)
    lists = np.zeros(3, dtype=LIST)
    parts: list[IntArray] = []
    for number, members in enumerate((None, others[~upper], others[upper])):
        size = kept if members is None else members.size
        order = shuffled_runs(size, mean, rng, reached=size)
        start = sum(part.size for part in parts)
        parts.append(order if members is None else members[order])
        lists[number]["length"] = size
        lists[number]["head"], lists[number]["tail"] = start, start + order.size - 1
        if size == 0:
            lists[number]["head"] = lists[number]["tail"] = NONE
    addresses = np.concatenate(parts)
    channel, bank, row = locate(addresses)
    blocks = np.zeros(addresses.size, dtype=BLOCK)
    blocks["next"] = np.arange(1, addresses.size + 1)
    blocks["next"][lists["tail"][lists["tail"] != NONE]] = NONE
    blocks["bank"] = channel * banks + bank
    blocks["page"] = row
    blocks["list"] = np.repeat(np.arange(3), [part.size for part in parts])
    return blocks, lists, addresses


def shuffled_runs(size: int, mean: float, rng: np.random.Generator, *, reached: int) -> IntArray:
    """Return the first ``reached`` of the numbers below ``size``, runs of them in random order."""
    starts = run_starts(size, mean, rng)
    order = np.empty(min(size, reached), dtype=np.int64)
    fill_runs(order, starts, rng.random(min(starts.size - 1, order.size)))
    return order


def run_starts(size: int, mean: float, rng: np.random.Generator) -> IntArray:
    """Return the first number of every run and, as a last element, the size."""
    if mean == 1:
        return np.arange(size + 1)
    pieces, covered = [np.zeros(1, dtype=np.int64)], 0
    while covered < size:
        wanted = int((size - covered) / mean * 1.05) + 64
        lengths = rng.geometric(1 / mean, size=wanted) if np.isfinite(mean) else np.array([size])
        pieces.append(covered + np.cumsum(lengths))
        covered = int(pieces[-1][-1])
    starts = np.concatenate(pieces)
    inside = starts[: int(np.searchsorted(starts, size))]
    return np.append(inside, size)


@jit
def fill_runs(order: Any, starts: Any, uniform: Any) -> None:
    """Write runs into ``order`` until it is full, in random order (Fisher-Yates)."""
    runs = starts.size - 1
    number = np.arange(runs)
    filled = 0
    for k in range(uniform.size):
        other = k + int(uniform[k] * (runs - k))
        number[k], number[other] = number[other], number[k]
        for value in range(starts[number[k]], starts[number[k] + 1]):
            if filled == order.size:
                return
            order[filled] = value
            filled += 1
