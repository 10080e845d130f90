"""Tables of cells as text: in the layout of a paper, and as lists with errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cases.published.cell import Cell, mean_and_largest
from cases.tables import text_table

Shown = Callable[[Cell], str]


def three(form: str, *, factor: float = 1.0, published: str | None = None) -> Shown:
    """Return how a cell is shown: published, where the paper has a number, | model | simulated.

    >>> three("{:.1f}", factor=100)(Cell(published=0.5, model=0.51, simulated=0.499))
    '50.0 | 51.0 | 49.9'
    """

    def shown(cell: Cell) -> str:
        forms = {"published": published or form, "model": form, "simulated": form}
        values = {name: getattr(cell, name) for name in forms}
        return " | ".join(
            forms[name].format(factor * value) for name, value in values.items() if value is not None
        )

    return shown


def grid_text(
    title: str,
    cells: Iterable[Cell],
    *,
    rows: Sequence[str],
    column: str,
    shown: Shown,
    names: Mapping[Any, str] | None = None,
) -> str:
    """Return cells as a table as it is printed in a paper.

    ``rows``: entries of a cell's place that tell its row; ``column``: the entry that tells its column;
    ``shown``: the text of a cell, see `three`; ``names``: headings of entries, and of columns by their value.
    """
    names = names or {}
    table: dict[tuple[Any, ...], dict[Any, Cell]] = {}
    for cell in cells:
        table.setdefault(tuple(cell[name] for name in rows), {})[cell[column]] = cell
    columns = list(dict.fromkeys(name for line in table.values() for name in line))
    lines = [
        [*key, *(shown(line[name]) if name in line else "-" for name in columns)]
        for key, line in table.items()
    ]
    headings = [names.get(name, str(name).replace("_", " ")) for name in columns]
    return f"{title}\n{text_table([*(names.get(row, row) for row in rows), *headings], lines)}"


def list_text(
    title: str,
    cells: Sequence[Cell],
    labels: Mapping[str, str],
    *,
    digits: int = 2,
    names: Mapping[Any, str] | None = None,
) -> str:
    """Return cells as a list: what they are, published, model and simulated with errors, and what was fitted.

    ``labels``: headings of the entries of a cell's place that are shown; ``digits``: decimals of a number;
    ``names``: how entries are shown.
    """
    names = names or {}
    error = "error, points" if cells[0].points else "error %"
    rows = [
        [
            *(names.get(cell[name], cell[name]) for name in labels),
            _range(cell),
            *_with_errors(cell, digits),
            "fitted" if cell.fitted else "",
        ]
        for cell in cells
    ]
    headings = [*labels.values(), "published", "model", error, "simulated", error, ""]
    return f"{title}\n{text_table(headings, rows)}"


def _range(cell: Cell) -> str:
    ends = [value for value in (cell.published, cell.published_high) if value is not None]
    return "-".join(f"{value:g}" for value in ends)


def _with_errors(cell: Cell, digits: int) -> Iterable[str]:
    for value in (cell.model, cell.simulated):
        assert value is not None
        yield f"{value:.{digits}f}"
        yield f"{cell.error(value):+.1f}"


def errors_text(cells: Sequence[Cell], *, digits: int = 1) -> str:
    """Return the mean and the largest errors of what was fitted and of what was not, a line each."""
    lines = []
    for fitted in (False, True):
        mine = [cell for cell in cells if cell.fitted is fitted]
        words = []
        for which in ("model", "simulated") if mine else ():
            mean, largest = mean_and_largest(mine, which)
            words.append(f"{which} {mean:.{digits}f} % on average, {largest:.{digits}f} % at most")
        if words:
            lines.append(f"{len(mine)} figures {'' if fitted else 'not '}fitted: {'; '.join(words)}")
    return "\n".join(lines)
