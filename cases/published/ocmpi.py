"""Joven et al., "QoS-ocMPI": message passing with priorities on a network-on-chip.

The paper does not say how many flits a store takes, how large the buffers are, how many words the programs
exchange and how long they compute. All of these are tried: those that come nearest to the eight effects of
Figs. 9 to 11 are the case's, and each effect is predicted by those that come nearest to the other seven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cases.published.numbers import Cell, Design, Number, name_of, published, select
from cases.published.tables import range_text
from cases.tables import text_table
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.topologies import mesh
from qmodels.systems.programs.collectives import Processes, barrier, broadcast, gather, ping_pong
from qmodels.systems.programs.message_steps import compute as computed
from qmodels.systems.programs.message_steps import join, receive, send
from qmodels.systems.programs.messaging import MessageCosts, MessageProgram

ROUTER = Router(
    virtual_channels=1, buffer_flits=8, pipeline_cycles=2, credit_cycles=4, arbitration="priority"
)
"""One cycle for the switch and one for the wire behind it ([paper] footnote 2: one cycle for each
component); one virtual channel as in xpipes; 8 flits are chosen, see `choose`."""
BARE = MessageCosts(
    send_cycles=0, receive_cycles=0, send_word_cycles=0, receive_word_cycles=0, packet_overhead_bytes=12
)
"""A store as one packet of four 32-bit flits: route, transaction, address, word; four are chosen likewise."""
LINK_WIDTH, LINE_WORDS = 4, 4
"""Bytes of a link; words of a line of the data cache (our assumption)."""
ARMS, FIRST_ROW = 16, (4, 8, 12)
HIGH = tuple(k for k in range(ARMS) if k % 4 >= 2)
LOW = tuple(k for k in range(1, ARMS) if k % 4 < 2)
OTHERS = tuple(k for k in range(ARMS) if k % 4)
GATHER_WORDS, LARGE_WORDS, CYCLES_PER_WORD = 12, 256, 4
"""Words that each process sends in Fig. 9, words in Figs. 10 and 11 (the larger message of the paper's own
benchmark), and computing on each word in Fig. 10: chosen, see `choose`."""
CYCLES: dict[str, int] = published("ocmpi")["cycles"]
CALIBRATED_ON = ("one way, 1 word", "one way, 256 words", "initialisation, 4 cores")
"""The figures that give the three parameters of the message costs."""
FIGURES = ("figure9", "figure10", "figure11")
PACKETS, BUFFERS = (3, 4, 5), (5, 8, 16)
WORDS = (4, 6, 8, 10, 12, 16, 20, 24, 32, 48)
TRIED_CYCLES = (0, 2, 4, 6, 8, 12, 16, 24, 32)
CHOSEN = ("flits", "buffer_flits", "gather_words", "cycles_per_word")
PLACES = ("first", "second", "third", "fourth")
"""Columns of the effects of a figure, in the paper's order."""
Choice = tuple[int, ...]
"""Flits of a store and of a buffer, words of Fig. 9 and cycles of computing on a word in Fig. 10."""
Effects = dict[Choice, list[float]]


