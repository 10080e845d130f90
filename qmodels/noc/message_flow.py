"""The course of a message-passing program in time: software as delays, messages as shared flows."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.noc.turns import credit_loops, head_times
from qmodels.systems.programs.messaging import PAIRED, MessageProgram, Step, service_table, services

ROUNDS, MEMORY, SETTLED = 60, 0.7, 1e-3
"""Rounds at most, share of the old waits kept in each, and the change of the rates that ends them."""

FULL = 1e-9


class TransferLaw(NamedTuple):
    """Assumptions on full inputs.

    Parameters
    ----------
    overtaking : float
        Of the wait in full inputs, what is left for a packet that is served before others there.
    """

    overtaking: float


LAW = kept(TransferLaw, "noc.transfers")


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A process that sends one packet after the other to another."""

    path: tuple[int, ...]  # channels on the way, injection first and ejection last
    flits: float  # time a packet holds a channel [cycles]
    # From one packet to the next where nobody else sends: software, way there and response [cycles].
    cycles: float
    priority: int = 7  # 0 is served first
    circuit: bool = False  # whether it passes all that is not in a circuit


def transfer_rates(transfers: Sequence[Transfer], *, buffer_flits: float = 8.0) -> FloatArray:
    r"""Return at what rate each of some simultaneous transfers advances.

    ``transfers``: those under way, each with at most one packet in the network; ``buffer_flits``: buffers of
    a channel, all its virtual channels together [flits]. Returns rates; 0 for a transfer that gets nothing
    because higher priorities fill a channel [packets/cycle].

    A transfer with a packet time :math:`u` and a wait :math:`w` advances at :math:`x = 1/(u + w)`
    while no channel is full. It waits for what is left of the packets of others on common channels,
    :math:`(1 + \rho/2) \sum_k x_k L_k^2 / 2` with their load :math:`\rho = \sum_k x_k L_k`, and
    with higher priorities for what comes meanwhile.

    Where loads exceed 1, the channel that exceeds it most is divided anew until none does: classes
    of priority one after the other, and inside a class evenly among the inputs that have packets for
    it (max-min fairness [1]_); an input that wants less gets what it wants. What an input gets is
    divided in the same way at the switch before if the packets that wait, :math:`1 - x u` of each
    transfer, are more than two buffers hold; otherwise they wait in one queue and share evenly.
    A transfer that passes a full input waits there for half of these packets, or for a buffer, and
    one that joins it for one packet more; half as long if it is served before others there, which
    it passes at the switch but not inside a buffer.

    An approximation: its mean error against the flit-level simulation is about 5 % of the rates in
    narrowcasts that fill a channel three times over, 1 % where no channel is full. Packets that
    are blocked at the head of a buffer do not hold up those for other channels here. Circuits come
    first everywhere and wait for circuits only.

    References
    ----------
    .. [1] D. Bertsekas, R. Gallager, *Data Networks*, 2nd edition, Prentice Hall, 1992, sec. 6.5.2.
    """
    return _Division(transfers, float(buffer_flits)).rates()


