"""Loads and waits on the links of the request and the response network."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.evidence.constants import kept
from qmodels.numerics.kernels import part
from qmodels.numerics.tables import distinct
from qmodels.packet_processor.design import Columns
from qmodels.packet_processor.networks.blocking import FRACTIONS, Group, blocking_factors, blocking_nodes
from qmodels.packet_processor.networks.link_shares import link_shares
from qmodels.queues.general.paced import mean_work

ENDS, ALIGNMENT = 1.0, 0.5
"""Cycles at the network interfaces, and until the next cycle begins, mean. [cycles]"""


class ResponseLaw(NamedTuple):
    """Blocking between responses to several engines.

    Parameters
    ----------
    engines : float
        Power of the number of other engines with which the time grows: the root was read from simulations
        of 2 to 8 engines and 2 to 8 channels, which were not kept.
    """

    engines: float


LAW = kept(ResponseLaw, "packet_processor.responses")

(
    GROUP, TOP, LOW, HIGH, LOW_WEIGHT, HIGH_WEIGHT, WORK, WORK_SQUARE, WORK_TRAINS, PATH_LINKS, PIPELINE,
    END_BUFFER,
) = range(12)  # fmt: skip
"""Columns of a design in one network: which links, and the largest share of packets on one of them; the
points of the shares of short packets around its own, and their weights; work of a packet, square of the work
of its single NoC packets, what trains add to that; links of a path, mean; time of a head flit from the start
of injection to the start of ejection; time of the flits that the buffers in front of the last link hold
[ns]."""
NETWORK = 12
__all__ = ["FRACTIONS", "network", "network_columns"]


@part
def network(rate: Any, z: Any, at: Any, start: Any, links: Any, blocking: Any) -> Any:
    """Return waits of NoC packets in one network between the engines' own links, at a packet rate.

    A NoC packet waits on a link only behind packets that came by another link. Those come in
    trains: the segments of one packet that cross the link one after the other. Blocked heads and full
    buffers lengthen the waits, see `blocking_factors`.

    Returns the traffic intensity of the most loaded link; the same as a part of that at which the network
    saturates; how many times longer packets wait for the last link because of full buffers; waits for busy
    links along a path; what blocked heads and full buffers add to these when packets come one by one.
    """
    group, wait = int(z[at + GROUP]), 0.0
    work, square, trains = z[at + WORK], z[at + WORK_SQUARE], z[at + WORK_TRAINS]
    peak = rate * work * z[at + TOP]
    for k in range(start[group], start[group + 1]):
        area = (square + trains * links[k, 1]) / 2.0
        wait += mean_work(rate * links[k, 0], area, rate * work * links[k, 0], 0.0) * links[k, 2]
    used, factor, end = 0.0, 0.0, 0.0
    for node in (LOW, HIGH):
        weight = z[at + node + LOW_WEIGHT - LOW]
        if weight > 0.0:
            each, between, at_end = blocking_factors(blocking[int(z[at + node])], peak)
            used, factor, end = used + weight * each, factor + weight * between, end + weight * at_end
    return peak, used, end, wait, (factor - 1.0) * wait


def network_columns(
    c: Columns,
) -> tuple[list[FloatArray], list[FloatArray], FloatArray, IntArray, FloatArray]:
    """Return the columns of both networks, all links, the first of each group, and the blocking tables."""
    mean, misses = c.mean_segments, c.miss_rate
    reads, follow = mean + misses, c.square_segments / mean - 1.0
    segments, requests = mean * c.segment_time**2, mean * c.request_time**2
    works = (
        (
            reads / (mean + reads),
            mean * c.segment_time + reads * c.request_time,
            segments + requests + misses * c.request_time**2,
            follow * (segments + requests),
        ),
        (
            np.zeros_like(reads),
            reads * c.segment_time,
            segments + misses * c.segment_time**2,
            follow * segments,
        ),
    )
    sizes = np.stack((c.channels, c.segment_time / c.cycle_time, c.request_time / c.cycle_time)).round()
    keys, of_design = distinct(sizes)
    noc, router = c.spec.noc.structure, c.spec.noc.router
    groups: list[Group] = [
        (int(channels), int(long), int(short)) for channels, long, short in keys.T.tolist()
    ]
    number = {channels: k for k, channels in enumerate(dict.fromkeys(group[0] for group in groups))}
    mine = np.array([number[group[0]] for group in groups])[of_design]
    columns: list[list[FloatArray]] = []
    links: list[FloatArray] = []
    tables: list[FloatArray] = []
    for responses, (short_share, *of_work) in enumerate(works):
        loads = [link_shares(noc, channels)[responses] for channels in number]
        nodes, which, weight = blocking_nodes(
            noc, groups, of_design, responses=bool(responses), short_share=short_share
        )
        of_links = np.array(
            [
                (
                    load.share.max(),
                    load.mean_links,
                    (load.mean_links - 1.0) * float(router.pipeline_cycles)
                    + load.mean_delay
                    + ENDS
                    + ALIGNMENT,
                    load.end_inputs * router.virtual_channels * router.buffer_flits,
                )
                for load in loads
            ]
        )
        top, path, way, buffers = of_links.T[:, mine]
        columns.append(
            [
                mine + float(len(links)), top, *(which + sum(map(len, tables))), *weight, *of_work, path,
                way * c.cycle_time, buffers * c.cycle_time,
            ]
        )  # fmt: skip
        for load in loads:
            met = (load.contention > 0) & ~_at_engine(load.names, noc.initiators)
            again = load.same_target if responses else load.same_source
            links.append(np.stack([load.share, again, load.contention * load.share], axis=1)[met])
        tables.append(nodes)
    start = np.cumsum([0, *map(len, links)])
    return columns[0], columns[1], np.concatenate(links), start, np.concatenate(tables)


def _at_engine(names: tuple[str, ...], engines: int) -> npt.NDArray[np.bool_]:
    """Return which links are the injection or ejection link of an engine."""
    ends = {f"{kind} {node}" for kind in ("inject", "eject") for node in range(engines)}
    return np.array([name in ends for name in names])
