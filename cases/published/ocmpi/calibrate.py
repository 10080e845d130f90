"""What the ocMPI figures would look like with other packets and buffers than the ones we assume.

The paper does not say how many flits a store takes, how large the buffers are, how many words the
programs exchange and how long they compute. For each packet and buffer the words of Fig. 9 are those
that slow the first row by 65-70 %, the computing of Fig. 10 is what slows the others by 34 % at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from cases.published.ocmpi.specs import BARE, LINE_WORDS, LINK_WIDTH, ROUTER, computing, gathering, streaming
from cases.published.ocmpi.tables import effects
from cases.published.rows import published
from cases.tables import text_table
from qmodels.systems.programs.messaging import MessageProgram

PACKETS, BUFFERS = (3, 4, 5), (5, 8, 16)
WORDS = (4, 6, 8, 10, 12, 16, 20, 24, 32, 48)
CYCLES = (0, 2, 4, 6, 8, 12, 16, 24, 32)


EFFECTS = (
    "first_row",
    "others",
    "most_faster",
    "least_faster",
    "most_slower",
    "least_slower",
    "arm_14",
    "arm_0",
)
"""Effects of quality of service, in the order of the published ones. [%]"""


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


def find_alternatives() -> list[dict[str, Any]]:
    """Return the simulated `EFFECTS` for all packets and buffers.

    A row has the flits of a store and of a buffer, the calibrated words of Fig. 9 and computing of
    Fig. 10, the effects, and the largest error [percentage points] of those that nothing is calibrated on.
    """
    return [_alternative(flits, buffer) for flits in PACKETS for buffer in BUFFERS]


def alternatives_text(found: Iterable[Mapping[str, Any]]) -> str:
    """Return them as a table."""
    headings = ["flits", "buffer", "words", "cycles/word", "first row", "others", "most faster", "least"]
    headings += ["most slower", "least", "ARM_14", "ARM_0", "largest error"]
    rows = [
        [f"{value:.1f}" if isinstance(value, float) else value for value in one.values()] for one in found
    ]
    published = ["published", "", "", "", "65-70", "15", "20", "3", "34", "10", "35", "37", ""]
    table = text_table(headings, [[str(value) for value in row] for row in [published, *rows]])
    return (
        "Other packets and buffers, simulated with 256 words in Figs. 10 and 11; words are calibrated on "
        f"the first row, computing on 34 [%]\n{table}"
    )


def _alternative(flits: int, buffer: int) -> dict[str, Any]:
    def nine(words: int) -> tuple[float, ...]:
        return _effects("figure9", lambda on: gathering(prioritised=on, words=words), flits, buffer)

    def ten(cycles: int) -> tuple[float, ...]:
        return _effects(
            "figure10", lambda on: computing(prioritised=on, cycles_per_word=cycles), flits, buffer
        )

    words = min(WORDS, key=lambda words: abs(nine(words)[0] - 67.5))
    cycles = min(CYCLES, key=lambda cycles: abs(ten(cycles)[2] - 34))
    eleven = _effects("figure11", lambda on: streaming(circuit=on), flits, buffer)
    found = (*nine(words), *ten(cycles), *eleven)
    stated = [each for section in published("ocmpi")["effects"].values() for each in section]
    errors = [
        abs(value - one["published"][0])
        for value, one in zip(found, stated, strict=True)
        if not one["calibrated"]
    ]
    calibrated = {"gather_words": words, "cycles_per_word": cycles}
    effects = dict(zip(EFFECTS, found, strict=True))
    return {"flits": flits, "buffer_flits": buffer, **calibrated, **effects, "largest_error": max(errors)}


def _effects(
    section: str, make: Callable[[bool], MessageProgram], flits: int, buffer: int
) -> tuple[float, ...]:
    from validate import simulate

    without, service = (
        simulate(changed(make(on), flits, buffer), replications=2).finish[:, 0] for on in (False, True)
    )
    return effects(section, dict(enumerate((100 * (service / without - 1)).tolist())))
