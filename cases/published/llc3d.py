"""Korikawa et al. (IEEE Access 2020): how curves run, where they cross, and how long it takes to simulate."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from cases.published.numbers import only, select
from qmodels.systems.cache.llc_processor import LlcProcessor


def implied_blocking(spec: LlcProcessor, data_rate: float) -> float:
    """Return the blocking probability that a published throughput [Gb/s] implies."""
    return 1 - data_rate / spec.gbps(spec.arrival_rate)


def timed(specs: Mapping[str, LlcProcessor], simulated: Any, **options: Any) -> Iterator[dict[str, Any]]:
    """Yield the processor time of simulating each architecture, 0 if it is stored. [s]."""
    for name, spec in specs.items():
        started = time.process_time()
        simulated([spec], **options)
        yield {"architecture": name, "seconds": time.process_time() - started}


def trend(found: Any, which: str, one: Mapping[str, Any]) -> bool:
    """Return whether curves run as the text says; what intervals do not tell apart counts as equal."""
    metrics = ("waiting_latency",) if one["rule"] == "waits less" else found.names["METRICS"]
    curves = {
        (curve, metric): select(found.cells, figures=one["figures"], curve=curve, metric=metric)
        for metric in metrics
        for curve in one["curves"]
    }
    # Of each pair the first should not be above the second.
    if one["rule"] == "waits less":
        least, most = (*one.get("x", (0,)), float("inf"))[:2]
        two = (zip(*both, strict=True) for both in pairwise(curves.values()))
        pairs = [(a, b) for both in two for a, b in both if least <= a["x"] <= most]
    else:
        pairs = [
            (b, a) if (metric == "data_rate") == (one["rule"] == "worse") else (a, b)
            for (_, metric), cells in curves.items()
            for a, b in pairwise(cells)
        ]
    if which == "model":
        return all(b.model - a.model >= -1e-3 * abs(a.model) for a, b in pairs)
    return all(b.high >= a.low for a, b in pairs)


def apart(found: Any, *places: Mapping[str, Any]) -> bool | None:
    """Return whether the first of two simulated waiting times is less, where intervals tell."""
    ours, other = (only(found.cells, metric="waiting_latency", **place) for place in places)
    if ours.low > other.high or ours.high < other.low:
        return bool(ours.simulated < other.simulated)
    return None


def crossing(found: Any, which: str) -> tuple[float | None, float | None]:
    """Return at how many entries no LLC becomes better, and the miss ratio of the LLC there."""

    def curve(name: str, metric: str) -> list[tuple[float, float]]:
        cells = select(found.cells, figures="22-25", curve=name, metric=metric)
        return [(cell["x"], getattr(cell, which)) for cell in cells]

    with_llc, without = (curve(name, "waiting_latency") for name in ("LLC slices", "no LLC"))
    gains = [(x, b - a) for (x, a), (_, b) in zip(with_llc, without, strict=True)]
    both = zip(pairwise(gains), pairwise(curve("LLC slices", "llc_hit_ratio")), strict=True)
    entries: float | None = None
    misses: float | None = None
    for ((left, gain), (right, loss)), ((_, high), (_, low)) in both:
        if gain > 0 >= loss:
            share = gain / (gain - loss)
            entries, misses = left + share * (right - left), 1 - high - share * (low - high)
    return entries, misses
