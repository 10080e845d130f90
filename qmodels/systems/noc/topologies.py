"""The usual topologies by name, and one from a file of edges."""

from __future__ import annotations

from qmodels import checks
from qmodels.guarded import guarded
from qmodels.systems.noc.layout import MOST_NODES, grid_nodes
from qmodels.systems.noc.topology import Topology


@guarded
def ring(nodes: int, *, delay: int = 0) -> Topology:
    """Return a ring with links both ways.

    Examples
    --------
    >>> ring(6).route(4, 1)
    (4, 5, 0, 1)
    """
    return Topology(kind="ring", nodes=nodes, delay=delay)


@guarded
def spidergon(nodes: int, *, delay: int = 0) -> Topology:
    """Return a Spidergon: a ring of an even number of nodes with links across.

    Examples
    --------
    >>> spidergon(16).route(0, 6)
    (0, 8, 7, 6)
    """
    return Topology(kind="spidergon", nodes=nodes, delay=delay)


@guarded
def mesh(*shape: int, delay: int = 0) -> Topology:
    """Return a mesh of rows and columns, or of any other number of dimensions.

    Examples
    --------
    >>> mesh(3, 4).route(0, 9)
    (0, 1, 5, 9)
    >>> mesh(2, 2, 2).nodes
    8
    """
    return Topology(kind="mesh", nodes=grid_nodes(shape), shape=shape, delay=delay)


@guarded
def torus(*shape: int, delay: int = 0) -> Topology:
    """Return a torus; ``torus(k, k)`` is the k-ary 2-cube. A folded one has links of delay 1.

    Examples
    --------
    >>> torus(4, 4).route(0, 15)
    (0, 3, 15)
    """
    return Topology(kind="torus", nodes=grid_nodes(shape), shape=shape, delay=delay)


@guarded
def concentrated_mesh(*shape: int, concentration: int = 4, delay: int = 0) -> Topology:
    """Return a mesh whose routers have several nodes each.

    Examples
    --------
    >>> concentrated_mesh(2, 2).route(1, 14)
    (0, 1, 3)
    """
    checks.one_number("topology.concentration", concentration)
    checks.count("topology.concentration", concentration, maximum=MOST_NODES)
    return Topology(
        kind="mesh",
        nodes=grid_nodes(shape) * concentration,
        shape=shape,
        concentration=concentration,
        delay=delay,
    )


@guarded
def crossbar(nodes: int) -> Topology:
    """Return one router with all nodes.

    Examples
    --------
    >>> crossbar(4).route(0, 3)
    (0,)
    """
    return Topology(kind="crossbar", nodes=nodes)


@guarded
def shared_bus(nodes: int, *, delay: int = 0) -> Topology:
    """Return a bus: one link that all packets take in turn.

    Examples
    --------
    >>> shared_bus(4).route(0, 3), shared_bus(4).links
    ((0, 1), ((0, 1),))
    """
    return Topology(kind="bus", nodes=nodes, delay=delay)
