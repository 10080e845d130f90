"""The page on accuracy: error against load for every kind, coverage, directions and constants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.evidence.calibrate import HEADS, MAIN, ROOT, Seen, coverage, scored, simulator
from cases.evidence.constants import cells
from cases.evidence.record import Record
from cases.tables import BLUE, ORANGE, markdown_table, new_figure, save
from qmodels.evidence.constants import COMMAND
from qmodels.systems.spec.whole import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS = ROOT / ".github" / "docs"
PAGE, PICTURE = DOCS / "reference" / "accuracy.md", DOCS / "_static" / "accuracy.png"
COLUMNS = 3
MOST = 0.5  # log ratio at the ends of the pictures
STRATA = ("load", "dispersion", "recorded", "doubts", "no doubts")
"""What the strata begin with whose coverage the page shows."""


def write(records: list[Record], tested: list[Record], table: dict[str, Any]) -> None:
    """Write page and picture of a table of intervals: on records of another seed, or from half to half."""
    every, fresh = scored(records, tested)
    rows = coverage(every)
    about = "Made from one half of the systems, on the other half"
    about += f"; of {', '.join(fresh)} on systems of a seed that no interval was made from." if fresh else "."
    held, count = simulator([*records, *tested])
    main = [row for row in rows if MAIN.get(row[0]) == row[1] and row[2].startswith(STRATA)]
    tables = {
        "coverage": (
            HEADS,
            [[kind, f"`{name}`", *cells] for kind, name, part, *cells in rows if part == "all"],
        ),
        "strata": (["kind", "stratum", *HEADS[2:]], [[kind, *cells] for kind, _, *cells in main]),
        "directions": (["kind", "decision", "alike"], _directions(table)),
        "constants": (
            ["constant", "value", "best, 95 %", "held out", "worth"],
            [
                [f"`{name}`", value, f"{best} ({span})", out, worth]
                for name, value, best, span, _, out, worth, _ in cells()
            ],
        ),
    }
    made = {name: markdown_table(*one) for name, one in tables.items()}
    text = Path(__file__).with_name("accuracy.md").read_text(encoding="utf-8")
    with whole(PAGE) as part:
        words = text.format(about=about, held=f"{held:,}", count=f"{count:,}", command=COMMAND, **made)
        part.write_text(words, encoding="utf-8")
    save(picture(every), PICTURE)


def _directions(table: dict[str, Any]) -> list[list[str]]:
    return [
        [kind, f"`{path}`", ", ".join(f"`{name}` {alike} of {n}" for name, (alike, n) in found.items())]
        for kind, one in sorted(table.items())
        for path, found in one.get("directions", {}).items()
    ]


def picture(every: Sequence[Seen]) -> Figure:
    """Return the log ratios of the main metric of each kind over the load, a panel each."""
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for one in every:
        if MAIN.get(one.kind) == one.metric:
            kinds[one.kind].append(one)
    rows = -(-len(kinds) // COLUMNS)
    figure, axes = new_figure(9.0, 0.4 + 2.0 * rows, rows, COLUMNS)
    for axis in axes.flat[len(kinds) :]:
        axis.set_visible(False)
    for axis, kind in zip(axes.flat, sorted(kinds), strict=False):
        for held, style in ((True, {"mfc": "none", "mec": BLUE}), (False, {"marker": "x", "mec": ORANGE})):
            points = [(min(one.load, 1.0), one.value) for one in kinds[kind] if one.held is held]
            x, y = np.reshape(points, (-1, 2)).T
            axis.plot(x, np.clip(y, -MOST, MOST), **{"marker": "o", "ls": "", "ms": 3, **style})
        ends = [-MOST, 0.0, MOST]
        axis.set(xlim=(0, 1), ylim=(-1.05 * MOST, 1.05 * MOST))
        axis.set_yticks(ends, [f"{np.expm1(ratio):+.0%}" for ratio in ends])
        axis.set_title(f"{kind}: {MAIN[kind].replace('_', ' ')}", fontsize=8, loc="left")
    return figure
