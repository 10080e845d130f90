"""Channels and the paths over them in arrays: what flows of packets and services of programs share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.noc.routes import Integers

INJECTION, LINK, EJECTION = 0, 1, 2
"""Kinds of channels."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PathTable:
    """Channels, and flows with their paths.

    Every node has an injection channel into a router and an ejection channel out of one, used or
    not.

    Parameters
    ----------
    virtual_channels : int
        Virtual channels of each channel.
    channel_names : tuple of str
        Injection of node 0, 1, ..., links, ejection of node 0, 1, ...
    channel_kind : array of int
        `INJECTION`, `LINK` or `EJECTION`.
    channel_from, channel_to : array of int
        Routers, -1 for a network interface.
    channel_delay : array of int
        Cycles of wire beyond the first. [cycles]
    channel_cycles_per_flit : array of int
        1, or more for a link narrower than the network's. [cycles]
    source, target : array of int
        Nodes of each flow.
    flits : array of int
        Flits of a packet; 1 where packets say how long they are.
    priority : array of int
        0 (first) to 7.
    weight : array of float
        For weighted arbitration.
    circuit : array of bool
        Whether the flow has a path of its own.
    path_start : array of int
        Where the path of each flow begins; one more at the end.
    path_channel : array of int
        Channels from injection to ejection.
    path_vc_low, path_vc_high : array of int
        Virtual channels that may be used on each, from low to high - 1.
    """

    virtual_channels: int
    channel_names: tuple[str, ...]
    channel_kind: Integers
    channel_from: Integers
    channel_to: Integers
    channel_delay: Integers
    channel_cycles_per_flit: Integers
    source: Integers
    target: Integers
    flits: Integers
    priority: Integers
    weight: FloatArray
    circuit: npt.NDArray[np.bool_]
    path_start: Integers
    path_channel: Integers
    path_vc_low: Integers
    path_vc_high: Integers

    def path(self, flow: int) -> tuple[str, ...]:
        """Return the names of the channels of one flow."""
        mine = self.path_channel[self.path_start[flow] : self.path_start[flow + 1]]
        return tuple(self.channel_names[c] for c in mine)
