"""Routes through a network-on-chip as data: entries of a routing table, and many routes in arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

Integers = npt.NDArray[np.integer[Any]]
"""Whole numbers of any width: long tables take less room in narrow ones."""

ANY_CLASS = -1
"""Class of a hop that may use every virtual channel."""


@dataclass(frozen=True, kw_only=True)
class SourceRoute:
    """One entry of a source's routing table.

    Parameters
    ----------
    source, target : int
        Nodes.
    routers : tuple of int
        Routers visited, both ends included.
    share : float
        Part of the packets between the two nodes that take this route; the shares of a pair add up
        to 1.
    """

    source: int
    target: int
    routers: tuple[int, ...]
    share: float = 1.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Routes:
    """Routes of many pairs of nodes, one after the other."""

    pair: Integers  # of each route the position of its pair of nodes in the arrays asked for
    share: FloatArray  # part of the pair's packets that take the route
    start: Integers  # where each route begins in ``routers``; one more at the end
    routers: Integers  # routers visited, both ends included
    # Class of the hop from each of ``routers`` to the next: 0 or 1, -1 for any (and at the last).
    vc_class: Integers

    def path(self, route: int) -> tuple[int, ...]:
        """Return the routers of one route."""
        return tuple(self.routers[self.start[route] : self.start[route + 1]].tolist())
