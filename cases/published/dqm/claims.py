"""What the data-queueing paper claims, beside what our simulation and the model find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cases.published.cell import Cell, only, select
from cases.published.claim import Claim, Value, compared
from cases.published.rows import published

MARGIN, SPREAD = 5.0, 0.1
"""Points of a share, and part of another number, within which ours is taken to say what the paper says."""


def check_claims(cells: Sequence[Cell], techniques: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return the claims of the paper's section 6, of the techniques only if they were explored."""
    said = published("dqm")["claims"]

    def first(column: str, trials: int) -> Cell:
        return only(cells, table="table1", column=column, trials=trials)

    def optimised(column: str) -> Value:
        *after, before = select(cells, table="table4", column=column)
        return _saved(*((one, before) for one in after))

    three, five = first("write_with", 3), first("write_with", 5)
    pairs = [(first("write_wo", n), first("write_with", n)) for n in range(1, 6)]
    failed = (select(cells, table="table4", column="overflow")[-1], None)
    pages = _saved(*((first("write_with", n), first("write_wo", n)) for n in range(1, 6)))
    two = _saved((first("write_with", 2), first("write_wo", 2)))
    fewer = _saved((five, three))
    *overheads, conventional = select(cells, table="table4", column="overhead")
    avoided = {
        "by 2 trials": (_saved((first("write_with", 2), first("write_with", 1))), said["write_saved_at_2"]),
        "by 5 trials of those left by 3": (fewer, fewer("published")),
        "by page control with 2 trials": (two, two("published")),
        "by page control, at most": (pages, said["page_control_saves"]),
        "by an optimised technique, at most": (optimised("write_with"), said["write_saved"]),
    }
    reads = {
        "by 2 trials": (_saved((first("read_with", 2), first("read_with", 1))), said["read_saved_at_2"]),
        "by an optimised technique, at most": (optimised("read_with"), said["read_saved"]),
    }
    shares: dict[str, Any] = {"group": "saved", "points": True}
    in_points = Claim(
        text="write conflicts avoided by 5 trials of those left by 3, in points of all writes",
        **{name: getattr(three, name) - getattr(five, name) for name in ("published", "model", "simulated")},
    )
    return [
        *(
            compared(
                f"{what} conflicts avoided {how}, %",
                value,
                published=number,
                holds=bool(abs(value("simulated") - number) <= MARGIN),
                **shares,
            )
            for what, known in (("write", avoided), ("read", reads))
            for how, (value, number) in known.items()
        ),
        in_points,
        _between(
            "write conflicts avoided by page control, in points of all writes: mean, 1 to 5 trials",
            pairs,
            "just_read",
        ),
        _between("failed allocations of the conventional technique, %", [failed], ""),
        compared(
            "worst-case overhead of the conventional technique, cycles",
            lambda which: getattr(conventional, which),
            published=said["overhead_conventional"],
        ),
        compared(
            "worst-case overhead of the optimised techniques, cycles",
            lambda which: sum(getattr(cell, which) for cell in overheads) / len(overheads),
            published=said["overhead_optimised"],
        ),
        *_explored(techniques),
    ]


def _between(text: str, pairs: Sequence[tuple[Cell, Cell | None]], group: str) -> Claim:
    """Return a claim of differences, or of numbers: the mean of ours against the published range."""

    def all_of(which: str) -> list[float]:
        return [getattr(one, which) - (getattr(less, which) if less else 0.0) for one, less in pairs]

    said, model, simulated = (all_of(which) for which in ("published", "model", "simulated"))
    low, high, mean = min(said), max(said), sum(simulated) / len(pairs)
    return Claim(
        text=text,
        group=group,
        published=low,
        published_high=high,
        said=f"{low:.3g} to {high:.3g}" if high > low else "",
        model=sum(model) / len(pairs),
        simulated=mean,
        holds=low * (1 - SPREAD) <= mean <= high * (1 + SPREAD),
    )


def _saved(*pairs: tuple[Cell, Cell]) -> Value:
    """Return the largest share saved in pairs of a cell after and before; of nothing nothing is saved."""

    def share(after: float, before: float) -> float:
        return 100 * (1 - after / before) if before else 0.0

    return lambda which: max(share(getattr(a, which), getattr(b, which)) for a, b in pairs)


def _explored(techniques: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """Return what is said of the exploration."""
    if not techniques:
        return []
    said = published("dqm")["claims"]
    optimal, overall = (sum(row[flag] for row in techniques) for flag in ("pareto", "optimal_overall"))
    found = (
        ("grid points explored", "", said["techniques"], len(techniques)),
        ("techniques on the Pareto curve (five objectives)", "pareto", said["pareto"], optimal),
        ("the same for all failures together and both worst cases", "", said["pareto"], overall),
    )
    return [Claim(text=t, group=group, published=p, simulated=count) for t, group, p, count in found]
