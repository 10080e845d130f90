"""A published number beside the model's and the simulation's, and where in its paper it stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar


@dataclass(frozen=True, kw_only=True)
class Number:
    """A published number beside ours."""

    # What it belongs to, a key of the case's tags (`cases.published.tags`): a parameter was fitted to those
    # of a group that ends in ``_fitted``. Empty for what is no number of the paper.
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

        Examples
        --------
        >>> Number(published=65, published_high=70, points=True).error(71.5)
        1.5
        """
        assert self.published is not None
        high = self.published if self.published_high is None else self.published_high
        near = min(max(value, self.published), high)
        if self.points or not near:
            return value - near
        return 100 * (value / near - 1)

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

        Examples
        --------
        >>> cell = Cell(place={"table": "I", "channels": 2}, published=0.05, model=0.049, points=False)
        >>> Cell.of_row(cell.row()) == cell
        True
        """
        place = {name: value for name, value in row.items() if name not in VALUES and value is not None}
        values: dict[str, Any] = {name: row[name] for name in VALUES}
        return cls(place=place, **values | {"group": values["group"] or ""})


VALUES = tuple(one.name for one in fields(Cell) if one.name != "place")
N = TypeVar("N", bound=Number)


def select(cells: Iterable[Cell], **place: Any) -> list[Cell]:
    """Return the cells at a place."""
    return [cell for cell in cells if all(cell[name] == value for name, value in place.items())]


def mean_and_largest(numbers: Iterable[Number], which: str) -> tuple[float, float]:
    """Return the mean and the largest size of the errors of ``"model"`` or ``"simulated"``."""
    values = [(number, getattr(number, which)) for number in numbers]
    sizes = [abs(number.error(value)) for number, value in values if value is not None]
    return (sum(sizes) / len(sizes), max(sizes)) if sizes else (float("nan"), float("nan"))


def only(cells: Sequence[Cell], **place: Any) -> Cell:
    """Return the one cell at a place."""
    (cell,) = select(cells, **place)
    return cell
