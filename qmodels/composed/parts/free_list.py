"""Free lists: the queue of the pointer memory, the trials of an allocation, and packets without blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.allocator.trial_states import rejection_law
from qmodels.checks import FloatArray
from qmodels.composed.streams import PartAnswer, Response, Stream
from qmodels.networks.open.qna import departing_scv, merging_weight, service_noise, split_scv
from qmodels.networks.station import mixture
from qmodels.packet_processor.load import blocked_by_size
from qmodels.queues.general.gg1 import gg1_klb
from qmodels.systems.composed.steps import Allocate
from qmodels.systems.packets.free_list import FreeList, allocation_accesses

INF = float("inf")


def operation_time(lists: FreeList, stream: Stream) -> tuple[float, float]:
    """Return mean and variance of the time of an operation of the pointer memory. [ns, ns2].

    An allocation has the accesses of its packet, and for each block those of the trials and of the link.
    """
    blocks = np.arange(stream.batch.size)
    number, square = float(stream.batch @ blocks), float(stream.batch @ blocks**2)
    spread = square - number**2
    if isinstance(stream.step, Allocate):
        rejected = np.arange(stream.trials.size)
        tried = np.array([allocation_accesses(int(k)) for k in rejected], dtype=float)
        first, second = float(stream.trials @ tried), float(stream.trials @ tried**2)
        each, noise = first + float(lists.enqueue_accesses), max(second - first**2, 0.0)
        once = float(lists.enqueue_packet_accesses)
    else:
        each, noise, once = float(lists.dequeue_accesses), 0.0, float(lists.dequeue_packet_accesses)
    clock = float(lists.clock_ghz)
    return (once + number * each) / clock, (number * noise + spread * each**2) / clock**2


def pointer_memory(lists: FreeList, streams: tuple[Stream, ...]) -> PartAnswer:
    """Return the waits of allocations and returns of blocks at the pointer memory.

    ``streams``: allocations and returns; a batch is the blocks of one operation.

    One server in the order of arrival: M/G/1 for Poisson operations, exact, otherwise by Kraemer and
    Langenbach-Belz. The variance of the wait is that of M/G/1 with gamma times.
    """
    doubts: tuple[str, ...] = ()
    if lists.small_packet_segments > 0:
        doubts = ("lists of small packets' own are taken as one list",)
    times = np.array([operation_time(lists, s) for s in streams])
    rates = np.array([s.rate for s in streams])
    total = float(rates.sum())
    wait, spread, departing = 0.0, 0.0, 1.0
    load = float(rates @ times[:, 0])
    if total > 0:
        positive = np.maximum(times[:, 0], 1e-300)
        mean, scv = mixture(rates, positive, times[:, 1] / positive**2)
        share = rates / total
        weight = merging_weight(float(share @ share), min(load, 1.0))
        arrivals = 1 - weight + weight * float(share @ [s.scv for s in streams])
        wait, spread = INF, INF
        if load < 1:
            queue = gg1_klb(arrival_rate=total, mean_service_time=mean, service_scv=scv, arrival_scv=arrivals)
            wait = float(queue.mean_waiting_time)
            spread = wait**2 + wait * 2 / 3 * mean * (1 + 2 * scv)
        departing = float(departing_scv(arrivals, service_noise(scv, 1), min(load, 1.0)))
    responses = tuple(
        Response(
            mean=wait + float(time),
            variance=spread + float(variance),
            last_mean=wait + float(time),
            last_variance=spread + float(variance),
            departure_scv=float(split_scv(departing, rate / total if total > 0 else 0.0)),
        )
        for (time, variance), rate in zip(times, rates, strict=True)
    )
    return PartAnswer(responses=responses, intensity={"": load}, doubts=doubts)


def trial_law(lists: FreeList, *, busy: float, busy_again: float | None = None) -> FloatArray:
    """Return the probabilities that 0, 1, 2, ... head blocks are rejected before one is taken.

    ``lists``: the lists, of which the most trials; ``busy``: probability that the first block examined is on
    a busy bank; ``busy_again``: probability that the next one is, given that the one before it was; as
    ``busy`` if left out.
    """
    again = busy if busy_again is None else busy_again
    return rejection_law(busy=busy, busy_again=again, alloc_trial_count=int(lists.alloc_trial_count))


def lost_jobs(
    lists: FreeList, streams: tuple[Stream, ...], holds: Any
) -> tuple[tuple[float, ...], tuple[str, ...]]:
    """Return the probability that a job of each allocating stream finds too few free blocks, and doubts.

    ``streams``: the allocations; rates are those of the jobs that ask; ``holds``: mean time that the blocks
    of a job of each stream are in use [ns].

    The loss link of Kaufman and Roberts, exact for jobs that come as a Poisson stream whatever the law of
    the time they hold their blocks. Burstier jobs fill the list more often: a doubt where any are lost.
    """
    blocks = np.unique(np.concatenate([np.flatnonzero(s.batch) for s in streams]))
    blocks = blocks[blocks > 0]
    jobs = [s.rate * float(hold) for s, hold in zip(streams, holds, strict=True)]
    if not blocks.size or not np.isfinite(jobs).all():
        return tuple(0.0 if np.isfinite(n) else 1.0 for n in jobs), ()
    share = np.array([s.batch[np.minimum(blocks, s.batch.size - 1)] for s in streams])
    share = np.where(blocks < np.array([[s.batch.size] for s in streams]), share, 0.0)
    stored = np.array(jobs) @ share
    total = float(stored.sum())
    by_size = np.zeros(blocks.size)
    if total > 0:
        by_size = blocked_by_size(
            blocks.astype(float), stored / total, int(lists.segments), np.array([total])
        )[0]
    by_size = np.where(blocks > int(lists.segments), 1.0, by_size)
    lost = tuple(float(row @ by_size) for row in share)
    bursty = any(abs(s.scv - 1) > 1e-9 and one > 1e-9 for s, one in zip(streams, lost, strict=True))
    doubt = "jobs without free blocks are counted as if all came as a Poisson stream"
    return lost, (doubt,) if bursty else ()
