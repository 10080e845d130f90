"""Every published number beside ours, with a tag that says what its agreement is worth.

The tags stand in ``data/<case>-published.toml``, group by group, beside the numbers. The README's table
is what ``python -m cases.published.numbers`` prints.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cases.published.cases import CASES, published_case
from cases.tables import text_table

DATA = Path(__file__).parents[1] / "data"

TAGS = {
    "fitted": "a parameter was fitted to it: agreement proves nothing",
    "chosen in view": "nothing was fitted to it, but a reading, a size or an image was chosen having seen it",
    "predicted": "neither: agreement is evidence",
    "derived": "not printed in the source, computed from what is",
}
"""What the tags mean, the least worth first."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A published number beside ours.

    Parameters
    ----------
    group : str
        What it belongs to, a key of the case's tags.
    published : float
        The number, or the lower end of a published range.
    model, simulated : float or None
        Ours; None where one of them does not give it.
    high : float, optional
        The upper end of a published range.
    points : bool
        Whether errors are differences, not relative: for shares in percent.
    """

    group: str
    published: float
    model: float | None
    simulated: float | None
    high: float | None = None
    points: bool = False

    def error(self, value: float) -> float:
        """Return the error against the nearer end, in percent of it or in points.

        Examples
        --------
        >>> Number(group="a", published=65, high=70, model=None, simulated=None, points=True).error(71.5)
        1.5
        """
        near = min(max(value, self.published), self.published if self.high is None else self.high)
        if self.points or not near:
            return value - near
        return 100 * (value / near - 1)


@dataclass(frozen=True, kw_only=True)
class Tag:
    """What the agreement of a group of published numbers is worth.

    Parameters
    ----------
    what : str
        The numbers, in words.
    tag : str
        A key of `TAGS`.
    why : str
        What was fitted or chosen, or what has to be known.
    """

    what: str
    tag: str
    why: str = ""


@cache
def tags(case: str) -> dict[str, Tag]:
    """Return the tags of a case by group.

    Raises
    ------
    ValueError
        If a tag is not one of `TAGS`.

    Examples
    --------
    >>> tags("stnoc")["table2"].tag
    'fitted'
    """
    said = tomllib.loads((DATA / f"{case}-published.toml").read_text(encoding="utf-8"))
    found = {group: Tag(**fields) for group, fields in said["tags"].items()}
    for group, tag in found.items():
        if tag.tag not in TAGS:
            raise ValueError(f"tag of {case}.{group} must be one of {', '.join(TAGS)}, got {tag.tag!r}")
    return found


def tag_rows(case: str, numbers: Iterable[Number]) -> list[list[str]]:
    """Return a row per group: what, how many, tag, errors of the model and of the simulation, why."""
    known = tags(case)
    groups: dict[str, list[Number]] = {group: [] for group in known}
    for number in numbers:
        groups[number.group].append(number)
    return [
        [
            known[group].what,
            str(len(mine)),
            known[group].tag,
            *(_errors(mine, column) for column in ("model", "simulated")),
            known[group].why,
        ]
        for group, mine in groups.items()
        if mine
    ]


def tags_text(case: str, numbers: Iterable[Number]) -> str:
    """Return the tags of a case as a table."""
    rows = tag_rows(case, numbers)
    lines = [
        "What agreement is worth; errors: mean (largest), in % of the published number or points of a share",
        text_table(["numbers", "count", "tag", "model", "simulated", "why"], rows),
    ]
    return "\n".join(lines + [f"  {tag}: {meaning}" for tag, meaning in TAGS.items()])


def readme_table() -> str:
    """Return the README's table of all cases, in Markdown: a row per case and tag."""
    lines = [
        "| case | tag | numbers (how many): mean (largest) error of the model / simulated |",
        "|---|---|---|",
    ]
    for case in CASES:
        rows = tag_rows(case, published_case(case).kept().numbers())
        for tag in TAGS:
            texts = [
                f"{what} ({count}): {model} / {simulated}"
                for what, count, its, model, simulated, _ in rows
                if its == tag
            ]
            if texts:
                lines.append(f"| `{case}` | {tag} | {'; '.join(texts)} |")
    return "\n".join(lines)


def _errors(numbers: Sequence[Number], column: str) -> str:
    values = [(number, getattr(number, column)) for number in numbers]
    errors = [abs(number.error(value)) for number, value in values if value is not None]
    if not errors:
        return "-"
    unit = "points" if numbers[0].points else "%"
    return f"{sum(errors) / len(errors):.1f} ({max(errors):.1f}) {unit}"


if __name__ == "__main__":
    print(readme_table())
