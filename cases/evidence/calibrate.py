"""Intervals from drawn systems, how well they hold on others, and the page on accuracy."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.evidence.constants import cells
from cases.evidence.draw import ABOUT
from cases.evidence.record import LONG, Record, simulated, solved, spec_of
from cases.tables import BLUE, ORANGE, markdown_table, new_figure, save, text_table, with_table
from qmodels.checks import FloatArray
from qmodels.evidence.constants import COMMAND
from qmodels.evidence.features import Features
from qmodels.evidence.intervals import FILE, LEVELS, columns, ends_of, offset_of, outside, stem_of
from qmodels.systems.spec.fields import get_field, replace_paths
from qmodels.systems.spec.text.toml import to_toml
from qmodels.systems.spec.whole import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure


DECISIONS: dict[str, dict[str, Any]] = {kind: one.get("decisions", {}) for kind, one in ABOUT.items()}
NOTICED = 0.01  # relative difference from which on a choice matters
FEWEST_PAIRS = 5  # pairs that the simulation separates, for a metric to be told of along a decision


def _draw(record: Record) -> tuple[str, int, int]:
    """Return kind, seed and number of the draw of a record."""
    return record["kind"], record.get("seed", 1), record["number"]


def neighbours(records: Iterable[Record], count: int) -> Iterator[Record]:
    """Yield up to so many neighbours of each decision, without answers; of drawn systems that are stable."""
    left = Counter({(kind, path): count for kind, paths in DECISIONS.items() for path in paths})
    for record in records:
        paths = DECISIONS.get(record["kind"], {})
        open_ = [path for path in paths if left[record["kind"], path] > 0]
        if not open_ or not record.get("simulation", {}).get("stable") or "recorded" in record:
            continue
        spec, path = spec_of(record), open_[record["number"] % len(open_)]
        try:
            value, change = get_field(spec, path), paths[path]
            other = change[change[0] == value] if isinstance(change, list) else round(change * value)
            changed = to_toml(replace_paths(spec, {path: other}), kind=True)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        left[record["kind"], path] -= 1
        own = {name: record[name] for name in ("kind", "seed", "number") if name in record}
        yield own | {"of": path, "toml": changed}


def answered(record: Record) -> Record | None:
    """Return a neighbour with both answers; None where it has one of them not."""
    found = record | {"model": solved(record)}
    if found["model"].get("stable") and found["model"]["seconds"] < LONG.solve:
        found["simulation"] = simulated(record, LONG)
    return found if "metrics" in found.get("simulation", {}) else None


def drawn_neighbours(records: list[Record], count: int, executor: Executor) -> list[Record]:
    """Return neighbours with their answers, up to so many of each decision."""
    some = executor.map(answered, islice(neighbours(records, count), 10**6))
    return [record for record in some if record is not None]


def directions(records: Iterable[Record], others: Iterable[Record]) -> dict[str, Any]:
    """Return by kind, decision and metric how many pairs are ordered alike, of those that are separated.

    A simulation separates two whose intervals do not meet, and whose values differ by `NOTICED`. A choice to
    which the model is blind is not ordered alike.
    """
    base = {_draw(record): record for record in records}
    alike: Counter[tuple[str, str, str]] = Counter()
    separated: Counter[tuple[str, str, str]] = Counter()
    for other in others:
        one = base.get(_draw(other))
        if one is None or "metrics" not in one["model"] or "metrics" not in other["model"]:
            continue
        for name, (best, low, high) in other["simulation"]["metrics"].items():
            first = one.get("simulation", {}).get("metrics", {}).get(name)
            models = one["model"]["metrics"].get(name), other["model"]["metrics"].get(name)
            if first is None or None in models or not (low > first[2] or high < first[1]):
                continue
            if abs(best - first[0]) < NOTICED * max(abs(best), abs(first[0])):
                continue
            key = other["kind"], other["of"], name
            separated[key] += 1
            alike[key] += (models[1] - models[0]) * (best - first[0]) > 0
    found: dict[str, Any] = {}
    for (kind, path, name), count in sorted(separated.items()):
        if count >= FEWEST_PAIRS and "[" not in name:
            found.setdefault(kind, {}).setdefault(path, {})[name] = [alike[kind, path, name], count]
    return found


ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
HEADS = ["kind", "metric", "values", "covered", "half-width", "error"]
MAIN: dict[str, str] = {kind: one["main"] for kind, one in ABOUT.items()}  # metric that the pictures show
FIRST = dict(list(MAIN.items())[:5])  # those of the README
FEW = 5  # systems with a resource or a word, for it to count as drawn
FEWEST = 30  # systems with a metric, or with a resource, for them to have quantiles of their own
COMMON = 12  # drawn systems with a sort of fullest resource, or variant, for it to be told from the others
RIDGE = 4.0  # weight of the squared coefficients, so that features of few systems change little
FRESH = 30
"""Simulated systems of a kind, of another seed, on which its intervals are tested, not from half to half."""
FOLDS = 5
SEEDS = 10**6  # numbers of draws with one seed are below it
ROUNDED = 1e-9  # by which values may lie outside those drawn
SMALL = 0.003  # added to the size of a log ratio before its logarithm: errors below that are all small
CLIPPED = 0.02  # share of the log ratios at each end that weigh no more in the centre than the next
UNSURE = 0.3  # half-width, as part of the value, beyond which a simulation says too little of the error
TESTED = 0.9  # level of the intervals whose coverage is reported
LOADS = (0.3, 0.6, 0.8)
BURSTS = (1.5, 10.0)  # ends of the strata of load and dispersion for which coverage is reported


@dataclass(frozen=True, kw_only=True)
class Residual:
    """Log ratio of simulation to model of one metric of a drawn system."""

    kind: str
    number: int  # of the draw, plus `SEEDS` for each seed
    metric: str
    features: Features
    value: float
    model: float  # what the model says of a share, NaN of what has a unit


def residuals(records: Iterable[Record]) -> list[Residual]:
    """Return the log ratios of all drawn systems that are stable in the model and in the simulation."""
    found = []
    for record in records:
        model, simulation = record["model"], record.get("simulation", {})
        if simulation.get("stable") is False or not model.get("stable") or "metrics" not in simulation:
            continue
        values = dict(model["metrics"])
        if values.get("lookup_latency") == 0.0:  # packets look nothing up
            values.pop("llc_hit_ratio", None)
        about: dict[str, Any] = {
            "kind": record["kind"],
            "number": record["number"] + SEEDS * record.get("seed", 1),
        }
        for name, (best, low, high) in simulation["metrics"].items():
            value, extra = values.get(name, math.nan), offset_of(None, name)
            if name in model["exact"] or not all(map(math.isfinite, (value, best, low, high))):
                continue
            if min(value, best) + extra > 0.0 and (high - low) / 2.0 <= UNSURE * (best + extra):
                ratio, model_value = math.log((best + extra) / (value + extra)), value if extra else math.nan
                about |= {"metric": stem_of(name), "value": ratio, "model": model_value}
                found.append(Residual(**about, features=_features(record)))
    return found


def simulator(records: Iterable[Record]) -> tuple[int, int]:
    """Return the number of simulated intervals that hold the value of an exact model, and of all."""
    held = count = 0
    for record in records:
        model, simulation = record["model"], record.get("simulation", {})
        for name in model.get("exact", ()):
            best, low, high = simulation.get("metrics", {}).get(name, (math.nan,) * 3)
            if model.get("stable") and simulation.get("stable") and low < best < high:
                held, count = held + (low <= model["metrics"][name] <= high), count + 1
    return held, count


def _features(record: Record) -> Features:
    found = record["model"]["features"]
    if isinstance(found, list):
        raise ValueError("features of the records are of an older form: run solve on the file")
    return Features(**{**found, "kind": record["kind"], "words": tuple(found["words"])})


def calibrated(found: Sequence[Residual]) -> dict[str, Any]:
    """Return the table of `qmodels.evidence.intervals`: by kind, by metric."""
    kinds: dict[str, list[Residual]] = defaultdict(list)
    for one in found:
        kinds[one.kind].append(one)
    table = {}
    for kind, some in kinds.items():
        systems = {one.number: one.features for one in some}.values()
        resources = Counter(system.resource for system in systems)
        words = Counter(word for system in systems for word in system.words)
        # The most common of each is the base, which the others are told from; two that always go
        # together are told once.
        sorts = [
            sort
            for counts in (resources, words)
            for sort, n in counts.most_common()[1:]
            if COMMON <= n <= len(systems) - COMMON
        ]
        metrics: dict[str, list[Residual]] = defaultdict(list)
        for one in some:
            metrics[one.metric].append(one)
        table[kind] = {
            "drawn": {
                name: _range([float(system.numbers[name]) for system in systems])
                for name in next(iter(systems)).numbers
            },
            "resources": sorted(sort for sort, n in resources.items() if n >= FEW),
            "words": sorted(word for word, n in words.items() if n >= FEW),
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
        "ends": {name: _ends(scores[here]) for name, here in _groups(some).items()},
        "values": None if math.isnan(some[0].model) else _range([one.model for one in some]),
    }


def _groups(some: Sequence[Residual]) -> dict[str, Any]:
    """Return who has quantiles of their own: all, and those of a resource, or recorded, if they are many."""
    recorded = np.array([one.features.recorded for one in some])
    resource = np.array([one.features.resource for one in some], dtype=object)
    found = {"": np.full(len(some), True), "recorded": recorded}
    found |= {sort: (resource == sort) & ~recorded for sort in sorted(set(resource))}
    numbers = np.array([one.number for one in some])
    return {name: at for name, at in found.items() if not name or len(set(numbers[at])) >= FEWEST}


def _range(values: Sequence[float]) -> list[float]:
    """Return the range of what was drawn."""
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


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Whether an interval held what was simulated, half its width, and the size of the model's error."""

    kind: str
    metric: str
    strata: tuple[str, ...]  # "all", and by load, bursts, doubts, resource and variant
    load: float
    value: float  # log ratio
    ends: tuple[float, float]

    @property
    def held(self) -> bool:
        """Whether the interval holds the value."""
        return self.ends[0] <= self.value <= self.ends[1]


