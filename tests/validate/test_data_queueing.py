"""The simulator of the data-queueing module against laws that hold whatever the traffic."""

import heapq
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from qmodels import DataQueueing
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, LineRate, QueueTraffic, SelfSimilar
from qmodels.traffic import Recorded, SizeLaw, Trace, bimodal, fixed
from tests.validate.player import Player
from validate import simulate
from validate.data_queueing import world as c
from validate.data_queueing.kernel import run
from validate.data_queueing.world import build_memory, build_world, draw_packets

SMALL = DataQueueing(
    data=DataMemory(segments=8192, page_control=False), allocation=Allocation(vms1_size=8192)
)


def changed(spec=SMALL, **changes):
    """Return a spec with fields of its parts changed."""
    parts = {}
    for part in ("data", "allocation", "pointer", "traffic"):
        old = getattr(spec, part)
        mine = {name: value for name, value in changes.items() if hasattr(old, name)}
        parts[part] = replace(old, **mine)
    return replace(spec, **parts)


def simulated(spec, **options):
    return simulate(spec, **{"packets": 20_000, "replications": 4, "confidence": 0.999, **options})


def test_one_trial_meets_a_random_bank():
    """A shuffled list gives each bank with probability 1/8, whatever was accessed before.

    So is a read's bank where packets wait: one read just after it was written meets its own bank.
    """
    for traffic in (QueueTraffic(), QueueTraffic(input_ports=1, output_ports=1, service="arrival-order")):
        busy = replace(traffic, load_factor=1.3, input_speed=4.0)
        result = simulated(replace(changed(alloc_trial_count=1), traffic=busy), replications=20)
        for metric in (result.write_conflict_probability, result.read_conflict_probability):
            assert 1 / 8 in metric and metric.half_width < 0.003


def test_more_trials_never_hurt():
    results = [simulated(changed(alloc_trial_count=trials)) for trials in (1, 2, 3, 4, 5)]
    conflicts = [result.write_conflict_probability.best for result in results]
    assert all(later < earlier for earlier, later in zip(conflicts, conflicts[1:], strict=False))
    for trials, result in enumerate(results, 1):
        most = trials + 1 if trials > 1 else 1
        assert result.max_pointer_accesses_per_allocation.best == most
        assert len(result.allocation_accesses) == most + 1
        assert result.allocation_accesses.sum() == pytest.approx(1)
        mean = result.allocation_accesses @ np.arange(most + 1)
        assert mean == pytest.approx(result.pointer_accesses_per_allocation.best)


def test_small_packets_never_conflict_while_both_lists_have_blocks():
    """With a bank busy for one access, the heads of VMS2 and VMS3 cannot both be on it."""
    spec = changed(small_packet_segments=4, vms1_size=4096, sizes=fixed(bytes=200))
    result = simulated(spec)
    assert result.write_conflict_probability.best == 0
    assert result.vms3_overflow_probability.best == 0
    # 2 s - 1 accesses free a packet of s = 4 segments (Ykman-Couvreur et al., sec. 5.2.2).
    assert result.pointer_accesses_per_deletion.best == result.deletion_overhead.best + 1 == 7


def test_bank_lists_find_a_bank_that_is_not_busy():
    spec = changed(policy="bank-lists", busy_accesses=7)
    assert simulated(spec).write_conflict_probability.best == 0


def test_bits_of_a_word_find_one_too():
    spec = changed(policy="bitmap", busy_accesses=3, load_factor=0.5)
    result = simulated(spec)
    assert result.write_conflict_probability.best == 0
    assert result.pointer_accesses_per_allocation.best >= 2


def test_half_of_the_banks_without_padding():
    """Blocks at a pitch of 2 lie on 4 of 8 banks: one trial meets a busy one in 1/4 of cases."""
    spec = changed(alloc_trial_count=1, block_pitch=2)
    assert 1 / 4 in simulated(spec).write_conflict_probability
    assert 1 / 8 in simulated(changed(spec, block_pitch=3)).write_conflict_probability


def test_no_access_keeps_a_bank_busy():
    result = simulated(changed(busy_accesses=0, load_factor=1.5, alloc_trial_count=3))
    assert result.write_busy_probability.best == result.read_busy_probability.best == 0
    assert result.pointer_accesses_per_allocation.best == 1


