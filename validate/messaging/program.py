"""A message-passing program as arrays for the kernel: one operation per delay, message and wait."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.programs.messaging import PAIRED, MessageProgram, Service, Step, service_table, services
from validate.engine.streams import new_streams, uniform
from validate.noc.state import World, new_world

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
        for step in steps:
            service = next(number)
            if step.action == "compute":
                factor = 1 + program.compute_jitter * (2 * uniform(streams, k) - 1)
                delay(step.cycles * factor, COMPUTING)
            elif step.action in PAIRED:
                key = (PAIRED[step.action], step.peer, k)
                box = boxes.setdefault(key, len(boxes))
                rows.append((TAKE, -1, box, BLOCKED, 0, 0, 0, -1, 0.0, 0.0))
                words = next(sent[key])
                copied = costs.message_words(words) if step.action == "receive" else 0
                delay(costs.receive_cycles + copied * costs.receive_word_cycles, SOFTWARE)
            elif service >= 0:
                box = message = -1
                if step.action in ("send", "signal"):
                    delay(costs.send_cycles, SOFTWARE)
                    box = boxes.setdefault((step.action, k, step.peer), len(boxes))
                    message = len(messages)
                    messages.append((k, step.peer, step.words if step.action == "send" else -1))
                packets, flits, cycles = _packets(program, step)
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


def _packets(program: MessageProgram, step: Step) -> tuple[int, tuple[int, int], tuple[float, float]]:
    """Return the packets of a step that sends; flits and cycles to copy, of each and of the last."""
    costs, packets, words, last, copying = program.costs, 1, 1, 1, 0.0
    if step.action == "send":
        packets, last = costs.packets(step.words)
        words, copying = costs.packet_words, costs.send_word_cycles
    flits = costs.packet_flits(words, program.link_width), costs.packet_flits(last, program.link_width)
    return packets, flits, (copying * words, copying * last)


def build_world(program: MessageProgram) -> World:
    """Return the empty network of a program."""
    router = program.router
    return new_world(service_table(program), **asdict(router), packets=len(program.processes) + 1)


def _sent(program: MessageProgram) -> dict[tuple[str, int, int], list[int]]:
    """Return the words of what each pair of processes exchanges, in its order."""
    sent: dict[tuple[str, int, int], list[int]] = {}
    for k, steps in enumerate(program.steps):
        for step in steps:
            if step.action in PAIRED.values():
                sent.setdefault((step.action, k, step.peer), []).append(step.words)
    return sent


def _responses(program: MessageProgram) -> FloatArray:
    """Return the time of the response of each service, on a network of its own."""
    table = service_table(program)
    pipeline = program.router.pipeline_cycles
    times = []
    for first, last in zip(table.path_start[:-1], table.path_start[1:], strict=True):
        wires = int(np.sum(np.asarray(table.channel_delay)[table.path_channel[first:last]]))
        times.append(INJECTION + pipeline * int(last - first - 1) + wires + program.costs.response_cycles)
    return np.array(times)
