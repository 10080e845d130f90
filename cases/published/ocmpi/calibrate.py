"""What was chosen in the ocMPI case with the effects in view, and what each effect is without it.

The paper does not say how many flits a store takes, how large the buffers are, how many words the
programs exchange and how long they compute. All of these are tried: those that come nearest to the eight
effects of Figs. 9 to 11 are the case's, and each effect is predicted by those that come nearest to
the other seven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

from cases.published.cell import Cell, Number
from cases.published.ocmpi.specs import BARE, LINE_WORDS, LINK_WIDTH, ROUTER, computing, gathering, streaming
from cases.published.ocmpi.tables import ARMS, answer, effects
from cases.published.rows import published
from cases.tables import text_table
from qmodels.systems.programs.messaging import MessageProgram

PACKETS, BUFFERS = (3, 4, 5), (5, 8, 16)
WORDS = (4, 6, 8, 10, 12, 16, 20, 24, 32, 48)
CYCLES = (0, 2, 4, 6, 8, 12, 16, 24, 32)
CHOSEN = ("flits", "buffer_flits", "gather_words", "cycles_per_word")
PLACES = ("first", "second", "third", "fourth")
"""Columns of the effects of a figure, in the paper's order."""

Choice = tuple[int, ...]
"""Flits of a store and of a buffer, words of Fig. 9 and cycles of computing on a word in Fig. 10."""
Effects = dict[Choice, list[float]]


def programs(section: str, choice: Mapping[str, int]) -> tuple[MessageProgram, MessageProgram]:
    """Return the programs of a figure with a choice, without and with quality of service."""
    make: dict[str, Callable[[bool], MessageProgram]] = {
        "figure9": lambda on: gathering(prioritised=on, words=choice["gather_words"]),
        "figure10": lambda on: computing(prioritised=on, cycles_per_word=choice["cycles_per_word"]),
        "figure11": lambda on: streaming(circuit=on),
    }
    without, service = (
        changed(make[section](on), choice["flits"], choice["buffer_flits"]) for on in (False, True)
    )
    return without, service


def changed(spec: MessageProgram, flits: int, buffer: int) -> MessageProgram:
    """Return a program with other packets and buffers, and software that keeps the time of a word.

    A flit more takes a cycle more to store a word, and two to fetch a line.
    """
    more = flits - BARE.packet_flits(1, LINK_WIDTH)
    word = spec.costs.send_word_cycles - more * (1 + 2 / LINE_WORDS)
    costs = replace(
        spec.costs, packet_overhead_bytes=LINK_WIDTH * (flits - 1), send_word_cycles=max(0.0, word)
    )
    return replace(spec, costs=costs, router=replace(ROUTER, buffer_flits=buffer))


def find_tries() -> list[dict[str, Any]]:
    """Return the simulated effects of each figure for all choices that matter to it, a row for each. [%].

    A row has the section, the choice, 0 for what does not matter to the section, and the effects in the
    paper's order.
    """
    return [row for flits, buffer in product(PACKETS, BUFFERS) for row in _tries(flits, buffer)]


def _tries(flits: int, buffer: int) -> Iterator[dict[str, Any]]:
    from validate import simulate

    wanted = [("figure9", words, 0) for words in WORDS]
    wanted += [("figure10", 0, cycles) for cycles in CYCLES] + [("figure11", 0, 0)]
    for section, words, cycles in wanted:
        choice = dict(zip(CHOSEN, (flits, buffer, words, cycles), strict=True))
        ends = [simulate(one, replications=2).finish[:, 0].tolist() for one in programs(section, choice)]
        found = dict(zip(PLACES, _changes(section, *ends), strict=False))
        yield {"section": section, **choice, **{place: found.get(place) for place in PLACES}}


@cache
def stated() -> tuple[tuple[str, str, Number], ...]:
    """Return section, name and number of the published effects, in order."""
    return tuple(
        (
            section,
            one["name"],
            Number(points=True, **dict(zip(("published", "published_high"), one["published"], strict=False))),
        )
        for section, each in published("ocmpi")["effects"].items()
        for one in each
    )


def found_effects(tries: Iterable[Mapping[str, Any]]) -> Effects:
    """Return the eight effects of every choice. [%]."""
    known = {(row["section"], *(row[name] for name in CHOSEN)): row for row in tries}
    packets = dict.fromkeys((flits, buffer) for _, flits, buffer, _, _ in known)

    def found(section: str, *choice: int) -> list[float]:
        row = known[section, *choice]
        return [float(row[name]) for name in PLACES if row[name] is not None]

    return {
        (flits, buffer, words, cycles): [
            *found("figure9", flits, buffer, words, 0),
            *found("figure10", flits, buffer, 0, cycles),
            *found("figure11", flits, buffer, 0, 0),
        ]
        for (flits, buffer), words, cycles in product(packets, WORDS, CYCLES)
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
    for k, (section, name, number) in enumerate(stated()):
        best = choose(every, without=k)
        choice = dict(zip(CHOSEN, best, strict=True))
        ends = [
            [answer(one)[f"finish_time[{arm}]"] for arm in range(ARMS)] for one in programs(section, choice)
        ]
        cells.append(
            Cell(
                place={"section": "left out", "name": name, "unit": "%", **choice},
                group="effects_left_out",
                published=number.published,
                published_high=number.published_high,
                points=True,
                model=_changes(section, *ends)[k - sections.index(section)],
                simulated=every[best][k],
            )
        )
    return cells


def _changes(section: str, without: Iterable[float], service: Iterable[float]) -> tuple[float, ...]:
    """Return the effects in a figure, from when each process ends. [%]."""
    slower = (100 * (after / before - 1) for before, after in zip(without, service, strict=True))
    return effects(section, dict(enumerate(slower)))


def alternatives_text(tries: Iterable[Mapping[str, Any]]) -> str:
    """Return for each packet and buffer what comes nearest to all effects, as a table."""
    every = found_effects(tries)
    rows = [["published", "", "", "", *(_range(number) for _, _, number in stated()), ""]]
    for packet in product(PACKETS, BUFFERS):
        best = choose({choice: found for choice, found in every.items() if choice[:2] == packet})
        largest = max(map(abs, errors_of(every[best])))
        rows.append([*map(str, best), *(f"{value:.1f}" for value in (*every[best], largest))])
    headings = ["flits", "buffer", "words", "cycles/word", "first row", "others", "most faster", "least"]
    headings += ["most slower", "least", "ARM_14", "ARM_0", "largest error"]
    return (
        "Other packets and buffers, simulated with 256 words in Figs. 10 and 11, each with the words and the "
        f"computing that come nearest to all eight effects [%]\n{text_table(headings, rows)}"
    )


def _range(number: Number) -> str:
    ends = (number.published, number.published_high)
    return "-".join(f"{end:g}" for end in ends if end is not None)
