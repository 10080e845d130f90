"""Intervals from drawn systems, and how well they hold on systems that they were not made from."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cases.evidence.record import Record, spec_of
from cases.tables import markdown_table, text_table, with_table
from qmodels.checks import FloatArray
from qmodels.evidence.features import Features
from qmodels.evidence.intervals import FILE, LEVELS, columns, offset_of, stem_of
from qmodels.systems.spec.whole import whole

ROOT = Path(__file__).parents[2]
GUIDE, README = ROOT / ".github" / "docs" / "reference" / "accuracy.md", ROOT / "README.md"
MAIN = {
    "packet-processor": "packet_latency",
    "noc": "packet_latency",
    "dram": "read_latency",
    "system": "latency",
    "queueing-network": "system_response_time",
}
"""The metric of each kind that the README shows."""
FEWEST = 39
"""Systems with a metric: the least with which an interval of 95 % has ends."""
NO_LOOKUPS = ("packet-processor", "llc_hit_ratio")
"""A metric that says nothing where packets look nothing up."""
COMMON = 12
"""Drawn systems with a sort of fullest resource, or variant, for it to be told from the others."""
RIDGE = 4.0
"""Weight of the squared coefficients, so that features of few systems change little."""
FOLDS = 5
ROUNDED = 1e-9
"""By which values may lie outside those drawn."""
SMALL = 0.003
"""Added to the size of a log ratio before its logarithm: errors below that are all small."""
CLIPPED = 0.02
"""Share of the log ratios at each end that weigh no more in the centre than the next."""
UNSURE = 0.3
"""Half-width, as part of the value, beyond which a simulation says too little of the error."""
TESTED = 0.9
"""Level of the intervals whose coverage is reported."""
LOADS = (0.3, 0.6, 0.8)
BURSTS = (1.5, 10.0)
"""Ends of the strata of load and dispersion for which coverage is reported."""


@dataclass(frozen=True, kw_only=True)
class Residual:
    """Log ratio of simulation to model of one metric of a drawn system."""

    kind: str
    number: int
    metric: str
    features: Features
    value: float
    model: float  # what the model says of a share, NaN of what has a unit


def residuals(records: Iterable[Record]) -> list[Residual]:
    """Return the log ratios of all drawn systems that are stable in the model and in the simulation."""
    found = []
    for record in records:
        model, simulation = record["model"], record.get("simulation", {})
        unstable = simulation.get("stable") is False or not model.get("stable")
        if unstable or "metrics" not in simulation:
            continue
        spec = spec_of(record)
        for name, (best, low, high) in simulation["metrics"].items():
            if (record["kind"], name) == NO_LOOKUPS and not spec.workload.lookups_per_packet:
                continue
            value = model["metrics"].get(name)
            if (
                value is None
                or name in model["exact"]
                or not all(map(math.isfinite, (value, best, low, high)))
            ):
                continue
            extra = offset_of(spec, name)
            if min(value, best) + extra > 0.0 and (high - low) / 2.0 <= UNSURE * (best + extra):
                found.append(
                    Residual(
                        kind=record["kind"],
                        number=record["number"],
                        metric=stem_of(name),
                        features=_features(record),
                        value=math.log((best + extra) / (value + extra)),
                        model=value if extra else math.nan,
                    )
                )
    return found


def _features(record: Record) -> Features:
    load, resource, dispersion, recorded, variant, doubted = record["model"]["features"]
    return Features(
        kind=record["kind"],
        variant=variant,
        load=np.asarray(load),
        resource=resource,
        dispersion=np.asarray(dispersion),
        recorded=recorded,
        doubted=doubted,
    )


def calibrated(found: Sequence[Residual]) -> dict[str, Any]:
    """Return the table of `qmodels.evidence.intervals`: by kind, by metric."""
    kinds: dict[str, list[Residual]] = defaultdict(list)
    for one in found:
        kinds[one.kind].append(one)
    table = {}
    for kind, some in kinds.items():
        systems = {one.number: one.features for one in some}
        resources = Counter(system.resource for system in systems.values())
        variants = Counter(system.variant for system in systems.values())
        # The most common of each is the base, which the others are told from.
        sorts = [
            sort for counts in (resources, variants) for sort, n in counts.most_common()[1:] if n >= COMMON
        ]
        metrics: dict[str, list[Residual]] = defaultdict(list)
        for one in some:
            metrics[one.metric].append(one)
        table[kind] = {
            "load": round(max(float(system.load) for system in systems.values()), 3),
            "dispersion": round(max(float(system.dispersion) for system in systems.values()), 3),
            "sorts": sorts,
            "metrics": {
                metric: _fitted(mine, sorts)
                for metric, mine in sorted(metrics.items())
                if len({one.number for one in mine}) >= FEWEST
            },
        }
    return table


def _fitted(some: Sequence[Residual], sorts: Sequence[str]) -> dict[str, Any]:
    """Return the centre and scale of one metric, and the ends of the scores of systems that no fit saw."""
    at = np.array([columns(one.features, sorts) for one in some])
    ratios = np.array([one.value for one in some])
    fold = np.array([one.number for one in some]) % FOLDS
    scores = np.empty_like(ratios)
    for number in range(FOLDS):
        out = fold == number
        if out.any():
            centre, scale = _fit(at[~out], ratios[~out])
            scores[out] = (ratios[out] - at[out] @ centre) / np.exp(at[out] @ scale)
    centre, scale = _fit(at, ratios)
    return {
        "systems": len({one.number for one in some}),
        "centre": [round(float(one), 5) for one in centre],
        "scale": [round(float(one), 5) for one in scale],
        "ends": _ends(scores),
        "values": _range([one.model for one in some]),
    }


def _range(values: Sequence[float]) -> list[float] | None:
    """Return the range of shares drawn; None of what has a unit, which sets the scale."""
    if math.isnan(values[0]):
        return None
    return [round(min(values) - ROUNDED, 9), round(max(values) + ROUNDED, 9)]


def _fit(at: FloatArray, ratios: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients of centre and scale by ridge regression."""
    if not len(ratios):
        return np.zeros(at.shape[1]), np.zeros(at.shape[1])
    weight = RIDGE * np.eye(at.shape[1])
    weight[0, 0] = 1e-6

    def ridge(values: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(at.T @ at + weight, at.T @ values), dtype=float)

    centre = ridge(np.clip(ratios, *np.quantile(ratios, [CLIPPED, 1.0 - CLIPPED])))
    return centre, ridge(np.log(np.abs(ratios - at @ centre) + SMALL))


