"""Formulas of Markovian arrival processes: correlated arrivals driven by a hidden finite chain."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.of_law import process
from qmodels.laws.phases import Phases
from qmodels.markov.chains.stationary import single_class_law
from qmodels.markov.words import described
from qmodels.systems.laws.fields import nested
from qmodels.systems.laws.times import MAP, Law


class Arrivals:
    r"""A Markovian arrival process, or any law of phases, as the models take it.

    Parameters
    ----------
    name : str
        The argument, for errors.
    law : Law
        A `MAP`, or the law of independent gaps that are made of phases.

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
    """

    def __init__(self, name: str, law: Law) -> None:
        found = process(name, law)
        quiet, self.d1 = np.array(found.d0), np.array(found.d1)
        moves = quiet - np.diag(quiet.diagonal())
        self.d0: FloatArray = moves - np.diag(moves.sum(axis=1) + self.d1.sum(axis=1))

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
    def interarrival(self) -> Phases:
        """Law of the time between two arrivals."""
        return Phases(self.arrival_phase_law, self.d0)


@described("lucantoni1991 (the process)")
def lag_correlation(arrivals: Law, k: npt.ArrayLike) -> FloatArray:
    """Return the correlation of times between arrivals that lie k >= 1 apart.

    Parameters
    ----------
    k : array_like of int
        Numbers of arrivals from one to the other.

    Returns
    -------
    Of the shape of `k`, between -1 and 1.

    Examples
    --------
    A DMA engine that sends 0.8 requests per cycle for some 50 cycles and then 0.02 for some 150:

    >>> dma = MAP.mmpp(generator=[[-1 / 50, 1 / 50], [1 / 150, -1 / 150]], rates=[0.8, 0.02])
    >>> round(dma.rate, 6), round(dma.scv, 4), lag_correlation(dma, [1, 2]).round(4)
    (0.215, 11.4977, array([0.3361, 0.2474]))
    """
    lags = checks.count("k", k)
    of = Arrivals("arrivals", arrivals)
    law = of.interarrival
    mean = law.solve(np.ones(of.phases))
    after = law.solve(of.d1)
    # Taken from each vector, its mean does not have to be subtracted at the end.
    centred = mean - law.mean
    left = of.arrival_phase_law @ law.solve(np.eye(of.phases))
    variance = float(law.moment(2)) - law.mean**2
    result = np.empty(lags.size)
    for i, lag in enumerate(lags.ravel()):
        result[i] = left @ np.linalg.matrix_power(after, int(lag)) @ centred / variance
    return result.reshape(lags.shape)[()]


@described("lucantoni1991 (the process)")
def index_of_dispersion(arrivals: Law) -> float:
    """Return the limit of the variance of the number of arrivals over its mean; 1 for Poisson.

    Returns
    -------
    ``I(inf)``, at least 0.

    Examples
    --------
    >>> round(index_of_dispersion(MAP.mmpp(generator=[[-1, 1], [1, -1]], rates=[4.0, 2.0])), 12)
    1.333333333333
    """
    of = Arrivals("arrivals", arrivals)
    theta = of.phase_law
    change = of.d0 + of.d1
    # The projection is scaled like the rates; the answer does not depend on its size.
    projection = np.outer(np.ones(of.phases), theta) * np.abs(of.d0).max()
    excess = np.linalg.solve(projection - change, of.d1.sum(axis=1) - of.rate)
    return float(1 + 2 * (theta @ of.d1 @ excess) / of.rate)


@described("lucantoni1991")
def map_superposition(processes: Sequence[Law]) -> MAP:
    """Merge independent processes.

    Parameters
    ----------
    processes : sequence of Law
        At least one: each a `MAP`, or the law of independent gaps that are made of phases.

    Returns
    -------
    Its phases are the combinations of theirs; the rates add up.

    Raises
    ------
    If there is no process, or one has another law.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> round(map_superposition([Exponential(mean=1.0), Exponential(mean=0.5)]).rate, 12)
    3.0
    """
    if not processes:
        raise ValueError("processes must hold at least one process, got none")
    first, *others = [Arrivals("processes", law) for law in processes]
    d0, d1 = first.d0, first.d1
    for other in others:
        here, there = np.eye(len(d0)), np.eye(other.phases)
        d0 = np.kron(d0, there) + np.kron(here, other.d0)
        d1 = np.kron(d1, there) + np.kron(here, other.d1)
    return MAP(d0=nested(d0), d1=nested(d1))
