"""Loads and waits on the links of the request and the response network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.constants import kept
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.networks.blocking import blocking_factors
from qmodels.packet_processor.networks.link_shares import link_shares
from qmodels.packet_processor.variability import Variability
from qmodels.queues.general.paced import burst_work, mean_work, train_area

ENDS, ALIGNMENT = 1.0, 0.5
"""Cycles at the network interfaces, and until the next cycle begins, mean. [cycles]"""


class ResponseLaw(NamedTuple):
    """How responses to several engines hold up each other.

    Parameters
    ----------
    engines : float
        Power of the number of other engines with which the time grows: the root was read from simulations
        of 2 to 8 engines and 2 to 8 channels, which were not kept.
    """

    engines: float


LAW = kept(ResponseLaw, "packet_processor.responses")


@dataclass(frozen=True, kw_only=True, eq=False)
class PathState:
    """What NoC packets meet between the engines' own links; one value per design, times in ns.

    Parameters
    ----------
    request_peak, response_peak : ndarray
        Traffic intensity of the most loaded link of each network.
    request_used, response_used : ndarray
        The same as a part of the intensity at which the network saturates.
    end_factor : ndarray
        How many times longer a response waits for its engine's ejection link because of full buffers.
    end_buffer : ndarray
        Time of the flits that the buffers in front of an engine's ejection link hold.
    request_wait, response_wait : ndarray
        Waits for busy links along a path, without the engine's own injection or ejection link.
    request_blocked, response_blocked : ndarray
        What blocked heads and full buffers add to these when packets come one by one.
    request_links, response_links : ndarray
        Links of a path, mean.
    request_pipeline, response_pipeline : ndarray
        Time of a head flit from the start of injection to the start of ejection.
    """

    request_peak: FloatArray
    response_peak: FloatArray
    request_used: FloatArray
    response_used: FloatArray
    end_factor: FloatArray
    end_buffer: FloatArray
    request_wait: FloatArray
    response_wait: FloatArray
    request_blocked: FloatArray
    response_blocked: FloatArray
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
    held_up : ndarray
        Time a response waits behind those that full buffers hold up.
    """

    inject_wait: FloatArray
    eject_wait: FloatArray
    inject_intensity: FloatArray
    eject_intensity: FloatArray
    held_up: FloatArray


def path_state(c: Columns, rate: FloatArray) -> PathState:
    """Return loads and waits along the paths at a packet rate.

    A NoC packet waits on a link only behind packets that came by another link. Those come in
    trains: the segments of one packet that cross the link one after the other. Blocked heads and full
    buffers lengthen the waits, see `blocking_factors`.
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
    short = reads / (mean + reads)
    kinds = ("peak", "wait", "links", "delay", "used", "end", "inputs", "blocked")
    result = {f"{net}_{kind}": np.empty_like(rate) for net in works for kind in kinds}
    sizes = np.stack((c.channels, c.segment_time / c.cycle_time, c.request_time / c.cycle_time)).round()
    keys, of_design = np.unique(sizes, axis=1, return_inverse=True)
    for number, (channels, *flits) in enumerate(keys.T.astype(int).tolist()):
        rows = of_design.reshape(-1) == number
        request, response = link_shares(c.spec.noc.structure, channels)
        for name, load, again in (
            ("request", request, request.same_source),
            ("response", response, response.same_target),
        ):
            work, square, trains = works[name]
            intensity = np.multiply.outer(rate[rows] * work[rows], load.share)
            result[f"{name}_peak"][rows] = intensity.max(axis=1)
            result[f"{name}_links"][rows] = load.mean_links
            result[f"{name}_delay"][rows] = load.mean_delay
            result[f"{name}_inputs"][rows] = load.end_inputs
            met = (load.contention > 0) & ~_at_engine(load.names, c.spec.noc.initiators)
            wait = mean_work(
                train_rate=np.multiply.outer(rate[rows], load.share[met]),
                area=(square[rows, None] + trains[rows, None] * again[met]) / 2,
                intensity=intensity[:, met],
            )
            used, factor, end = blocking_factors(
                c.spec.noc.structure,
                channels=channels,
                responses=name == "response",
                flits=(flits[0], flits[1]),
                short_share=short[rows] if name == "request" else np.zeros(np.count_nonzero(rows)),
                intensity=intensity.max(axis=1),
            )
            result[f"{name}_used"][rows] = used
            result[f"{name}_end"][rows] = end
            result[f"{name}_wait"][rows] = wait @ (load.contention * load.share)[met]
            result[f"{name}_blocked"][rows] = (factor - 1.0) * result[f"{name}_wait"][rows]
    delays = {net: result.pop(f"{net}_delay") for net in works}
    ends = {net: result.pop(f"{net}_end") for net in works}
    inputs = {net: result.pop(f"{net}_inputs") for net in works}
    router = c.spec.noc.router
    stages = float(c.spec.noc.router.pipeline_cycles)
    request_pipeline, response_pipeline = (
        ((result[f"{net}_links"] - 1.0) * stages + delays[net] + ENDS + ALIGNMENT) * c.cycle_time
        for net in works
    )
    return PathState(
        **result,
        end_factor=ends["response"],
        end_buffer=inputs["response"] * router.virtual_channels * router.buffer_flits * c.cycle_time,
        request_pipeline=request_pipeline,
        response_pipeline=response_pipeline,
    )


def engine_state(
    c: Columns,
    rate: FloatArray,
    paths: PathState,
    *,
    issue_gap: FloatArray,
    drain_gap: FloatArray,
    arrivals: Variability,
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
    eject_work = mean_work(train_rate=own, area=eject_area, intensity=eject_intensity)
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
        eject_wait=paths.end_factor * eject_work,
        inject_intensity=inject_intensity,
        eject_intensity=eject_intensity,
        held_up=_held_up(engines - 1.0, eject_work, eject_intensity, paths),
    )


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _held_up(others: float, work: FloatArray, intensity: FloatArray, paths: PathState) -> FloatArray:
    """Return how long responses wait at their channel behind those to engines that cannot take them.

    A packet's segments come back from several channels at once, faster than its engine takes them. What
    does not fit into the buffers in front of its ejection link waits at the channels, first come, first
    served, and holds up the responses to the other engines, which hold up each other. The work at
    an ejection link is taken as exponential where there is any. The time grows with the square root of
    the other engines (`ResponseLaw`). Packets that come one by one hold up each other on the way as well;
    the larger of the two counts.
    """
    beyond = work * np.exp(-np.where(work > 0, paths.end_buffer * intensity / work, np.inf))
    room = 1.0 - paths.response_used
    trains = np.where(others * work > 0, np.where(room > 0, others**LAW.engines * beyond / room, np.inf), 0.0)
    return np.maximum(trains, paths.response_blocked)


def _at_engine(names: tuple[str, ...], engines: int) -> npt.NDArray[np.bool_]:
    """Return which links are the injection or ejection link of an engine."""
    ends = {f"{kind} {node}" for kind in ("inject", "eject") for node in range(engines)}
    return np.array([name in ends for name in names])