def _ends(scores: FloatArray) -> list[list[float]]:
    """Return the conformal ends of each level: order statistics of n + 1."""
    scores, n = np.sort(scores), scores.size
    ends = []
    for level in LEVELS:
        low = math.floor((n + 1) * (1.0 - level) / 2.0) - 1
        high = math.ceil((n + 1) * (1.0 + level) / 2.0) - 1
        ends.append([round(float(scores[max(low, 0)]), 5), round(float(scores[min(high, n - 1)]), 5)])
    return ends


def coverage(table: dict[str, Any], found: Iterable[Residual]) -> list[list[str]]:
    """Return a row of coverage for each kind and metric, in all and by load, bursts, doubts and resource."""
    groups: dict[tuple[str, ...], list[tuple[bool, float, float]]] = defaultdict(list)
    for one in found:
        kind = table.get(one.kind, {"metrics": {}})
        known = kind["metrics"].get(one.metric)
        if known is None:
            continue
        at = columns(one.features, kind["sorts"])
        centre, scale = float(at @ known["centre"]), math.exp(at @ known["scale"])
        low, high = (centre + end * scale for end in known["ends"][LEVELS.index(TESTED)])
        seen = (low <= one.value <= high, (high - low) / 2.0, abs(one.value))
        load = float(one.features.load)
        strata = (
            "all",
            f"load to {next((end for end in LOADS if load <= end), 0.97):g}",
            "recorded" if one.features.recorded else _bursts(float(one.features.dispersion)),
            "doubts" if one.features.doubted else "no doubts",
            one.features.resource,
            one.features.variant,
        )
        for stratum in strata:
            groups[one.kind, one.metric, stratum].append(seen)
    return [
        [
            *key, str(len(seen)), f"{np.mean([one[0] for one in seen]):.0%}",
            f"{np.median([one[1] for one in seen]):.1%}", f"{np.median([one[2] for one in seen]):.1%}",
        ]
        for key, seen in sorted(groups.items())
        if len(seen) >= COMMON
    ]  # fmt: skip


def _bursts(dispersion: float) -> str:
    end = next((end for end in BURSTS if dispersion <= end), None)
    return f"dispersion to {end:g}" if end else f"dispersion above {BURSTS[-1]:g}"


def report(records: list[Record], tested: list[Record] | None = None) -> str:
    """Write the table of intervals from all records; return how intervals from one half cover the other.

    Where there are ``tested``, records of another seed, those of all cover these instead. The tables of the
    guide and of the README are brought up to date.
    """
    found = residuals(records)
    halves = [[one for one in found if one.number // FOLDS % 2 == half] for half in (0, 1)]
    rows = coverage(calibrated(halves[0]), halves[1])
    table = calibrated(found)
    if tested is not None:
        rows = coverage(table, residuals(tested))
    with whole(FILE) as part:
        lines = (f"{json.dumps(kind)}: {json.dumps(one)}" for kind, one in sorted(table.items()))
        part.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    heads = ["kind", "metric", "values", "covered", "half-width", "error"]
    whole_table = [[kind, metric, *cells] for kind, metric, stratum, *cells in rows if stratum == "all"]
    main_rows = [row for row in whole_table if MAIN.get(row[0]) == row[1]]
    for path, mine in ((GUIDE, whole_table), (README, main_rows)):
        shown = markdown_table(heads, [[kind, f"`{metric}`", *cells] for kind, metric, *cells in mine])
        path.write_text(with_table(path.read_text(encoding="utf-8"), shown), encoding="utf-8")
    return text_table([*heads[:2], "stratum", *heads[2:]], rows)
