"""The platform and the programs of the ocMPI paper, and the calibration of its message costs.

J. Joven, F. Angiolini, D. Castells-Rufas, G. De Micheli, J. Carrabina-Bordoll, "QoS-ocMPI: QoS-aware
on-chip Message Passing Library for NoC-based Many-Core MPSoCs".
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from cases.published.rows import published
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.topologies import mesh
from qmodels.systems.programs.collectives import Processes, barrier, broadcast, gather, ping_pong
from qmodels.systems.programs.message_steps import compute, join, receive, send
from qmodels.systems.programs.messaging import MessageCosts, MessageProgram

ROUTER = Router(
    virtual_channels=1, buffer_flits=8, pipeline_cycles=2, credit_cycles=4, arbitration="priority"
)
"""One cycle for the switch and one for the wire behind it ([paper] footnote 2: one cycle for each
component); one virtual channel as in xpipes; 8 flits are chosen, see `cases.published.ocmpi.calibrate`."""

BARE = MessageCosts(
    send_cycles=0, receive_cycles=0, send_word_cycles=0, receive_word_cycles=0, packet_overhead_bytes=12
)
"""A store as one packet of four 32-bit flits: route, transaction, address, word; four are chosen likewise."""

LINK_WIDTH = 4
LINE_WORDS = 4
"""Words of a line of the data cache (our assumption)."""

FIRST_ROW = (4, 8, 12)
GATHER_WORDS = 12
"""Words that each process sends in Fig. 9: chosen, see `cases.published.ocmpi.calibrate`."""

LARGE_WORDS = 256
"""Words in Figs. 10 and 11: the larger message of the paper's own benchmark."""

CYCLES_PER_WORD = 4
"""Computing on each word in Fig. 10: chosen, see `cases.published.ocmpi.calibrate`."""

CYCLES: dict[str, int] = published("ocmpi")["cycles"]
CALIBRATED_ON = ("one way, 1 word", "one way, 256 words", "initialisation, 4 cores")
"""The figures that give the three parameters of the message costs."""


