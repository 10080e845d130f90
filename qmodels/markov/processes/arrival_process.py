"""Markovian arrival processes: correlated arrivals driven by a hidden finite chain."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.chains.stationary import single_class_law
from qmodels.markov.chains.structure import off_diagonal, require_row_sums, square_sparse
from qmodels.markov.processes.phase_type import PhaseType
from qmodels.markov.words import described


@dataclass(frozen=True, kw_only=True, eq=False)
class MAP:
    r"""A Markovian arrival process.

    Parameters
    ----------
    d0 : array_like, shape (n, n)
        Rates of phase changes without an arrival, >= 0 off the diagonal. [1 / time]
    d1 : array_like, shape (n, n)
        Rates of phase changes (or none) with an arrival, >= 0; the rows of d0 + d1 sum to 0.

    Raises
    ------
    ValueError
        If an entry or a row sum is wrong, there are no arrivals, or the phases have several
        closed classes.

    Notes
    -----
    With :math:`\theta (D_0 + D_1) = 0` the rate is :math:`\theta D_1 \mathbf{1}`; the phase after
    an arrival is a chain with transition matrix :math:`P = (-D_0)^{-1} D_1` and law
    :math:`\varphi`; times between arrivals are phase-type :math:`(\varphi, D_0)` and

    .. math:: \mathrm{cov}(X_0, X_k) = \varphi (-D_0)^{-1} P^k (-D_0)^{-1} \mathbf{1} - E[X]^2 .

    References
    ----------
    .. [1] D. M. Lucantoni, "New results on the single server queue with a batch Markovian
       arrival process", Stochastic Models 7 (1991), 1-46.

    Examples
    --------
    A DMA engine that sends 0.8 requests per cycle for some 50 cycles and then 0.02 for some 150:

    >>> dma = MAP.mmpp(generator=[[-1 / 50, 1 / 50], [1 / 150, -1 / 150]], rates=[0.8, 0.02])
    >>> round(dma.rate, 6), round(dma.scv, 4), dma.lag_correlation([1, 2]).round(4)
    (0.215, 11.4977, array([0.3361, 0.2474]))
    """

    d0: Any
    d1: Any

    def __post_init__(self) -> None:
        quiet = square_sparse("d0", self.d0)
        arriving = square_sparse("d1", self.d1)
        if arriving.shape != quiet.shape:
            raise ValueError(f"d1 must have the shape of d0 {quiet.shape}, got {arriving.shape}")
        moves = off_diagonal("d0", quiet).toarray()
        marks = arriving.toarray()
        if np.any(marks < 0):
            i, j = np.argwhere(marks < 0)[0]
            raise ValueError(f"d1 must be >= 0, got {marks[i, j]:.12g} in row {i}, column {j}")
        require_row_sums("d0 + d1", quiet + arriving, 0.0)
        if not np.any(marks > 0):
            raise ValueError("d1 must hold a rate > 0, got none: there would be no arrivals")
        object.__setattr__(self, "d0", moves - np.diag(moves.sum(axis=1) + marks.sum(axis=1)))
        object.__setattr__(self, "d1", marks)
        if not self.rate > 0:
            raise ValueError("d1 must hold a rate > 0 in the recurrent phases, got none there")

    @classmethod
    def poisson(cls, *, rate: float) -> MAP:
        """Return the Poisson process.

        Examples
        --------
        >>> MAP.poisson(rate=3.0).rate
        3.0
        """
        r = float(checks.positive("rate", rate))
        return cls(d0=[[-r]], d1=[[r]])

    @classmethod
    def mmpp(cls, *, generator: npt.ArrayLike, rates: npt.ArrayLike) -> MAP:
        """Return the Poisson process whose rate follows a Markov chain.

        Parameters
        ----------
        generator : array_like, shape (n, n)
            Generator of the chain. [1 / time]
        rates : array_like, shape (n,)
            Arrival rate in each state, >= 0. [1 / time]

        Examples
        --------
        >>> MAP.mmpp(generator=[[-1, 1], [1, -1]], rates=[4.0, 2.0]).rate
        3.0
        """
        rows = square_sparse("generator", generator)
        arrivals = checks.nonnegative("rates", rates)
        if arrivals.shape != (rows.shape[0],):
            raise ValueError(
                f"rates must have one rate per state ({rows.shape[0]}), got shape {arrivals.shape}"
            )
        require_row_sums("generator", rows, 0.0)
        marks = np.diag(arrivals)
        return cls(d0=rows.toarray() - marks, d1=marks)

    @classmethod
    def renewal(cls, law: PhaseType) -> MAP:
        """Return the process with independent phase-type times between arrivals.

        Examples
        --------
        >>> MAP.renewal(PhaseType.erlang(mean=0.5, phases=2)).rate
        2.0
        """
        return cls(d0=law.generator, d1=np.outer(law.exit_rates, law.initial))

    @property
    def phases(self) -> int:
        """Number of phases."""
        return len(self.d0)

    @cached_property
    def phase_law(self) -> FloatArray:
        """Stationary law of the phase at an arbitrary time."""
        return single_class_law("d0 + d1", self.d0 + self.d1)

    @cached_property
    def rate(self) -> float:
        """Arrivals per unit of time [1 / time]."""
        return float(self.phase_law @ self.d1.sum(axis=1))

    @cached_property
    def arrival_phase_law(self) -> FloatArray:
        """Stationary law of the phase just after an arrival."""
        return np.asarray(self.phase_law @ self.d1 / self.rate)

    @cached_property
    def interarrival(self) -> PhaseType:
        """Law of the time between two arrivals."""
        return PhaseType(initial=self.arrival_phase_law, generator=self.d0)

    @property
    def scv(self) -> float:
        """Squared coefficient of variation of the time between arrivals."""
        return self.interarrival.scv

    def lag_correlation(self, k: npt.ArrayLike) -> FloatArray:
        """Return the correlation of times between arrivals that lie k >= 1 apart."""
        lags = checks.count("k", k)
        law = self.interarrival
        mean = law.solve(np.ones(self.phases))
        after = law.solve(self.d1)
        # Taken from each vector, its mean does not have to be subtracted at the end.
        centred = mean - law.mean
        left = self.arrival_phase_law @ law.solve(np.eye(self.phases))
        variance = float(law.moment(2)) - law.mean**2
        result = np.empty(lags.size)
        for i, lag in enumerate(lags.ravel()):
            result[i] = left @ np.linalg.matrix_power(after, int(lag)) @ centred / variance
        return result.reshape(lags.shape)[()]

    @cached_property
    def index_of_dispersion(self) -> float:
        """Limit of the variance of the number of arrivals over its mean; 1 for Poisson."""
        theta = self.phase_law
        change = self.d0 + self.d1
        # The projection is scaled like the rates; the answer does not depend on its size.
        projection = np.outer(np.ones(self.phases), theta) * np.abs(self.d0).max()
        excess = np.linalg.solve(projection - change, self.d1.sum(axis=1) - self.rate)
        return float(1 + 2 * (theta @ self.d1 @ excess) / self.rate)

    def scaled(self, factor: float) -> MAP:
        """Return the process with every rate multiplied by a factor > 0."""
        f = float(checks.positive("factor", factor))
        return MAP(d0=self.d0 * f, d1=self.d1 * f)

    @described()
    def sample(self, *, size: int, rng: np.random.Generator) -> FloatArray:
        """Draw successive times between arrivals of the stationary process.

        Returns
        -------
        array of length `size`. [time]

        Examples
        --------
        >>> x = MAP.poisson(rate=2.0).sample(size=20_000, rng=np.random.default_rng(1))
        >>> bool(abs(x.mean() - 0.5) < 0.02)
        True
        """
        count = int(checks.count("size", size, minimum=0))
        n = self.phases
        total = -self.d0.diagonal()
        jump = np.concatenate([self.d0 + np.diag(total), self.d1], axis=1) / total[:, None]
        cumulative = np.cumsum(jump, axis=1)
        cumulative[:, -1] = 1.0
        rows = [row.tolist() for row in cumulative]
        start = np.cumsum(self.arrival_phase_law)
        phase = min(int(np.searchsorted(start, rng.random(), side="right")), n - 1)
        gaps = np.zeros(count)
        done = 0
        while done < count:
            draws = rng.random(4096).tolist()
            holds = rng.exponential(size=4096).tolist()
            for u, hold in zip(draws, holds, strict=True):
                gaps[done] += hold / total[phase]
                target = bisect_right(rows[phase], u)
                phase = target % n
                if target >= n:
                    done += 1
                    if done == count:
                        break
        return gaps


@described("lucantoni1991")
def map_superposition(processes: Sequence[MAP]) -> MAP:
    """Merge independent processes.

    Parameters
    ----------
    processes : sequence of MAP
        At least one.

    Returns
    -------
    MAP
        Its phases are the combinations of theirs; the rates add up.

    Raises
    ------
    ValueError
        If there is no process.

    Examples
    --------
    >>> map_superposition([MAP.poisson(rate=1.0), MAP.poisson(rate=2.0)]).rate
    3.0
    """
    if not processes:
        raise ValueError("processes must hold at least one process, got none")
    merged = processes[0]
    for other in processes[1:]:
        here, there = np.eye(merged.phases), np.eye(other.phases)
        merged = MAP(
            d0=np.kron(merged.d0, there) + np.kron(here, other.d0),
            d1=np.kron(merged.d1, there) + np.kron(here, other.d1),
        )
    return merged
