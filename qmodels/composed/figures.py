"""The figures of an answer, from what its flows take, however that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammainc

from qmodels.composed.moments import LEAST_SCV, Span


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """What an answer says.

    Parameters
    ----------
    model : str
        What found it.
    metrics, latency_parts, intensity : mapping of str to float
        As in `Answer`; ``intensity`` is that of traffic.
    stable : bool
        Whether all keeps up.
    exact : bool
        Whether the numbers are exact.
    doubts : tuple of str
        What speaks against it.
    """

    model: str
    metrics: dict[str, float]
    latency_parts: dict[str, float]
    intensity: dict[str, float]
    stable: bool = True
    exact: bool = False
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FlowFigures:
    """What becomes of the jobs of a flow.

    Parameters
    ----------
    latency : Span
        Of a job that ends. [ns]
    throughput : float
        Jobs that end. [1/ns]
    parts : mapping of str to float
        Mean times that the latency is made of. [ns]
    lost : float
        Share of the jobs that are lost; NaN where none can be.
    """

    latency: Span
    throughput: float
    parts: Mapping[str, float] = field(default_factory=dict)
    lost: float = float("nan")


def flow_metrics(flows: Mapping[str, FlowFigures], visits: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of all flows together, of each of several, and the times of visits by part."""
    total = sum(flow.throughput for flow in flows.values())
    used = [flow for flow in flows.values() if flow.throughput > 0]
    mixture = [(flow.throughput / total, flow.latency) for flow in used]
    groups = {"": list(flows.values())}
    if len(flows) > 1:
        groups |= {f"[{name}]": [flow] for name, flow in flows.items()}
    metrics = {"latency": sum(share * latency.mean for share, latency in mixture)}
    metrics |= {f"latency{place}": some[0].latency.mean for place, some in groups.items() if place}
    metrics["latency_p99"] = quantile_of(mixture, 0.99)
    metrics |= {
        f"latency_p99{place}": some[0].latency.quantile(0.99) for place, some in groups.items() if place
    }
    for place, some in groups.items():
        metrics[f"flow_throughput{place}"] = sum(flow.throughput for flow in some)
    for place, some in groups.items():
        losing = [flow for flow in some if flow.lost < 1]
        if losing:
            offered = sum(flow.throughput / (1 - flow.lost) for flow in losing)
            lost = sum(flow.throughput * flow.lost / (1 - flow.lost) for flow in losing)
            kept = sum(flow.throughput for flow in some if np.isnan(flow.lost))
            metrics[f"blocking_probability{place}"] = lost / (offered + kept)
    return metrics | {f"visit_latency[{part}]": time for part, time in visits.items()}


def parts_together(flows: Mapping[str, FlowFigures]) -> dict[str, float]:
    """Return the mean times that the latency of all flows is made of."""
    total = sum(flow.throughput for flow in flows.values())
    found: dict[str, float] = {}
    for flow in flows.values():
        for part, time in flow.parts.items():
            if flow.throughput > 0:
                found[part] = found.get(part, 0.0) + flow.throughput / total * time
    return found


def quantile_of(mixture: list[tuple[float, Span]], p: float) -> float:
    """Return the quantile of a time that is one of several, each of a gamma law.

    Examples
    --------
    >>> round(quantile_of([(0.5, Span(1.0, 1.0)), (0.5, Span(1.0, 1.0))], 0.99), 4)
    4.6052
    """
    ends = [span.quantile(p) for _, span in mixture]
    if not ends or not np.isfinite(ends).all() or min(ends) == max(ends):
        return max(ends, default=0.0)

    def above(time: float) -> float:
        return sum(share * _below(span, time) for share, span in mixture) - p

    low, high = min(ends), max(ends)
    if above(high) <= 0 or above(low) >= 0:
        return high if above(high) <= 0 else low
    return float(brentq(above, low, high))


def _below(span: Span, time: float) -> float:
    if span.scv < LEAST_SCV:
        return float(time >= span.mean)
    return float(gammainc(1 / span.scv, time / (span.mean * span.scv)))
