"""Published numbers beside the model's and the simulation's, and tags of what their agreement is worth."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cases.tables import columns_of, csv_text, text_table
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.text.toml import to_toml
from qmodels.systems.spec.whole import whole

TAGS = {
    "fitted": "a parameter was fitted to it: agreement proves nothing",
    "chosen in view": "nothing was fitted to it, but a reading, a size or an image was chosen having seen it",
    "predicted": "neither: agreement is evidence",
    "derived": "not printed in the source, computed from what is",
}
"""What the tags mean, the least worth first."""


def data_folder(case: str) -> Path:
    """Return the folder that keeps the numbers of a case."""
    return Path(__file__).parent / "data" / case


@cache
def published(case: str) -> dict[str, Any]:
    """Return the data of a bundled case: its published numbers, tags, tables, claims and conclusions."""
    return read_toml(data_folder(case) / "paper.toml")


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def plain_row(row: Any) -> dict[str, Any]:
    """Return a row, a dataclass or a mapping, as a dictionary."""
    return asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row)


def write_rows(path: Path, rows: Iterable[Any]) -> None:
    """Write rows as CSV, numbers in full; the file appears whole or not at all."""
    with whole(path) as part:
        part.write_text(csv_text(columns_of(map(plain_row, rows))), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Number:
    """A published number beside ours."""

    # What it belongs to, a key of the case's tags: a parameter was fitted to those of a group that ends in
    # ``_fitted``. Empty for what is no number of the paper.
    group: str = ""
    # The number, or the lower end of a published range; None where the paper gives none.
    published: float | None = None
    published_high: float | None = None  # the upper end of a published range
    points: bool = False  # whether errors are differences, not relative: for shares in percent
    # model, simulated: ours; None where one of them does not give it.
    model: float | None = None
    simulated: float | None = None

    def error(self, value: float) -> float:
        """Return the error against the nearer end, in percent of it or in points.

        >>> Number(published=65, published_high=70, points=True).error(71.5)
        1.5
        """
        assert self.published is not None
        high = self.published if self.published_high is None else self.published_high
        near = min(max(value, self.published), high)
        return value - near if self.points or not near else 100 * (value / near - 1)

    @property
    def fitted(self) -> bool:
        """Whether a parameter was fitted to it: then it proves nothing."""
        return self.group.endswith("_fitted")


@dataclass(frozen=True, kw_only=True)
class Cell(Number):
    """A number of a table or a figure."""

    # Where it stands: the table, its row and column, or whatever else the paper tells it by.
    # ``cell["table"]`` is an entry of it, None if there is none.
    place: Mapping[str, Any] = field(default_factory=dict)
    # low, high: interval of the simulated number, of 95 % if nothing else is said.
    low: float | None = None
    high: float | None = None

    def __getitem__(self, name: str) -> Any:
        return self.place.get(name)

    def row(self) -> dict[str, Any]:
        """Return the cell as a flat row, see `Cell.of_row`."""
        return {**self.place, **{name: getattr(self, name) for name in VALUES}}

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Cell:
        """Return the cell of a flat row: whatever is no value is a part of its place.

        >>> cell = Cell(place={"table": "I", "channels": 2}, published=0.05, model=0.049, points=False)
        >>> Cell.of_row(cell.row()) == cell
        True
        """
        place = {name: value for name, value in row.items() if name not in VALUES and value is not None}
        values: dict[str, Any] = {name: row[name] for name in VALUES}
        return cls(place=place, **values | {"group": values["group"] or ""})


VALUES = tuple(one.name for one in fields(Cell) if one.name != "place")


@dataclass(frozen=True, kw_only=True)
class Claim(Number):
    """A statement of a paper; numbers that are True or False say whether it is so."""

    text: str  # what is stated, with its unit
    heading: str = "Claims"  # of the table in which it is shown
    form: str = "{:.3g}"  # of a number that is shown
    said: str = ""  # how the paper puts it, if not as a number of this form
    holds: bool | None = None  # whether the simulation agrees; None where that is not a question of yes or no

    def shown(self, which: str) -> str:
        """Return ``"published"``, ``"model"``, ``"simulated"`` or ``"holds"`` as text.

        >>> claim = Claim(text="gain, %", published=2.0, said="below 2", model=2.5, holds=False)
        >>> [claim.shown(name) for name in ("published", "model", "simulated", "holds")]
        ['below 2', '2.5', '-', 'no']
        """
        value = getattr(self, which)
        if which == "published" and self.said:
            return self.said
        if value is None or isinstance(value, bool):
            return "-" if value is None else "yes" if value else "no"
        return self.form.format(value)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A system of a paper."""

    name: str  # Of its place in the paper, see `name_of`
    spec: Any  # The system
    # What the paper prints of it, by metric and in its unit; None where it prints no number
    published: Mapping[str, float | None]

    def text(self) -> str:
        """Return it as the text of a file, below the numbers of the paper."""
        said = [
            f"# published {metric}: {value:.6g} {metric_of(self.spec, metric).unit}".removesuffix(" 1")
            for metric, value in self.published.items()
            if value is not None
        ]
        return "\n".join([f"# {self.name}", *said, to_toml(self.spec, kind=True)])


