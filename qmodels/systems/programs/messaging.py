"""A message-passing program on a network-on-chip: processes, what messages cost, and the network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from qmodels import checks
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.patterns import uniform
from qmodels.systems.noc.router import PRIORITIES, Router
from qmodels.systems.noc.routes import PathTable
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import Topology
from qmodels.systems.spec.docstrings import Replaceable
from qmodels.systems.spec.metrics import MetricNames
from qmodels.systems.spec.ranges import Declared, count, nonnegative, positive, probability


class Service(NamedTuple):
    """Key of a program's packet in the network."""

    # source, target: processes.
    source: int
    target: int
    priority: int  # its priority: 7 unless the switches know priorities
    circuit: bool  # whether it goes through a circuit


def services(program: MessageProgram) -> tuple[tuple[int, ...], tuple[Service, ...]]:
    """Return the service of every step that sends, process by process, as numbers of a list; and the list.

    Steps that send nothing have -1. The packet that opens a circuit travels outside it, the one that
    closes it inside.
    """
    known: dict[Service, int] = {}
    numbers = []
    by_priority = program.router.arbitration == "priority"
    for process, (steps, first) in enumerate(zip(program.steps, program.first_priorities, strict=True)):
        level, circuits = first, set[int]()
        for step in steps:
            if step.action == "priority":
                level = step.level
            if step.action not in ("send", "signal", "open", "close"):
                numbers.append(-1)
                continue
            service = Service(
                process, step.peer, level if by_priority else PRIORITIES - 1, step.peer in circuits
            )
            numbers.append(known.setdefault(service, len(known)))
            if step.action in ("open", "close"):
                circuits ^= {step.peer}
    return tuple(numbers), tuple(known)


def service_table(program: MessageProgram) -> PathTable:
    """Return the services of a program with their paths, in the order of `services`.

    Where a routing gives several paths between two nodes, messages take the first.
    """
    _, known = services(program)
    table, first = _all_pairs(program.topology, program.routing, program.router, program.link_width)
    chosen = [first[program.nodes[s.source], program.nodes[s.target]] for s in known]
    whole = (
        "virtual_channels",
        *(item.name for item in fields(PathTable) if item.name.startswith("channel_")),
    )
    return PathTable(
        **{name: getattr(table, name) for name in whole},
        source=table.source[chosen],
        target=table.target[chosen],
        flits=np.ones(len(known), dtype=np.int32),
        priority=np.array([s.priority for s in known], dtype=np.int32),
        weight=np.ones(len(known)),
        circuit=np.array([s.circuit for s in known], dtype=bool),
        paths=table.paths.of(chosen),
    )


@lru_cache(maxsize=16)
def _all_pairs(
    topology: Topology, routing: str, router: Router, link_width: int
) -> tuple[FlowTable, dict[tuple[int, int], int]]:
    noc = Noc(
        topology=topology,
        routing=routing,
        router=router,
        link_width=link_width,
        traffic=uniform(nodes=topology.nodes),
        injection_rate=0.0,
    )
    table = noc.flow_table()
    first: dict[tuple[int, int], int] = {}
    for flow, pair in enumerate(zip(table.source.tolist(), table.target.tolist(), strict=True)):
        first.setdefault(pair, flow)
    return table, first


FORMS = {
    "compute": "compute CYCLES",
    "send": "send PROCESS WORDS",
    "receive": "receive PROCESS",
    "signal": "signal PROCESS",
    "wait": "wait PROCESS",
    "open": "open PROCESS",
    "close": "close PROCESS",
    "priority": "priority LEVEL",
}
"""The steps and how they are written.

``send`` and ``receive`` pass a message with its header; ``signal`` and ``wait`` pass a
notification through a synchronisation module, one word without a header. Both are matched in the
order in which they are sent, for each pair of processes apart. ``open`` reserves a circuit to a
process, over which what is sent there travels until ``close``. ``priority`` sets that of all the
process sends from then on.
"""

PAIRED = {"receive": "send", "wait": "signal"}
"""Event that each waiting step waits for."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step, read from its words."""

    action: str  # one of `FORMS`
    peer: int = -1  # the other process, -1 where there is none
    words: int = 0  # payload of a message [words]
    cycles: float = 0.0  # computing time [cycles]
    level: int = -1  # priority that is set, -1 where none is


def compute(cycles: float) -> str:
    """Return the step that computes for n cycles."""
    return f"compute {float(cycles):g}" if float(cycles).is_integer() else f"compute {float(cycles)!r}"


def send(to: int, *, words: int) -> str:
    """Return the step that sends a message of n words."""
    return f"send {to} {words}"


def receive(source: int) -> str:
    """Return the step that waits for the next message of a process and reads it."""
    return f"receive {source}"


def signal(to: int) -> str:
    """Return the step that notifies a process."""
    return f"signal {to}"


def wait(source: int) -> str:
    """Return the step that waits for the next notification of a process."""
    return f"wait {source}"


