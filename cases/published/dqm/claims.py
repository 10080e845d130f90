"""What the data-queueing paper claims, beside what our simulation and the model find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cases.published.cell import Cell, only, select
from cases.published.claim import Claim
from cases.published.rows import published

COLUMNS = ("published", "model", "simulated")
Values = dict[str, Any]


def check_claims(cells: Sequence[Cell], techniques: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return the claims of the paper's section 6, of the techniques only if they were explored."""
    said = published("dqm")["claims"]

    def first(column: str, trials: int) -> Cell:
        return only(cells, table="table1", column=column, trials=trials)

    def ours(value: Callable[[str], float], said_so: float) -> Values:
        return {name: value(name) for name in COLUMNS[1:]} | {"published": said_so}

    def saved(after: Sequence[Cell], before: Sequence[Cell], said_so: float) -> Values:
        """Return the largest share saved. [percent]."""
        pairs = list(zip(after, before, strict=True))
        return ours(lambda name: max(_saved(a, b, name) for a, b in pairs), said_so)

    def optimised(column: str, said_so: float) -> Values:
        *after, before = select(cells, table="table4", column=column)
        return saved(after, [before] * len(after), said_so)

    def points(name: str) -> float:
        return float(getattr(three, name) - getattr(five, name))

    three, five = first("write_with", 3), first("write_with", 5)
    with_pages, without = (
        [first(column, trials) for trials in range(1, 6)] for column in ("write_with", "write_wo")
    )
    two = {column: ([first(column, 2)], [first(column, 1)]) for column in ("write_with", "read_with")}
    *overheads, conventional = select(cells, table="table4", column="overhead")

    def overhead(name: str) -> float:
        return sum(getattr(cell, name) for cell in overheads) / len(overheads)

    avoided = {
        "write conflicts avoided by 2 trials, %": saved(*two["write_with"], said["write_saved_at_2"]),
        "read conflicts avoided by 2 trials, %": saved(*two["read_with"], said["read_saved_at_2"]),
        "write conflicts avoided by 5 trials of those left by 3, %": saved(
            [five], [three], _saved(five, three, "published")
        ),
        "write conflicts avoided by page control, at most, %": saved(
            with_pages, without, said["page_control_saves"]
        ),
        "write conflicts avoided by an optimised technique, at most, %": optimised(
            "write_with", said["write_saved"]
        ),
        "read conflicts avoided by an optimised technique, at most, %": optimised(
            "read_with", said["read_saved"]
        ),
    }
    others = {
        "write conflicts avoided by 5 trials, in points of all writes": ours(points, points("published")),
        "worst-case overhead of the conventional technique, cycles": ours(
            lambda name: float(getattr(conventional, name)), said["overhead_conventional"]
        ),
        "worst-case overhead of the optimised techniques, cycles": ours(overhead, said["overhead_optimised"]),
    }
    return [
        *(Claim(text=text, group="saved", points=True, **values) for text, values in avoided.items()),
        *(Claim(text=text, **values) for text, values in others.items()),
        *_explored(techniques),
    ]


def _saved(after: Cell, before: Cell, name: str) -> float:
    """Return the share saved in percent; of nothing nothing is saved."""
    left, whole = getattr(after, name), getattr(before, name)
    return float(100 * (1 - left / whole)) if whole else 0.0


def _explored(techniques: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return what is said of the exploration."""
    if not techniques:
        return []
    said = published("dqm")["claims"]
    optimal, overall = (sum(row[flag] for row in techniques) for flag in ("pareto", "optimal_overall"))
    return [
        Claim(text="grid points explored", published=said["techniques"], simulated=len(techniques)),
        Claim(
            text="techniques on the Pareto curve (five objectives)", group="pareto",
            published=said["pareto"], simulated=optimal,
        ),
        Claim(
            text="the same for all failures together and both worst cases", published=said["pareto"],
            simulated=overall,
        ),
    ]  # fmt: skip