def name_of(**place: str | float) -> str:
    """Return the name of a place.

    >>> name_of(table="table2", width=8, reading="in turn")
    'table2-width8-in-turn'
    """
    words = " ".join(str(one) if isinstance(one, str) else f"{key}{one}" for key, one in place.items())
    return re.sub(r"[^a-z0-9.]+", "-", words.lower()).strip("-")


def select(cells: Iterable[Any], **place: Any) -> list[Any]:
    """Return the cells, or rows, at a place; of several values in a list any will do."""
    wanted = {name: value if isinstance(value, list) else [value] for name, value in place.items()}
    return [cell for cell in cells if all(cell[name] in values for name, values in wanted.items())]


def only(cells: Iterable[Any], **place: Any) -> Any:
    """Return the one cell at a place."""
    (cell,) = select(cells, **place)
    return cell


def mean_and_largest(numbers: Iterable[Number], which: str) -> tuple[float, float]:
    """Return the mean and the largest size of the errors of ``"model"`` or ``"simulated"``."""
    values = [(number, getattr(number, which)) for number in numbers]
    sizes = [abs(number.error(value)) for number, value in values if value is not None]
    return (sum(sizes) / len(sizes), max(sizes)) if sizes else (float("nan"), float("nan"))


def tags_of(data: Mapping[str, Any], name: str) -> dict[str, dict[str, str]]:
    """Return the tags of a case by group: ``what`` its numbers are, a key of `TAGS`, and ``why``."""
    found = {group: {"why": "", **one} for group, one in data.get("tags", {}).items()}
    for group, one in found.items():
        if one["tag"] not in TAGS:
            raise ValueError(f"tag of {name}.{group} must be one of {', '.join(TAGS)}, got {one['tag']!r}")
    return found


def tag_rows(known: Mapping[str, Mapping[str, str]], numbers: Iterable[Number]) -> list[list[str]]:
    """Return a row per group: what, how many, tag, errors of the model and of the simulation, why."""
    groups: dict[str, list[Number]] = {group: [] for group in known}
    for number in numbers:
        groups[number.group].append(number)
    return [
        [one["what"], str(len(mine)), one["tag"], _errors(mine, "model"), _errors(mine, "simulated"),
        one["why"]] for one, mine in zip(known.values(), groups.values(), strict=True)
        if mine
    ]  # fmt: skip


def tags_text(known: Mapping[str, Mapping[str, str]], numbers: Iterable[Number]) -> str:
    """Return the tags of a case as a table."""
    lines = [
        "What agreement is worth; errors: mean (largest), in % of the published number or points of a share",
        text_table(["numbers", "count", "tag", "model", "simulated", "why"], tag_rows(known, numbers)),
    ]
    return "\n".join(lines + [f"  {tag}: {meaning}" for tag, meaning in TAGS.items()])


def _errors(numbers: Sequence[Number], column: str) -> str:
    if all(getattr(number, column) is None for number in numbers):
        return "-"
    mean, largest = mean_and_largest(numbers, column)
    return f"{mean:.1f} ({largest:.1f}) {'points' if numbers[0].points else '%'}"
