"""Networks of a packet processor: who shares which links, and how long packets wait for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray
from qmodels.evidence.constants import kept
from qmodels.noc.turns import Turns, group_turns
from qmodels.noc.waits import find_waits, saturation_load
from qmodels.numerics.kernels import part
from qmodels.numerics.tables import between, distinct
from qmodels.packet_processor.design import Columns
from qmodels.queues.general.transient import mean_work
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.router import PacketClass
from qmodels.systems.noc.routes import EJECTION
from qmodels.systems.packets.packet_processor import ProcessorNoc, one_network


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkShares:
    """Traffic of one network when every source sends evenly to every target."""

    names: tuple[str, ...]  # the channels
    share: FloatArray  # probability that a NoC packet crosses the channel
    # Probability that two packets on the channel came by different ones: packets that already follow one
    # another on the channel before cannot meet again (0 for injection channels).
    contention: FloatArray
    # same_source, same_target: probability that another NoC packet crosses the channel as well, given that
    # one did: one of the same source to a random target, and one to the same target from a random source.
    same_source: FloatArray
    same_target: FloatArray
    mean_links: float  # channels of a path, injection and ejection included
    mean_delay: float  # wires of a path beyond the first cycle of each [cycles]
    end_inputs: float  # channels from which packets come into an ejection channel, mean


@lru_cache(maxsize=256)
def link_shares(noc: ProcessorNoc, channels: int) -> tuple[LinkShares, LinkShares]:
    """Return the shares of the network of requests and of that of responses."""
    both = noc.networks(channels)
    return _shares(both.requests), _shares(both.responses)


@dataclass(frozen=True, eq=False)
class Paths:
    """The paths of a network; as they are equal only to themselves, they are soon looked up."""

    noc: ProcessorNoc


@lru_cache(maxsize=256)
def paths_of(noc: ProcessorNoc) -> Paths:
    """Return the paths of a network, the same ones for equal networks."""
    return Paths(noc)


@lru_cache(maxsize=256)
def inner_links(noc: ProcessorNoc, channels: int) -> npt.NDArray[np.int64]:
    """Return the most crossed channel of the path of requests but for its first and its last.

    An array (engines, channels), numbered from 0; -1 where a path has none in between.

    >>> from qmodels.systems.noc.topology import ring
    >>> inner_links(ProcessorNoc(topology=ring(4), initiators=2), 1).tolist()
    [[0], [0]]
    """
    table = noc.networks(channels).requests
    count = np.bincount(table.paths.channel, minlength=len(table.channel_names))
    found = np.full((noc.initiators, channels), -1)
    ends = [np.unique(end, return_inverse=True)[1] for end in (table.source, table.target)]
    for flow, (engine, channel) in enumerate(zip(*ends, strict=True)):
        path = table.paths.channel[table.paths.start[flow] + 1 : table.paths.start[flow + 1] - 1]
        if path.size:
            found[engine, channel] = path[np.argmax(count[path])]
    used = found >= 0
    found[used] = np.unique(found[used], return_inverse=True)[1]
    return found


def _shares(table: FlowTable) -> LinkShares:
    flows, count = table.source.size, len(table.channel_names)
    hops = np.diff(table.paths.start)
    flow, channel = np.repeat(np.arange(flows), hops), table.paths.channel.astype(np.int64)
    share = np.bincount(channel, minlength=count) / flows
    before = np.where(np.isin(np.arange(channel.size), table.paths.start[:-1]), -1, np.roll(channel, 1))
    turn, crossings = np.unique((before + 1) * count + channel, return_counts=True)
    together = np.bincount(turn % count, weights=(crossings / flows) ** 2, minlength=count)
    used = np.where(share > 0, share, 1.0)
    ends = np.unique(channel[table.paths.start[1:] - 1])

    def again(end: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """Return the mean square, over the nodes of one end, of the part of its packets on each channel."""
        nodes, of_flow = np.unique(end, return_inverse=True)
        part = np.zeros((nodes.size, count))
        np.add.at(part, (of_flow[flow], channel), nodes.size / flows)
        return np.asarray((part**2).mean(axis=0) / used)

    return LinkShares(
        names=table.channel_names,
        share=share,
        contention=np.where(share > 0, 1.0 - together / used**2, 0.0),
        same_source=again(table.source),
        same_target=again(table.target),
        mean_links=float(hops.mean()),
        mean_delay=float(table.channel_delay[channel].sum() / flows),
        end_inputs=float(np.isin(turn % count, ends).sum() / ends.size),
    )


FRACTIONS = np.array([0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.94, 0.98])
"""Loads, as parts of that at which the network saturates, between which is interpolated."""
SHARE_STEP = 0.1
"""Of the shares of short packets between which is interpolated."""


Group = tuple[int, int, int]
"""Channels, and flits of a long and of a short packet."""


def blocking_nodes(
    noc: ProcessorNoc, groups: Sequence[Group], group: IntArray, *, responses: bool, short_share: FloatArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return rows of a table, one for a share of short packets, and the two around each design, weighed.

    ``groups``, ``group``: the designs' channels and packets, and which of these each has; ``responses``:
    which of the two networks; ``short_share``: share of the short packets, one value per design. A row holds
    the traffic intensity of the most loaded channel at which the network saturates, at most 1; then, at
    `FRACTIONS` of it, how many times longer packets wait on their way than if they waited for busy channels
    alone; then the same for the ejection channel of an engine.

    The wormhole model of `qmodels.noc.solve_noc` for even traffic of single packets; the factors are
    applied to waits behind trains of packets, which full buffers lengthen in proportion.
    """
    place, steps = np.clip(short_share, 0.0, 1.0) / SHARE_STEP, round(1.0 / SHARE_STEP)
    low = np.minimum(np.floor(place), steps - 1.0)
    around = np.stack([low, low + 1.0])
    weight = 1.0 - np.abs(place - around)
    around = np.where(weight > 0.0, around, around[::-1]).astype(np.int64)
    nodes, which = np.unique(group * (steps + 1) + around, return_inverse=True)
    split = (divmod(node, steps + 1) for node in nodes.tolist())
    rows = [_blocking(noc, responses, groups[k], round(node * SHARE_STEP, 6)) for k, node in split]
    return np.array(rows), which.reshape(around.shape), weight


