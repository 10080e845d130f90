"""Tags that say what the agreement of published numbers with ours is worth.

They stand in ``<case>/data/published.toml``, group by group, beside the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from cases.published.cell import Number, mean_and_largest
from cases.published.rows import published
from cases.tables import text_table

TAGS = {
    "fitted": "a parameter was fitted to it: agreement proves nothing",
    "chosen in view": "nothing was fitted to it, but a reading, a size or an image was chosen having seen it",
    "predicted": "neither: agreement is evidence",
    "derived": "not printed in the source, computed from what is",
}
"""What the tags mean, the least worth first."""


def tags(case: str) -> dict[str, dict[str, str]]:
    """Return the tags of a case by group.

    Of each group of published numbers ``what`` they are, in words, its ``tag``, a key of `TAGS`, and ``why``:
    what was fitted or chosen, or what has to be known.
    """
    found = {group: {"why": "", **fields} for group, fields in published(case)["tags"].items()}
    for group, one in found.items():
        if one["tag"] not in TAGS:
            raise ValueError(f"tag of {case}.{group} must be one of {', '.join(TAGS)}, got {one['tag']!r}")
    return found


def tag_rows(case: str, numbers: Iterable[Number]) -> list[list[str]]:
    """Return a row per group: what, how many, tag, errors of the model and of the simulation, why."""
    known = tags(case)
    groups: dict[str, list[Number]] = {group: [] for group in known}
    for number in numbers:
        groups[number.group].append(number)
    return [
        [
            known[group]["what"],
            str(len(mine)),
            known[group]["tag"],
            *(_errors(mine, column) for column in ("model", "simulated")),
            known[group]["why"],
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


def _errors(numbers: list[Number], column: str) -> str:
    if all(getattr(number, column) is None for number in numbers):
        return "-"
    mean, largest = mean_and_largest(numbers, column)
    return f"{mean:.1f} ({largest:.1f}) {'points' if numbers[0].points else '%'}"
