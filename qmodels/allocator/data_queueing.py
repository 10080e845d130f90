"""The analytic answer of a data-queueing module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.allocator.large_blocks import (
    AccessOrder,
    LargeBlocks,
    access_order,
    large_blocks,
    packet_order,
    random_busy,
)
from qmodels.allocator.stored import StoredPackets, overflow_metrics, seen_load, stored_packets
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.packets.data_queueing import DataQueueing, LineRate
from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.fields import points_of, swept_fields


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


LAWS = ("allocation_accesses", "deletion_accesses")


def answer_of(spec: DataQueueing, metrics: Any, *, load: Any, carried: Any, laws: Sequence[Any]) -> Answer:
    """Return the answer of a design, or of a sweep, from its numbers and its laws of accesses."""
    order = (
        "mean_run_length plays no part: lists are taken as used up several times, whatever their first order"
    )
    rows = "short lists of operations of whole packets are modelled for one input at line rate and one output"
    overloaded = (spec.traffic.operations == "packet") & (np.asarray(load) > 1.0)
    runs = np.broadcast_to(np.not_equal(spec.allocation.mean_run_length, 1.0), np.shape(load))
    return Answer(
        model="data queueing, analytic",
        spec=spec,
        metrics=metrics,
        utilization={"output ports": carried},
        traffic_intensity={"output ports": load},
        bottleneck=np.full(np.shape(load), "output ports") if np.ndim(load) else "output ports",
        stable=load < 1.0,
        doubts={
            order: runs,
            rows: np.broadcast_to(overloaded & (not rows_are_modelled(spec)), np.shape(load)),
        },
        details=dict(zip(LAWS, laws, strict=True)),
    )


def rows_are_modelled(spec: DataQueueing) -> bool:
    """Return whether short lists under operations of whole packets are those of `packet_list`."""
    traffic, allocation = spec.traffic, spec.allocation
    return (
        allocation.admission == "lossy"
        and allocation.policy == "lists"
        and isinstance(traffic.arrivals, LineRate)
        and traffic.input_ports == traffic.output_ports == 1
        and traffic.service != "arrival-order"
        and bool(np.all(np.asarray(spec.data.busy_accesses) == 1))
    )


def stacked(spec: DataQueueing, answers: Sequence[Answer], shape: tuple[int, ...]) -> Answer:
    """Return the answers of single designs as one of arrays of this shape."""

    def laws(name: str) -> FloatArray:
        each = [getattr(answer, name) for answer in answers]
        table = np.zeros((len(each), max(map(len, each), default=0)))
        for row, law in zip(table, each, strict=True):
            row[: len(law)] = law
        return table.reshape(*shape, table.shape[1])

    def column(values: Sequence[Any], kind: type) -> Any:
        return np.array(values, dtype=kind).reshape(shape)

    return answer_of(
        spec,
        {name: column([answer[name] for answer in answers], float) for name in spec.metric_names.both},
        load=column([answer.traffic_intensity["output ports"] for answer in answers], float),
        carried=column([answer.utilization["output ports"] for answer in answers], float),
        laws=[laws(name) for name in LAWS],
    )


HALVES = 8
"""Rounds in which the share of the accesses on the lower half of the banks is found."""
SAMPLED = 4096
"""Blocks looked at to see which banks a mapping reaches."""


def solve_data_queueing(spec: DataQueueing) -> Answer:
    """Return conflicts, pointer accesses, overflow and overhead of a data-queueing module.

    Parameters
    ----------
    spec : DataQueueing
        A design; where numeric fields are arrays the metrics have their broadcast shape.

    Returns
    -------
    Answer
        The metrics of `DataQueueing.metric_names` in the steady state, which a list reaches when it has
        been used up several times, whatever its order at the start. In overload what is admitted is what
        can be drained; all metrics stay finite.

    Raises
    ------
    ValueError
        If ``spec`` is no `DataQueueing`.
    RuntimeError
        If the fixed point of a free list is not reached.

    Notes
    -----
    The free list VMS1 with its trials: `free_list`, with the neighbours in time of `access_order`.
    VMS2 and VMS3: their heads are on different halves of the banks, both busy only if two
    accesses keep a bank busy on either half; heads and accesses are taken as independent. A block on
    a busy bank lies in its open page with the probability of two random blocks of the bank. Overflow:
    `list_overflow`. While VMS1 runs dry fewer blocks are left than trials: `starved_list` tells how often,
    `drained_conflicts` what the last blocks meet; a lone block given up and taken at once is a
    conflict, those of packets just read are not followed, nor is a dry VMS2 or VMS3 beyond its
    emptiness. Segments lost alone: `lossy_list` tells how often a write takes the block just read,
    `read_order_heads` what trials meet in a list of blocks that return as they are read. Overload is
    taken as lasting: a trace that fills the memory for a part of the time overflows, and runs its list
    dry, less. The alternatives are accounted for in
    `qmodels.allocator.trial_states`.

    Examples
    --------
    >>> from qmodels.systems.packets.data_queueing import Allocation
    >>> trials = solve_data_queueing(DataQueueing(allocation=Allocation(alloc_trial_count=[1, 2, 3])))
    >>> trials.write_conflict_probability.round(4)
    array([0.125 , 0.0159, 0.0029])
    """
    if not isinstance(spec, DataQueueing):
        raise ValueError(f"spec must be a DataQueueing, got {spec!r}")
    swept = swept_fields(spec)
    if not swept:
        return _solve_one(spec)
    answers = [_solve_one(one) for one in points_of(spec)[1]]
    return stacked(spec, answers, next(iter(swept.values())).shape)


def _solve_one(spec: DataQueueing) -> Answer:
    packets, load = stored_packets(spec)
    order = _order(spec, packets, load)
    banks, unlike = _banks_reached(spec)
    blocks = large_blocks(spec, banks, order, packets, unlike)
    head_busy, small_conflict = _small_heads(spec, packets, banks, unlike)
    large, little = packets.large_share, 1.0 - packets.large_share
    of_large, of_small = large * blocks.conflict, little * small_conflict
    conflict = of_large + of_small
    accesses = large * blocks.accesses
    accesses[1] += little
    read_busy, read_conflict = _reads(
        spec, packets, order, blocks, small_conflict, banks=banks, unlike=unlike, load=load
    )
    freeing = _freeing(spec, packets)
    deletion = np.bincount(freeing, weights=packets.share).astype(float)
    cycles = pointer_cycles(
        segments=packets.segments,
        share=packets.share,
        freeing=freeing,
        allocation=accesses,
        write_conflict=conflict,
        read_conflict=read_conflict,
        queue_empty=_queue_empty(spec, packets, load),
        free_accesses=int(spec.pointer.free_accesses),
        conflict_accesses=int(spec.pointer.conflict_accesses),
    )
    # A block in its bank's open page is taken: every head examined is a chance of one.
    in_page = (1.0 - unlike) * random_busy(spec, banks) * (1.0 + _beyond_one(accesses) / 2.0)
    in_page += large * blocks.just_read
    values = {
        "write_conflict_probability": conflict,
        "read_conflict_probability": read_conflict,
        "write_busy_probability": conflict + in_page,
        "read_busy_probability": read_busy,
        "pointer_accesses_per_allocation": float(accesses @ np.arange(len(accesses))),
        "max_pointer_accesses_per_allocation": blocks.most_accesses if large > 0 else 1.0,
        "pointer_accesses_per_deletion": float(deletion @ np.arange(len(deletion))),
        "max_pointer_accesses_per_deletion": float(freeing.max()),
        **overflow_metrics(packets, head_busy=head_busy),
        **_worst_enqueues(spec, accesses, of_large, of_small, at_only=large * blocks.at_only),
        "deletion_overhead": _beyond_one(deletion) / max(deletion[2:].sum(), 1e-300),
        "cycles_per_segment_access": cycles.mean_cycles,
        "pointer_overrun_probability": cycles.overrun_probability,
    }
    return answer_of(
        spec,
        {name: values[name] for name in spec.metric_names.both},
        load=float(spec.traffic.load_factor),
        carried=load,
        laws=(accesses, deletion),
    )


def _beyond_one(law: FloatArray) -> float:
    """Return the mean of the accesses beyond one, from the law of 0, 1, 2, ... of them."""
    return float(law[1:] @ np.arange(len(law) - 1.0))


def _worst_enqueues(
    spec: DataQueueing, accesses: FloatArray, of_large: float, of_small: float, *, at_only: float
) -> dict[str, float]:
    """Return the probability and the cost of a worst-case write, from the conflicts of large and small.

    Those ``at_only``, at a list's only block, come without a rejection.
    """
    extra, pointer = _beyond_one(accesses), spec.pointer
    # Where nothing is ever rejected a conflict is the worst case, elsewhere it comes with rejections.
    rejecting = float(accesses[2:].sum()) if spec.allocation.policy != "bitmap" else float(extra > 0)
    worst = max(rejecting + at_only, of_large) + of_small
    cycles = extra + float(pointer.conflict_overhead_cycles) * (of_large + of_small)
    overhead = cycles / worst if worst > 0 else 0.0
    return {
        "worst_enqueue_probability": min(worst, 1.0),
        "enqueue_overhead": overhead,
        "enqueue_energy": float(pointer.energy_per_cycle) * overhead,
    }


def _order(spec: DataQueueing, packets: StoredPackets, load: float) -> AccessOrder:
    """Return which accesses follow one another at the load that packets see."""
    traffic = spec.traffic
    if traffic.operations == "packet":
        return packet_order(packets.mean)
    return access_order(
        load=seen_load(traffic, segment_bytes=spec.data.segment_bytes, load=load),
        input_ports=traffic.input_ports,
        output_ports=traffic.output_ports,
        input_speed=float(traffic.input_speed),
        list_share=packets.large_share,
        mean_size=packets.mean,
    )


def _banks_reached(spec: DataQueueing) -> tuple[int, float]:
    """Return the banks that blocks are on, and the part of the blocks on one whose access is a conflict."""
    data = spec.data
    some = np.arange(min(int(data.segments), max(SAMPLED, int(data.banks * data.bank_step))))
    banks = int(np.unique(data.bank_of(some)).size)
    in_bank = int(data.segments) / banks
    same_page = (min(float(data.page_segments), in_bank) - 1.0) / max(in_bank - 1.0, 1.0)
    return banks, 1.0 - same_page if data.page_control else 1.0


def _small_heads(
    spec: DataQueueing, packets: StoredPackets, banks: int, unlike: float
) -> tuple[float, float]:
    """Return the probability that VMS2's head is on a busy bank, and that a small packet meets one."""
    busy = int(spec.data.busy_accesses)
    head_busy = unlike * random_busy(spec, banks)
    both_heads = 1.0 - 2.0 * (1.0 - unlike / banks) ** busy + max(1.0 - 2.0 * unlike / banks, 0.0) ** busy
    alone = packets.overflow.small_empty_probability  # VMS3 has to do, whatever its bank
    return head_busy, max(both_heads, 0.0) * (1.0 - alone) + head_busy * alone


