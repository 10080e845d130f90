"""Loads and waits on the links of the request and the response network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmodels._check import FloatArray
from qmodels.noc import LinkLoad, link_load
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.variability import Variability
from qmodels.queues.paced import burst_work, mean_work, train_area
from qmodels.systems.processor_noc import ProcessorNoc


@dataclass(frozen=True, kw_only=True, eq=False)
class PathState:
    """What NoC packets meet between the engines' own links; one value per design, times in ns.

    Parameters
    ----------
    request_peak, response_peak : ndarray
        Traffic intensity of the most loaded link of each network.
    request_wait, response_wait : ndarray
        Waits along a path, without the engine's own injection or ejection link.
    request_links, response_links : ndarray
        Links of a path, mean.
    request_pipeline, response_pipeline : ndarray
        Time of a head flit from the start of injection to the start of ejection.
    """

    request_peak: FloatArray
    response_peak: FloatArray
    request_wait: FloatArray
    response_wait: FloatArray
    request_links: FloatArray
    response_links: FloatArray
    request_pipeline: FloatArray
    response_pipeline: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineState:
    """What a packet finds at its engine's links; one value per design, times in ns.

    Parameters
    ----------
    inject_wait, eject_wait : ndarray
        Others' work in front of the injection link (requests) and the ejection link (responses).
    inject_intensity, eject_intensity : ndarray
        Traffic intensities of the two.
    """

    inject_wait: FloatArray
    eject_wait: FloatArray
    inject_intensity: FloatArray
    eject_intensity: FloatArray


def networks(noc: ProcessorNoc, channels: int) -> tuple[LinkLoad, LinkLoad]:
    """Return the link loads of the request and of the response network."""
    engines = tuple(range(noc.initiators))
    targets = tuple(range(noc.initiators, noc.initiators + channels))
    return link_load(noc.topology, engines, targets), link_load(noc.topology, targets, engines)


def path_state(c: Columns, rate: FloatArray) -> PathState:
    """Return loads and waits along the paths at a packet rate.

    A NoC packet waits on a link only behind packets that came by another link. Those come in
    trains: the segments of one packet that cross the link one after the other.
    """
    mean = c.mean_segments
    reads = mean + c.miss_rate
    follow = c.square_segments / mean - 1.0
    segments, requests, misses = mean * c.segment_time**2, mean * c.request_time**2, c.miss_rate
    # Work, square of the work of single NoC packets, and what trains add to the square.
    works = {
        "request": (
            mean * c.segment_time + reads * c.request_time,
            segments + requests + misses * c.request_time**2,
            follow * (segments + requests),
        ),
        "response": (reads * c.segment_time, segments + misses * c.segment_time**2, follow * segments),
    }
    result = {f"{net}_{what}": np.empty_like(rate) for net in works for what in ("peak", "wait", "links")}
    for channels in np.unique(c.channels):
        rows = c.channels == channels
        request, response = networks(c.spec.noc, int(channels))
        for name, load, again in (
            ("request", request, request.same_source),
            ("response", response, response.same_target),
        ):
            work, square, trains = works[name]
            intensity = np.multiply.outer(rate[rows] * work[rows], load.share)
            result[f"{name}_peak"][rows] = intensity.max(axis=1)
            result[f"{name}_links"][rows] = load.mean_links
            met = (load.contention > 0) & ~_at_engine(load.names, c.spec.noc.initiators)
            wait = mean_work(
                train_rate=np.multiply.outer(rate[rows], load.share[met]),
                area=(square[rows, None] + trains[rows, None] * again[met]) / 2,
                intensity=intensity[:, met],
            )
            result[f"{name}_wait"][rows] = wait @ (load.contention * load.share)[met]
    return PathState(
        **result,
        request_pipeline=(result["request_links"] - 1.0) * c.router_time,
        response_pipeline=(result["response_links"] - 1.0) * c.router_time,
    )


def engine_state(
    c: Columns, rate: FloatArray, *, issue_gap: FloatArray, drain_gap: FloatArray, arrivals: Variability
) -> EngineState:
    """Return the work at an engine's links at a packet rate.

    A packet's segments are ready ``issue_gap`` apart, and their responses come back
    ``drain_gap`` apart.
    """
    engines = float(c.spec.noc.initiators)
    segment, request = c.segment_time, c.request_time
    mean, square = c.mean_segments, c.square_segments
    reads = mean + c.miss_rate
    own = rate / engines
    inject_area = (
        train_area(count=mean, count_square=square, service=segment, spacing=issue_gap)
        + train_area(count=mean, count_square=square, service=request, spacing=drain_gap)
        + c.miss_rate * request**2 / 2
    )
    eject_area = (
        train_area(count=mean, count_square=square, service=segment, spacing=drain_gap)
        + c.miss_rate * segment**2 / 2
    )
    inject_intensity = own * (mean * segment + reads * request)
    eject_intensity = own * reads * segment
    return EngineState(
        inject_wait=mean_work(
            train_rate=own,
            area=inject_area,
            intensity=inject_intensity,
            burst=burst_work(
                rate=rate,
                work=mean * np.maximum(segment - issue_gap, 0.0) / engines,
                arrival_scv=arrivals(inject_intensity),
            ),
        ),
        eject_wait=mean_work(train_rate=own, area=eject_area, intensity=eject_intensity),
        inject_intensity=inject_intensity,
        eject_intensity=eject_intensity,
    )


def _at_engine(names: tuple[str, ...], engines: int) -> npt.NDArray[np.bool_]:
    """Return which links are the injection or ejection link of an engine."""
    ends = {f"{kind} {node}" for kind in ("inject", "eject") for node in range(engines)}
    return np.array([name in ends for name in names])