def placement(side: int) -> tuple[int, ...]:
    """Return the node of each ARM: ARM_k is in column k // side and row k mod side (sec. VIII.B)."""
    return tuple(k % side * side + k // side for k in range(side * side))


def program(processes: Processes, *, side: int = 4, costs: MessageCosts | None = None) -> MessageProgram:
    """Return a program on a mesh with so many ARMs in a row; the costs are the calibrated ones."""
    return MessageProgram(
        topology=mesh(side, side),
        router=ROUTER,
        link_width=LINK_WIDTH,
        costs=message_costs() if costs is None else costs,
        processes=processes,
        placement=placement(side)[: len(processes)],
    )


def line_cycles() -> int:
    """Return what a line of the cache takes from the tile's own memory: there and back through one switch.

    >>> line_cycles()
    17
    """
    switch = 2 + ROUTER.pipeline_cycles
    overhead = BARE.packet_flits(0, LINK_WIDTH)
    request = switch + overhead - 1
    answer = switch + overhead + LINE_WORDS - 1
    return request + int(BARE.response_cycles) + answer


def from_memory(processes: Processes) -> Processes:
    """Return the program in which what is sent is read from memory first, a line of the cache at a time."""

    def fetched(step: str) -> tuple[str, ...]:
        if not step.startswith("send"):
            return (step,)
        lines = -(-int(step.split()[2]) // LINE_WORDS)
        return compute(lines * line_cycles()), step

    return tuple(tuple(word for step in steps for word in fetched(step)) for steps in processes)


def one_way(*, words: int, costs: MessageCosts | None = None) -> MessageProgram:
    """Return a message between neighbours; it is read from memory."""
    return program(from_memory(((send(1, words=words),), (receive(0),))), costs=costs)


def to_and_fro(*, words: int, costs: MessageCosts | None = None) -> MessageProgram:
    """Return the ping-pong; what comes back is in the cache of the process that just received it."""
    ping, pong = ping_pong(words=words)
    return program((*from_memory((ping,)), pong), costs=costs)


def profile(costs: MessageCosts, start: MessageCosts) -> dict[str, MessageProgram]:
    """Return the programs behind `CYCLES`; an initialisation has software costs of its own."""
    programs = {}
    for words, name in ((1, "1 word"), (256, "256 words")):
        programs[f"one way, {name}"] = one_way(words=words, costs=costs)
        programs[f"ping-pong, {name}"] = to_and_fro(words=words, costs=costs)
    for side in (2, 3, 4):
        steps = barrier(processes=side * side)
        programs[f"barrier, {side * side} cores"] = program(steps, side=side, costs=costs)
        programs[f"initialisation, {side * side} cores"] = program(steps, side=side, costs=start)
    return {name: programs[name] for name in CYCLES}


def with_software(message: float, word: float) -> MessageCosts:
    """Return costs with so many cycles for each message and each word, half of them at either end."""
    return replace(
        BARE,
        send_cycles=message / 2,
        receive_cycles=message / 2,
        send_word_cycles=word / 2,
        receive_word_cycles=word / 2,
    )


@cache
def software(used: tuple[str, ...] = CALIBRATED_ON) -> tuple[float, float, float]:
    """Return the cycles of software of a message, of a word of it, and of a notification at the start.

    They are found from as many published figures, which the model is linear in.
    """
    from qmodels import solve

    def cycles(message: float, word: float, start: float) -> np.ndarray:
        programs = profile(with_software(message, word), with_software(start, 0.0))
        return np.array([solve(programs[name])["execution_time"] for name in used])

    at = np.array([700.0, 10.0, 700.0])
    base = cycles(*at)
    slopes = np.stack([cycles(*(at + one)) - base for one in np.diag([50.0, 5.0, 50.0])], axis=1)
    slopes /= [50.0, 5.0, 50.0]
    if np.linalg.matrix_rank(slopes, tol=1e-3) < 3:
        raise ValueError(f"used must name figures that identify three parameters, got {used!r}")
    message, word, start = at + np.linalg.solve(slopes, [CYCLES[name] for name in used] - base)
    return float(message), float(word), float(start)


def message_costs() -> MessageCosts:
    """Return the calibrated costs of a message."""
    message, word, _ = software()
    return with_software(message, word)


def start_costs() -> MessageCosts:
    """Return the calibrated costs of the notifications of an initialisation."""
    return with_software(software()[2], 0.0)


def gathering(*, prioritised: bool, words: int = GATHER_WORDS) -> MessageProgram:
    """Return the narrowcast of Fig. 9: all send to ARM_0, the first row with the lowest priority."""
    spec = program(from_memory(gather(processes=16, words=words)))
    levels = tuple(7 if k in FIRST_ROW else 0 for k in range(16))
    return replace(spec, priorities=levels) if prioritised else spec


def computing(
    *, prioritised: bool, words: int = LARGE_WORDS, cycles_per_word: float = CYCLES_PER_WORD
) -> MessageProgram:
    """Return broadcast, computing and gathering of Fig. 10; the last two rows have priority.

    One word is broadcast: the order to start. With much more the root, which sends to one after the
    other, spreads the processes so far that they hardly meet.
    """
    steps = join(
        broadcast(processes=16, words=1),
        ((compute(cycles_per_word * words),),) * 16,
        gather(processes=16, words=words),
    )
    spec = program(from_memory(steps))
    levels = tuple(0 if k % 4 >= 2 else 7 for k in range(16))
    return replace(spec, priorities=levels) if prioritised else spec


def streaming(*, circuit: bool, words: int = LARGE_WORDS) -> MessageProgram:
    """Return Fig. 11: ARM_14 sends to ARM_0, through a circuit or not; all others write there as well."""
    steps = [[send(0, words=words)] for _ in range(16)]
    steps[0] = [receive(14)]
    if circuit:
        steps[14] = ["open 0", *steps[14], "close 0"]
    return program(from_memory(tuple(map(tuple, steps))))