def _reads(
    spec: DataQueueing,
    packets: StoredPackets,
    order: AccessOrder,
    blocks: LargeBlocks,
    small_conflict: float,
    *,
    banks: int,
    unlike: float,
    load: float,
) -> tuple[float, float]:
    """Return the probability that a read meets a busy bank, and a conflict."""
    busy = int(spec.data.busy_accesses)
    if spec.traffic.operations == "packet":
        return _reads_in_rows(packets, blocks, small_conflict, busy=random_busy(spec, banks), unlike=unlike)
    own_busy = 1.0 - (1.0 - blocks.adjacent) * (1.0 - 1.0 / banks) ** max(busy - 1, 0)
    own = order.own_read * (1.0 - 1.0 / packets.mean) * (busy > 0)
    # A lone segment may be read right after it was written, by a port that waited for it.
    lone = float(packets.share[packets.segments == 1].sum()) / packets.mean
    at_once = lone * max(1.0 - load, 0.0) * (busy > 0)
    others = (own * own_busy + (1.0 - own) * random_busy(spec, banks)) * (1.0 - at_once)
    return others + at_once, unlike * others + (0.0 if spec.data.page_control else at_once)


def _reads_in_rows(
    packets: StoredPackets, blocks: LargeBlocks, small_conflict: float, *, busy: float, unlike: float
) -> tuple[float, float]:
    """Return the same where the reads of a packet follow one another: they meet the banks of its own blocks.

    Small packets are mostly on the lower half of the banks, where VMS2 is, so that the first read of a
    packet meets the bank of the packet before more often.
    """
    share, small, behind = packets.share, packets.small, packets.segments - 1.0
    adjacent = np.where(small, small_conflict, blocks.adjacent) @ (share * behind)
    little, empty = float(share[small].sum()), packets.overflow.small_empty_probability
    lower = 0.5
    for _ in range(HALVES):
        lower = little * (1.0 - empty) * (1.0 - 2.0 * busy * lower) + (1.0 - little) / 2.0
    first = busy * 2.0 * (lower**2 + (1.0 - lower) ** 2) if little > 0 else busy
    met = float(first + adjacent) / packets.mean
    return met, unlike * met


def _freeing(spec: DataQueueing, packets: StoredPackets) -> IntArray:
    """Return the accesses that free a packet of each size."""
    policy, segments, alone = spec.allocation.policy, packets.segments, packets.segments_alone
    if policy == "bank-lists":
        return 2 * segments - 1
    if (
        policy == "bitmap"
    ):  # its blocks lie in one or two words, each read and written, by each block if alone
        return 3 * segments - 1 if alone else segments + 1
    return np.where(packets.small, 2 * segments - 1, segments if alone and policy == "lifo" else 1)


def _queue_empty(spec: DataQueueing, packets: StoredPackets, load: float) -> float:
    """Return the probability that a packet finds its queue empty, from the mean number of packets stored."""
    room = int(spec.data.segments) / packets.mean
    square = float(packets.segments**2 @ packets.share) / packets.mean
    waiting = load * load * square / (2.0 * max(1.0 - load, 1e-9)) / packets.mean
    return float(np.exp(-min(load + waiting, room) / spec.traffic.queues))
