"""Stationary law of an irreducible chain: dense elimination, sparse factors, or iteration."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.libraries import sparse
from qmodels.numerics.elimination import stationary_dense

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
    from qmodels.markov.chains.structure import chain_classes

    off = rates - np.diag(np.diagonal(rates))
    closed = chain_classes(sparse.csr_array(off)).closed
    if len(closed) != 1:
        raise ValueError(f"{name} must have one closed class of phases, got {len(closed)}")
    law = np.zeros(len(off))
    law[closed[0]] = stationary_dense(off[np.ix_(closed[0], closed[0])])
    return law
