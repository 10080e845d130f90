"""The figures of an answer, from what its flows take, however that was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels.composed.moments import Moments
from qmodels.composed.stalls import Late, Stall, quantile_of

NONE: Mapping[str, str] = {}


@dataclass(frozen=True, kw_only=True, eq=False)
class Figures:
    """Numbers of an answer."""

    model: str  # what found it
    # metrics, latency_parts, intensity: as in `Answer`, or what returns a metric; intensity of traffic.
    metrics: dict[str, Any]
    latency_parts: dict[str, float]
    intensity: dict[str, float]
    stable: bool = True  # whether all keeps up
    exact: bool = False  # whether the numbers are exact
    doubts: tuple[str, ...] = ()  # what speaks against it


@dataclass(frozen=True, kw_only=True)
class FlowFigures:
    """Numbers of the jobs of a flow."""

    latency: Moments  # of a job that ends [ns]
    throughput: float  # jobs that end [1/ns]
    parts: Mapping[str, float] = field(default_factory=dict)  # mean times that the latency is made of [ns]
    lost: float = float("nan")  # share of the jobs that are lost; NaN where none can be
    stall: Stall = Stall()  # of the latency: a delay that few jobs have
    late: Late = Late()  # of it, the wait for bursts


def flow_metrics(
    flows: Mapping[str, FlowFigures], visits: Mapping[str, float], names: Mapping[str, str] = NONE
) -> dict[str, Any]:
    """Return the metrics of all flows together, of each of several, and the times of visits by part.

    ``names``: of flows that are parts of one, its name.
    """
    groups = {"": list(flows.values())}
    each: dict[str, list[FlowFigures]] = {}
    for name, flow in flows.items():
        each.setdefault(f"[{names.get(name, name)}]", []).append(flow)
    groups |= each if len(each) > 1 else {}
    mixtures = {place: _mixture(some) for place, some in groups.items()}
    metrics: dict[str, Any]
    metrics = {f"latency{p}": sum(share * t.mean for share, t, *_ in some) for p, some in mixtures.items()}
    metrics |= {f"latency_p99{place}": quantile_of(some, 0.99) for place, some in mixtures.items()}
    for place, some in groups.items():
        metrics[f"flow_throughput{place}"] = sum(flow.throughput for flow in some)
    for place, some in groups.items():
        losing = [flow for flow in some if flow.lost < 1]
        if losing:
            offered = sum(flow.throughput / (1 - flow.lost) for flow in losing)
            lost = sum(flow.throughput * flow.lost / (1 - flow.lost) for flow in losing)
            kept = sum(flow.throughput for flow in some if np.isnan(flow.lost))
            # Where nothing comes through it is not known how many come.
            share = lost / (offered + kept) if offered + kept > 0 else max(flow.lost for flow in losing)
            metrics[f"blocking_probability{place}"] = share
    return metrics | {f"visit_latency[{part}]": time for part, time in visits.items()}


def _mixture(flows: list[FlowFigures]) -> list[tuple[float, Moments, Stall, Late]]:
    """Return the latencies of flows with their shares of the jobs."""
    total = sum(flow.throughput for flow in flows)
    if total <= 0:
        return [(1 / len(flows), flow.latency, flow.stall, flow.late) for flow in flows]
    used = [flow for flow in flows if flow.throughput > 0]
    return [(flow.throughput / total, flow.latency, flow.stall, flow.late) for flow in used]


def parts_together(flows: Mapping[str, FlowFigures], names: Mapping[str, str] = NONE) -> dict[str, float]:
    """Return the mean times that the latency of all flows is made of, by the names of the parts."""
    total = sum(flow.throughput for flow in flows.values())
    found: dict[str, float] = {}
    for flow in flows.values():
        for name, time in flow.parts.items():
            part = names.get(name, name)
            if flow.throughput > 0:
                found[part] = found.get(part, 0.0) + flow.throughput / total * time
    return found
