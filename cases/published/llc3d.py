"""Korikawa et al. (IEEE Access 2020): a packet processor with LLC slices and stacked DRAM."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from cases.published.numbers import Cell, Design, name_of, only, published, select
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.spec.fields import replace_fields

NAMES = {"slices": "LLC slices", "none": "no LLC", "shared": "shared LLC"}
"""The paper's Proposed, Without LLC and With LLC."""
FIGURES = ("13-15", "16-18", "19-21", "22-25")
READING, BASE, FEWER = "reading", "as in the case", "16 slices"
EXPONENTS = (0.64, 0.83, 0.95)
"""The three exponents of figs. 16 to 18 stand in the pictures alone: 0.83 is the paper's default, the others
are our choice."""
METRICS = ("blocking_probability", "waiting_latency", "data_rate")
HIT_RATIOS = ("l1_hit_ratio", "l2_hit_ratio", "llc_hit_ratio")
CAPACITIES = "L1 64 KiB, L2 512 KiB, LLC 28 MiB, 143 million entries"
REALISTIC_SCALE = 7168
"""28 MiB of LLC over the paper's 4096 bytes."""


def with_fields(**changes: Any) -> LlcProcessor:
    """Return the published design with fields changed."""
    return replace_fields(LlcProcessor(), changes)


def places() -> Iterator[tuple[dict[str, Any], LlcProcessor]]:
    """Yield every point of figs. 13 to 25 with its design: which figures, curve, what x is, and x."""
    axes, base = published("llc3d")["axes"], LlcProcessor()
    kinds = {name: replace(base, architecture=kind) for kind, name in NAMES.items()}
    cores = {f"{n} slices": replace(base, slices=n) for n in axes["slices_by_cores"]}
    cores |= {NAMES[kind]: kinds[NAMES[kind]] for kind in ("none", "shared")}
    by_exponent = {f"exponent {one}": replace_fields(base, {"exponent": one}) for one in EXPONENTS}
    for figures, curves, variable, name in (
        ("13-15", kinds, "entries per line", "line_bytes"),
        ("16-18", by_exponent, "slices", "slices"),
        ("19-21", cores, "cores", "cores"),
        ("22-25", kinds, "entries", "entries"),
    ):
        for curve, design in curves.items():
            for x in axes[variable.replace(" ", "_")]:
                place = {"figures": figures, "curve": curve, "variable": variable, "x": x}
                yield (
                    place,
                    replace_fields(design, {name: x * base.entry_bytes if name == "line_bytes" else x}),
                )


def readings() -> dict[str, dict[str, LlcProcessor]]:
    """Return the readings that the text leaves open, each with the designs by the curves they are points of.

    They are the three architectures, where the reading changes them, and the slices when 16 are assigned.
    """
    found = {}
    for name, changes in published("llc3d")["readings"].items():
        spec, alone = with_fields(**changes), {"slice_bytes", "whole_lines"} & set(changes)
        kinds = ("slices",) if alone else NAMES
        found[name] = {NAMES[kind]: replace(spec, architecture=kind) for kind in kinds}
        found[name][FEWER] = replace(spec, slices=16)
    return found


def realistic(architecture: str) -> LlcProcessor:
    """Return a design with the capacities of sec. V-B and entries in proportion to the LLC."""
    sizes = {"l1_bytes": 64 * 1024, "l2_bytes": 512 * 1024, "slice_bytes": 1024**2, "llc_bytes": 28 * 1024**2}
    entries = LlcProcessor().popularity.entries * REALISTIC_SCALE
    return with_fields(architecture=architecture, entries=entries, **sizes)


def cells_of(
    place: Mapping[str, Any], spec: LlcProcessor, result: Any, metrics: Sequence[str], said: bool
) -> list[Cell]:
    """Return the cells of a point, with the text's numbers if it has them.

    The published design is a point of several figures: its numbers are counted once, in the first.
    """
    from qmodels import solve

    answer, known = solve(spec), _converted(spec) if said else {}
    groups = dict(zip(METRICS, ("blocking", "text", "text"), strict=True))
    return [
        Cell(
            place={**place, "metric": metric},
            group=groups[metric] if metric in known and place["figures"] == FIGURES[0] else "",
            published=known.get(metric),
            model=answer.metrics[metric],
            simulated=result.metrics[metric].best,
            low=result.metrics[metric].low,
            high=result.metrics[metric].high,
        )
        for metric in metrics
    ]


def _converted(spec: LlcProcessor) -> dict[str, float]:
    """Return the numbers of the text for an architecture, and the blocking probability that they imply."""
    converted = published("llc3d")["converted"]
    said = {metric: float(of[spec.architecture]) for metric, of in converted.items()}
    return said | {"blocking_probability": 1 - said["data_rate"] / spec.gbps(spec.arrival_rate)}


def designs() -> Iterable[Design]:
    """Yield the three architectures of the text, their other readings, and realistic capacities."""
    plain = {name: LlcProcessor(architecture=name) for name in NAMES}
    for name, spec in plain.items():
        yield Design(name=name, spec=spec, published=_converted(spec))
    unknown = dict.fromkeys(METRICS)
    for reading, specs in readings().items():
        for curve, spec in specs.items():
            if spec != plain[spec.architecture]:
                yield Design(name=name_of(reading=reading, curve=curve), spec=spec, published=unknown)
    for name in NAMES:
        yield Design(name=f"realistic-{name}", spec=realistic(name), published=unknown)


