"""Simulated margins of conclusions, kept: ``python -m cases.published.conclusions.checks [CASE]``.

A conclusion is simulated at the paper's value, and on both sides of where the models turn, further and
further from it until the intervals decide; where the models do not turn, at the ends of the range. What is
kept is known by the systems it was simulated for: another reading of a paper makes it stale, and then it is
not used. All papers take some minutes on one core.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import sqrt
from pathlib import Path
from typing import Any

from cases.published.conclusions.conclusion import Conclusion, Number, Reading, read
from cases.published.conclusions.found import Check, Found, find
from cases.published.conclusions.papers import PAPERS, conclusions_of
from cases.published.rows import data_folder, write_rows
from cases.tables import read_rows
from qmodels.systems.spec.hashing import stable_text

SATURATION = "saturation_rate"
"""The one metric that is no metric of a simulation: it is found by bisection."""
AWAY = (0.05, 0.1, 0.2, 0.4)
"""How far from a turn both sides are looked at, as a share of the range on that side."""


def key(readings: Sequence[Reading]) -> str:
    """Return what names some readings: the systems, to six digits of every number, and the metrics.

    Fitted numbers differ in their last digits from machine to machine.
    """
    parts = (one if isinstance(one, tuple) else (one, "") for one in readings)
    text = ";".join(f"{stable_text(spec, exact=False)}:{metric}" for spec, metric in parts)
    rounded = re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda number: f"{float(number[0]):.6g}", text)
    return hashlib.sha256(rounded.encode()).hexdigest()[:12]


def simulated(conclusion: Conclusion, value: float, *, store: Path | None = None) -> Check:
    """Return the simulated margin at a value of the parameter.

    Its interval takes the numbers for independent, to first order; the same random numbers in compared
    systems make the true one narrower.
    """
    from validate import saturation_rate, simulate

    def estimates(spec: Any, metrics: Sequence[str]) -> list[Number]:
        if SATURATION in metrics:
            rate = saturation_rate(spec, **conclusion.options)
            return [(rate.rate, (rate.high - rate.low) / 2)]
        found = simulate(spec, store=store, progress=lambda done, known: None, **conclusion.options)
        return [(found[metric].best, found[metric].half_width) for metric in metrics]

    numbers, widths = zip(*read(conclusion.readings(value), estimates), strict=True)
    margin = float(conclusion.of(*numbers))
    moved = (
        conclusion.of(*(n + w * (k == which) for k, (n, w) in enumerate(zip(numbers, widths, strict=True))))
        for which in range(len(numbers))
    )
    return Check(value=value, margin=margin, half_width=sqrt(sum((one - margin) ** 2 for one in moved)))


def points(found: Found) -> Iterator[tuple[float, ...]]:
    """Yield sides to look at: values of the parameter to try in turn until one decides."""
    parameter = found.conclusion.parameter
    yield (parameter.value,)
    if found.flip is None:
        yield from {(end,): None for end in (parameter.grid[0], parameter.grid[-1]) if end != parameter.value}
        return
    low, high = found.flip
    if parameter.whole:
        yield tuple(value for value in reversed(parameter.values) if value <= low)[:3]
        yield tuple(value for value in parameter.values if value >= high)[:3]
        return
    yield tuple(low - share * (low - parameter.grid[0]) for share in AWAY)
    yield tuple(high + share * (parameter.grid[-1] - high) for share in AWAY)


def check(conclusion: Conclusion, *, store: Path | None = None) -> list[dict[str, Any]]:
    """Return the simulated margins of a conclusion as rows."""
    found = find(conclusion)
    rows: dict[float, dict[str, Any]] = {}
    for side in points(found):
        for value in side:
            one = simulated(conclusion, value, store=store)
            systems = key(conclusion.readings(value))
            rows[value] = {"conclusion": conclusion.name, **asdict(one), "systems": systems}
            if one.holds == (conclusion.solved(value) > 0):
                break
    return list(rows.values())


def file(case: str) -> Path:
    """Return where the simulated margins of a paper are kept."""
    return data_folder(case) / "conclusions.csv"


def kept(case: str, conclusion: Conclusion) -> tuple[list[Check], int]:
    """Return the simulated margins that are kept of a conclusion's systems, and how many are of others."""
    path = file(case)
    mine = [row for row in read_rows(path) if row["conclusion"] == conclusion.name] if path.is_file() else []
    good = [row for row in mine if row["systems"] == key(conclusion.readings(row["value"]))]
    checks = [Check(**{name: float(row[name]) for name in ("value", "margin", "half_width")}) for row in good]
    return checks, len(mine) - len(good)


def found_of(case: str) -> list[Found]:
    """Return what is found of all conclusions of a paper: the models now, simulations as kept."""
    return [find(conclusion, *kept(case, conclusion)) for conclusion in conclusions_of(case)]


def changed(case: str, changes: Mapping[str, Any]) -> tuple[list[Found], dict[str, str]]:
    """Return what the models say of conclusions with fields changed, and why others are left out, by name.

    Raises
    ------
    ValueError
        If none is left.
    """
    found, left = [], {}
    for one in conclusions_of(case):
        try:
            found.append(find(one.changed(changes)))
        except ValueError as error:
            left[one.name] = str(error)
    if not found:
        raise ValueError(next(iter(left.values())))
    return found, left


def keep(case: str) -> None:
    """Simulate all conclusions of a paper and keep the margins."""
    store = Path(f"conclusions-{case}.sqlite")
    write_rows(file(case), (row for one in conclusions_of(case) for row in check(one, store=store)))
    store.unlink(missing_ok=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or PAPERS:
        keep(name)
