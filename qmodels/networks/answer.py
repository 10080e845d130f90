"""The answer to a queueing network's spec: what every method gives, by one set of names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.spec.answer import Answer
from qmodels.systems.stations.queueing_network import QueueingNetwork

_SUMS = ("throughput", "utilization", "mean_number_in_queue", "mean_number_in_system")
_PER_JOB = ("mean_waiting_time", "mean_response_time", "waiting_probability")


def network_answer(
    network: QueueingNetwork,
    *,
    model: str,
    kind: str,
    visits: Mapping[str, FloatArray],
    passages: Mapping[str, FloatArray],
    stable: bool,
    result: Any,
) -> Answer:
    """Return the answer from tables.

    Metrics are those of the simulation of the network: the name and, in brackets, the station (if there are
    several) and the class (if there are several; without one, all classes together):
    ``mean_response_time[disk, read]``. Those of the whole network begin with ``system`` or end with
    ``network``. What the model does not know is left out. ``kind``: what the numbers are under the model's
    assumptions, which the network meets; ``result``: the model's own, with what else it knows.

    ``visits``: metrics of shape (stations, classes), among them ``throughput`` and ``utilization``; NaN where
    they are not known or the class does not come; ``passages``: metrics of the whole network, of shape
    (classes,), or (1,) for all classes together.
    """
    metrics: dict[str, float] = {}
    classes = network.class_names
    for i, station in enumerate(network.station_names):
        place = [station] if len(network.nodes) > 1 else []
        rows = {name: np.asarray(table[i], dtype=float) for name, table in visits.items()}
        metrics |= {_named(name, place): value for name, value in _together(rows)}
        for k, job_class in enumerate(classes if len(classes) > 1 else ()):
            metrics |= {_named(n, [*place, job_class]): float(row[k]) for n, row in rows.items()}
    total = {name: np.asarray(row, dtype=float) for name, row in passages.items()}
    metrics |= dict(_totals(total))
    for k, job_class in enumerate(classes if len(classes) > 1 else ()):
        if k in network.entries:
            metrics |= {f"{n}[{job_class}]": float(row[k]) for n, row in total.items() if row.size > 1}
    busy = np.minimum(np.nansum(visits["utilization"], axis=1), 1.0)
    return Answer(
        model=model,
        spec=network,
        metrics={name: value for name, value in metrics.items() if not np.isnan(value)},
        utilization=dict(zip(network.station_names, busy.tolist(), strict=True)),
        bottleneck=network.station_names[int(np.argmax(busy))],
        stable=stable,
        details={"kind": kind, "result": result},
    )


def _named(metric: str, place: list[str]) -> str:
    return f"{metric}[{', '.join(place)}]" if place else metric


def _together(rows: Mapping[str, FloatArray]) -> Iterator[tuple[str, float]]:
    """Yield the metrics of a station for all its classes together, where they follow from those of each."""
    flow = rows["throughput"]
    for name, row in rows.items():
        here = ~np.isnan(flow)
        if flow.size == 1:
            yield name, float(row[0])
        elif name in _SUMS:
            yield name, float(np.sum(row[here]))
        elif name in _PER_JOB:
            yield name, _mean(row[here], flow[here])
        elif np.ptp(row[here]) == 0:
            yield name, float(row[here][0])


def _totals(passages: Mapping[str, FloatArray]) -> Iterator[tuple[str, float]]:
    """Yield the metrics of the whole network for all classes together."""
    left = passages["system_throughput"]
    for name, row in passages.items():
        if name == "system_response_time":
            yield name, _mean(row, left)
        elif name == "system_loss_probability":
            yield name, 1 - float(left.sum() / np.sum(left / (1 - row)))
        else:
            yield name, float(row.sum())


def _mean(values: FloatArray, weights: FloatArray) -> float:
    """Return a mean over jobs; infinite where that of some is, even if none of those gets through."""
    if np.isinf(values).any():
        return float("inf")
    used = weights > 0
    return float(np.sum(values[used] * weights[used]) / np.sum(weights[used])) if used.any() else float("nan")
