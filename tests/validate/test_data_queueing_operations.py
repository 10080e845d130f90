"""The compiled queue manager against a plain one of deques, operation by operation."""

from collections import deque
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from qmodels import DataQueueing
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, QueueTraffic
from tests.validate.player import Player

SEGMENTS, QUEUES = 96, 3

DESIGNS = [
    replace(
        DataQueueing(
            data=DataMemory(segments=SEGMENTS, page_segments=2, **memory),
            allocation=Allocation(vms1_size=SEGMENTS if allocation.get("policy") else 64, **allocation),
        ),
        traffic=QueueTraffic(queues=QUEUES),
    )
    for memory, allocation in [
        ({}, {"alloc_trial_count": 1}),
        ({"busy_accesses": 2}, {"alloc_trial_count": 3, "small_packet_segments": 2}),
        (
            {"busy_accesses": 1},
            {"alloc_trial_count": 3, "small_packet_segments": 2, "admission": "segment"},
        ),
        ({"busy_accesses": 2}, {"policy": "bank-lists", "admission": "segment"}),
        ({"busy_accesses": 1}, {"alloc_trial_count": 3, "admission": "lossy"}),
        ({"busy_accesses": 2}, {"alloc_trial_count": 2, "small_packet_segments": 3, "admission": "lossy"}),
        ({"busy_accesses": 2}, {"policy": "bank-lists", "admission": "lossy"}),
        ({}, {"policy": "bitmap", "alloc_trial_count": 2, "admission": "lossy"}),
        ({}, {"policy": "lifo", "alloc_trial_count": 3, "admission": "lossy"}),
        ({"busy_accesses": 3, "page_control": False}, {"alloc_trial_count": 5, "small_packet_segments": 4}),
        ({"banks": 4, "mapping": "random"}, {"alloc_trial_count": 2, "small_packet_segments": 1}),
        ({"busy_accesses": 2, "block_pitch": 3}, {"policy": "bank-lists"}),
        ({"busy_accesses": 4, "banks": 4}, {"policy": "bitmap", "alloc_trial_count": 2}),
        ({"busy_accesses": 2, "bank_step": 2}, {"policy": "lifo", "alloc_trial_count": 4}),
    ]
]


