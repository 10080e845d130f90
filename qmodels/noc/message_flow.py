"""The course of a message-passing program in time: software as delays, messages as shared flows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from qmodels.noc.alone import credit_loops, head_times
from qmodels.noc.message_rates import Transfer, transfer_rates
from qmodels.systems.programs.messaging import PAIRED, MessageProgram, Step, service_table, services


@dataclass(frozen=True, kw_only=True)
class MessagePath:
    """A path through the network."""

    channels: tuple[int, ...]  # injection, links and ejection
    head: float  # time of a head from the source to the sink, without the cycle it is sent in [cycles]
    response: float  # time of a response, which meets no other traffic [cycles]
    cycles_per_flit: float  # of the narrowest channel
    buffer_flits: int  # buffer of the routers [flits]
    # Cycles by which a packet longer than a buffer waits for credits, each time it has filled one.
    late_cycles: float

    def occupancy(self, flits: int) -> float:
        """Return the cycles for which a packet holds a channel, see `qmodels.noc.alone.busy_times`."""
        return flits * self.cycles_per_flit + (flits - 1) // self.buffer_flits * self.late_cycles

    def latency(self, flits: int) -> float:
        """Return the cycles from sending a packet to its tail's arrival."""
        return self.head + self.occupancy(flits) - self.cycles_per_flit


def message_paths(program: MessageProgram) -> dict[tuple[int, int], MessagePath]:
    """Return the path between each pair of processes that exchange something."""
    table, router = service_table(program), program.router
    _, known = services(program)
    if not known:
        return {}
    heads, loops = head_times(table, router), credit_loops(table, router)
    per_flit = np.asarray(table.channel_cycles_per_flit, dtype=float)
    found = {}
    for number, service in enumerate(known):
        channels = table.path_channel[table.path_start[number] : table.path_start[number + 1]]
        slowest = float(per_flit[channels].max())
        found[service.source, service.target] = MessagePath(
            channels=tuple(channels.tolist()),
            head=float(heads[number]),
            # A response is one flit of a network of its own, in which no link is narrow.
            response=float(heads[number] - np.sum(per_flit[channels] - 1)) + program.costs.response_cycles,
            cycles_per_flit=slowest,
            buffer_flits=router.buffer_flits,
            late_cycles=max(0.0, float(loops[channels].max()) - router.buffer_flits * slowest),
        )
    return found


INF = math.inf
_PARTS = ("computing", "software", "network", "waiting", "contention")


@dataclass(frozen=True, kw_only=True, eq=False)
class Course:
    """When everything happens."""

    finish: tuple[float, ...]  # when each process ends [cycles]
    # computing, software, network, waiting: where its time goes: computing steps; library code; packets under
    # way and the wait for switches; waiting for messages of others [cycles].
    computing: tuple[float, ...]
    software: tuple[float, ...]
    network: tuple[float, ...]
    waiting: tuple[float, ...]
    # Part of ``network`` that would not be there if a process were alone [cycles].
    contention: tuple[float, ...]
    # (source, target, words, beginning, arrival) of every message and notification, whose words are -1, in
    # the order of arrival.
    messages: tuple[tuple[int, int, int, float, float], ...]
    # Most that was ever asked of a channel at once: the sum of what the transfers over it would load it with
    # alone. Above 1 it is full [1].
    crowding: float


@dataclass(kw_only=True)
class _Process:
    """Where a process is: in a delay until ``ready``, in a transfer, or waiting (``ready`` infinite)."""

    steps: tuple[Step, ...]
    level: int
    at: int = 0
    stage: int = 0
    ready: float = 0.0
    since: float = 0.0
    transfer: Transfer | None = None
    left: float = 0.0
    begun: float = 0.0
    alone: float = 0.0
    copying: float = 0.0
    circuits: set[int] = field(default_factory=set)
    spent: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_PARTS, 0.0))


def course(program: MessageProgram, paths: Mapping[tuple[int, int], MessagePath]) -> Course:
    """Return when everything in a program happens.

    ``paths``: path between each pair of processes that exchange something.

    A fluid model: between two events (a message arrives, a delay ends) every transfer advances at
    the rate that `qmodels.noc.message_rates.transfer_rates` gives those that are under way; the next
    event is the first to come. So a program takes about as many evaluations as it passes messages.
    Exact where no two messages meet.
    """
    return _Evaluation(program, paths).run()


