"""The simulation of message-passing programs: processes that drive the flit-level network cycle by cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.programs.messaging import (
    PAIRED,
    PROCESS_TIMES,
    MessageProgram,
    Service,
    Step,
    service_table,
    services,
)
from qmodels.systems.spec.estimate import Estimate
from validate.campaigns.experiment import Experiment, Job
from validate.engine.jit import jit, lean_part
from validate.engine.streams import new_streams, uniform
from validate.estimates.intervals import mean_interval
from validate.noc.flits import send
from validate.noc.kernel import quiet, step
from validate.noc.state import DELIVERED, World, new_world

DELAY, PACKETS, TAKE = range(3)
COMPUTING, SOFTWARE, NETWORK, BLOCKED, PARTS = range(5)
"""Where the time of a process goes, and how many such parts there are."""

INJECTION = 2
"""From a memory to its router. [cycles]"""

OPERATION = np.dtype(
    [
        ("kind", "i4"),
        ("service", "i4"),
        ("mailbox", "i4"),
        ("part", "i4"),
        ("packets", "i4"),
        ("flits", "i4"),
        ("last_flits", "i4"),
        ("message", "i4"),
        ("cycles", "f8"),
        ("last_cycles", "f8"),
    ],
    align=True,
)
"""DELAY takes ``cycles``; PACKETS copies ``cycles`` for each packet before it leaves (the last one
``last_cycles``) and goes on when its response is back; TAKE waits for the next message of a mailbox."""


class Compiled(NamedTuple):
    """Operations of all processes one after the other, and what the network needs to know.

    ``messages`` has source, target and words (-1: a notification) of every message, in the order of
    the processes' steps; ``response`` the cycles of a response, by service.
    """

    operations: npt.NDArray[np.void]
    start: IntArray
    mailboxes: int
    messages: IntArray
    response: FloatArray
    known: tuple[Service, ...]


def compile_program(program: MessageProgram, *, seed: int, replication: int) -> Compiled:
    """Return the operations of a program; each replication draws its own computing times."""
    costs = program.costs
    numbers, known = services(program)
    sources = [f"compute {k}" for k in range(len(program.steps))]
    streams = new_streams(seed=seed, replication=replication, sources=sources)
    sent = {key: iter(words) for key, words in _sent(program).items()}
    boxes: dict[tuple[str, int, int], int] = {}
    rows: list[tuple[Any, ...]] = []
    starts = [0]
    messages: list[tuple[int, int, int]] = []
    number = iter(numbers)

    def delay(cycles: float, part: int) -> None:
        rows.append((DELAY, -1, -1, part, 0, 0, 0, -1, cycles, 0.0))

    for k, steps in enumerate(program.steps):
        for one in steps:
            service = next(number)
            if one.action == "compute":
                factor = 1 + program.compute_jitter * (2 * uniform(streams, k) - 1)
                delay(one.cycles * factor, COMPUTING)
            elif one.action in PAIRED:
                key = (PAIRED[one.action], one.peer, k)
                box = boxes.setdefault(key, len(boxes))
                rows.append((TAKE, -1, box, BLOCKED, 0, 0, 0, -1, 0.0, 0.0))
                words = next(sent[key])
                copied = costs.message_words(words) if one.action == "receive" else 0
                delay(costs.receive_cycles + copied * costs.receive_word_cycles, SOFTWARE)
            elif service >= 0:
                box = message = -1
                if one.action in ("send", "signal"):
                    delay(costs.send_cycles, SOFTWARE)
                    box = boxes.setdefault((one.action, k, one.peer), len(boxes))
                    message = len(messages)
                    messages.append((k, one.peer, one.words if one.action == "send" else -1))
                packets, flits, cycles = _packets(program, one)
                rows.append((PACKETS, service, box, NETWORK, packets, *flits, message, *cycles))
        starts.append(len(rows))
    return Compiled(
        operations=np.array(rows, dtype=OPERATION),
        start=np.array(starts),
        mailboxes=len(boxes),
        messages=np.array(messages, dtype=np.int64).reshape(-1, 3),
        response=_responses(program),
        known=known,
    )


def _packets(program: MessageProgram, one: Step) -> tuple[int, tuple[int, int], tuple[float, float]]:
    """Return the packets of a step that sends; flits and cycles to copy, of each and of the last."""
    costs, packets, words, last, copying = program.costs, 1, 1, 1, 0.0
    if one.action == "send":
        packets, last = costs.packets(one.words)
        words, copying = costs.packet_words, costs.send_word_cycles
    flits = costs.packet_flits(words, program.link_width), costs.packet_flits(last, program.link_width)
    return packets, flits, (copying * words, copying * last)


def _sent(program: MessageProgram) -> dict[tuple[str, int, int], list[int]]:
    """Return the words of what each pair of processes exchanges, in its order."""
    sent: dict[tuple[str, int, int], list[int]] = {}
    for k, steps in enumerate(program.steps):
        for one in steps:
            if one.action in PAIRED.values():
                sent.setdefault((one.action, k, one.peer), []).append(one.words)
    return sent


def _responses(program: MessageProgram) -> FloatArray:
    """Return the time of the response of each service, on a network of its own."""
    table = service_table(program)
    pipeline = program.router.pipeline_cycles
    times = []
    for first, last in zip(table.paths.start[:-1], table.paths.start[1:], strict=True):
        wires = int(np.sum(np.asarray(table.channel_delay)[table.paths.channel[first:last]]))
        times.append(INJECTION + pipeline * int(last - first - 1) + wires + program.costs.response_cycles)
    return np.array(times)


FAR = np.inf


class Processes(NamedTuple):
    """Where the processes of a program are, and the mailboxes they read.

    Of each process: its next operation and the last, when it is ready and since when it has been, packets
    left of a message (negative while one is copied), by how much its packet was early, the mailbox it waits
    for, and the parts of its time. Of each mailbox messages arrived and taken, and who waits.
    """

    at: Any
    end: Any
    ready: Any
    since: Any
    left: Any
    early: Any
    waits_for: Any
    parts: Any
    arrived: Any
    taken: Any
    reader: Any


@lean_part
def copy(p: Processes, k: int, o: Any) -> None:
    """Let a process copy its next packet, which it sends when it is ready."""
    copying = o["cycles"] if p.left[k] > 1 else o["last_cycles"]
    p.parts[k, SOFTWARE] += copying
    p.ready[k] += copying
    p.since[k] = p.ready[k]
    p.left[k] = -p.left[k]


@lean_part
def advance(world: World, operations: Any, p: Processes, message: Any, k: int, now: int) -> int:
    """Let a process go on until it has to wait; return 1 if it has come to its end."""
    while p.ready[k] <= now:
        if p.at[k] == p.end[k]:
            p.ready[k] = FAR
            return 1
        o = operations[p.at[k]]
        if o["kind"] == DELAY:
            p.parts[k, o["part"]] += o["cycles"]
            p.ready[k] += o["cycles"]
            p.since[k] = p.ready[k]
            p.at[k] += 1
        elif o["kind"] == PACKETS and p.left[k] == 0:
            p.left[k] = o["packets"]
            if o["message"] >= 0:
                message[o["message"], 0] = p.ready[k]
            copy(p, k, o)
        elif o["kind"] == PACKETS:
            p.left[k] = -p.left[k]
            p.early[k] = now - p.ready[k]
            flits = o["flits"] if p.left[k] > 1 else o["last_flits"]
            send(world, o["service"], flits, k, now)
            p.ready[k] = FAR
        elif p.arrived[o["mailbox"]] > p.taken[o["mailbox"]]:
            p.taken[o["mailbox"]] += 1
            p.at[k] += 1
        else:
            p.waits_for[k] = o["mailbox"]
            p.reader[o["mailbox"]] = k
            p.ready[k] = FAR
    return 0


@lean_part
def deliver(operations: Any, p: Processes, message: Any, k: int, time: float, back: float) -> float:
    """Let a process's packet arrive and its response be back; return when somebody is ready next."""
    o = operations[p.at[k]]
    p.parts[k, o["part"]] += back - p.since[k]
    p.ready[k] = back
    p.since[k] = back
    p.left[k] -= 1
    if p.left[k] > 0:
        copy(p, k, o)
        return float(p.ready[k])
    p.at[k] += 1
    box = o["mailbox"]
    if box < 0:
        return back
    message[o["message"], 1] = time
    p.arrived[box] += 1
    r = p.reader[box]
    if r < 0 or p.waits_for[r] != box:
        return back
    p.waits_for[r] = -1
    p.ready[r] = max(p.since[r], time)
    p.parts[r, BLOCKED] += p.ready[r] - p.since[r]
    p.since[r] = p.ready[r]
    return float(min(back, p.ready[r]))