def join(*parts: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the processes that take the steps of several programs one after the other."""
    sizes = sorted({len(part) for part in parts})
    if len(sizes) > 1:
        raise ValueError(f"joined programs must have equally many processes, got {sizes}")
    return tuple(tuple(step for part in parts for step in part[k]) for k in range(sizes[0] if sizes else 0))


def read_steps(steps: Iterable[str], *, process: int, processes: int) -> tuple[Step, ...]:
    """Return the steps of one process.

    ``steps``: their words; ``process``, ``processes``: number of the process, and how many there are.

    Raises
    ------
    ValueError
        One line with the step: what it must look like, or what its process must be.

    Examples
    --------
    >>> read_steps(["send 1 16"], process=0, processes=2)[0].words
    16
    >>> read_steps(["sent 1 16"], process=0, processes=2)
    Traceback (most recent call last):
        ...
    ValueError: steps of process 0 must be one of compute, send, receive, signal, wait, open, close, priority, got 'sent'; did you mean 'send'?
    """  # noqa: E501
    found = []
    for text in steps:
        step = _read(text, process)
        if step.peer >= processes or step.peer == process:
            raise ValueError(
                f"step {text!r} of process {process} must name another process in 0..{processes - 1}, "
                f"got {step.peer}"
            )
        found.append(step)
    return tuple(found)


@lru_cache(maxsize=65536)
def _read(text: str, process: int) -> Step:
    if not isinstance(text, str):
        raise ValueError(f"steps of process {process} must be words such as 'send 0 16', got {text!r}")
    action, *numbers = text.split() or [""]
    checks.choice(f"steps of process {process}", action, FORMS)
    form = FORMS[action]
    name = f"step {text!r} of process {process}"
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if len(values) != len(form.split()) - 1:
        raise ValueError(f"{name} must have the form '{form}', got {len(numbers)} values: {numbers}")
    if action == "compute":
        return Step(action=action, cycles=float(checks.nonnegative(f"cycles of {name}", values[0])))
    if action == "priority":
        level = checks.count(f"level of {name}", values[0], minimum=0, maximum=PRIORITIES - 1)
        return Step(action=action, level=int(level))
    peer = int(checks.count(f"process of {name}", values[0], minimum=0))
    words = int(checks.count(f"words of {name}", values[1], minimum=0)) if action == "send" else 0
    return Step(action=action, peer=peer, words=words)


MOST_CYCLES = 1e12
"""Of a cost: with more the sums of a program have no digits left for its other times."""
PROCESS_TIMES = ("finish_time", "computing_time", "software_time", "network_time", "blocked_time")
"""Metrics that each process has, with its number in brackets: ``finish_time[3]``."""


@dataclass(frozen=True, kw_only=True)
class MessageCosts(Declared, prefix="costs."):
    """Overhead of the library for a message.

    A process that sends spends ``send_cycles``, then copies header and payload word by word to the
    network interface; every ``packet_words`` words leave as one packet, a store to the buffer memory
    of the other tile, and the copying goes on when the response is back. The receiver finds the
    message in its buffer memory when the last packet has arrived; it spends ``receive_cycles`` and
    copies the words out. A notification is one packet of one word, with the same ``send_cycles`` and
    ``receive_cycles`` and no copying.

    References
    ----------
    .. [1] J. Joven, F. Angiolini, D. Castells-Rufas, G. De Micheli, J. Carrabina-Bordoll,
       "QoS-ocMPI: QoS-aware on-chip Message Passing Library for NoC-based Many-Core MPSoCs".
    """

    # Envelope of a message: ranks, tag, type and length. [1]_ sec. VII: 20. [bytes]
    header_bytes: int = count(20, minimum=0)
    word_bytes: int = count(4)  # Size of a word. [bytes]
    # send_cycles, receive_cycles: Software for each message or notification at its two ends. [cycles]
    send_cycles: float = nonnegative(350.0, maximum=MOST_CYCLES)
    receive_cycles: float = nonnegative(350.0, maximum=MOST_CYCLES)
    # send_word_cycles, receive_word_cycles: Software for each word of header and payload at the two ends,
    # without the network. [cycles]
    send_word_cycles: float = nonnegative(5.0, maximum=MOST_CYCLES)
    receive_word_cycles: float = nonnegative(10.0, maximum=MOST_CYCLES)
    packet_words: int = count(1)  # Words in one packet of the network. [words]
    # What the network interface adds to a packet: route, class of service and address. [bytes]
    packet_overhead_bytes: int = count(8, minimum=0)
    # From the arrival of a packet until the response leaves the memory. [cycles]
    response_cycles: float = nonnegative(1.0, maximum=MOST_CYCLES)

    def message_words(self, words: int) -> int:
        """Return the words of a message with its header."""
        return -(-self.header_bytes // self.word_bytes) + words

    def packets(self, words: int) -> tuple[int, int]:
        """Return the number of packets of a message, and the words in the last one.

        Examples
        --------
        >>> MessageCosts(packet_words=4).packets(words=1)
        (2, 2)
        """
        total = self.message_words(words)
        count = max(1, -(-total // self.packet_words))
        return count, total - (count - 1) * self.packet_words

    def packet_flits(self, words: int, link_width: int) -> int:
        """Return the flits of a packet with n words."""
        return max(1, -(-(self.packet_overhead_bytes + words * self.word_bytes) // link_width))


@dataclass(frozen=True, kw_only=True)
class MessageProgram(Replaceable, Declared):
    """Processes that compute and pass messages, one on each of some nodes of a network.

    Raises
    ------
    ValueError
        If a step cannot be read, a process waits for something that is never sent, or a circuit is
        opened twice or closed before it is open.

    Examples
    --------
    >>> from qmodels.systems.programs.collectives import gather
    >>> from qmodels.systems.noc.topology import mesh
    >>> program = MessageProgram(topology=mesh(4), processes=gather(processes=4, words=16))
    >>> program.steps[3]
    (Step(action='send', peer=0, words=16, cycles=0.0, level=-1),)
    >>> MessageProgram(topology=mesh(4), processes=(("wait 1",), ()))
    Traceback (most recent call last):
        ...
    ValueError: process 0 would wait for ever: its step 'wait 1' has no 'signal 0' that process 1 reaches
    """

    topology: Topology = field(default_factory=lambda: Topology(kind="mesh", nodes=16))  # Where the nodes are
    routing: str = "default"  # How packets go, as for a `Noc`
    router: Router = field(default_factory=Router)  # Switches
    link_width: int = count(4)  # Width of the links. [bytes]
    # What messages cost besides the way through the network
    costs: MessageCosts = field(default_factory=MessageCosts)
    # Steps of each process, see `qmodels.systems.programs.messaging.FORMS`
    processes: tuple[tuple[str, ...], ...]
    placement: tuple[int, ...] = ()  # Node of each process; by default process *k* is on node *k*
    # Priority with which each process starts, 0 first and 7 last; by default 7 for all, which is round robin.
    # The step ``priority`` changes it
    priorities: tuple[int, ...] = ()
    # Every computing step takes its cycles times a number between 1 - jitter and 1 + jitter, all equally
    # likely: what caches make unpredictable. The model takes the mean
    compute_jitter: float = probability(0.0)
    clock_ghz: float = positive(1.0)  # Clock of processors and network. [GHz]

    metric_names: ClassVar[MetricNames] = MetricNames(
        both=("execution_time", "message_latency", *PROCESS_TIMES)
    )

    def _check_relations(self) -> None:
        nodes, count = self.topology.nodes, len(self.processes)
        if not 1 <= count <= nodes:
            raise ValueError(
                f"processes must be 1 to {nodes}, as many as the topology has nodes, got {count}"
            )
        if self.placement:
            if len(self.placement) != count or len(set(self.placement)) != count:
                raise ValueError(
                    f"placement must name a node of its own for each of {count} processes, "
                    f"got {self.placement!r}"
                )
            checks.count("placement", self.placement, minimum=0, maximum=nodes - 1)
        if self.priorities:
            if len(self.priorities) != count:
                raise ValueError(
                    f"priorities must be one for each of {count} processes, got {self.priorities!r}"
                )
            checks.count("priorities", self.priorities, minimum=0, maximum=PRIORITIES - 1)
        _check_progress(self.steps)

    @cached_property
    def steps(self) -> tuple[tuple[Step, ...], ...]:
        """Steps of each process, read."""
        count = len(self.processes)
        return tuple(read_steps(words, process=k, processes=count) for k, words in enumerate(self.processes))

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """Node of each process."""
        return self.placement or tuple(range(len(self.processes)))

    @cached_property
    def first_priorities(self) -> tuple[int, ...]:
        """Priority with which each process starts."""
        return self.priorities or (PRIORITIES - 1,) * len(self.processes)


def _check_progress(processes: Sequence[Sequence[Step]]) -> None:
    """Refuse programs in which a process waits for ever, or circuits are not opened and closed in turn."""
    at = [0] * len(processes)
    sent: dict[tuple[str, int, int], int] = {}
    circuits: set[tuple[int, int]] = set()
    moved = True
    while moved:
        moved = False
        for k, steps in enumerate(processes):
            while at[k] < len(steps):
                step = steps[at[k]]
                if step.action in PAIRED:
                    key = (PAIRED[step.action], step.peer, k)
                    if not sent.get(key):
                        break
                    sent[key] -= 1
                elif step.action in PAIRED.values():
                    key = (step.action, k, step.peer)
                    sent[key] = sent.get(key, 0) + 1
                elif step.action in ("open", "close"):
                    if ((k, step.peer) in circuits) == (step.action == "open"):
                        state = "is open already" if step.action == "open" else "is not open"
                        raise ValueError(
                            f"{step.action} of process {k}: its circuit to process {step.peer} {state}"
                        )
                    circuits ^= {(k, step.peer)}
                at[k] += 1
                moved = True
    for k, steps in enumerate(processes):
        if at[k] < len(steps):
            step = steps[at[k]]
            raise ValueError(
                f"process {k} would wait for ever: its step '{step.action} {step.peer}' has no "
                f"'{PAIRED[step.action]} {k}' that process {step.peer} reaches"
            )