def seen(table: dict[str, Any], found: Iterable[Residual]) -> list[Seen]:
    """Score the intervals of a table on systems like those that were drawn for it."""
    every = []
    for one in found:
        kind = table.get(one.kind, {"metrics": {}})
        known = kind["metrics"].get(one.metric)
        if known is None or outside(one.features, kind):
            continue
        at = columns(one.features, kind["sorts"])
        centre, scale = float(at @ known["centre"]), math.exp(at @ known["scale"])
        low, high = (centre + float(end) * scale for end in ends_of(known, one.features, TESTED))
        load, dispersion = (float(one.features.numbers[name]) for name in ("load", "dispersion"))
        strata = (
            "all",
            f"load to {next((end for end in LOADS if load <= end), 0.97):g}",
            "recorded" if one.features.recorded else _bursts(dispersion),
            "doubts" if one.features.doubted else "no doubts",
            one.features.resource,
            *one.features.words[:1],
        )
        about: dict[str, Any] = {
            "kind": one.kind,
            "metric": one.metric,
            "value": one.value,
            "ends": (low, high),
        }
        every.append(Seen(**about, load=load, strata=strata))
    return every


def coverage(every: Iterable[Seen]) -> list[list[str]]:
    """Return a row of coverage for each kind and metric, in all and by load, bursts, doubts and resource."""
    groups: dict[tuple[str, ...], list[Seen]] = defaultdict(list)
    for one in every:
        for stratum in dict.fromkeys(one.strata):
            groups[one.kind, one.metric, stratum].append(one)
    return [
        [
            *key, str(len(some)), f"{np.mean([one.held for one in some]):.0%}",
            f"{np.median([(one.ends[1] - one.ends[0]) / 2.0 for one in some]):.1%}",
            f"{np.median([abs(one.value) for one in some]):.1%}",
        ]
        for key, some in sorted(groups.items())
        if len(some) >= COMMON
    ]  # fmt: skip


