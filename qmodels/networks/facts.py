"""Facts of a queueing network's spec in the form that the methods take, and their answer as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.networks.open.traffic import traffic_equations, visit_ratios
from qmodels.networks.result import NetworkResult
from qmodels.systems.laws.kinds import is_exponential
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


_INSENSITIVE = ("sharing", "lifo-preemptive")


def no_model(what: str) -> ValueError:
    """Return the error for a feature that no model covers."""
    return ValueError(f"no model covers {what}; simulate it")


def all_exponential(network: QueueingNetwork) -> bool:
    """Return whether all arrivals and services are exponential."""
    return all(c.arrivals is None or is_exponential(c.arrivals) for c in network.classes) and all(
        is_exponential(network.service_law(i, k)) for i, k in network.visited if i < len(network.stations)
    )


def times_of(network: QueueingNetwork, what: str = "mean") -> FloatArray:
    """Return a fact of the service laws, shape (stations, classes); 1 where a class does not come."""
    table = np.ones((len(network.stations), len(network.classes)))
    for i, k in network.visited:
        if i < len(network.stations):
            table[i, k] = getattr(network.service_law(i, k), what)
    return table


def servers_of(network: QueueingNetwork) -> FloatArray:
    """Return the number of servers of each station."""
    return np.array([float(s.servers) for s in network.stations])


def multipliers_of(network: QueueingNetwork) -> dict[int, tuple[float, ...]] | None:
    """Return the rate multipliers by the number of the station, None if there are none."""
    return {i: s.rate_multiplier for i, s in enumerate(network.stations) if s.rate_multiplier} or None


def product_form_breaker(network: QueueingNetwork) -> str:
    """Reason why a network has no product form, or nothing."""
    for c in network.classes:
        if c.arrivals is not None and not is_exponential(c.arrivals):
            return f"{type(c.arrivals).__name__} arrivals of class {c.name!r}"
    for i, station in enumerate(network.stations):
        laws = [network.service_law(i, k) for j, k in sorted(network.visited) if j == i]
        if station.delay or station.discipline in _INSENSITIVE or not laws:
            continue
        if station.discipline == "fifo" or len(laws) == 1:
            if all(is_exponential(law) for law in laws) and len({law.mean for law in laws if law}) == 1:
                continue
            return f"service at station {station.name!r} that is not the same exponential one for every class"
        return f"discipline {station.discipline!r} of station {station.name!r}"
    return ""


def entering_flows(network: QueueingNetwork) -> FloatArray:
    """Return the rates of arrivals from outside, shape (stations, classes)."""
    flows = np.einsum("r,ris->is", network.arrival_rates, network.entry_matrix)
    return np.asarray(flows[: len(network.stations)])


def entering_scvs(network: QueueingNetwork) -> FloatArray:
    """Return the SCVs of the arrivals from outside at each station, in a network of one class.

    A random share p of a renewal stream of SCV c2 is a renewal stream of SCV p c2 + 1 - p.
    """
    share = network.entry_matrix[0, : len(network.stations), 0]
    return np.asarray(1 - share + share * network.classes[0].arrivals.scv)


def service_rates_of(network: QueueingNetwork) -> FloatArray:
    """Return the service rates of a network of one class, which must be finite."""
    times = times_of(network)[:, 0]
    for name, time in zip(network.station_names, times, strict=True):
        if time == 0:
            raise no_model(f"services that take no time at station {name!r}")
    return np.asarray(1 / times)


def visits_of(network: QueueingNetwork) -> FloatArray:
    """Return the visits of each class per passage, or per return to its reference."""
    matrix, entering = network.routing_matrix, entering_flows(network)
    names = network.station_names
    columns = []
    for k, c in enumerate(network.classes):
        own = matrix[:, k, :, k]
        if c.closed:
            columns.append(visit_ratios(routing=own, reference=names.index(c.reference or names[0])))
        else:
            flow = traffic_equations(arrival_rate=entering[:, k], routing=own)
            columns.append(flow / entering[:, k].sum())
    return np.array(columns).T


def switches_class(matrix: FloatArray) -> bool:
    """Return whether jobs change class on their way."""
    same = np.eye(matrix.shape[1], dtype=bool)
    return bool(np.any(matrix.transpose(1, 3, 0, 2)[~same] > 0))


def answer_of(network: QueueingNetwork, result: NetworkResult) -> Answer:
    """Return a method's result by the names that specs go by."""
    shape = (len(network.stations), len(network.classes))
    visited = np.array([[(i, k) in network.visited for k in range(shape[1])] for i in range(shape[0])])

    def table(values: Any) -> FloatArray:
        return np.where(visited, np.reshape(values, shape), np.nan)

    def fits(*disciplines: str) -> FloatArray:
        return np.array(
            [[s.discipline not in disciplines and not s.rate_multiplier] for s in network.stations]
        )

    response, number = table(result.mean_response_time), table(result.mean_number_in_system)
    throughput, busy = table(result.throughput), table(result.utilization)
    wait = np.where(fits(), np.maximum(response - times_of(network), 0.0), np.nan)
    with np.errstate(invalid="ignore"):
        queued = np.where(throughput > 0, throughput * wait, 0.0 * wait)
    visits = {
        "throughput": throughput,
        # Rounding may leave the busiest station a little above 1.
        "utilization": busy / np.maximum(np.nansum(busy, axis=1, keepdims=True), 1.0),
        "mean_waiting_time": wait,
        "mean_response_time": response,
        # With shared servers nobody is in the queue.
        "mean_number_in_queue": np.where(fits("sharing"), queued, np.nan),
        "mean_number_in_system": number,
    }
    if result.blocking_probability is not None:
        visits["blocking_probability"] = table(result.blocking_probability)
    return network_answer(
        network,
        model=result.model,
        kind=result.kind,
        visits=visits,
        passages=_passages(network, result, number),
        stable=bool(np.all(np.reshape(result.stable, shape) | ~visited)),
        result=result,
    )


def _passages(network: QueueingNetwork, result: NetworkResult, number: FloatArray) -> dict[str, FloatArray]:
    """Return the metrics of the whole network; without the stay at a reference that is a delay."""
    arriving = network.arrival_rates
    # Arrivals that leave at once have passed, too.
    passed_by = arriving * np.maximum(1 - network.entry_matrix.sum(axis=(1, 2)), 0.0)
    left = np.atleast_1d(np.asarray(result.system_throughput, dtype=float))
    if switches_class(network.routing_matrix):
        number = np.array([np.nansum(number)])
        left, arriving = np.array([left.sum() + passed_by.sum()]), np.array([arriving.sum()])
    else:
        inside = np.where(np.isnan(number), 0.0, number)
        for k, c in enumerate(network.classes):
            home = network.station_names.index(c.reference) if c.reference else 0
            if c.closed and network.stations[home].delay:
                inside[home, k] = 0.0
        number, left = inside.sum(axis=0), left + passed_by
    passages = {"system_throughput": left}
    if result.blocking_probability is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            passages["system_response_time"] = np.where(left > 0, number / left, np.nan)
    elif np.allclose(result.throughput, result.throughput.flat[0], rtol=1e-9):
        # Losses at the first station only: whoever enters also passes.
        passages["system_response_time"] = number / left
    if result.blocking_probability is not None:
        passages["system_loss_probability"] = 1 - left / arriving
    return passages | {"mean_number_in_network": number}
