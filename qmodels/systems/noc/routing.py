"""Routing in a network-on-chip: rules that give the routes between nodes, with the VC class of every hop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.noc.grid_routes import o1turn_routes, ring_routes
from qmodels.systems.noc.layout import Layout
from qmodels.systems.noc.routes import Routes, SourceRoute
from qmodels.systems.noc.table_routes import next_hops, table_routes, walk

ROUTINGS = ("default", "dimension-order", "across-first", "shortest", "up-down", "o1turn", "table")
"""Names of the routings, see `find_routes`."""

TIES = ("first", "split")


def find_routes(
    topology: Layout,
    routing: str = "default",
    *,
    source: npt.ArrayLike,
    target: npt.ArrayLike,
    ties: str = "first",
    table: Sequence[SourceRoute] = (),
) -> Routes:
    """Return the routes between pairs of nodes.

    Parameters
    ----------
    topology : Topology or its Layout
        Routers and links.
    routing : str
        "dimension-order" goes along the last dimension first (in a mesh of rows and columns: XY), in
        rings and tori the shorter way round; "o1turn" goes half of the packets of a mesh so and half
        with the dimensions in the opposite order. "across-first" is that of a Spidergon: along the
        ring for up to a quarter of its length, otherwise over the cross link and then along the
        ring. "shortest" takes the fewest hops and leaves each router for its lowest-numbered
        neighbour on such a path. "up-down" takes the fewest hops among the paths that go up a
        breadth-first tree from router 0 and then down, on which no deadlock is possible, again by
        the lowest-numbered neighbour. "table" looks up ``table``. "default" is across-first on a
        Spidergon, shortest on a custom graph and dimension-order elsewhere.
    source, target : array of int
        Nodes.
    ties : {"first", "split"}
        Which way round a ring or torus to a router that is equally far both ways: clockwise (to the
        next higher number), or half of the packets each way.
    table : sequence of SourceRoute
        For the routing "table".

    Returns
    -------
    Routes
        Sorted by pair.

    Raises
    ------
    ValueError
        If the routing does not fit the topology, or a table lacks a pair, has shares that do not add
        up to 1, or has a route over links that do not exist.

    Notes
    -----
    VC classes: packets that pass from the last router of a ring to the first or back, in a dimension,
    use class 1 on all hops in it, the others class 0; neither can close the ring then [1]_. The
    hops of o1turn have class 0 with the usual order and 1 with the other. The rest is in no class.

    References
    ----------
    .. [1] W. J. Dally, C. L. Seitz, "Deadlock-free message routing in multiprocessor interconnection
       networks", IEEE Transactions on Computers C-36(5), 1987 (the class here is fixed for the
       dimension when a packet enters it; its proof is the check in `qmodels.systems.noc.deadlock`).

    Examples
    --------
    >>> routes = find_routes(Layout(kind="ring", nodes=4), source=[0, 3], target=[2, 0], ties="split")
    >>> [(routes.path(k), float(routes.share[k])) for k in range(3)]
    [((0, 1, 2), 0.5), ((0, 3, 2), 0.5), ((3, 0), 1.0)]
    """
    checks.choice("routing", routing, ROUTINGS)
    checks.choice("ties", ties, TIES)
    if routing == "default":
        routing = topology.default_routing
    source, target = np.broadcast_arrays(
        checks.count("source", source, minimum=0, maximum=topology.nodes - 1),
        checks.count("target", target, minimum=0, maximum=topology.nodes - 1),
    )
    source, target = source.ravel(), target.ravel()
    if table and routing != "table":
        raise ValueError(f"routes must be left out unless routing is 'table', got {len(table)} of them")
    if routing == "table":
        return table_routes(topology, table, source, target)
    begin, end = topology.injects_into(source), topology.ejects_from(target)
    fitting = {topology.default_routing, "shortest", "up-down", "table"}
    if topology.kind == "mesh":
        fitting.add("o1turn")
    if routing not in fitting:
        words = ", ".join(word for word in ROUTINGS if word in fitting)
        raise ValueError(f"routing of a {topology.kind} must be one of {words}, got {routing!r}")
    if routing == "o1turn":
        return o1turn_routes(topology, begin, end)
    if routing in ("shortest", "up-down") or topology.kind in ("crossbar", "bus"):
        return walk(next_hops(topology, routing == "up-down"), begin, end)
    return ring_routes(topology, begin, end, split=ties == "split")
