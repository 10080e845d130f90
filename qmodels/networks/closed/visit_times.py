"""Times of a visit in approximate mean value analysis, by order of service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.networks.closed.inputs import (
    ClosedNetwork,
    Network,
    describe,
    per_station_and_class,
    words_per_station,
)
from qmodels.networks.open.traffic import per_station
from qmodels.queues.markovian.erlang import erlang_c

DISCIPLINES = ("fcfs", "ps", "priority", "preemptive")

_LEAST_REST = 1e-4  # of a server that higher classes leave to lower ones


class StationModel(NamedTuple):
    """Arguments of the equations of the stations, beside the network."""

    net: Network  # the description
    # sharing, preemptive: per station.
    sharing: npt.NDArray[np.bool_]
    preemptive: npt.NDArray[np.bool_]
    remaining: FloatArray  # mean remaining service time of a job found in service [time]
    # same, above: whether an arrival of the first class waits for the jobs of the second that it finds; and
    # whether later ones overtake it.
    same: FloatArray
    above: FloatArray


def station_model(
    *,
    discipline: Any = None,
    service_scv: Any = None,
    priority: Sequence[int] | None = None,
    **network: Unpack[ClosedNetwork],
) -> StationModel:
    """Check orders of service, SCVs and priorities and return what the equations need."""
    net = describe(**network)
    size, classes = net.visits.shape
    for name, value in (("service_scv", service_scv), ("priority", priority)):
        if discipline is None and value is not None:
            raise ValueError(
                f"discipline must be given with {name}, which the product form does not depend on, got none"
            )
    words = words_per_station(discipline or "ps", net.stations, DISCIPLINES)
    service_scv = 1.0 if service_scv is None else service_scv
    given = checks.nonnegative("service_scv", per_station("service_scv", service_scv, net.stations))
    scv = per_station_and_class("service_scv", given, size, classes)
    rank = checks.count("priority", range(classes) if priority is None else priority, minimum=0)
    if rank.shape != (classes,):
        raise ValueError(f"priority must have one rank per class ({classes}), got shape {rank.shape}")
    ranked = np.array([word in ("priority", "preemptive") for word in words])[:, None, None]
    same = np.where(ranked, rank[None, :] <= rank[:, None], True)
    above = ranked & (rank[None, :] < rank[:, None])
    return StationModel(
        net=net,
        sharing=np.array([word == "ps" for word in words]),
        preemptive=np.array([word == "preemptive" for word in words]),
        remaining=net.service_time * (1 + scv) / 2,
        same=same.astype(float),
        above=above.astype(float),
    )


def visit_times(
    model: StationModel, populations: FloatArray, number: FloatArray, x: FloatArray, change: FloatArray | None
) -> FloatArray:
    """Return the times of a visit, shape (populations, stations, classes)."""
    net = model.net
    # Axes: population b, arriving class r, station i, class found s.
    less = np.maximum(populations[:, None, None, :] - np.eye(net.population.size)[None, :, None, :], 0.0)
    whole = np.maximum(populations, 1e-300)[:, None, None, :]
    share = number[:, None] / whole
    found = less * np.maximum(share if change is None else share + change[None], 0.0)
    in_service = x[:, None, :] * net.demand
    excess = np.maximum(in_service.sum(axis=2) / net.servers, 1.0)[:, :, None]
    served = np.minimum(in_service / excess, number)[:, None] * _one_less(model, populations, x)
    served = np.minimum(served, found)
    waiting = found - served

    service = net.service_time
    servers = np.where(net.delay, 1.0, net.servers)[:, None]
    met = _all_busy(net, less.sum(axis=3), served.sum(axis=3))
    shared = service.T * (1 + (waiting.sum(axis=3) + met * served.sum(axis=3)) / servers.T)
    # What is found of higher classes is worked off while at most the others of them overtake.
    fewer = np.maximum(populations - 1, 0.0) / np.maximum(populations, 1.0)
    overtaken = np.einsum("bis,irs->bri", in_service, model.above) / servers.T
    overtaken_by_rest = np.einsum("bis,bs,irs->bri", in_service, fewer, model.above) / servers.T
    slack = 1 / np.maximum(1 - overtaken, _LEAST_REST)
    slack_rest = 1 / np.maximum(1 - overtaken_by_rest, _LEAST_REST)
    level = model.same - model.above
    lower = np.where(model.preemptive[:, None, None], 0.0, 1 - model.same)
    own = np.einsum("bris,irs,is->bri", waiting, level, service)
    own += met * np.einsum("bris,irs,is->bri", served, level + lower, model.remaining)
    higher = np.einsum("bris,irs,is->bri", waiting, model.above, service)
    higher += met * np.einsum("bris,irs,is->bri", served, model.above, model.remaining)
    ahead = (own * slack + higher * slack_rest) / servers.T
    queued = service.T * np.where(model.preemptive, slack, 1.0) + ahead
    time = np.where(net.delay, service.T, np.where(model.sharing, shared, queued))
    return np.asarray(time.transpose(0, 2, 1))


def _one_less(model: StationModel, populations: FloatArray, x: FloatArray) -> FloatArray:
    """Return throughputs with a job of class r less over those with it, axes b, r, 1, s.

    One job of N less takes away its share of the throughput, and the wait it caused to others.
    """
    net = model.net
    cycle = np.divide(populations, x, out=np.zeros_like(x), where=x > 0)
    wait = np.maximum(cycle - net.think_time - net.demand.sum(axis=0), 0.0)
    total = populations.sum(axis=1, keepdims=True)
    shorter = cycle - wait / np.maximum(total - 1, 1.0)
    ratio = np.maximum(populations - 1, 0.0) / np.maximum(populations, 1.0)
    ratio = ratio * np.divide(cycle, shorter, out=np.ones_like(x), where=shorter > 0)
    own = np.minimum(ratio, 1.0)[:, :, None, None] - 1
    return np.asarray(1 + own * np.eye(net.population.size)[None, :, None, :])


def _all_busy(net: Network, others: FloatArray, served: FloatArray) -> FloatArray:
    """Return the probability that an arrival finds all servers busy over the mean number of busy ones.

    Erlang's delay formula at the present load; 1 with one server. No arrival finds c servers busy
    among fewer than c others. Axes: population, arriving class, station.
    """
    met = np.ones(served.shape)
    for i in np.flatnonzero(~net.delay & (net.servers > 1)):
        c = net.servers[i]
        load = np.clip(served[:, :, i], 1e-300, c * (1 - 1e-12))
        waits = erlang_c(servers=int(c), offered_load=load)
        met[:, :, i] = np.where(others[:, :, 0] < c, 0.0, waits / load)
    return met
