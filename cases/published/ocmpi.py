"""Joven et al., "QoS-ocMPI": message passing with priorities on a network-on-chip.

The paper does not say how many flits a store takes, how large the buffers are, how many words the programs
exchange and how long they compute. All of these are tried: those that come nearest to the eight effects of
Figs. 9 to 11 are the case's, and each effect is predicted by those that come nearest to the other seven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from cases.published.numbers import Number, published
from cases.published.tables import range_text
from cases.tables import text_table
from qmodels.systems.programs.collectives import Processes
from qmodels.systems.programs.messaging import compute as computed

FIRST_ROW = (4, 8, 12)
HIGH = tuple(k for k in range(16) if k % 4 >= 2)
LOW = tuple(k for k in range(1, 16) if k % 4 < 2)
OTHERS = tuple(k for k in range(16) if k % 4)
PACKETS, BUFFERS = (3, 4, 5), (5, 8, 16)
WORDS = (4, 6, 8, 10, 12, 16, 20, 24, 32, 48)
TRIED_CYCLES = (0, 2, 4, 6, 8, 12, 16, 24, 32)
CHOSEN = ("flits", "buffer_flits", "gather_words", "cycles_per_word")
PLACES = ("first", "second", "third", "fourth")  # columns of the effects of a figure, in the paper's order
Choice = tuple[int, ...]
"""Flits of a store and of a buffer, words of Fig. 9 and cycles of computing on a word in Fig. 10."""
Effects = dict[Choice, list[float]]
ENDS = ("published", "published_high")
STATED = [
    (section, one["name"], k, Number(points=True, **dict(zip(ENDS, one["published"], strict=False))))
    for section, each in published("ocmpi")["effects"].items()
    for k, one in enumerate(each)
]
"""Figure, name, place in it and number of the published effects, in order."""


def placement(side: int) -> tuple[int, ...]:
    """Return the node of each ARM: ARM_k is in column k // side and row k mod side (sec. VIII.B)."""
    return tuple(k % side * side + k // side for k in range(side * side))


def from_memory(processes: Processes, line_cycles: int = 17, line_words: int = 4) -> Processes:
    """Return the program in which what is sent is read from memory first, a line of the cache at a time.

    A line takes 17 cycles: there and back through a switch (2 x 6), a cycle of memory, and four words.
    """

    def fetched(step: str) -> tuple[str, ...]:
        lines = -(-int(step.split()[2]) // line_words) if step.startswith("send") else 0
        return (computed(lines * line_cycles), step) if lines else (step,)

    return tuple(tuple(word for step in steps for word in fetched(step)) for steps in processes)


def effects(section: str, slower: Sequence[float]) -> tuple[float, ...]:
    """Return the effects of a figure in the paper's order, from the percent that each process is slower."""
    if section == "figure9":
        mean_first = sum(slower[k] for k in FIRST_ROW) / len(FIRST_ROW)
        return mean_first, -sum(slower[k] for k in OTHERS) / len(OTHERS)
    if section == "figure10":
        high, low = [-slower[k] for k in HIGH], [slower[k] for k in LOW]
        return max(high), min(high), max(low), min(low)
    return -slower[14], -slower[0]


def find_tries(tried: Callable[..., Any], simulate: Callable[..., Any]) -> Iterator[dict[str, Any]]:
    """Yield the simulated effects of each figure for all choices that matter to it, a row for each. [%].

    A row has the section, the choice, 0 for what does not matter to the section, and the effects in the
    paper's order.
    """
    wanted = [("figure9", words, 0) for words in WORDS]
    wanted += [("figure10", 0, cycles) for cycles in TRIED_CYCLES] + [("figure11", 0, 0)]
    for flits, buffer, (section, words, cycles) in product(PACKETS, BUFFERS, wanted):
        programs = tried(section, flits, buffer, words or 1, cycles)
        off, on = (one.finish[:, 0].tolist() for one in simulate(programs, replications=2))
        slower = [100 * (after / before - 1) for before, after in zip(off, on, strict=True)]
        found = dict(zip(PLACES, effects(section, slower), strict=False))
        named = dict(zip(CHOSEN, (flits, buffer, words, cycles), strict=True))
        yield {"section": section, **named, **{place: found.get(place) for place in PLACES}}


def found_effects(tries: Iterable[Mapping[str, Any]]) -> Effects:
    """Return the eight effects of every choice. [%]."""
    known = {
        (row["section"], *(row[name] for name in CHOSEN)): [
            float(row[p]) for p in PLACES if row[p] is not None
        ]
        for row in tries
    }
    return {
        (flits, buffer, words, cycles): [
            *known["figure9", flits, buffer, words, 0],
            *known["figure10", flits, buffer, 0, cycles],
            *known["figure11", flits, buffer, 0, 0],
        ]
        for flits, buffer, words, cycles in product(PACKETS, BUFFERS, WORDS, TRIED_CYCLES)
    }


def errors_of(found: Iterable[float]) -> list[float]:
    """Return the errors of eight effects. [percentage points]."""
    return [one[-1].error(value) for one, value in zip(STATED, found, strict=True)]


def choose(every: Effects, *, without: int | None = None) -> Choice:
    """Return the choice with the least squares of the errors of all effects, or of all but one."""

    def misfit(choice: Choice) -> float:
        return sum(error**2 for k, error in enumerate(errors_of(every[choice])) if k != without)

    return min(every, key=misfit)


def left_out(tries: Iterable[Mapping[str, Any]]) -> list[tuple[int, Choice, float]]:
    """Return each effect with the choice that is made on the seven others, and its simulation there."""
    every = found_effects(tries)
    best = [choose(every, without=k) for k in range(len(STATED))]
    return [(k, one, every[one][k]) for k, one in enumerate(best)]


def alternatives_text(tries: Iterable[Mapping[str, Any]]) -> str:
    """Return for each packet and buffer what comes nearest to all effects, as a table."""
    every = found_effects(tries)
    rows = [["published", "", "", "", *(range_text(one[-1]) for one in STATED), ""]]
    for packet in product(PACKETS, BUFFERS):
        best = choose({choice: found for choice, found in every.items() if choice[:2] == packet})
        largest = max(map(abs, errors_of(every[best])))
        rows.append([*map(str, best), *(f"{value:.1f}" for value in (*every[best], largest))])
    headings = ["flits", "buffer", "words", "cycles/word", "first row", "others", "most faster", "least"]
    headings += ["most slower", "least", "ARM_14", "ARM_0", "largest error"]
    return text_table(headings, rows)
