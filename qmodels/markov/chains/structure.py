"""From matrices, functions and graphs to the transitions of a chain, and its communicating classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from qmodels.libraries import sparse

Transitions = Callable[[Any], "Iterable[tuple[Any, float]] | Mapping[Any, float]"]

ROW_SUM_TOLERANCE = 1e-9
"""Largest row sum accepted, relative to the sum of the magnitudes in the row."""


def square_sparse(name: str, matrix: Any) -> Any:
    """Return a square matrix of finite numbers as a SciPy array in compressed rows."""
    if sparse.issparse(matrix):
        matrix = sparse.csr_array(matrix)
        checks.finite(name, matrix.data)
    else:
        matrix = checks.finite(name, matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {tuple(matrix.shape)}")
    rows = sparse.csr_array(matrix, dtype=float)
    rows.sum_duplicates()
    return rows


def off_diagonal(name: str, rows: Any) -> Any:
    """Return the off-diagonal entries, all > 0; a negative one is an error that names its place."""
    entries = rows.tocoo()
    keep = (entries.row != entries.col) & (entries.data != 0)
    row, col, value = entries.row[keep], entries.col[keep], entries.data[keep]
    if np.any(value < 0):
        k = int(np.argmax(value < 0))
        raise ValueError(
            f"{name} must be >= 0 off the diagonal, got {value[k]:.12g} in row {row[k]}, column {col[k]}"
        )
    return sparse.csr_array((value, (row, col)), shape=rows.shape)


def require_row_sums(name: str, rows: Any, wanted: float) -> None:
    """Raise a ValueError that names the first row whose sum is not the wanted one."""
    sums = np.asarray(rows.sum(axis=1)).ravel()
    scale = np.asarray(abs(rows).sum(axis=1)).ravel()
    wrong = np.abs(sums - wanted) > ROW_SUM_TOLERANCE * np.maximum(scale, wanted)
    if wrong.any():
        k = int(np.argmax(wrong))
        raise ValueError(f"{name} must have rows that sum to {wanted:g}, row {k} sums to {sums[k]:.12g}")


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainClasses:
    """Communicating classes of a chain, as indices of states.

    Parameters
    ----------
    closed : tuple of array of int
        Classes that are never left, ordered by their first state.
    transient : array of int
        States outside every closed class.
    """

    closed: tuple[IntArray, ...]
    transient: IntArray

    @property
    def irreducible(self) -> bool:
        """Whether every state can reach every other."""
        return len(self.closed) == 1 and self.transient.size == 0


def chain_classes(rates: Any) -> ChainClasses:
    """Find the strongly connected components that no rate leads out of."""
    from scipy.sparse.csgraph import connected_components

    count, label = connected_components(rates, directed=True, connection="strong")
    entries = rates.tocoo()
    leaving = label[entries.row] != label[entries.col]
    is_closed = np.ones(count, dtype=bool)
    is_closed[label[entries.row[leaving]]] = False
    members = np.argsort(label, kind="stable").astype(np.int64)
    ends = np.cumsum(np.bincount(label, minlength=count))
    groups = [members[end - size : end] for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)]
    closed = sorted((groups[c] for c in np.flatnonzero(is_closed)), key=lambda group: int(group[0]))
    return ChainClasses(closed=tuple(closed), transient=np.flatnonzero(~is_closed[label]).astype(np.int64))


def explore(initial_state: Any, transitions: Transitions, max_states: int) -> tuple[list[Any], Any]:
    """Build the states reachable from one, in order of discovery, and the matrix of their transitions."""
    limit = int(checks.count("max_states", max_states))
    index: dict[Any, int] = {initial_state: 0}
    states = [initial_state]
    rows: list[int] = []
    columns: list[int] = []
    values: list[float] = []
    for k, state in enumerate(states):  # grows while it is walked
        found = transitions(state)
        for target, value in found.items() if isinstance(found, Mapping) else found:
            if not 0 <= value < np.inf:
                raise ValueError(
                    f"transitions must have rates finite and >= 0, got {value!r} from {state!r} to {target!r}"
                )
            if value == 0:
                continue
            j = index.get(target)
            if j is None:
                j = index[target] = len(states)
                states.append(target)
                if j >= limit:
                    raise ValueError(f"transitions must lead to at most max_states = {limit} states")
            rows.append(k)
            columns.append(j)
            values.append(value)
    n = len(states)
    return states, sparse.csr_array((np.array(values, dtype=float), (rows, columns)), shape=(n, n))


def from_networkx(graph: Any, weight: str) -> tuple[list[Any], Any]:
    """Return the nodes of a directed graph and the matrix of an edge attribute."""
    nodes = list(graph.nodes)
    if not nodes:
        raise ValueError("graph must have at least one node, got none")
    if not graph.is_directed():
        raise ValueError(
            "graph must be directed, got an undirected one; graph.to_directed() gives both directions"
        )
    index = {node: k for k, node in enumerate(nodes)}
    rows, columns, values = [], [], []
    for source, target, value in graph.edges(data=weight):
        if value is None:
            raise ValueError(
                f"graph must have the edge attribute {weight!r}, edge ({source!r}, {target!r}) has none"
            )
        if not 0 <= float(value) < np.inf:
            raise ValueError(
                f"graph must have {weight!r} finite and >= 0, got {value!r} from {source!r} to {target!r}"
            )
        rows.append(index[source])
        columns.append(index[target])
        values.append(float(value))
    n = len(nodes)
    return nodes, sparse.csr_array((np.array(values), (rows, columns)), shape=(n, n))