@jit
def run(
    world: World,
    operations: Any,
    start: Any,
    mailboxes: int,
    response: Any,
    message: Any,
    service: Any,
    longest: int,
) -> tuple[Any, Any, int]:
    """Run a program to its end; return finish times, parts of them and the cycle of the end, -1 if stuck.

    ``message`` gets beginning and arrival of each message; ``service`` of each service the packets,
    the sum of their latencies and the longest. A process is late by a part of a cycle where its own
    clock is between two cycles of the network: the next delay makes that up.
    """
    count, boxes = start.size - 1, mailboxes + 1
    p = Processes(
        at=start[:-1].copy(),
        end=start[1:].copy(),
        ready=np.zeros(count),
        since=np.zeros(count),
        left=np.zeros(count, dtype=np.int64),
        early=np.zeros(count),
        waits_for=np.full(count, -1, dtype=np.int64),
        parts=np.zeros((count, PARTS)),
        arrived=np.zeros(boxes, dtype=np.int64),
        taken=np.zeros(boxes, dtype=np.int64),
        reader=np.full(boxes, -1, dtype=np.int64),
    )
    working, now, following = count, 0, 0.0
    while working > 0 and now < longest:
        if following <= now:
            for k in range(count):
                working -= advance(world, operations, p, message, k, now)
            following = np.min(p.ready)
        step(world, now)
        for d in range(world.clock[DELIVERED]):
            packet = world.packet[world.delivered[d]]
            k, f, latency = packet["tag"], packet["flow"], now - packet["created"]
            service[f, 0] += 1
            service[f, 1] += latency
            service[f, 2] = max(service[f, 2], latency)
            time = now - p.early[k]
            following = min(following, deliver(operations, p, message, k, time, time + response[f]))
        now += 1
        if following > now and quiet(world, now):
            if following == FAR:
                break
            now = int(np.ceil(following))
    return p.since, p.parts, now if working == 0 else -1