def compute(
    *,
    store: Path | None = None,
    requests: int = 75_000,
    replications: int = 16,
    realistic_requests: int = 800_000,
    realistic_replications: int = 4,
    seed: int = 0,
) -> dict[str, Any]:
    """Simulate and solve figures 13 to 25, other readings of the text, and realistic capacities.

    ``requests``, ``replications``: of each point of a curve or of a reading; ``realistic_requests``,
    ``realistic_replications``: of each point of realistic capacities; with 0 requests there is none.
    """
    from validate import simulate

    run = {
        "requests": requests,
        "replications": replications,
        "realistic_requests": realistic_requests,
        "realistic_replications": realistic_replications,
        "seed": seed,
    }
    points = [*places()]
    for reading, known in readings().items():
        place = {"figures": reading, "variable": READING, "x": 0}
        points += [({"figures": reading, "curve": curve, **place}, spec) for curve, spec in known.items()]
    specs = list(dict.fromkeys(spec for _, spec in points))
    options: dict[str, Any] = {"seed": seed, "store": store}
    campaign = simulate(specs, requests=requests, replications=replications, **options)
    results = dict(zip(specs, campaign, strict=True))
    cells: list[Cell] = []
    for place, spec in points:
        said = spec == LlcProcessor(architecture=spec.architecture)
        said |= place["variable"] == READING and place["curve"] != FEWER
        metrics = (*METRICS, *HIT_RATIOS) if place["figures"] == FIGURES[-1] else METRICS
        cells += cells_of(place, spec, results[spec], metrics, said)
    seconds = []
    options |= {"requests": realistic_requests, "replications": realistic_replications}
    for name in NAMES if realistic_requests else ():
        started = time.process_time()
        result = simulate(realistic(name), **options)
        # Processor time, 0 if stored.
        seconds.append({"architecture": name, "seconds": time.process_time() - started})
        place = {"figures": CAPACITIES, "curve": NAMES[name], "variable": "capacities", "x": 0}
        cells += cells_of(place, realistic(name), result, (*METRICS, *HIT_RATIOS), False)
    return {"cells": tuple(cells), "tables": {"seconds": tuple(seconds)}, "run": run}


def trend(found: Any, which: str, one: Mapping[str, Any]) -> bool:
    """Return whether curves run as the text says; what intervals do not tell apart counts as equal."""
    curves = {
        (curve, metric): select(found.cells, figures=one["figures"], curve=curve, metric=metric)
        for curve in one["curves"]
        for metric in METRICS
    }
    # Of each pair the first should not be above the second.
    if one["rule"] == "waits less":
        waits = [curves[curve, "waiting_latency"] for curve in one["curves"]]
        least, most = (*one.get("x", (0,)), float("inf"))[:2]
        pairs = [
            (a, b) for two in pairwise(waits) for a, b in zip(*two, strict=True) if least <= a["x"] <= most
        ]
    else:
        pairs = [
            (b, a) if (metric == "data_rate") == (one["rule"] == "worse") else (a, b)
            for (_, metric), cells in curves.items()
            for a, b in pairwise(cells)
        ]
    if which == "model":
        return all(b.model - a.model >= -1e-3 * abs(a.model) for a, b in pairs)
    return all(b.high >= a.low for a, b in pairs)


def apart(found: Any, reading: str) -> bool | None:
    """Return whether 16 slices wait less than no LLC in a reading, where intervals tell."""
    ours, without = (
        only(found.cells, figures=figures, curve=curve, metric="waiting_latency")
        for figures, curve in ((reading, FEWER), (without_llc(reading), NAMES["none"]))
    )
    if ours.low > without.high or ours.high < without.low:
        return bool(ours.simulated < without.simulated)
    return None


def without_llc(reading: str) -> str:
    """Return the reading in which no LLC is to be found: it changes with some alone."""
    return reading if NAMES["none"] in readings()[reading] else BASE


def crossing(found: Any, which: str) -> tuple[float | None, float | None]:
    """Return at how many entries no LLC becomes better, and the miss ratio of the LLC there."""

    def curve(name: str, metric: str) -> list[tuple[float, float]]:
        cells = select(found.cells, figures="22-25", curve=NAMES[name], metric=metric)
        return [(cell["x"], getattr(cell, which)) for cell in cells]

    with_llc, without = (curve(name, "waiting_latency") for name in ("slices", "none"))
    hits = curve("slices", "llc_hit_ratio")
    entries: float | None = None
    misses: float | None = None
    gains = [(x, b - a) for (x, a), (_, b) in zip(with_llc, without, strict=True)]
    both = zip(pairwise(gains), pairwise(hits), strict=True)
    for ((left, gain), (right, loss)), ((_, high), (_, low)) in both:
        if gain > 0 >= loss:
            share = gain / (gain - loss)
            entries, misses = left + share * (right - left), 1 - high - share * (low - high)
    return entries, misses


def skip_rule() -> float:
    """Return the miss ratio of the LLC beyond which to skip it, by the model."""
    from qmodels.llc.solve_processor import llc_skip_threshold

    return float(llc_skip_threshold(LlcProcessor()))