class _Evaluation:
    def __init__(self, program: MessageProgram, paths: Mapping[tuple[int, int], MessagePath]) -> None:
        self._program, self._costs, self._paths = program, program.costs, paths
        router = program.router
        self._by_priority = router.arbitration == "priority"
        self._buffer = float(router.buffer_flits * router.virtual_channels)
        self._processes = [
            _Process(steps=steps, level=level)
            for steps, level in zip(program.steps, program.first_priorities, strict=True)
        ]
        self._arrived: dict[tuple[str, int, int], deque[int]] = {}
        self._messages: list[tuple[int, int, int, float, float]] = []
        self._rates: dict[tuple[Transfer, ...], list[float]] = {}
        self._now = self._crowding = 0.0

    def run(self) -> Course:
        for k in range(len(self._processes)):
            self._advance(k)
        while True:
            moving = [p for p in self._processes if p.transfer is not None]
            rates = self._rates_of(tuple(p.transfer for p in moving if p.transfer is not None))
            ends = [self._now + p.left / r if r > 0 else INF for p, r in zip(moving, rates, strict=True)]
            following = min([*ends, *(p.ready for p in self._processes)], default=INF)
            if following == INF:
                break
            for p, rate, end in zip(moving, rates, ends, strict=True):
                p.left = 0.0 if end <= following else p.left - rate * (following - self._now)
            self._now = following
            for k, p in enumerate(self._processes):
                if (p.transfer is not None and p.left <= 0.0) or p.ready <= following:
                    self._advance(k)
        spent = {part: tuple(p.spent[part] for p in self._processes) for part in _PARTS}
        return Course(
            finish=tuple(p.since for p in self._processes),
            messages=tuple(self._messages),
            crowding=self._crowding,
            **spent,
        )

    def _rates_of(self, transfers: tuple[Transfer, ...]) -> list[float]:
        if transfers not in self._rates:
            asked: dict[int, float] = {}
            for one in transfers:
                for channel in one.path:
                    asked[channel] = asked.get(channel, 0.0) + one.flits / one.cycles
            self._crowding = max([self._crowding, *asked.values()])
            rates = transfer_rates(transfers, buffer_flits=self._buffer) if transfers else np.zeros(0)
            self._rates[transfers] = rates.tolist()
        return self._rates[transfers]

    def _advance(self, k: int) -> None:
        """Let a process go on until it has to wait for something."""
        p = self._processes[k]
        p.ready = INF
        while p.at < len(p.steps):
            step = p.steps[p.at]
            if self._begin(k, p, step):
                return
            p.at, p.stage = p.at + 1, 0

    def _begin(self, k: int, p: _Process, step: Step) -> bool:
        """Do the next stage of a step; return whether the process waits for its end."""
        p.stage += 1
        if step.action == "compute":
            return p.stage == 1 and self._delay(p, step.cycles, "computing")
        if step.action == "priority":
            p.level = step.level
            return False
        if step.action in PAIRED:
            return self._take(k, p, step)
        return self._give(k, p, step)

    def _delay(self, p: _Process, cycles: float, part: str) -> bool:
        p.spent[part] += cycles
        p.since = self._now + cycles
        p.ready = p.since
        return True

    def _take(self, k: int, p: _Process, step: Step) -> bool:
        if p.stage > 2:
            return False
        queue = self._arrived.setdefault((PAIRED[step.action], step.peer, k), deque())
        if not queue:
            p.stage = 0
            return True
        words = queue.popleft()
        p.spent["waiting"] += self._now - p.since
        copied = 0 if step.action == "wait" else self._costs.message_words(words)
        cycles = self._costs.receive_cycles + copied * self._costs.receive_word_cycles
        p.stage = 2
        return self._delay(p, cycles, "software")

    def _give(self, k: int, p: _Process, step: Step) -> bool:
        costs = self._costs
        control = step.action in ("open", "close")
        if p.stage == 1:
            return self._delay(p, 0.0 if control else costs.send_cycles, "software")
        if p.stage == 2:
            self._start(k, p, step)
            return True
        path = self._paths[k, step.peer]
        if p.stage == 3:
            p.transfer = None
            spent = self._now - p.begun
            p.spent["contention"] += max(0.0, spent - p.alone)
            p.spent["network"] += spent - p.copying + path.response
            p.since, p.ready = self._now + path.response, self._now + path.response
            if control:
                p.circuits ^= {step.peer}
            else:
                words = step.words if step.action == "send" else -1
                self._messages.append((k, step.peer, words, p.begun, self._now))
                self._arrived.setdefault((step.action, k, step.peer), deque()).append(words)
                reader = self._processes[step.peer]
                if reader.at < len(reader.steps) and reader.ready == INF and reader.transfer is None:
                    self._advance(step.peer)
            return True
        return False

    def _start(self, k: int, p: _Process, step: Step) -> None:
        """Begin the packets of a message: their copying, ways and responses take turns."""
        costs, path, width = self._costs, self._paths[k, step.peer], self._program.link_width
        if step.action == "send":
            packets, last = costs.packets(step.words)
            words = costs.packet_words if packets > 1 else last
            copying = costs.send_word_cycles
            p.copying = costs.message_words(step.words) * copying
        else:
            p.copying = 0.0
            packets, last, words, copying = 1, 1, 1, 0.0
        long, short = costs.packet_flits(words, width), costs.packet_flits(last, width)
        first = copying * words + path.latency(long) + path.response
        final = copying * last + path.latency(short)
        p.alone = (packets - 1) * first + final
        p.left = p.alone / first
        p.begun = self._now
        p.spent["software"] += p.copying
        p.transfer = Transfer(
            path=path.channels,
            flits=path.occupancy(long),
            cycles=first,
            priority=p.level if self._by_priority else 7,
            circuit=step.peer in p.circuits,
        )
        p.ready = INF
