"""The usual topologies by name, and one from a file of edges."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from qmodels import checks
from qmodels.guarded import guarded
from qmodels.systems.noc.layout import MOST_NODES, grid_nodes
from qmodels.systems.noc.topology import Topology, from_graph


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


def from_edge_file(path: str | os.PathLike[str]) -> Topology:
    r"""Return the topology that a text file lists link by link.

    Every line has two node numbers and, if wanted, the delay [cycles] and the width [bytes] of the
    link, with blanks or commas between. ``a - b`` is a link both ways, ``a -> b`` or just ``a b`` a
    link one way. ``node 3 memory`` gives a node's role. What follows a ``#`` is a remark.

    Raises
    ------
    ValueError
        One line with the file's name and the line's number.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "chip.edges"
    ...     _ = file.write_text("0 - 1 0 16\n1 - 2 3 8  # over the interposer\nnode 2 memory")
    ...     chip = from_edge_file(file)
    >>> chip.links, chip.link_delays, chip.link_widths, chip.memories
    (((0, 1), (1, 0), (1, 2), (2, 1)), (0, 0, 3, 3), (16, 16, 8, 8), (0, 1, 2))
    """
    import networkx as nx

    checks.path("path", path)
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file") from None
    graph: nx.DiGraph[Any] = nx.DiGraph()
    roles: dict[int, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].replace("->", " > ").replace(",", " ").split()
        if not words:
            continue
        try:
            if words[0] == "node":
                _, node, role = words
                roles[int(node)] = role
                continue
            ways = 2 if words[1] == "-" else 1
            ends, extra = _ends(words)
        except (ValueError, IndexError):
            raise ValueError(
                f"{path}:{number}: must be 'from to [delay [width]]' or 'node number role', got {line!r}"
            ) from None
        attributes = dict(zip(("delay", "width"), extra, strict=False))
        graph.add_edge(*ends, **attributes)
        if ways == 2:
            graph.add_edge(*ends[::-1], **attributes)
    if not graph:
        raise ValueError(f"{path}: must have at least one link, got none")
    try:
        count = graph.number_of_nodes()
        unknown = sorted(set(roles) - set(graph.nodes))
        if unknown:
            raise ValueError(f"node {unknown[0]} must be on a link to have a role, got none")
        return from_graph(graph, roles=tuple(roles.get(n, "both") for n in range(count)) if roles else ())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _ends(words: list[str]) -> tuple[tuple[int, int], list[int]]:
    """Return the two nodes of a line and the numbers behind them, at most two."""
    numbers = [int(word) for k, word in enumerate(words) if not (k == 1 and word in "->")]
    if not 2 <= len(numbers) <= 4:
        raise ValueError
    return (numbers[0], numbers[1]), numbers[2:]