class Plain:
    """The same module in deques: nothing of it is linked, nothing is compiled."""

    def __init__(self, spec, free):
        self.spec, a = spec, spec.allocation
        self.free = {name: deque(blocks) for name, blocks in free.items()}
        self.recent = deque(
            [None] * int(spec.data.busy_accesses), maxlen=int(spec.data.busy_accesses) or None
        )
        self.pages = {}
        self.queues = {}
        self.cursor = 0
        self.promised = {"small": 0, "large": 0}
        self.policy, self.trials, self.small = (
            a.policy,
            int(a.alloc_trial_count),
            int(a.small_packet_segments),
        )

    def busy(self, block):
        bank = self.spec.data.bank_of(block)
        same = self.spec.data.page_control and self.pages.get(bank) == self.spec.data.page_of(block)
        return self.spec.data.busy_accesses > 0 and bank in self.recent and not same

    def access(self, block):
        bank, page = self.spec.data.bank_of(block), self.spec.data.page_of(block)
        busy = self.spec.data.busy_accesses > 0 and bank in self.recent
        met = 0 if not busy else 1 if self.pages[bank] == page else 2
        self.recent.append(bank)
        self.pages[bank] = page
        return met

    def is_small(self, segments):
        return self.policy == "lists" and segments <= self.small

    def reserve(self, segments):
        kind = "small" if self.is_small(segments) else "large"
        lists = (
            [k for k in self.free if (k in (1, 2)) == (kind == "small")]
            if self.policy == "lists"
            else self.free
        )
        wanted = segments if self.spec.allocation.admission == "packet" else 1
        if sum(len(self.free[k]) for k in lists) - self.promised[kind] < wanted:
            return False
        self.promised[kind] += wanted
        return True

    def allocate(self, segments):
        self.promised["small" if self.is_small(segments) else "large"] -= 1
        free = self.free
        if self.is_small(segments):
            which = 2 if not free[1] or (free[2] and self.busy(free[1][0])) else 1
            return free[which].popleft(), 1
        if self.policy == "lists":
            rejected = 0
            for _ in range(min(self.trials, len(free[0])) - 1):
                if not self.busy(free[0][0]):
                    break
                free[0].rotate(-1)
                rejected += 1
            return free[0].popleft(), [1, 3, 4, 5, 6][rejected]
        if self.policy == "lifo":
            top = list(free[0])[: self.trials]
            rejected = next((k for k, one in enumerate(top) if not self.busy(one)), len(top) - 1)
            block = top[rejected]
            free[0].remove(block)
            return block, [1, 3, 4, 5, 6][rejected]
        if self.policy == "bank-lists":
            turns = [(self.cursor + 1 + k) % len(free) for k in range(len(free))]
            having = [k for k in turns if free[k]]
            self.cursor = next((k for k in having if not self.busy(free[k][0])), having[0])
            return free[self.cursor].popleft(), 1
        # Words of 64 blocks, each read once in turn; the one used is written back.
        words = [(self.cursor + k) % -(-SEGMENTS // 64) for k in range(-(-SEGMENTS // 64))]
        having = [word for word in words if any(b // 64 == word for b in free[0])]
        for word in having[: self.trials]:
            mine = sorted(b for b in free[0] if b // 64 == word)
            good = [b for b in mine if not self.busy(b)]
            if good:
                break
        block, self.cursor = (good or mine)[0], word
        free[0].remove(block)
        return block, words.index(word) + 1 + 1

    def release(self, blocks, segments=None):
        if self.policy == "bank-lists" or self.is_small(segments or len(blocks)):
            for block in blocks:
                where = self.spec.data.bank_of(block)
                if self.policy == "lists":
                    where = 1 if where < self.spec.data.banks / 2 else 2
                self.free[where].append(block)
            return 2 * len(blocks) - 1
        if self.policy == "lifo":
            self.free[0].extendleft(reversed(blocks))
        else:
            self.free[0].extend(blocks)
        changes = sum(a // 64 != b // 64 for a, b in pairwise(blocks))
        return 1 if self.policy != "bitmap" else len(blocks) - 1 + 2 * (changes + 1)

    def free_one(self, block, segments, before):
        """Free the block of a segment that was read; return whether its link had to be mended."""
        broken = 0
        if self.policy == "lists" and not self.is_small(segments) and before is not None:
            broken = int(bool(self.free[0]) and self.free[0][-1] != before)
        self.release([block], segments)
        return broken

    def freed(self, stored, segments):
        """Return the accesses that freed a packet segment by segment, but for links mended."""
        if self.policy == "bank-lists" or self.is_small(segments):
            return 2 * stored - 1
        return {"lists": 1, "lifo": stored, "bitmap": 3 * stored - 1}[self.policy]


def chains(world):
    """Follow every free list and every queue; return {list: blocks}, {queue: packets}."""
    limit = world.blocks.size

    def follow(block, last=None):
        found = []
        while block != -1:
            found.append(int(block))
            assert len(found) <= limit, "the chain has a cycle"
            if block == last:
                break
            block = world.blocks["next"][block]
        return found

    free = {}
    for k, one in enumerate(world.lists):
        free[k] = follow(one["head"])
        if one["length"] and not world.free.size:
            assert free[k][-1] == one["tail"]
    if world.free.size:
        free[0] = np.flatnonzero(world.free).tolist()
        assert world.words.sum() == len(free[0])
    for k, blocks in free.items():
        assert len(blocks) == world.lists["length"][k]
    queues = {}
    for k, q in enumerate(world.queues):
        packets, block = [], q["head"]
        while block != -1 and q["created"]:
            packets.append(follow(block, world.blocks["last"][block]))
            if block == q["tail"]:
                break
            block = world.blocks["next"][packets[-1][-1]]
            assert sum(map(len, packets)) <= limit
        queues[k] = packets
    return free, queues


class Operations(RuleBasedStateMachine):
    """Any order of possible operations; every answer and the whole state are compared."""

    @initialize(design=st.sampled_from(DESIGNS), seed=st.integers(0, 3))
    def start(self, design, seed):
        self.player = Player(design, seed=seed)
        free, _ = chains(self.player.world)
        self.plain = Plain(design, free)
        self.packets = {k: [] for k in range(QUEUES)}  # of each queue: [blocks, segments, those to come]
        self.created, self.read = set(), {k: 0 for k in range(QUEUES)}
        self.lossy = design.allocation.admission == "lossy"
        self.open = {k: None for k in range(QUEUES)}  # the packet off its queue that is being read

    def whole(self, queue):
        return queue in self.created and self.packets[queue] and not self.packets[queue][0][2]

    def writing(self, queue):
        return bool(self.packets[queue]) and self.packets[queue][-1][2] > 0

    def linked(self, queue):
        """Return the packets of a queue that have a block."""
        return [packet for packet in self.packets[queue] if packet[0]]

    def one(self, *operation):
        done = self.player.play([operation])
        return int(done.accesses[0]), int(done.block[0]), int(done.met[0]), bool(done.refused[0])

    queues = st.integers(0, QUEUES - 1)

    @rule(queue=queues)
    def create_or_destroy(self, queue):
        if queue not in self.created:
            assert self.one("create", queue)[0] == 1
            self.created.add(queue)
        elif not self.packets[queue] and not self.open[queue]:
            assert self.one("destroy", queue)[0] == 2
            self.created.discard(queue)

    @precondition(lambda self: self.created)
    @rule(queue=queues, segments=st.integers(1, 40))
    def begin(self, queue, segments):
        queue = queue if queue in self.created else min(self.created)
        if not self.writing(queue):
            self.packets[queue].append([[], segments, segments])
        self.write(queue)

    @rule(queue=queues)
    def enqueue(self, queue):
        if self.writing(queue):
            self.write(queue)

    def write(self, queue):
        packet = self.packets[queue][-1]
        blocks, segments, left = packet
        begins = left == segments
        operation = ("begin", queue, segments) if begins else ("enqueue", queue)
        packet[2] -= 1
        by_packet = self.plain.spec.allocation.admission == "packet"
        if (begins or not by_packet) and not self.plain.reserve(segments):
            accesses = 0
            if self.lossy:
                if not packet[2] and not blocks:
                    self.packets[queue].pop()
            else:
                self.packets[queue].pop()
                if not begins:
                    accesses = self.plain.release(blocks, segments) + (5 if self.packets[queue] else 3)
            assert self.one(*operation) == (accesses, -1, -1, True)
            return
        block, accesses = self.plain.allocate(segments)
        met = self.plain.access(block)
        # Queue and first segment read; a link, the new segment and PktPtr or the queue written.
        linking = (5 if self.linked(queue) else 3) if not blocks else (4 if len(blocks) == 1 else 5)
        assert self.one(*operation) == (accesses + linking, block, met, False)
        blocks.append(block)

    @rule(queue=queues, times=st.integers(1, 6))
    def dequeue(self, queue, times):
        for _ in range(times):
            packet, accesses = self.open[queue], 0
            if packet is None and self.whole(queue):
                packet = self.packets[queue][0]
                if self.lossy:
                    self.open[queue] = self.packets[queue].pop(0)
                    accesses = 4 if self.linked(queue) else 3
            if packet is None or self.read[queue] == len(packet[0]):
                return
            # Segments leave in the order in which they came.
            k = self.read[queue]
            block = packet[0][k]
            met = self.plain.access(block)
            if self.lossy:
                accesses += self.plain.free_one(block, packet[1], packet[0][k - 1] if k else None)
            assert self.one("dequeue", queue) == (accesses + (1 if k else 2), block, met, False)
            self.read[queue] += 1

    @rule(queue=queues)
    def delete(self, queue):
        packet = self.open[queue]
        if packet is not None:
            if self.read[queue] == len(packet[0]):
                assert self.one("delete", queue)[0] == self.plain.freed(len(packet[0]), packet[1])
                self.open[queue] = None
                self.read[queue] = 0
        elif self.whole(queue):
            blocks, segments, _ = self.packets[queue].pop(0)
            freeing = self.plain.release(blocks, segments)
            accesses = self.one("delete", queue)[0]
            assert accesses == freeing + (4 if self.linked(queue) else 3)
            self.read[queue] = 0

    @rule(source=queues, end=queues)
    def move(self, source, end):
        if source == end or end not in self.created or self.writing(end):
            return
        if self.whole(source) and self.read[source] == 0:
            packet = self.packets[source].pop(0)
            unlinking = 5 if self.linked(source) else 3
            appending = 4 if self.packets[end] else 2
            self.packets[end].append(packet)
            assert self.one("move", source, end)[0] == unlinking + appending

    @invariant()
    def nothing_lost_or_given_twice(self):
        if not hasattr(self, "player"):
            return
        free, queues = chains(self.player.world)
        plain = {k: list(blocks) for k, blocks in self.plain.free.items()}
        if self.plain.policy == "bitmap":
            plain[0] = sorted(plain[0])
        assert free == plain
        assert queues == {k: [packet[0] for packet in self.linked(k)] for k in self.packets}
        everything = [b for blocks in free.values() for b in blocks]
        everything += [b for packets in queues.values() for packet in packets for b in packet]
        everything += [b for k, p in self.open.items() if p for b in p[0][self.read[k] :]]
        assert sorted(everything) == list(range(SEGMENTS))


Operations.TestCase.settings = settings(max_examples=50, stateful_step_count=40)
test_operations = Operations.TestCase