@part
def blocking_factors(row: Any, intensity: Any) -> Any:
    """Return the load as a part of the network's capacity, and the factors on the way and at its end.

    ``row``: one of `blocking_nodes`; ``intensity``: traffic intensity of the most loaded channel.
    """
    used, count = intensity / row[0], FRACTIONS.size
    k, ahead = between(FRACTIONS, used)
    low, high = 1 + k, 1 + count + k
    on_way = row[low] + ahead * (row[low + 1] - row[low])
    return used, on_way, row[high] + ahead * (row[high + 1] - row[high])


@lru_cache(maxsize=512)
def _blocking(noc: ProcessorNoc, responses: bool, group: Group, short: float) -> FloatArray:
    channels, *flits = group
    mix = tuple(
        PacketClass(flits=length, share=share)
        for length, share in zip(flits, (1.0 - short, short), strict=True)
        if share > 0
    )
    network = one_network(noc, channels, responses=responses, mix=mix)
    table = network.flow_table()
    turns = group_turns(table, noc.router, rate=table.unit_rate)
    limit = saturation_load(turns)
    loads = FRACTIONS * limit
    waits = find_waits(turns, loads).at_turn
    ejections = np.flatnonzero(table.channel_kind == EJECTION)
    engine_end = np.isin(np.arange(len(table.channel_names)), ejections[: noc.initiators])
    last = engine_end[turns.sink] if responses else np.zeros(turns.sink.size, dtype=bool)
    alone = _output_waits(turns, loads)
    factors = []
    for here in (~last, last):
        with_blocking, without = ((w[:, here] * turns.packets[here]).sum(axis=1) for w in (waits, alone))
        ratio = np.ones(loads.size)
        np.divide(with_blocking, without, out=ratio, where=np.isfinite(with_blocking) & (without > 1e-9))
        factors.append(np.maximum.accumulate(np.maximum(ratio, 1.0)))
    return np.concatenate([[min(limit * float(table.channel_load().max()), 1.0)], *factors])


def _output_waits(turns: Turns, loads: FloatArray) -> FloatArray:
    """Return the wait at each turn of a packet that waits for the channel alone, (loads, turns) [cycles].

    Behind packets from other channels: the same M/D/1-like work that `links.network` counts.
    """
    count = turns.channels.shape[0]

    def of_channel(values: FloatArray, sink: Any = turns.sink) -> FloatArray:
        return np.asarray(np.bincount(sink, values, minlength=count), dtype=float)

    packets, work, square = (of_channel(v) for v in (turns.packets, turns.work, turns.square))
    together = of_channel(turns.packets**2)
    met = 1.0 - np.divide(together, packets**2, out=np.ones(count), where=packets > 0)
    intensity = np.minimum(np.multiply.outer(loads, work), 1.0 - 1e-9)
    wait = np.multiply.outer(loads, square / 2.0 * met) / (1.0 - intensity)
    return np.asarray(wait[:, turns.sink])


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
