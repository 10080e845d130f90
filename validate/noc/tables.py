"""Tables of the flows and channels of a network-on-chip over its replications."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.noc.spec import Noc
from validate.estimates.statistics import INF, Estimate, exactly, ratio_interval
from validate.noc.meter import FLOW_BINS, flow_quantiles
from validate.noc.replication import Run
from validate.noc.saturation import overloaded_flows


def flow_columns(
    spec: Noc, runs: Sequence[Run], verdict: str, stable: bool | None, confidence: float
) -> dict[str, Any]:
    """Return columns: source, target, packet class, path, rate [1/ns] and times [ns] with their intervals.

    Times are ``inf`` where the flow's source queue grows, or nothing of it was delivered.
    ``packet_latency_p95`` and ``packet_latency_p99`` are there if they were asked for; they are those
    of all replications together, off by up to 2 %.
    """
    table, clock = spec.flow_table(), spec.clock_ghz
    sums = np.stack([run.sums for run in runs]).astype(float)
    cycles = float(sum(run.cycles for run in runs))
    lost = np.full(table.source.size, verdict == "deadlocked")
    if stable is False and verdict != "deadlocked":
        lost = overloaded_flows([run.lags for run in runs], [run.cycles for run in runs])
    latency = _ratios(sums[:, 1], sums[:, 0], confidence, lost)
    queueing = _ratios(sums[:, 2], sums[:, 0], confidence, lost)
    times = {
        "packet_latency": np.array([one.best for one in latency]),
        "packet_latency_low": np.array([one.low for one in latency]),
        "packet_latency_high": np.array([one.high for one in latency]),
        "source_queue_delay": np.array([one.best for one in queueing]),
        **_flow_quantiles(runs, lost),
    }
    return {
        "source": table.source,
        "target": table.target,
        "packet_class": table.packet_class,
        "path": [" ".join(table.path(f)) for f in range(table.source.size)],
        "delivered_rate": sums[:, 0].sum(axis=0) / cycles * clock,
        **{name: values / clock for name, values in times.items()},
    }


def _flow_quantiles(runs: Sequence[Run], lost: npt.NDArray[np.bool_]) -> Mapping[str, FloatArray]:
    if not any(run.flow_latencies.size for run in runs):
        return {}
    counts = np.zeros(lost.size * FLOW_BINS, dtype=np.int64)
    for run in runs:
        counts[run.flow_latencies[0]] += run.flow_latencies[1]
    by_flow = counts.reshape(-1, FLOW_BINS)
    return {
        f"packet_latency_p{percent}": np.where(lost, INF, flow_quantiles(by_flow, percent / 100))
        for percent in (95, 99)
    }


def channel_columns(spec: Noc, runs: Sequence[Run], utilization: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return columns: name, utilization with its interval, flits per cycle, mean occupancy of the buffer.

    The occupancy is the mean number of flits in all virtual channels of the buffer it leads to; 0
    for an ejection, whose flits leave at once. [1, flits/cycle, flits]
    """
    flits, held = np.sum([run.channels for run in runs], axis=0).astype(float)
    cycles = float(sum(run.cycles for run in runs))
    busy = list(utilization.values())
    return {
        "name": spec.flow_table().channel_names,
        "utilization": np.array([one.best for one in busy]),
        "utilization_low": np.array([one.low for one in busy]),
        "utilization_high": np.array([one.high for one in busy]),
        "flits": flits / cycles,
        "buffer_occupancy": held / cycles,
    }


def facts(spec: Noc, verdict: str, stable: bool | None) -> tuple[str, ...]:
    """Return the verdict, and whether there may be a deadlock."""
    said = [] if stable else [verdict]
    circle = spec.find_deadlock()
    if circle and verdict != "deadlocked":
        said.append(f"no deadlock in this run, but there may be one from {circle[0]} on")
    return tuple(said)


def _ratios(
    above: FloatArray, below: FloatArray, confidence: float, lost: npt.NDArray[np.bool_]
) -> Sequence[Estimate]:
    """Return the interval of each column's ratio; ``inf`` where it is lost or there is nothing."""
    return [
        exactly(INF, confidence=confidence)
        if lost[k] or not below[:, k].any()
        else ratio_interval(above[:, k], below[:, k], confidence=confidence)
        for k in range(above.shape[1])
    ]