def test_page_control_only_forgives():
    one_page = changed(page_control=True, page_segments=8192 // 8)
    result = simulated(one_page)
    # All blocks of a bank are in one page: no access is a conflict.
    assert result.write_conflict_probability.best == result.read_conflict_probability.best == 0
    assert result.read_busy_probability.best > 0.1


@pytest.mark.parametrize("admission", ["packet", "segment", "lossy"])
def test_overload_is_refused(admission):
    """What cannot be drained is refused: 1 - 1/load of the segments."""
    spec = changed(load_factor=2.0, admission=admission, segments=2048, vms1_size=2048, input_speed=4.0)
    result = simulated(spec, warm_up=0.5)
    assert result.overflow_probability.best == pytest.approx(0.5, abs=0.02)
    assert result.blocking_probability.best <= result.overflow_probability.best + 1e-9
    assert all(np.isfinite(estimate.best) for estimate in result.metrics.values())
    light = simulated(changed(load_factor=0.5))
    assert light.overflow_probability.best == 0


def test_lists_overflow_on_their_own():
    traffic = QueueTraffic(sizes=bimodal(small=64, large=1500, small_fraction=0.9), load_factor=3.0)
    spec = replace(
        changed(small_packet_segments=1, vms1_size=8192 - 64), traffic=replace(traffic, input_speed=4.0)
    )
    few = simulated(spec)
    assert few.vms1_overflow_probability.best > 0 and few.vms2_overflow_probability.best > 0
    assert few.vms3_overflow_probability.best > 0
    many = simulated(changed(spec, vms1_size=4096))
    assert many.vms2_overflow_probability.best < few.vms2_overflow_probability.best
    none = simulated(changed(spec, vms1_size=8192))
    # Small packets have no list at all: each fails once.
    assert none.vms2_overflow_probability.best == none.vms3_overflow_probability.best == 1


def test_overhead_of_the_conventional_technique_is_that_of_conflicts_alone():
    result = simulated(changed(alloc_trial_count=1))
    assert result.enqueue_overhead.best == 8
    assert result.worst_enqueue_probability.best == result.write_conflict_probability.best
    assert result.enqueue_energy.best == pytest.approx(337)


def test_cycles_of_a_segment_access_lie_between_the_two_bounds():
    result = simulated(changed(alloc_trial_count=5))
    conflicts = (result.write_conflict_probability.best + result.read_conflict_probability.best) / 2
    assert result.cycles_per_segment_access.best >= 5 * (1 - conflicts) + 15 * conflicts - 0.01
    assert 0 < result.pointer_overrun_probability.best < 1


@pytest.mark.parametrize("service", ["round-robin", "priority", "arrival-order"])
def test_everything_leaves_and_comes_back(service):
    traffic = QueueTraffic(
        moved_fraction=0.3, service=service, queues=20, queue_exponent=1.0, load_factor=1.2
    )
    spec = replace(changed(small_packet_segments=2), traffic=traffic)
    seed = np.random.SeedSequence(3)
    offered = draw_packets(spec, seed=seed, packets=5000)
    world = build_world(spec, offered, seed=seed)
    run(world, 5001)
    accepted = 5000 - world.counts[c.REFUSED_PACKETS]
    assert world.operations[c.DELETE, 0] == accepted
    assert world.operations[c.ALLOCATE, 0] == world.operations[c.DEQUEUE, 0] == world.counts[c.WRITES]
    asked = int((offered.moved_to >= 0).sum())
    assert 0 < world.operations[c.MOVE, 0] <= asked
    assert world.lists["length"].sum() == 8192 and not world.lists["reserved"].any()
    assert (world.queues["head"] == -1).all() and not world.queues["expected"].any()
    assert world.operations[c.CREATE, 0] == world.operations[c.DESTROY, 0] > 0


@pytest.mark.parametrize(("packets", "rotations"), [(1000, 3), (100, 2)])
def test_a_trace_is_played_in_full_rotations(packets, rotations):
    trace = Trace(times_ns=np.arange(300) * 10.0, bytes=[64, 1500, 576] * 100, source="by hand")
    spec = replace(SMALL, traffic=QueueTraffic(arrivals=Recorded(trace=trace)))
    result = simulate(spec, packets=packets, replications=2)
    assert result.effort["packets per replication"] == 300 * rotations


def test_the_first_packet_of_a_trace_does_not_matter():
    """The fifth of the packets that comes at once is counted, also where it comes first."""
    gaps = np.random.default_rng(2).exponential(size=2000)
    gaps[:400] /= 20.0
    found = []
    for turned in (0, 1000):
        trace = Trace(times_ns=np.cumsum(np.roll(gaps, turned)), bytes=np.full(2000, 576), source="busy")
        traffic = QueueTraffic(arrivals=Recorded(trace=trace), load_factor=0.7)
        found.append(
            simulate(replace(SMALL, traffic=traffic), packets=2000, replications=4, confidence=0.999)
        )
    for name in ("write_conflict_probability", "overflow_probability", "pointer_accesses_per_allocation"):
        one, other = (result.metrics[name] for result in found)
        assert one.low <= other.high and other.low <= one.high


def test_the_result_shows_its_operations():
    result = simulate(
        replace(SMALL, traffic=QueueTraffic(arrivals=SelfSimilar(shape=1.5))), packets=2000, replications=2
    )
    assert "accesses to enqueue segment" in repr(result)


def test_lists_hold_the_blocks_of_their_banks():
    spec = changed(small_packet_segments=1, vms1_size=4096)
    blocks, lists, _, _ = build_memory(spec, np.random.default_rng(0))
    assert lists["length"].tolist() == [4096, 2048, 2048]
    assert (blocks["list"][:4096] == 0).all()
    assert ((blocks["list"][4096:] == 1) == (blocks["bank"][4096:] < 4)).all()


@pytest.mark.parametrize("admission", ["packet", "segment", "lossy"])
@pytest.mark.parametrize("service", ["random", "round-robin"])
def test_operations_of_whole_packets(admission, service):
    """Everything stored leaves; a packet's reads follow one another, so that blocks apart do not conflict."""
    spec = DataQueueing(
        data=DataMemory(segments=512, page_control=False),
        allocation=Allocation(alloc_trial_count=4, vms1_size=512, admission=admission),
        traffic=QueueTraffic(
            arrivals=LineRate(),
            sizes=fixed(bytes=512),
            load_factor=0.9,
            queues=16,
            input_ports=1,
            output_ports=1,
            service=service,
            operations="packet",
        ),
    )
    seed = np.random.SeedSequence(3)
    offered = draw_packets(spec, seed=seed, packets=2000)
    world = build_world(spec, offered, seed=seed)
    run(world, 2001)
    assert world.counts[c.READS] == world.counts[c.WRITES] == 8 * 2000
    assert world.lists["length"].sum() == 512
    # A packet's first read alone may meet the bank of the access before, and no write does with four trials.
    assert 0 < world.counts[c.READS_BUSY] < 2000 / 2 and world.counts[c.WRITES_BUSY] < 5


ALLOCATIONS = [
    Allocation(alloc_trial_count=3, small_packet_segments=2, vms1_size=32),
    Allocation(alloc_trial_count=2, small_packet_segments=1, vms1_size=32, admission="segment"),
    Allocation(policy="bank-lists"),
    Allocation(policy="bitmap", admission="segment"),
    Allocation(policy="lifo", alloc_trial_count=4),
    Allocation(alloc_trial_count=3, vms1_size=48, admission="lossy"),
    Allocation(alloc_trial_count=2, small_packet_segments=1, vms1_size=32, admission="lossy"),
    Allocation(policy="bank-lists", admission="lossy"),
    Allocation(policy="bitmap", admission="lossy"),
    Allocation(policy="lifo", alloc_trial_count=4, admission="lossy"),
]


class Input:
    """An input port: the packets to come, segments of the first one written and stored, when it may go on."""

    def __init__(self, offered, mine):
        self.offered, self.packets, self.written, self.free = offered, deque(mine), 0, 0.0
        self.stored = 0

    @property
    def time(self):
        return max(self.offered.times[self.packets[0]], self.free) if self.packets else np.inf


class Output:
    """An output port: what waits for it, the queue it serves, and the segments still to be read."""

    def __init__(self):
        self.waiting, self.queue, self.left, self.free, self.idle = [], None, 0, 0.0, True


def play(spec, offered, seed):
    """Play a run in plain Python; return the player and what was counted."""
    player, t = Player(spec, seed=seed), spec.traffic
    lossy = spec.allocation.admission == "lossy"
    inputs = [
        Input(offered, np.flatnonzero(offered.queues % t.input_ports == k)) for k in range(t.input_ports)
    ]
    outputs = [Output() for _ in range(t.output_ports)]
    whole = {k: deque() for k in range(t.queues)}
    listed, order, now = set(), 0, 0.0
    n = dict.fromkeys(("writes", "reads", "writes other", "reads other", "failures", "refused"), 0)
    player.play([("create", k) for k in range(t.queues)])

    def line_up(queue):
        nonlocal order
        if t.service == "arrival-order" or queue not in listed:
            listed.add(queue)
            order += 1
            port = outputs[queue % t.output_ports]
            heapq.heappush(port.waiting, (queue if t.service == "priority" else 0, order, queue))
            if port.idle:
                port.idle, port.free = False, max(now, port.free)

    while True:
        times = [one.time for one in inputs] + [np.inf if one.idle else one.free for one in outputs]
        number = int(np.argmin(times))
        now = times[number]
        if now == np.inf:
            return player, n
        if number < t.input_ports:
            port = inputs[number]
            packet = port.packets[0]
            queue, segments = int(offered.queues[packet]), int(offered.segments[packet])
            begin = ("begin", queue, segments) if port.written == 0 else ("enqueue", queue)
            done = player.play([begin])
            port.written += 1
            n["failures"] += int(done.refused[0])
            if not done.refused[0]:
                n["writes"] += 1
                n["writes other"] += int(done.met[0] == 2)
                port.stored += 1
            if lossy or not done.refused[0]:
                port.free = now + 1 / t.input_speed
            over = port.written == segments
            if done.refused[0] and not lossy:
                port.stored, over = 0, True
            if over:
                n["refused"] += port.stored == 0
                if port.stored:
                    whole[queue].append(port.stored)
                    line_up(queue)
                port.packets.popleft()
                port.written = port.stored = 0
            continue
        port = outputs[number - t.input_ports]
        if port.left == 0:
            if not port.waiting:
                port.idle = True
                continue
            port.queue = heapq.heappop(port.waiting)[2]
            listed.discard(port.queue)
            port.left = whole[port.queue][0]
        done = player.play([("dequeue", port.queue)])
        n["reads"] += 1
        n["reads other"] += int(done.met[0] == 2)
        port.left -= 1
        if port.left == 0:
            player.play([("delete", port.queue)])
            whole[port.queue].popleft()
            if whole[port.queue] and t.service != "arrival-order":
                line_up(port.queue)
        port.free = now + t.output_ports


@pytest.mark.in_ci(10)
@pytest.mark.parametrize("allocation", ALLOCATIONS, ids=lambda a: f"{a.policy} {a.admission}")
@pytest.mark.parametrize("service", ["round-robin", "priority", "arrival-order"])
def test_runs_equal_those_of_the_plain_loop(allocation, service):
    traffic = QueueTraffic(
        queues=7,
        service=service,
        load_factor=1.2,
        input_speed=0.8,
        sizes=SizeLaw(bytes=(64, 128, 300, 700), probability=(0.4, 0.2, 0.2, 0.2)),
    )
    data = DataMemory(segments=48, page_segments=2, busy_accesses=2)
    spec = DataQueueing(data=data, allocation=allocation, traffic=traffic)
    offered = draw_packets(spec, seed=np.random.SeedSequence(5), packets=300)
    world = build_world(spec, offered, seed=np.random.SeedSequence(5))
    run(world, 301)
    player, n = play(spec, offered, 5)
    counts = world.counts
    assert (counts[c.WRITES], counts[c.READS]) == (n["writes"], n["reads"])
    assert (counts[c.WRITES_OTHER_PAGE], counts[c.READS_OTHER_PAGE]) == (n["writes other"], n["reads other"])
    assert counts[c.REFUSED_PACKETS] == n["refused"]
    assert counts[c.FAILURES] == n["failures"] > 0
    if allocation.admission != "segment":  # which gives up segments that were written
        assert counts[c.WRITES] + counts[c.REFUSED_SEGMENTS] == counts[c.OFFERED_SEGMENTS]
    kinds = [c.ENQUEUE, c.DEQUEUE, c.DELETE, c.ALLOCATE, c.FREE]
    assert (world.operations[kinds] == player.world.operations[kinds]).all()
    assert (world.histograms == player.world.histograms).all()
    assert (world.lists == player.world.lists).all() and not world.lists["reserved"].any()
    assert world.lists["length"].sum() == 48 and not world.queues["created"].any()
