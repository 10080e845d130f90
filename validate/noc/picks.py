"""Which flow the next packet of a source belongs to: in turn, at random, or both."""

from __future__ import annotations

from typing import Any

import numpy as np

from validate.engine.jit import inlined
from validate.engine.streams import uniform

PICK = np.dtype([("other", "i4"), ("keep", "f4")], align=True)
"""An entry of an alias table: a flow stands for itself, or with probability 1 - ``keep`` for another."""


@inlined
def pick_flow(source: Any, pick: Any, group: Any, streams: Any, s: int) -> int:
    """Return the flow of a source's next packet.

    ``source``: with the fields ``first_group``, ``groups``, ``step`` (packets of a group before those of the
    next) and ``sent`` (packets so far); ``pick``, ``group``: an entry for each flow, and first flow and size
    of each group; ``streams``: the flows of source s are drawn from stream s + number of sources.
    """
    g = source[s]["first_group"]
    if source[s]["groups"] > 1:
        g += (source[s]["sent"] // source[s]["step"]) % source[s]["groups"]
    source[s]["sent"] += 1
    first, size = group[g, 0], group[g, 1]
    if size == 1:
        return first
    u = uniform(streams, source.size + s) * size
    k = min(int(u), size - 1)
    return first + k if u - k < pick[first + k]["keep"] else pick[first + k]["other"]
