"""The page on accuracy: error against load for every kind, coverage, directions and constants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cases.evidence.calibrate import HEADS, MAIN, ROOT, Seen, coverage, scored, simulator
from cases.evidence.constants import loaded
from cases.evidence.record import Record
from cases.tables import markdown_table
from qmodels.evidence.constants import COMMAND
from qmodels.systems.spec.whole import whole

DOCS = ROOT / ".github" / "docs"
PAGE, PICTURE = DOCS / "reference" / "accuracy.md", DOCS / "_static" / "accuracy.svg"
WIDTH, HEIGHT, GAP, COLUMNS = 210, 130, 46, 3
MOST = 0.5
"""Log ratio at the ends of the pictures."""
STRATA = ("load", "dispersion", "recorded", "doubts", "no doubts")
"""What the strata begin with whose coverage the page shows."""
INTRODUCTION = """# How far the models can be trusted

`answer.interval("packet_latency")` is what 90 % of simulations of systems like this one show; it stands
beside every number of an answer. Systems of all kinds were drawn at random, bursts, recorded packets,
pools, memories and topologies among them, solved and simulated (`python -m cases.evidence draw`). The log
ratio of simulation to model gives a centre and a width that follow the load of the fullest resource, its
sort, the dispersion of the arrivals, what a kind has of its own and the doubts (locally weighted conformal
prediction). What lies outside all that was drawn has no interval, and the answer says which feature does.
This page is written by `python -m cases.evidence report`.

![Log ratio of simulated to modelled values over the load, for every kind](../_static/accuracy.svg)

Each dot is a system that its interval was not made from: the simulated value over the model's, by the
load of its fullest resource; dots outside their 90 % interval are crosses.

## Coverage

{about} Half-width and the size of the error are medians of log ratios, so in % of the value; of shares with
0.001 added. Of intervals of the simulator itself, at 95 %, {held} of {count} hold the value of an exact
model.

"""
DIRECTIONS = """
## Direction

Does the model order two designs as the simulation does, one decision apart and under the same random
numbers? Pairs whose simulated intervals do not meet, and how many of them the model orders alike
(`python -m cases.evidence neighbours`); where fewer than three quarters are, the answer to a sweep of that
field says so.

"""
CONSTANTS = """
## Constants

The numbers in the models that no derivation gives: what the data say of each, the error of systems that
were left out, and by how many points the mean error grows where the constant is the better of 0 and 1
(`{command}`).

"""


def write(records: list[Record], tested: list[Record], table: dict[str, Any]) -> None:
    """Write page and picture of a table of intervals: on records of another seed, or from half to half."""
    every, fresh = scored(records, tested)
    rows = coverage(every)
    about = "Made from one half of the systems, on the other half"
    about += f"; of {', '.join(fresh)} on systems of a seed that no interval was made from." if fresh else "."
    held, count = simulator([*records, *tested])
    text = INTRODUCTION.format(about=about, held=f"{held:,}", count=f"{count:,}")
    whole_rows = [[kind, f"`{metric}`", *cells] for kind, metric, stratum, *cells in rows if stratum == "all"]
    text += markdown_table(HEADS, whole_rows) + "\n\nThe main metric of each kind, by strata:\n\n"
    by = [
        [kind, stratum, *cells]
        for kind, metric, stratum, *cells in rows
        if MAIN.get(kind) == metric and stratum.startswith(STRATA)
    ]
    text += markdown_table(["kind", "stratum", *HEADS[2:]], by) + "\n" + DIRECTIONS
    text += markdown_table(["kind", "decision", "alike"], _directions(table)) + "\n"
    text += CONSTANTS.format(command=COMMAND) + markdown_table(
        ["constant", "value", "best, 95 %", "held out", "worth"], _constants()
    )
    for path, content in ((PAGE, text + "\n"), (PICTURE, picture(every))):
        with whole(path) as part:
            Path(part).write_text(content, encoding="utf-8")


def _directions(table: dict[str, Any]) -> list[list[str]]:
    return [
        [kind, f"`{path}`", ", ".join(f"`{name}` {alike} of {n}" for name, (alike, n) in found.items())]
        for kind, one in sorted(table.items())
        for path, found in one.get("directions", {}).items()
    ]


def _constants() -> list[list[str]]:
    return [
        [
            f"`{one.name}`", f"{one.value:g}", f"{one.best:.3g} ({one.low:.3g} to {one.high:.3g})",
            f"{one.held_out:.2g} %", f"{one.worth:.2g} points",
        ]
        for one in loaded()
    ]  # fmt: skip


def picture(every: Sequence[Seen]) -> str:
    """Return the log ratios of the main metric of each kind over the load, a panel each, as SVG.

    >>> picture([]).startswith("<svg")
    True
    """
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for one in every:
        if MAIN.get(one.kind) == one.metric:
            kinds[one.kind].append(one)
    panels = "\n".join(_panel(k, kind, kinds[kind]) for k, kind in enumerate(sorted(kinds)))
    down = -(-len(kinds) // COLUMNS)
    size = f"0 0 {COLUMNS * (WIDTH + GAP) + 20} {down * (HEIGHT + GAP) + 20}"
    style = "text{font:11px sans-serif;fill:#555}circle,path{fill:none;stroke:#1f6fb2}path{stroke:#c33}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}"><style>{style}</style>\n{panels}\n</svg>\n'
    )


def _panel(number: int, kind: str, some: Sequence[Seen]) -> str:
    left, top = GAP + number % COLUMNS * (WIDTH + GAP), 30 + number // COLUMNS * (HEIGHT + GAP)
    marks = []
    for one in some:
        x = left + WIDTH * min(one.load, 1.0)
        y = top + HEIGHT / 2 * (1.0 - float(np.clip(one.value / MOST, -1.0, 1.0)))
        marks.append(
            f'<circle cx="{x:.0f}" cy="{y:.1f}" r="1.6"/>' if one.held else
            f'<path d="M{x - 2:.0f} {y - 2:.1f}l4 4m-4 0l4 -4"/>'
        )  # fmt: skip
    middle, bottom = top + HEIGHT / 2, top + HEIGHT
    words: list[tuple[float, float, str]] = [(left, top - 8, f"{kind}: {MAIN[kind].replace('_', ' ')}")]
    words += [
        (left - 34, y + 4, f"{np.expm1(ratio):+.0%}")
        for y, ratio in ((top, MOST), (middle, 0.0), (bottom, -MOST))
    ]
    words += [(left + WIDTH * load - 8, bottom + 12, f"{load:g}") for load in (0.0, 0.5, 1.0)]
    frame = [
        f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#bbb"/>',
        f'<line x1="{left}" x2="{left + WIDTH}" y1="{middle}" y2="{middle}" stroke="#bbb"/>',
    ]
    said = [f'<text x="{x:.0f}" y="{y:.0f}">{text}</text>' for x, y, text in words]
    return "\n".join([*frame, *said, *dict.fromkeys(marks)])