def _bursts(dispersion: float) -> str:
    end = next((end for end in BURSTS if dispersion <= end), None)
    return f"dispersion to {end:g}" if end else f"dispersion above {BURSTS[-1]:g}"


def scored(records: list[Record], tested: list[Record]) -> tuple[list[Seen], list[str]]:
    """Score intervals on records of another seed, or from half to half; return the kinds of the former."""
    counts = Counter(record["kind"] for record in tested if "simulation" in record)
    fresh = sorted(kind for kind, count in counts.items() if count >= FRESH)
    drawn = residuals(records)
    rest = [one for one in drawn if one.kind not in fresh]
    halves = [[one for one in rest if one.number // FOLDS % 2 == half] for half in (0, 1)]
    anew = [one for one in residuals(tested) if one.kind in fresh]
    return [*seen(calibrated(drawn), anew), *seen(calibrated(halves[0]), halves[1])], fresh


DOCS = ROOT / ".github" / "docs"
PAGE, PICTURE = DOCS / "reference" / "accuracy.md", DOCS / "_static" / "accuracy.png"
COLUMNS = 3
MOST = 0.5  # log ratio at the ends of the pictures
STRATA = ("load", "dispersion", "recorded", "doubts", "no doubts")
"""What the strata begin with whose coverage the page shows."""


def report(records: list[Record], tested: list[Record], others: list[Record]) -> str:
    """Write the table of intervals and directions from all records, README and page; say how well they hold.

    ``tested``: records of another seed that the intervals are to cover, of kinds with `FRESH` or more, else
    those from one half of the records the other half; ``others``: neighbours of records.
    """
    table = calibrated(residuals(records))
    for kind, along in directions(records, others).items():
        table.setdefault(kind, {"drawn": {}, "resources": [], "words": [], "sorts": [], "metrics": {}})
        table[kind]["directions"] = along
    with whole(FILE) as part:
        lines = (f"{json.dumps(kind)}: {json.dumps(one)}" for kind, one in sorted(table.items()))
        part.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
    every, fresh = scored(records, tested)
    rows, (held, count) = coverage(every), simulator([*records, *tested])
    whole_kinds = [[kind, f"`{name}`", *cells] for kind, name, part, *cells in rows if part == "all"]
    first = [row for row in whole_kinds if FIRST.get(row[0]) == row[1].strip("`")]
    shown = with_table(README.read_text(encoding="utf-8"), markdown_table(HEADS, first))
    README.write_text(shown, encoding="utf-8")
    about = "Made from one half of the systems, on the other half"
    about += f"; of {', '.join(fresh)} on systems of a seed that no interval was made from." if fresh else "."
    main = [row for row in rows if MAIN.get(row[0]) == row[1] and row[2].startswith(STRATA)]
    along = [
        [kind, f"`{path}`", ", ".join(f"`{name}` {alike} of {n}" for name, (alike, n) in found.items())]
        for kind, one in sorted(table.items())
        for path, found in one.get("directions", {}).items()
    ]
    known = [
        [f"`{name}`", value, f"{best} ({span})", *more] for name, value, best, span, _, *more, _ in cells()
    ]
    tables = {
        "coverage": (HEADS, whole_kinds),
        "strata": (["kind", "stratum", *HEADS[2:]], [[kind, *cells] for kind, _, *cells in main]),
        "directions": (["kind", "decision", "alike"], along),
        "constants": (["constant", "value", "best, 95 %", "held out", "worth"], known),
    }
    made = {name: markdown_table(*one) for name, one in tables.items()}
    text = Path(__file__).with_name("accuracy.md").read_text(encoding="utf-8")
    with whole(PAGE) as part:
        words = text.format(about=about, held=f"{held:,}", count=f"{count:,}", command=COMMAND, **made)
        part.write_text(words, encoding="utf-8")
    save(picture(every), PICTURE)
    strata: dict[str, list[bool]] = defaultdict(list)
    for one in every:
        for stratum in one.strata[:4]:
            strata[stratum].append(one.held)
    said = [f"{name}: {np.mean(some):.1%} of {len(some)}" for name, some in strata.items()]
    said.append(f"intervals of simulations of 95 % hold exact values: {held} of {count}")
    return "\n".join([text_table([*HEADS[:2], "stratum", *HEADS[2:]], rows), "", *said])


def picture(every: Sequence[Seen]) -> Figure:
    """Return the log ratios of the main metric of each kind over the load, a panel each."""
    kinds: dict[str, list[Seen]] = defaultdict(list)
    for one in every:
        if MAIN.get(one.kind) == one.metric:
            kinds[one.kind].append(one)
    rows = -(-len(kinds) // COLUMNS)
    figure, axes = new_figure(9.0, 0.4 + 2.0 * rows, rows, COLUMNS)
    for axis in axes.flat[len(kinds) :]:
        axis.set_visible(False)
    for axis, kind in zip(axes.flat, sorted(kinds), strict=False):
        for held, style in ((True, {"mfc": "none", "mec": BLUE}), (False, {"marker": "x", "mec": ORANGE})):
            points = [(min(one.load, 1.0), one.value) for one in kinds[kind] if one.held is held]
            x, y = np.reshape(points, (-1, 2)).T
            axis.plot(x, np.clip(y, -MOST, MOST), **{"marker": "o", "ls": "", "ms": 3, **style})
        ends = [-MOST, 0.0, MOST]
        axis.set(xlim=(0, 1), ylim=(-1.05 * MOST, 1.05 * MOST))
        axis.set_yticks(ends, [f"{np.expm1(ratio):+.0%}" for ratio in ends])
        axis.set_title(f"{kind}: {MAIN[kind].replace('_', ' ')}", fontsize=8, loc="left")
    return figure
