"""Which share of even traffic crosses each channel of a network, and from how many sides it comes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.packets.packet_processor import ProcessorNoc


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
    count = np.bincount(table.path_channel, minlength=len(table.channel_names))
    found = np.full((noc.initiators, channels), -1)
    ends = [np.unique(end, return_inverse=True)[1] for end in (table.source, table.target)]
    for flow, (engine, channel) in enumerate(zip(*ends, strict=True)):
        path = table.path_channel[table.path_start[flow] + 1 : table.path_start[flow + 1] - 1]
        if path.size:
            found[engine, channel] = path[np.argmax(count[path])]
    used = found >= 0
    found[used] = np.unique(found[used], return_inverse=True)[1]
    return found


def _shares(table: FlowTable) -> LinkShares:
    flows, count = table.source.size, len(table.channel_names)
    hops = np.diff(table.path_start)
    flow, channel = np.repeat(np.arange(flows), hops), table.path_channel.astype(np.int64)
    share = np.bincount(channel, minlength=count) / flows
    before = np.where(np.isin(np.arange(channel.size), table.path_start[:-1]), -1, np.roll(channel, 1))
    turn, crossings = np.unique((before + 1) * count + channel, return_counts=True)
    together = np.bincount(turn % count, weights=(crossings / flows) ** 2, minlength=count)
    used = np.where(share > 0, share, 1.0)
    ends = np.unique(channel[table.path_start[1:] - 1])

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