def placement(side: int) -> tuple[int, ...]:
    """Return the node of each ARM: ARM_k is in column k // side and row k mod side (sec. VIII.B)."""
    return tuple(k % side * side + k // side for k in range(side * side))


def program(processes: Processes, *, side: int = 4, costs: MessageCosts | None = None) -> MessageProgram:
    """Return a program on a mesh with so many ARMs in a row; the costs are the calibrated ones."""
    return MessageProgram(
        topology=mesh(side, side),
        router=ROUTER,
        link_width=LINK_WIDTH,
        costs=with_software(*software()[:2]) if costs is None else costs,
        processes=processes,
        placement=placement(side)[: len(processes)],
    )


def line_cycles() -> int:
    """Return the time of a cache line from the tile's own memory: there and back through one switch.

    >>> line_cycles()
    17
    """
    switch = 2 + ROUTER.pipeline_cycles + BARE.packet_flits(0, LINK_WIDTH) - 1
    return 2 * switch + int(BARE.response_cycles) + LINE_WORDS


def from_memory(processes: Processes) -> Processes:
    """Return the program in which what is sent is read from memory first, a line of the cache at a time."""

    def fetched(step: str) -> tuple[str, ...]:
        if not step.startswith("send"):
            return (step,)
        lines = -(-int(step.split()[2]) // LINE_WORDS)
        return computed(lines * line_cycles()), step

    return tuple(tuple(word for step in steps for word in fetched(step)) for steps in processes)


def one_way(*, words: int, costs: MessageCosts | None = None) -> MessageProgram:
    """Return a message between neighbours; it is read from memory."""
    return program(from_memory(((send(1, words=words),), (receive(0),))), costs=costs)


def profile(costs: MessageCosts, start: MessageCosts) -> dict[str, MessageProgram]:
    """Return the programs behind `CYCLES`; an initialisation has software costs of its own.

    What comes back in a ping-pong is in the cache of the process that just received it.
    """
    programs = {}
    for words, name in ((1, "1 word"), (256, "256 words")):
        ping, pong = ping_pong(words=words)
        programs[f"one way, {name}"] = one_way(words=words, costs=costs)
        programs[f"ping-pong, {name}"] = program((*from_memory((ping,)), pong), costs=costs)
    for side in (2, 3, 4):
        steps = barrier(processes=side * side)
        programs[f"barrier, {side * side} cores"] = program(steps, side=side, costs=costs)
        programs[f"initialisation, {side * side} cores"] = program(steps, side=side, costs=start)
    return {name: programs[name] for name in CYCLES}


def with_software(message: float, word: float) -> MessageCosts:
    """Return costs with so many cycles for each message and each word, half of them at either end."""
    names = ("send_cycles", "receive_cycles", "send_word_cycles", "receive_word_cycles")
    halves: tuple[Any, ...] = (message / 2, message / 2, word / 2, word / 2)
    return replace(BARE, **dict(zip(names, halves, strict=True)))


@cache
def software(used: tuple[str, ...] = CALIBRATED_ON) -> tuple[float, float, float]:
    """Return the cycles of software of a message, of a word of it, and of a notification at the start.

    They are found from as many published figures, which the model is linear in.
    """

    def cycles(message: float, word: float, start: float) -> np.ndarray:
        programs = profile(with_software(message, word), with_software(start, 0.0))
        return np.array([answer(programs[name])["execution_time"] for name in used])

    at = np.array([700.0, 10.0, 700.0])
    base = cycles(*at)
    slopes = np.stack([cycles(*(at + one)) - base for one in np.diag([50.0, 5.0, 50.0])], axis=1)
    slopes /= [50.0, 5.0, 50.0]
    if np.linalg.matrix_rank(slopes, tol=1e-3) < 3:
        raise ValueError(f"used must name figures that identify three parameters, got {used!r}")
    message, word, start = at + np.linalg.solve(slopes, [CYCLES[name] for name in used] - base)
    return float(message), float(word), float(start)


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
        ((computed(cycles_per_word * words),),) * 16,
        gather(processes=16, words=words),
    )
    levels = tuple(0 if k in HIGH else 7 for k in range(16))
    spec = program(from_memory(steps))
    return replace(spec, priorities=levels) if prioritised else spec


def streaming(*, circuit: bool, words: int = LARGE_WORDS, others: int | None = None) -> MessageProgram:
    """Return Fig. 11: ARM_14 sends to ARM_0, through a circuit or not; all others write there as well."""
    steps = [[send(0, words=words if others is None else others)] for _ in range(16)]
    steps[0], steps[14] = [receive(14)], [send(0, words=words)]
    if circuit:
        steps[14] = ["open 0", *steps[14], "close 0"]
    return program(from_memory(tuple(map(tuple, steps))))


def finishes(processes: Iterable[int]) -> list[str]:
    """Return the metrics that say when processes end."""
    return [f"finish_time[{process}]" for process in processes]


@cache
def answer(spec: MessageProgram) -> Any:
    """Return the model's answer, found once."""
    from qmodels import solve

    return solve(spec)


def profile_programs() -> dict[str, MessageProgram]:
    """Return the programs whose cycles the paper gives."""
    return profile(with_software(*software()[:2]), start_costs())


def service_programs(words: int = GATHER_WORDS, cycles: float = CYCLES_PER_WORD) -> dict[Any, MessageProgram]:
    """Return the programs of the figures, without and with quality of service."""
    made: dict[str, Callable[[bool], MessageProgram]] = {
        "figure9": lambda on: gathering(prioritised=on, words=words),
        "figure10": lambda on: computing(prioritised=on, cycles_per_word=cycles),
        "figure11": lambda on: streaming(circuit=on),
    }
    return {(section, on): make(on) for section, make in made.items() for on in (False, True)}


def designs() -> Iterable[Design]:
    """Yield the programs behind the cycles, and those of the figures without and with quality of service."""
    for name, spec in profile_programs().items():
        yield Design(name=name_of(name=name), spec=spec, published={"execution_time": CYCLES[name]})
    for (figure, on), spec in service_programs().items():
        name = name_of(figure=figure, service="with" if on else "without")
        yield Design(name=name, spec=spec, published={"execution_time": None})


def effects(section: str, slower: Sequence[float]) -> tuple[float, ...]:
    """Return the effects of a figure in the paper's order, from the percent that each process is slower."""
    if section == "figure9":
        mean_first = sum(slower[k] for k in FIRST_ROW) / len(FIRST_ROW)
        return mean_first, -sum(slower[k] for k in OTHERS) / len(OTHERS)
    if section == "figure10":
        high, low = [-slower[k] for k in HIGH], [slower[k] for k in LOW]
        return max(high), min(high), max(low), min(low)
    return -slower[14], -slower[0]


def _changes(section: str, without: Iterable[float], service: Iterable[float]) -> tuple[float, ...]:
    return effects(
        section, [100 * (after / before - 1) for before, after in zip(without, service, strict=True)]
    )


@cache
def stated() -> tuple[tuple[str, str, Number], ...]:
    """Return section, name and number of the published effects, in order."""
    ends = ("published", "published_high")
    return tuple(
        (section, one["name"], Number(points=True, **dict(zip(ends, one["published"], strict=False))))
        for section, each in published("ocmpi")["effects"].items()
        for one in each
    )


def _effect(k: int, **values: Any) -> Cell:
    section, name, number = stated()[k]
    place = {"section": section, "name": name, "unit": "%", **values.pop("place", {})}
    return Cell(
        place=place, published=number.published, published_high=number.published_high, points=True, **values
    )


def changed(spec: MessageProgram, flits: int, buffer: int) -> MessageProgram:
    """Return a program with other packets and buffers, and software that keeps the time of a word.

    A flit more takes a cycle more to store a word, and two to fetch a line.
    """
    more = flits - BARE.packet_flits(1, LINK_WIDTH)
    word = max(0.0, spec.costs.send_word_cycles - more * (1 + 2 / LINE_WORDS))
    costs = replace(spec.costs, packet_overhead_bytes=LINK_WIDTH * (flits - 1), send_word_cycles=word)
    return replace(spec, costs=costs, router=replace(ROUTER, buffer_flits=buffer))


def programs(section: str, choice: Choice) -> list[MessageProgram]:
    """Return the programs of a figure with a choice, without and with quality of service."""
    made = service_programs(*choice[2:])
    return [changed(made[section, on], *choice[:2]) for on in (False, True)]


def find_tries() -> list[dict[str, Any]]:
    """Return the simulated effects of each figure for all choices that matter to it, a row for each. [%].

    A row has the section, the choice, 0 for what does not matter to the section, and the effects in the
    paper's order.
    """
    return [row for flits, buffer in product(PACKETS, BUFFERS) for row in _tries(flits, buffer)]


def _tries(flits: int, buffer: int) -> Iterator[dict[str, Any]]:
    from validate import simulate

    wanted = [("figure9", words, 0) for words in WORDS]
    wanted += [("figure10", 0, cycles) for cycles in TRIED_CYCLES] + [("figure11", 0, 0)]
    for section, words, cycles in wanted:
        choice = (flits, buffer, words, cycles)
        made = programs(section, (flits, buffer, words or 1, cycles))
        ends = [simulate(one, replications=2).finish[:, 0].tolist() for one in made]
        found = dict(zip(PLACES, _changes(section, *ends), strict=False))
        named = dict(zip(CHOSEN, choice, strict=True))
        yield {"section": section, **named, **{place: found.get(place) for place in PLACES}}


def found_effects(tries: Iterable[Mapping[str, Any]]) -> Effects:
    """Return the eight effects of every choice. [%]."""
    known = {
        (row["section"], *(row[name] for name in CHOSEN)): [
            float(row[p]) for p in PLACES if row[p] is not None
        ]
        for row in tries
    }
    packets = dict.fromkeys((flits, buffer) for _, flits, buffer, _, _ in known)
    return {
        (*packet, words, cycles): [
            *known["figure9", *packet, words, 0],
            *known["figure10", *packet, 0, cycles],
            *known["figure11", *packet, 0, 0],
        ]
        for packet, words, cycles in product(packets, WORDS, TRIED_CYCLES)
    }


def errors_of(found: Iterable[float]) -> list[float]:
    """Return the errors of eight effects. [percentage points]."""
    return [number.error(value) for (_, _, number), value in zip(stated(), found, strict=True)]


def choose(every: Effects, *, without: int | None = None) -> Choice:
    """Return the choice with the least squares of the errors of all effects, or of all but one."""

    def misfit(choice: Choice) -> float:
        return sum(error**2 for k, error in enumerate(errors_of(every[choice])) if k != without)

    return min(every, key=misfit)


def left_out_cells(tries: Iterable[Mapping[str, Any]]) -> list[Cell]:
    """Return each effect as predicted by the choice made on the other seven, with that choice."""
    every, cells = found_effects(tries), []
    sections = [section for section, _, _ in stated()]
    for k, section in enumerate(sections):
        best = choose(every, without=k)
        ends = [[answer(one)[name] for name in finishes(range(ARMS))] for one in programs(section, best)]
        model = _changes(section, *ends)[k - sections.index(section)]
        place = {"section": "left out", **dict(zip(CHOSEN, best, strict=True))}
        cells.append(_effect(k, place=place, group="effects_left_out", model=model, simulated=every[best][k]))
    return cells


def compute(*, store: Path | None = None) -> dict[str, Any]:
    """Solve and simulate everything; the programs are deterministic."""
    return _computed(find_tries(), store)


def renew(kept: Any) -> dict[str, Any]:
    """Return everything solved and simulated anew but the other choices, which take minutes."""
    return _computed(kept.tables["tries"], None)


def _computed(tries: Sequence[Mapping[str, Any]], store: Path | None) -> dict[str, Any]:
    from validate import simulate

    wanted: dict[Any, MessageProgram] = {**profile_programs(), **service_programs()}
    results = simulate(list(wanted.values()), replications=2, store=store)
    simulated = dict(zip(wanted, results, strict=True))
    cells = [
        Cell(
            place={"section": "profile", "name": name, "unit": "cycles"},
            group="library" + "_fitted" * (name in CALIBRATED_ON) + "_read" * name.startswith("ping-pong"),
            published=float(cycles),
            model=answer(wanted[name])["execution_time"],
            simulated=simulated[name]["execution_time"].best,
        )
        for name, cycles in CYCLES.items()
    ]
    processes: list[dict[str, Any]] = []
    for section in FIGURES:
        for k, metric in enumerate(finishes(range(ARMS))):
            row: dict[str, Any] = {"section": section, "process": k}
            for name, on in (("without", False), ("with", True)):
                row[f"model_{name}"] = answer(wanted[section, on])[metric]
            for name, on in (("without", False), ("with", True)):
                row[f"simulated_{name}"] = simulated[section, on][metric].best
            processes.append(row)
    for section in FIGURES:
        mine = select(processes, section=section)
        both = (
            _changes(section, *([row[f"{of}_{name}"] for row in mine] for name in ("without", "with")))
            for of in ("model", "simulated")
        )
        numbers = [k for k, (its, _, _) in enumerate(stated()) if its == section]
        for k, solved, measured in zip(numbers, *both, strict=True):
            cells.append(_effect(k, group="effects", model=solved, simulated=measured))
    tables = {"processes": tuple(processes), "tries": tuple(tries)}
    return {"cells": (*cells, *left_out_cells(tries)), "tables": tables}


def alternatives_text(tries: Iterable[Mapping[str, Any]]) -> str:
    """Return for each packet and buffer what comes nearest to all effects, as a table."""
    every = found_effects(tries)
    rows = [["published", "", "", "", *(range_text(number) for _, _, number in stated()), ""]]
    for packet in product(PACKETS, BUFFERS):
        best = choose({choice: found for choice, found in every.items() if choice[:2] == packet})
        largest = max(map(abs, errors_of(every[best])))
        rows.append([*map(str, best), *(f"{value:.1f}" for value in (*every[best], largest))])
    headings = ["flits", "buffer", "words", "cycles/word", "first row", "others", "most faster", "least"]
    headings += ["most slower", "least", "ARM_14", "ARM_0", "largest error"]
    return text_table(headings, rows)
