"""Differences between two records of one spec, and a table of them over many."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cases.evidence.record import Record
from cases.tables import text_table

TOLERANCE = 1e-9  # relative difference up to which two values of the model are the same
BANDS = (0.3, 0.6, 0.8, 0.95)
"""Upper ends of the regions of load; what is above the last is overload, or near it."""
SHOWN = 12  # differences that are listed one by one


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One value that is another now."""

    kind: str
    number: int
    region: str  # load of the fullest resource, by the model of before
    what: str  # "model" or "simulation", and the name of the value
    before: Any
    now: Any

    @property
    def size(self) -> float:
        """Relative difference of two numbers; infinite where one of the two is not a finite number."""
        if not (_finite(self.before) and _finite(self.now)):
            return math.inf
        return abs(self.now - self.before) / max(abs(self.before), abs(self.now), 1e-300)


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def region_of(record: Record) -> str:
    """Return the region of load of a record."""
    load = record["model"].get("load")
    if load is None:
        return "refused"
    upper = next((band for band in BANDS if load <= band), None)
    return f"to {upper:.0%}" if upper else "above"


def differences(before: Record, now: Record) -> list[Difference]:
    """Return the differences: values of the model beyond `TOLERANCE`, estimates beyond their intervals."""
    place = {"kind": before["kind"], "number": before["number"], "region": region_of(before)}
    found = [
        Difference(**place, what=f"model {name}", before=old, now=new)
        for name, old, new in _pairs(before["model"], now["model"])
        if not _same(old, new)
    ]
    if "simulation" in before:
        found += [
            Difference(**place, what=f"simulation {name}", before=_best(old), now=_best(new))
            for name, old, new in _pairs(before["simulation"], now["simulation"])
            if not _compatible(old, new)
        ]
    return found


def _pairs(before: Record, now: Record) -> Iterable[tuple[str, Any, Any]]:
    """Yield the name and both values of everything that one of two outcomes has."""
    for name in dict.fromkeys([*before, *now]):
        if name == "metrics":
            old, new = before.get(name, {}), now.get(name, {})
            yield from ((metric, old.get(metric), new.get(metric)) for metric in dict.fromkeys([*old, *new]))
        elif name not in ("seconds", "load", "features", "exact"):
            yield name, before.get(name), now.get(name)


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=1e-300) or (
            math.isnan(old) and math.isnan(new)
        )
    return bool(old == new)


def _best(estimate: Any) -> Any:
    return estimate[0] if isinstance(estimate, list) else estimate


def _compatible(old: Any, new: Any) -> bool:
    """Return whether two estimates are equal, or their intervals meet."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return bool(old == new)
    if all(_same(a, b) for a, b in zip(old, new, strict=True)):
        return True
    return bool(old[1] <= new[2] and new[1] <= old[2])


def errors(records: Iterable[Record]) -> dict[str, list[tuple[tuple[str, int, str], float]]]:
    """Return the size of the model's error against the kept simulation by kind: of each spec and metric.

    As the size of the logarithm of simulated to modelled value, of stable specs and times and rates above 0.
    """
    found = defaultdict(list)
    for record in records:
        simulation = record.get("simulation", {})
        if not (simulation.get("stable") and record["model"].get("stable")):
            continue
        for name, (best, *_) in simulation["metrics"].items():
            value = record["model"]["metrics"].get(name)
            if value is not None and best > 0 and value > 0 and math.isfinite(best) and math.isfinite(value):
                found[record["kind"]].append(
                    ((record["kind"], record["number"], name), abs(math.log(best / value)))
                )
    return found


def report(before: list[Record], now: list[Record]) -> tuple[str, int]:
    """Return the differences by kind and region of load in words, and how many specs differ."""
    found = [each for old, new in zip(before, now, strict=True) for each in differences(old, new)]
    totals = Counter((record["kind"], region_of(record)) for record in before)
    groups = defaultdict(list)
    for each in found:
        groups[each.kind, each.region].append(each)
    rows = []
    for (kind, region), total in sorted(totals.items()):
        group = groups.get((kind, region), [])
        if group:
            sizes = [each.size for each in group if math.isfinite(each.size)]
            names = Counter(each.what for each in group)
            rows.append(
                [
                    kind, region, total, len({each.number for each in group}),
                    f"{np.median(sizes):.2g}" if sizes else "-", f"{max(sizes):.2g}" if sizes else "-",
                    ", ".join(f"{name} ({count})" for name, count in names.most_common(3)),
                ]
            )  # fmt: skip
    changed = len({(each.kind, each.number) for each in found})
    lines = [f"{changed} of {len(before)} specs differ"]
    if rows:
        heads = ["kind", "load", "specs", "differ", "median", "largest", "what (specs)"]
        lines += ["", text_table(heads, [list(map(str, row)) for row in rows])]
        numbers = [each for each in found if isinstance(each.before, float)]
        worst = sorted(numbers, key=lambda each: -each.size)[:SHOWN]
        heads = ["kind", "draw", "what", "before", "now"]
        shown = [[e.kind, str(e.number), e.what, _short(e.before), _short(e.now)] for e in worst]
        lines += ["", "The largest:", text_table(heads, shown)]
    return "\n".join([*lines, *_better(before, now)]), changed


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]


def _better(before: list[Record], now: list[Record]) -> list[str]:
    """Return a table of the model's error against the kept simulations, before and now, where it changed."""
    kept = [
        new | {"simulation": old["simulation"]}
        for old, new in zip(before, now, strict=True)
        if "simulation" in old
    ]
    then, today, rows = errors(before), errors(kept), []
    for kind in sorted(then):
        old, new = dict(then[kind]), dict(today.get(kind, []))
        both = [(old[key], new[key]) for key in old if key in new]
        better = sum(b < a - TOLERANCE for a, b in both)
        worse = sum(b > a + TOLERANCE for a, b in both)
        if better or worse:
            a, b = np.array(both).T
            rows.append(
                [kind, str(len(both)), f"{np.mean(a):.1%}", f"{np.mean(b):.1%}", str(better), str(worse)]
            )
    if not rows:
        return []
    heads = ["kind", "values", "error before", "now", "better", "worse"]
    return ["", "Against the simulations of before:", text_table(heads, rows)]
