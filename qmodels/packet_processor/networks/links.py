"""Loads and waits on the links of the request and the response network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.networks.blocking import blocking_factors
from qmodels.packet_processor.networks.link_shares import link_shares
from qmodels.queues.general.paced import mean_work, train_area

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
class NetworkState:
    """What NoC packets meet in one network between the engines' own links; one value per design, in ns."""

    peak: FloatArray  # traffic intensity of the most loaded link
    used: FloatArray  # the same as a part of the intensity at which the network saturates
    end_factor: FloatArray  # how many times longer packets wait for the last link because of full buffers
    end_buffer: FloatArray  # time of the flits that the buffers in front of the last link hold
    wait: FloatArray  # waits for busy links along a path, without the engine's own injection or ejection link
    blocked: FloatArray  # what blocked heads and full buffers add to these when packets come one by one
    links: FloatArray  # links of a path, mean
    pipeline: FloatArray  # time of a head flit from the start of injection to the start of ejection


class PathState(NamedTuple):
    """The two networks."""

    request: NetworkState
    response: NetworkState


class _Work(NamedTuple):
    """What a packet brings into one network."""

    mean: FloatArray  # work
    square: FloatArray  # square of the work of single NoC packets
    trains: FloatArray  # what trains add to the square
    short: FloatArray  # share of the NoC packets that are requests


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineState:
    """What a packet finds at its engine's links; one value per design, times in ns."""

    # inject_wait, eject_wait: others' work in front of the injection link (requests) and the ejection link
    # (responses).
    inject_wait: FloatArray
    eject_wait: FloatArray
    # inject_intensity, eject_intensity: traffic intensities of the two.
    inject_intensity: FloatArray
    eject_intensity: FloatArray
    held_up: FloatArray  # time a response waits behind those that full buffers hold up


def path_state(c: Columns, rate: FloatArray) -> PathState:
    """Return loads and waits along the paths at a packet rate.

    A NoC packet waits on a link only behind packets that came by another link. Those come in
    trains: the segments of one packet that cross the link one after the other. Blocked heads and full
    buffers lengthen the waits, see `blocking_factors`.
    """
    mean, misses = c.mean_segments, c.miss_rate
    reads = mean + misses
    follow = c.square_segments / mean - 1.0
    segments, requests = mean * c.segment_time**2, mean * c.request_time**2
    request = _Work(
        mean=mean * c.segment_time + reads * c.request_time,
        square=segments + requests + misses * c.request_time**2,
        trains=follow * (segments + requests),
        short=reads / (mean + reads),
    )
    response = _Work(
        mean=reads * c.segment_time,
        square=segments + misses * c.segment_time**2,
        trains=follow * segments,
        short=np.zeros_like(rate),
    )
    sizes = np.stack((c.channels, c.segment_time / c.cycle_time, c.request_time / c.cycle_time)).round()
    keys, of_design = np.unique(sizes, axis=1, return_inverse=True)
    alike = [(key, of_design.reshape(-1) == k) for k, key in enumerate(keys.T.astype(int).tolist())]
    return PathState(
        _network_state(c, rate, request, alike, responses=False),
        _network_state(c, rate, response, alike, responses=True),
    )


def _network_state(
    c: Columns,
    rate: FloatArray,
    work: _Work,
    alike: list[tuple[list[int], npt.NDArray[np.bool_]]],
    *,
    responses: bool,
) -> NetworkState:
    """Return the state of one network; ``alike``: channels, flits of long and of short packets, and rows."""
    noc = c.spec.noc
    peak, used, end, wait, factor, links, delay, inputs = np.empty((8, rate.size))
    for (channels, *flits), rows in alike:
        load = link_shares(noc.structure, channels)[responses]
        again = load.same_target if responses else load.same_source
        intensity = np.multiply.outer(rate[rows] * work.mean[rows], load.share)
        peak[rows] = intensity.max(axis=1)
        links[rows], delay[rows], inputs[rows] = load.mean_links, load.mean_delay, load.end_inputs
        met = (load.contention > 0) & ~_at_engine(load.names, noc.initiators)
        waits = mean_work(
            train_rate=np.multiply.outer(rate[rows], load.share[met]),
            area=(work.square[rows, None] + work.trains[rows, None] * again[met]) / 2,
            intensity=intensity[:, met],
        )
        wait[rows] = waits @ (load.contention * load.share)[met]
        used[rows], factor[rows], end[rows] = blocking_factors(
            noc.structure,
            channels=channels,
            responses=responses,
            flits=(flits[0], flits[1]),
            short_share=work.short[rows],
            intensity=peak[rows],
        )
    router = noc.router
    stages = (links - 1.0) * float(router.pipeline_cycles)
    return NetworkState(
        peak=peak,
        used=used,
        end_factor=end,
        end_buffer=inputs * router.virtual_channels * router.buffer_flits * c.cycle_time,
        wait=wait,
        blocked=(factor - 1.0) * wait,
        links=links,
        pipeline=(stages + delay + ENDS + ALIGNMENT) * c.cycle_time,
    )


def engine_state(
    c: Columns, rate: FloatArray, paths: PathState, *, issue_gap: FloatArray, drain_gap: FloatArray
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
        inject_wait=mean_work(train_rate=own, area=inject_area, intensity=inject_intensity),
        eject_wait=paths.response.end_factor * eject_work,
        inject_intensity=inject_intensity,
        eject_intensity=eject_intensity,
        held_up=_held_up(engines - 1.0, eject_work, eject_intensity, paths.response),
    )


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _held_up(others: float, work: FloatArray, intensity: FloatArray, responses: NetworkState) -> FloatArray:
    """Return how long responses wait at their channel behind those to engines that cannot take them.

    A packet's segments come back from several channels at once, faster than its engine takes them. What
    does not fit into the buffers in front of its ejection link waits at the channels, first come, first
    served, and holds up the responses to the other engines, which hold up each other. The work at
    an ejection link is taken as exponential where there is any. The time grows with the square root of
    the other engines (`ResponseLaw`). Packets that come one by one hold up each other on the way as well;
    the larger of the two counts.
    """
    beyond = work * np.exp(-np.where(work > 0, responses.end_buffer * intensity / work, np.inf))
    room = 1.0 - responses.used
    trains = np.where(others * work > 0, np.where(room > 0, others**LAW.engines * beyond / room, np.inf), 0.0)
    return np.maximum(trains, responses.blocked)


def _at_engine(names: tuple[str, ...], engines: int) -> npt.NDArray[np.bool_]:
    """Return which links are the injection or ejection link of an engine."""
    ends = {f"{kind} {node}" for kind in ("inject", "eject") for node in range(engines)}
    return np.array([name in ends for name in names])