@dataclass(frozen=True, kw_only=True)
class ProgramJob(Job):
    """A replication, with the cycles after which it is given up."""

    longest: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    finish: FloatArray  # when each process ended [cycles]
    parts: FloatArray  # its time: computing, software, network, blocked [cycles]
    latency: float  # mean time of a message [cycles]
    service: FloatArray  # packets, the sum of their latencies and the longest
    cycles: int  # cycles simulated


def run_replication(job: ProgramJob) -> Run:
    """Run one replication."""
    # Imported here because they compile kernels.

    program = compile_program(job.spec, seed=job.seed, replication=job.replication)
    message = np.zeros((len(program.messages), 2))
    service = np.zeros((len(program.known), 3))
    world = new_world(service_table(job.spec), job.spec.router, packets=len(job.spec.processes) + 1)
    finish, parts, end = run(
        world,
        program.operations,
        program.start,
        program.mailboxes,
        program.response,
        message,
        service,
        job.longest,
    )
    if end < 0:
        raise RuntimeError(
            f"the program did not end: its packets block one another for ever, or it takes more than "
            f"longest = {job.longest} cycles"
        )
    latency = float(np.mean(message[:, 1] - message[:, 0])) if len(message) else 0.0
    return Run(finish=finish, parts=parts, latency=latency, service=service, cycles=end)


@dataclass(frozen=True, kw_only=True)
class ProgramExperiment(Experiment):
    """The simulation of one message-passing program; made by `validate.simulate`.

    The latency parts are those of the process that ends last. Intervals have no width where the program has
    no jitter: it takes the same course every time.

    What is random is how long the computing steps take: programs that differ in priorities or circuits
    only meet the same random numbers.

    Packets go through the flit-level network of `validate.noc`; responses take a network of their
    own on which they meet nobody. A process has one packet under way at most.
    """

    longest: int = 1_000_000_000  # cycles after which a replication is given up with an error

    job_type = ProgramJob
    run_type = Run
    precise = ("execution_time",)
    run_replication = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse a longest time that is none."""
        checks.count("longest", self.longest)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Combine the replications into one answer."""
        finish = np.stack([run.finish for run in runs], axis=1)
        parts = np.stack([run.parts for run in runs], axis=2)
        period = 1 / self.spec.clock_ghz

        def mean(values: FloatArray) -> Estimate:
            return mean_interval(values, confidence=self.confidence).scaled(period)

        metrics = {
            "execution_time": mean(finish.max(axis=0)),
            "message_latency": mean(np.array([run.latency for run in runs])),
        }
        for name, times in zip(PROCESS_TIMES, [finish, *parts.transpose(1, 0, 2)], strict=True):
            metrics |= {f"{name}[{k}]": mean(row) for k, row in enumerate(times)}
        # Another process may be the last in each replication.
        last = parts[finish.argmax(axis=0), :, np.arange(len(runs))]
        service = np.stack([run.service for run in runs])
        packets = service[:, :, 0].sum(axis=0)
        return {
            "metrics": metrics,
            "latency_parts": {
                name.removesuffix("_time"): mean(last[:, k]) for k, name in enumerate(PROCESS_TIMES[1:])
            },
            "details": {
                "finish": finish * period,
                "services": services(self.spec)[1],
                "packets": packets,
                "mean_packet_latency": service[:, :, 1].sum(axis=0) / np.maximum(packets, 1) * period,
                "max_packet_latency": service[:, :, 2].max(axis=0) * period,
            },
            "effort": {"cycles": sum(run.cycles for run in runs)},
        }
