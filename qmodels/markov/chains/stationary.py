"""Stationary law of a finite chain: its classes and periods, then elimination without subtractions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.libraries import sparse
from qmodels.numerics.elimination import stationary_dense

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


METHODS = ("auto", "gth", "direct", "iterative")

LARGEST_DENSE = 2_000
"""States up to which "auto" eliminates without subtraction: every probability to 1e-13."""
LARGEST_DIRECT = 20_000
"""States up to which "auto" factors instead of iterating: some seconds for a grid of three dimensions."""
LARGEST_ERROR = 1e-6
"""Relative error of a probability, estimated from the passage times, above which factors are refused."""
SEPARATE = (
    "parts of the chain are all but separate, which factors cannot weigh: use method='gth', or lump states"
)
ILU = {"drop_tol": 1e-3, "fill_factor": 10.0}
"""Of the preconditioner; 10 to 50 steps of GMRES then reach 1e-14 for tandems of 1e4 to 1e6 states."""


def balance_residual(rates: Any, law: FloatArray) -> float:
    """Return the sum of abs(inflow - outflow) over the states, relative to the total flow.

    Free of the unit of time and of the magnitude of the rates. 0 for a single state.
    """
    outflow = law * np.asarray(rates.sum(axis=1)).ravel()
    total = float(outflow.sum())
    return float(np.abs(rates.T @ law - outflow).sum()) / total if total > 0 else 0.0


def solve_irreducible(
    rates: Any, *, method: str = "auto", tolerance: float = 1e-12, max_iterations: int = 1000
) -> tuple[FloatArray, float, str, int]:
    """Return the law, its balance residual, the method used and its iterations.

    ``rates``: off-diagonal rates (or probabilities) in compressed rows, one communicating class; ``method``:
    see `qmodels.markov.CTMC.stationary`; ``tolerance``: largest residual that the iteration accepts;
    ``max_iterations``: cycles after which the iteration gives up.
    """
    method = checks.choice("method", method, METHODS)
    limit = float(checks.positive("tolerance", tolerance))
    cycles = int(checks.count("max_iterations", max_iterations))
    n = rates.shape[0]
    if n == 1:
        return np.ones(1), 0.0, "gth", 0
    if method == "gth" or (method == "auto" and n <= LARGEST_DENSE):
        try:
            law = stationary_dense(rates.toarray())
            return law, balance_residual(rates, law), "gth", 0
        except RuntimeError as error:
            if method == "gth":
                raise
            try:  # jump probabilities span less
                return *_JumpChain(rates).direct(), "direct", 0
            except RuntimeError:
                raise error from None
    chain = _JumpChain(rates)
    if method == "direct" or (method == "auto" and n <= LARGEST_DIRECT):
        return *chain.direct(), "direct", 0
    law, residual, cycles = chain.iterated(limit, cycles)
    return law, residual, "iterative", cycles


class _JumpChain:
    r"""Visits y between two returns to a state r, :math:`(I - P^T)\,y = 0` with y_r = 1, by SciPy's SuperLU.

    P holds jump probabilities: rates of any magnitude, numbers of one. Without the row and column of r the
    matrix is an M-matrix, factored without pivoting: the solution has no negative numbers, and where r is
    visited often small ones keep their digits, too.
    """

    def __init__(self, rates: Any) -> None:
        self.rates, self.exit = rates, np.asarray(rates.sum(axis=1)).ravel()
        # What fits no double after the division is a path nobody takes.
        self.jumps = (sparse.diags_array(1.0 / self.exit) @ rates).T.tocsr()
        visits = np.full(self.exit.size, 1.0 / self.exit.size)
        for _ in range(100):
            visits = 0.5 * (visits + self.jumps @ visits)
        self._refer(int(np.argmax(visits)))

    def _refer(self, state: int) -> None:
        """Choose the state between whose visits the others are counted."""
        kept = np.delete(np.arange(self.exit.size), state)
        rest = self.jumps[kept]
        self.state, self.kept, self.start = state, kept, rest[:, [state]].toarray().ravel()
        self.matrix = (sparse.eye_array(kept.size) - rest[:, kept]).tocsc()

    def _law(self, others: FloatArray) -> tuple[FloatArray, float]:
        law = np.empty(self.exit.size)
        law[self.state], law[self.kept] = 1.0, np.maximum(others, 0.0)
        law *= self.exit.min() / self.exit
        law /= law.sum()
        return law, balance_residual(self.rates, law)

    def _factors(self, factor: Any, **options: Any) -> Any:
        try:
            return factor(
                self.matrix,
                permc_spec="MMD_AT_PLUS_A",
                diag_pivot_thresh=0.0,
                options={"SymmetricMode": True},
                **options,
            )
        except RuntimeError as error:  # "Factor is exactly singular"
            raise RuntimeError(SEPARATE) from error

    def direct(self) -> tuple[FloatArray, float]:
        """Return the law and its residual by factors of the whole matrix."""
        from scipy.sparse.linalg import splu

        for again in (True, False):
            factors = self._factors(splu)
            visits = factors.solve(self.start)
            # Steps until r is met: an error of one rounding each adds up to that of a probability.
            steps = factors.solve(np.ones(visits.size), trans="T")
            if steps.min() >= 1.0 and steps.max() * np.finfo(float).eps <= LARGEST_ERROR:
                return self._law(visits)
            if again and np.isfinite(visits).all() and np.max(np.abs(visits), initial=0.0) > 1.0:
                self._refer(int(self.kept[np.argmax(np.abs(visits))]))
            else:
                break
        raise RuntimeError(SEPARATE)

    def iterated(self, tolerance: float, most: int) -> tuple[FloatArray, float, int]:
        """Return the law, its residual and how many cycles of restarted GMRES it took."""
        from scipy.sparse.linalg import LinearOperator, gmres, spilu

        factors = self._factors(spilu, **ILU)
        near = LinearOperator(self.matrix.shape, factors.solve)
        visits = factors.solve(self.start)
        for cycle in range(1, most + 1):
            visits, _ = gmres(self.matrix, self.start, x0=visits, M=near, rtol=1e-15, restart=30, maxiter=1)
            law, residual = self._law(visits)
            if residual <= tolerance:
                return law, residual, cycle
        raise RuntimeError(
            f"the iteration stopped after {most} cycles at a residual of {residual:.2g}, above the "
            f"tolerance {tolerance:.2g}: allow more max_iterations, or use method='direct' if memory permits"
        )


def single_class_law(name: str, rates: FloatArray) -> FloatArray:
    """Return the stationary law of a small chain with one closed class, 0 at its transient states."""
    off = rates - np.diag(np.diagonal(rates))
    closed = chain_classes(sparse.csr_array(off)).closed
    if len(closed) != 1:
        raise ValueError(f"{name} must have one closed class of phases, got {len(closed)}")
    law = np.zeros(len(off))
    law[closed[0]] = stationary_dense(off[np.ix_(closed[0], closed[0])])
    return law
