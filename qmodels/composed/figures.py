"""The figures of an answer, from what its flows take, however that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from qmodels.composed.moments import Span
from qmodels.composed.stalls import Stall, quantile_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """What an answer says."""

    model: str  # what found it
    # metrics, latency_parts, intensity: as in `Answer`; ``intensity`` is that of traffic.
    metrics: dict[str, float]
    latency_parts: dict[str, float]
    intensity: dict[str, float]
    stable: bool = True  # whether all keeps up
    exact: bool = False  # whether the numbers are exact
    doubts: tuple[str, ...] = ()  # what speaks against it


@dataclass(frozen=True, kw_only=True)
class FlowFigures:
    """What becomes of the jobs of a flow."""

    latency: Span  # of a job that ends [ns]
    throughput: float  # jobs that end [1/ns]
    parts: Mapping[str, float] = field(default_factory=dict)  # mean times that the latency is made of [ns]
    lost: float = float("nan")  # share of the jobs that are lost; NaN where none can be
    stall: Stall = Stall()  # of the latency: a delay that few jobs have


def flow_metrics(flows: Mapping[str, FlowFigures], visits: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics of all flows together, of each of several, and the times of visits by part."""
    total = sum(flow.throughput for flow in flows.values())
    used = [flow for flow in flows.values() if flow.throughput > 0]
    mixture = [(flow.throughput / total, flow.latency, flow.stall) for flow in used]
    groups = {"": list(flows.values())}
    if len(flows) > 1:
        groups |= {f"[{name}]": [flow] for name, flow in flows.items()}
    metrics = {"latency": sum(share * latency.mean for share, latency, _ in mixture)}
    metrics |= {f"latency{place}": some[0].latency.mean for place, some in groups.items() if place}
    metrics["latency_p99"] = quantile_of(mixture, 0.99)
    metrics |= {
        f"latency_p99{place}": quantile_of([(1.0, some[0].latency, some[0].stall)], 0.99)
        for place, some in groups.items()
        if place
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
