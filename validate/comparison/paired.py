"""Two systems under common random numbers: each difference with its interval, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.spec.conditions import plain, quantity
from qmodels.systems.spec.kind import kind_of, metric_of
from qmodels.systems.spec.metrics import full_name, is_relative
from validate.estimates.intervals import PairedDifference, paired_difference, worst

PAIRS = 8
"""Pairs of runs unless a number is given."""

OF_A_PAIR = 2
"""Replications of either system in a pair."""


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """One metric of two systems."""

    metric: str
    unit: str
    first: float  # means of all runs; infinite where a run of it was overloaded
    second: float
    # Second minus first with its interval, in the unit; None where one of the two is infinite.
    difference: PairedDifference | None
    better: str  # "first" or "second"; "alike" where the interval has 0; empty where more is neither

    @property
    def share(self) -> tuple[float, float, float] | None:
        """Low, best and high of the difference as a share of the first; None of a share of one, or of 0."""
        if self.difference is None or not self.first or not is_relative(self.metric):
            return None
        one = self.difference.difference
        low, high = sorted((one.low / self.first, one.high / self.first))
        return low, one.best / self.first, high


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PairComparison:
    """Two systems simulated under common random numbers; shown as a small table with its verdict.

    Made by `validate.compare` of two systems.

    Examples
    --------
    >>> from qmodels import Noc
    >>> from validate import PairComparison, compare
    >>> pair = compare(Noc(injection_rate=0.02), Noc(injection_rate=0.02, link_width=32), packets=500)
    >>> isinstance(pair, PairComparison), pair["packet_latency"].better
    (True, 'second')
    """

    specs: tuple[Any, Any]
    rows: dict[str, PairRow]
    pairs: int
    confidence: float
    stable: tuple[bool | None, bool | None]
    bottlenecks: tuple[str, str]

    def __getitem__(self, name: str) -> PairRow:
        return self.rows[full_name(name, self.rows)]

    @property
    def verdict(self) -> str:
        """Which of the two, B the second, is better in what, in words."""
        said = []
        for better, words in (("second", "B is better in"), ("first", "A is better in")):
            names = [name.replace("_", " ") for name, one in self.rows.items() if one.better == better]
            said += [f"{words} {', '.join(names)}"] if names else []
        alike = [name.replace("_", " ") for name, one in self.rows.items() if one.better == "alike"]
        said += [f"not told apart: {', '.join(alike)}"] if alike else []
        over = [f"{one} is overloaded" for one, ok in zip("AB", self.stable, strict=True) if ok is False]
        return "; ".join([*over, *said]) + "."

    def __str__(self) -> str:
        rows = [["", "A", "B", "B - A", f"{100 * self.confidence:.0f} % interval"]]
        rows += [[name.replace("_", " "), *self._cells(one)] for name, one in self.rows.items()]
        rows += [["bottleneck", *self.bottlenecks, "", ""]] if any(self.bottlenecks) else []
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
        head = f"{self.pairs} pairs of runs under common random numbers"
        verdict = wrap(f"Verdict: {self.verdict}", 80, subsequent_indent="  ")
        return "\n".join([head, *(line.rstrip() for line in lines), *verdict])

    __repr__ = __str__

    def _cells(self, one: PairRow) -> list[str]:
        both = [quantity(spec, one.metric, value)
                for spec, value in zip(self.specs, (one.first, one.second), strict=True)]  # fmt: skip
        if one.difference is None:
            return [*both, "", ""]
        if one.share is not None:
            low, best, high = (100 * value for value in one.share)
            return [*both, f"{best:+.3g} %", "exact" if low == high else f"{low:+.3g} to {high:+.3g} %"]
        found = one.difference.difference
        span = "exact" if found.low == found.high else f"{plain(found.low)} to {plain(found.high)}"
        return [*both, plain(found.best), span]

    def to_dict(self) -> dict[str, Any]:
        """Return every number, a metric an entry."""
        return {
            "pairs": self.pairs,
            "confidence": self.confidence,
            "stable": self.stable,
            "bottlenecks": self.bottlenecks,
            "metrics": {
                name: {
                    "unit": one.unit,
                    "first": one.first,
                    "second": one.second,
                    "difference": None if one.difference is None else one.difference.difference,
                    "better": one.better,
                }
                for name, one in self.rows.items()
            },
            "verdict": self.verdict,
        }


def compare_pair(
    first: Any,
    second: Any,
    *,
    metrics: Iterable[str] | None = None,
    pairs: int = PAIRS,
    seed: int = 0,
    confidence: float = 0.9,
    **options: Any,
) -> PairComparison:
    """Simulate two systems of one kind with the same random numbers, and lay one beside the other.

    Parameters
    ----------
    first, second : spec
        The systems, called A and B.
    metrics : iterable of str, optional
        Which metrics; otherwise all that the simulation estimates.
    pairs : int
        Pairs of runs, each with random numbers of its own.
    seed : int
        Everything random follows from it.
    confidence : float
        Coverage of the intervals of the differences.
    **options
        Of `validate.simulate`.

    Examples
    --------
    >>> from qmodels.systems.noc.spec import Noc
    >>> pair = compare_pair(Noc(injection_rate=0.02), Noc(injection_rate=0.02, link_width=32), pairs=3,
    ...                     packets=500)
    >>> pair["latency"].better, pair["latency"].share[1] < -0.1
    ('second', True)
    """
    from validate.campaigns.simulate import simulate

    kinds = kind_of(first).name, kind_of(second).name
    if kinds[0] != kinds[1]:
        raise ValueError(f"compared systems must be of one kind, got a {kinds[0]} and a {kinds[1]}")
    checks.count("pairs", pairs, minimum=2)
    run = partial(simulate, [first, second], replications=OF_A_PAIR, **options)
    runs = [run(seed=seed)]
    common = [name for name in runs[0][0].metrics if name in runs[0][1].metrics]
    wanted = common if metrics is None else [full_name(name, common) for name in metrics]
    for name in wanted:
        if name not in common:
            raise ValueError(f"metrics must be of both systems, got {name!r}{checks.nearest(name, common)}")
    runs += [run(seed=seed + k) for k in range(1, pairs)]
    both = [[one[side] for one in runs] for side in (0, 1)]
    return PairComparison(
        specs=(first, second),
        rows={name: _row(first, name, both, confidence) for name in wanted},
        pairs=pairs,
        confidence=confidence,
        stable=(worst(one.stable for one in both[0]), worst(one.stable for one in both[1])),
        bottlenecks=(str(both[0][0].bottleneck or ""), str(both[1][0].bottleneck or "")),
    )


def _row(spec: Any, name: str, both: list[list[Any]], confidence: float) -> PairRow:
    first, second = (np.array([one.metrics[name].best for one in runs], dtype=float) for runs in both)
    about, difference = metric_of(spec, name), None
    better = "" if not about.better else "alike"
    means = float(first.mean()), float(second.mean())
    if all(map(math.isfinite, means)):
        difference = paired_difference(first, second, confidence=confidence)
    if about.better and (means[0] != means[1] if difference is None else difference.decided):
        better = "second" if (means[1] > means[0]) == (about.better == "up") else "first"
    return PairRow(
        metric=name, unit=about.unit, first=means[0], second=means[1], difference=difference, better=better
    )