class _Division:
    """The division of channels among transfers; ``loads`` are the rates in shares of a channel."""

    def __init__(self, transfers: Sequence[Transfer], buffer: float) -> None:
        self.transfers, self.buffer = transfers, buffer
        self.flits = np.array([one.flits for one in transfers])
        self.cycles = np.array([one.cycles for one in transfers])
        # Circuits are a class before the first.
        self.level = np.array([-1 if one.circuit else one.priority for one in transfers])
        self.channels = sorted({channel for one in transfers for channel in one.path})
        self.row = {channel: k for k, channel in enumerate(self.channels)}
        self.uses = np.zeros((len(self.channels), len(transfers)))
        for k, one in enumerate(transfers):
            self.uses[[self.row[channel] for channel in one.path], k] = 1.0
        self.meets: npt.NDArray[np.bool_] = np.asarray(self.uses.T @ self.uses > 0)
        np.fill_diagonal(self.meets, False)
        self.meets[self.level < 0] &= self.level < 0
        self.before = self.meets & (self.level < self.level[:, None])
        self.loads = np.zeros(len(transfers))
        self.queued = np.ones(len(transfers))
        self.backlog: set[int] = set()

    def rates(self) -> FloatArray:
        waits = np.zeros(len(self.transfers))
        rates, mean = 1.0 / self.cycles, 1.0 / self.cycles
        for number in range(ROUNDS):
            self.loads = self.flits / (self.cycles + waits)
            full = self._divide_all()
            rates = self.loads / self.flits
            change = float(np.max(np.abs(rates - mean) * self.cycles, initial=0.0))
            # The mean of the rounds: where a queue just fits a buffer, they alternate.
            mean = rates if number < 8 else MEMORY * mean + (1 - MEMORY) * rates
            if number > 0 and change < (1e-5 if full else SETTLED):
                break
            self.queued += 0.5 * (np.maximum(0.0, 1.0 - rates * self.cycles) - self.queued)
            waits = MEMORY * waits + (1 - MEMORY) * self._waits(rates, full)
        return mean

    def _waits(self, rates: FloatArray, full: set[int]) -> FloatArray:
        loads = rates * self.flits
        rest = self.meets @ (loads * self.flits / 2) * (1 + self.meets @ loads / 2)
        waits: FloatArray = rest / np.maximum(1.0 - self.before @ loads, 0.05)
        if full:
            passed = self.uses @ loads
            passes = np.any(self.meets & (self.level > self.level[:, None]), axis=1)
            for k, one in enumerate(self.transfers):
                if self.level[k] >= 0:
                    share = LAW.overtaking if passes[k] else 1.0
                    waits[k] += share * self._wait_in_full(k, one, passed, full)
        return waits

    def _wait_in_full(self, k: int, one: Transfer, passed: FloatArray, full: set[int]) -> float:
        """Return the wait of a transfer in the inputs that packets have piled up in."""
        wait = 0.0
        for before, channel in zip(one.path, one.path[1:], strict=False):
            row = self.row[channel]
            packet_time = self.flits[k] / max(passed[row], 1e-3)
            if channel in self.backlog:
                ahead = (self.uses[row] @ self.queued - self.queued[k]) / 2
                wait += min(self.buffer / self.flits[k], ahead) * packet_time
            if (channel in self.backlog or channel in full) and before not in self.backlog:
                wait += packet_time
        return float(wait)

    def _divide_all(self) -> set[int]:
        """Divide channels until none is overfull; return those that were."""
        divided: set[int] = set()
        self.backlog = set()
        for _ in range(4 * len(self.channels)):
            excess = self.uses @ self.loads - 1.0
            fullest = int(np.argmax(excess)) if excess.size else 0
            if not excess.size or excess[fullest] <= FULL:
                break
            channel, room = self.channels[fullest], 1.0
            divided.add(channel)
            members = np.flatnonzero(self.uses[fullest]).tolist()
            for level in sorted(set(self.level[members].tolist())):
                group = [k for k in members if self.level[k] == level]
                self._inputs(group, channel, 0, room)
                room = max(0.0, room - float(np.sum(self.loads[group])))
        return divided

    def _inputs(self, group: list[int], channel: int, depth: int, room: float) -> None:
        """Divide room on a channel among the inputs of the switch ``depth`` channels before it."""
        ports: dict[int, list[int]] = {}
        for k in group:
            path = self.transfers[k].path
            where = path.index(channel) - depth - 1
            ports.setdefault(path[where] if where >= 0 else -1 - k, []).append(k)
        fits = depth > 0 and float(np.sum((self.queued * self.flits)[group])) <= 2 * self.buffer
        if fits or len(ports) == len(group):
            self.loads[group] = even_parts(self.loads[group].tolist(), room)
            return
        wanted = [float(np.sum(self.loads[port])) for port in ports.values()]
        for (before, port), want, got in zip(ports.items(), wanted, even_parts(wanted, room), strict=True):
            if want > got * (1 + 1e-6) and before >= 0:
                self.backlog.add(before)
            self._inputs(port, channel, depth + 1, got)


def even_parts(wanted: Sequence[float], room: float) -> list[float]:
    """Max-min fair shares of a capacity: an even part, or the demand if that is less."""
    parts = [0.0] * len(wanted)
    order = sorted(range(len(wanted)), key=lambda k: wanted[k])
    for done, k in enumerate(order):
        parts[k] = min(wanted[k], max(room, 0.0) / (len(order) - done))
        room -= parts[k]
    return parts


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
        """Return the cycles for which a packet holds a channel, see `qmodels.noc.turns.busy_times`."""
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
        channels = table.paths.channel[table.paths.start[number] : table.paths.start[number + 1]]
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
    the rate that `qmodels.noc.message_flow.transfer_rates` gives those that are under way; the next
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
