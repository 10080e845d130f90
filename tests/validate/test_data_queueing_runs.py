"""The loop of ports and services against a plain one that tells a `Player` what to do."""

from __future__ import annotations

import heapq
from collections import deque

import numpy as np
import pytest

from qmodels import DataQueueing
from qmodels.systems.packets.data_queueing import Allocation, DataMemory
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic
from qmodels.traffic import SizeLaw
from tests.validate.player import Player
from validate.data_queueing import world as c
from validate.data_queueing.kernel import run
from validate.data_queueing.world import build_world, draw_packets

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
