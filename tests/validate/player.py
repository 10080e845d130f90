"""Play a given list of queue operations, one after the other, as a processor would order them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import DataQueueing
from qmodels.checks import IntArray
from qmodels.systems.packets.data_queueing import QueuedPackets
from validate.campaigns.experiment import check_one
from validate.data_queueing import operations as manager
from validate.data_queueing import world as c
from validate.data_queueing.free_lists import NONE
from validate.data_queueing.world import World, build_world
from validate.engine.jit import inlined, lean

CODES = {"create": 0, "destroy": 1, "begin": 2, "enqueue": 3, "dequeue": 4, "move": 5, "delete": 6}
_CREATE, _DESTROY, _BEGIN, _ENQUEUE, _DEQUEUE, _MOVE, _DELETE = range(7)

SESSION = np.dtype(
    [
        *((name, "i4") for name in ("to_write", "packet", "tail_before")),
        *((name, "i4") for name in ("reading", "read", "cursor", "freed")),
    ]
)
"""Of each queue: segments of its tail packet still to come, and how far its head packet has been read."""

DONE, REFUSED = 0, 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Replay:
    """What became of a list of operations, one array element each."""

    # A packet found too few free blocks. Admitted as a whole it changed nothing; admitted by the segment it
    # was given up, and the segments it had are free again; "lossy", a segment is lost alone.
    refused: Any
    accesses: IntArray  # pointer-memory accesses, those of the allocation or of the freeing included
    block: IntArray  # block written or read, -1 for other operations
    met: IntArray  # whether the data memory's bank was free (0), busy with this page (1) or with another (2)


class Player:
    """A data-queueing module that is told what to do; of its traffic only the number of queues matters."""

    def __init__(self, spec: DataQueueing, *, seed: int = 0) -> None:
        check_one(spec)
        nothing = np.zeros(0, dtype=np.int64)
        packets = QueuedPackets(times=np.zeros(0), segments=nothing, queues=nothing, moved_to=nothing)
        self.world = build_world(spec, packets, seed=np.random.SeedSequence(seed))
        self._sessions = np.zeros(spec.traffic.queues, dtype=SESSION)
        self._sessions["cursor"] = NONE
        self._next_packet = 0

    def play(self, operations: Sequence[tuple[Any, ...]]) -> Replay:
        """Do the operations in their order, which must all be possible.

        ``("create", queue)``, ``("destroy", queue)``, ``("begin", queue, segments)``: the first segment of a
        packet of so many, ``("enqueue", queue)``: its next one, ``("dequeue", queue)``: read the next segment
        of the head packet, ``("move", queue, target)``, ``("delete", queue)``: the head packet.
        """
        rows = np.array([(CODES[name], *more, 0)[:3] for name, *more in operations]).reshape(-1, 3)
        results = np.full((len(rows), 4), NONE, dtype=np.int64)
        begun = np.flatnonzero(rows[:, 0] == _BEGIN)
        # Packets are numbered as they come; their records grow with them.
        grown = np.zeros(self._next_packet + begun.size, dtype=self.world.packets.dtype)
        grown[: self._next_packet] = self.world.packets[: self._next_packet]
        grown["segments"][self._next_packet :] = rows[begun, 2]
        self.world = self.world._replace(packets=grown)
        bad = play_rows(self.world, self._sessions, rows, results, self._next_packet)
        self._next_packet += begun.size
        assert bad == NONE, f"not possible: {operations[bad]}"
        return Replay(
            refused=results[:, 0] == REFUSED,
            accesses=results[:, 1],
            block=results[:, 2],
            met=results[:, 3],
        )


@inlined
def enqueue(w: World, session: Any, queue: int, begins: bool) -> tuple[bool, int, int]:
    """Store a packet's next segment; return whether it was refused, its block and the accesses this took."""
    admission, packet = w.parameters[0]["admission"], session["packet"]
    segments, stored = w.packets[packet]["segments"], w.packets[packet]["stored"]
    if (begins or admission != c.BY_PACKET) and not manager.reserve(w, segments):
        accesses = 0
        if admission == c.LOSSY:
            session["to_write"] -= 1
            if session["to_write"] == 0 and stored > 0:
                manager.close_packet(w, queue)
            return True, NONE, 0
        session["to_write"] = 0
        if stored > 0:
            accesses = manager.give_up_packet(w, queue, session["tail_before"], stored, segments)
        return True, NONE, accesses
    session["to_write"] -= 1
    block, accesses = manager.allocate(w, manager.is_small(w, segments))
    ends = session["to_write"] == 0
    w.packets[packet]["stored"] += 1
    return False, block, accesses + manager.enqueue_segment(w, queue, packet, block, stored == 0, ends)


@inlined
def dequeue(w: World, session: Any, queue: int) -> tuple[int, int]:
    """Read the next segment of a queue's head packet; return its block and the accesses this took."""
    before = session["freed"]
    if session["read"] == 0:
        session["cursor"], before = w.queues[queue]["head"], NONE
        session["reading"] = w.blocks[session["cursor"]]["packet"]
    block = session["cursor"]
    session["cursor"] = w.blocks[block]["next"]
    if w.parameters[0]["admission"] == c.LOSSY:
        accesses = manager.read_and_free(w, queue, session["reading"], block, before)
    else:
        accesses = manager.dequeue_segment(w, session["read"] == 0, 0)
    session["read"] += 1
    session["freed"] = block
    return block, accesses


@lean
def play_rows(w: World, sessions: Any, rows: Any, results: Any, packet: int) -> int:
    """Do the operations; return the row of the first that is not possible, or NONE."""
    for k in range(len(rows)):
        code, queue, argument = rows[k, 0], rows[k, 1], rows[k, 2]
        q = w.queues[queue]
        s = sessions[queue]
        block = NONE
        if code == _CREATE:
            if q["created"]:
                return k
            accesses = manager.create_queue(w, queue)
        elif code == _DESTROY:
            if not q["created"] or q["head"] != NONE or s["read"] > 0:
                return k
            accesses = manager.destroy_queue(w, queue)
        elif code == _BEGIN or code == _ENQUEUE:
            begins = code == _BEGIN
            if not q["created"] or begins != (s["to_write"] == 0):
                return k
            if begins:
                s["packet"], s["to_write"], s["tail_before"] = packet, argument, q["tail"]
                packet += 1
            refused, block, accesses = enqueue(w, s, queue, begins)
            if refused:
                results[k, 0], results[k, 1] = REFUSED, accesses
                continue
        elif q["packets"] == 0 and s["read"] == 0:
            return k
        elif code == _DEQUEUE:
            if s["read"] > 0 and s["read"] == w.packets[s["reading"]]["stored"]:
                return k
            block, accesses = dequeue(w, s, queue)
        elif code == _MOVE:
            t = w.queues[argument]
            if s["read"] > 0 or argument == queue or not t["created"] or t["writing"]:
                return k
            accesses = manager.move_packet(w, queue, argument)
        else:
            if w.parameters[0]["admission"] == c.LOSSY and s["read"] > 0:
                if s["read"] < w.packets[s["reading"]]["stored"]:
                    return k
                accesses = manager.freeing_accesses(w, s["reading"])
            else:
                accesses = manager.delete_packet(w, queue, w.blocks[q["head"]]["packet"])
            s["read"] = 0
        results[k, 0], results[k, 1], results[k, 2] = DONE, accesses, block
        if block != NONE:
            results[k, 3] = manager.access_bank(w.blocks, w.banks, w.recent, w.state, block)
    return NONE
