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
    """

    virtual_channels: int  # virtual channels of each channel
    channel_names: tuple[str, ...]  # injection of node 0, 1, ..., links, ejection of node 0, 1, ...
    channel_kind: Integers  # `INJECTION`, `LINK` or `EJECTION`
    # channel_from, channel_to: routers, -1 for a network interface.
    channel_from: Integers
    channel_to: Integers
    channel_delay: Integers  # cycles of wire beyond the first [cycles]
    channel_cycles_per_flit: Integers  # 1, or more for a link narrower than the network's [cycles]
    # source, target: nodes of each flow.
    source: Integers
    target: Integers
    flits: Integers  # flits of a packet; 1 where packets say how long they are
    priority: Integers  # 0 (first) to 7
    weight: FloatArray  # for weighted arbitration
    circuit: npt.NDArray[np.bool_]  # whether the flow has a path of its own
    path_start: Integers  # where the path of each flow begins; one more at the end
    path_channel: Integers  # channels from injection to ejection
    # path_vc_low, path_vc_high: virtual channels that may be used on each, from low to high - 1.
    path_vc_low: Integers
    path_vc_high: Integers

    def path(self, flow: int) -> tuple[str, ...]:
        """Return the names of the channels of one flow."""
        mine = self.path_channel[self.path_start[flow] : self.path_start[flow + 1]]
        return tuple(self.channel_names[c] for c in mine)
