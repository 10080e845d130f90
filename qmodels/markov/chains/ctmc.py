"""Continuous-time Markov chains with finitely many named states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.libraries import sparse
from qmodels.markov.chains.chain import Chain, reward_vector
from qmodels.markov.chains.transient import transient
from qmodels.markov.words import described


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CTMC(Chain):
    r"""A continuous-time Markov chain, validated once and then asked.

    Parameters
    ----------
    generator : array or sparse array, shape (n, n)
        Rates :math:`q_{ij} \ge 0` off the diagonal, rows that sum to 0 (to 1e-9 of the row's
        magnitude; the diagonal is recomputed from the rest). [1 / time]
    states : sequence of hashable, optional
        Names of the rows; 0 .. n - 1 by default.

    Raises
    ------
    ValueError
        If the matrix is not square and finite, an off-diagonal rate is negative, a row does not
        sum to 0, or names are missing or repeated. Row and value are named.

    Examples
    --------
    A link that fails once in 1,000 hours and takes 2 hours to repair:

    >>> link = CTMC(generator=[[-0.001, 0.001], [0.5, -0.5]], states=["up", "down"])
    >>> round(link.stationary().probability("down"), 6)
    0.001996
    >>> round(float(link.transient(times=1.0, initial="up")[1]), 6)
    0.000787

    A tandem of two stations with 2 and 1 places; the state space is built from the rules:

    >>> def moves(jobs):
    ...     first, second = jobs
    ...     if first < 2:
    ...         yield (first + 1, second), 1.0
    ...     if first and second < 1:
    ...         yield (first - 1, second + 1), 2.0
    ...     if second:
    ...         yield (first, second - 1), 2.0
    >>> tandem = CTMC.from_transitions(initial_state=(0, 0), transitions=moves)
    >>> law = tandem.stationary()
    >>> len(tandem.states), round(law.expected(lambda jobs: sum(jobs)), 4)
    (6, 1.2419)
    """

    generator: Any
    states: Sequence[Any] = None  # type: ignore[assignment]  # always a sequence once constructed

    _edge: ClassVar[str] = "rate"
    _matrix: ClassVar[str] = "generator"
    _row_sum: ClassVar[float] = 0.0

    @classmethod
    def _of(cls, entries: Any, states: Any) -> Self:
        return cls(generator=_closed(entries), states=states)

    @described("jensen1953")
    def transient(self, *, times: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Law at given times, :math:`\pi(t) = \pi(0) e^{Qt}`.

        Returns
        -------
        Of shape ``times.shape + (n,)``.

        Raises
        ------
        RuntimeError
            If the chain has more than 400 states and would need more than a million terms
            without reaching its long-run law.

        Notes
        -----
        Uniformization: a sum of non-negative terms (see `qmodels.markov.chains.transient`). Up to
        400 states long times cost a logarithmic number of squarings, so that a chain with
        rates from 1e-9 to 1e9 is no harder than another.

        Examples
        --------
        >>> CTMC(generator=[[-1, 1], [3, -3]]).transient(times=[0.0, 0.1, 99.0], initial=0).round(4)
        array([[1.    , 0.    ],
               [0.9176, 0.0824],
               [0.75  , 0.25  ]])
        """
        return self._run(times, initial)[0]

    @described()
    def occupancy(self, *, times: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Mean time spent in every state until given times, :math:`\int_0^t \pi(s)\,ds`.

        Returns
        -------
        Of shape ``times.shape + (n,)``; the states of one time sum to it. [time]

        Examples
        --------
        >>> CTMC(generator=[[-1, 1], [3, -3]]).occupancy(times=10.0, initial=0).round(4)
        array([7.5625, 2.4375])
        """
        return self._run(times, initial)[1]

    @described()
    def accumulated_reward(self, *, reward: Any, times: npt.ArrayLike, initial: Any) -> FloatArray:
        """Mean reward collected until given times.

        Parameters
        ----------
        reward : callable, mapping or array
            Reward per unit of time: a function of the state's name, a mapping (other states 0)
            or an array.

        Returns
        -------
        Of the shape of `times`.

        Examples
        --------
        Energy of a core that draws 2 W when busy and 0.1 W when idle, over 10 s:

        >>> core = CTMC(generator=[[-1, 1], [3, -3]], states=["idle", "busy"])
        >>> power = {"idle": 0.1, "busy": 2.0}
        >>> round(float(core.accumulated_reward(reward=power, times=10, initial="idle")), 4)
        5.6313
        """
        return np.asarray(self.occupancy(times=times, initial=initial) @ reward_vector(self.states, reward))

    def _run(self, times: npt.ArrayLike, initial: Any) -> tuple[FloatArray, FloatArray]:
        t = checks.nonnegative("times", times)
        start = self.start(initial)
        laws, spent = transient(
            self._rates, start, t.ravel(), lambda: self.stationary(initial=start).probabilities
        )
        shape = (*t.shape, start.size)
        return laws.reshape(shape), spent.reshape(shape)

    def __repr__(self) -> str:
        return f"CTMC with {len(self.states)} states and {self._rates.nnz} transitions"


def _closed(entries: Any) -> Any:
    """Return the generator with the given rates off the diagonal."""
    rates = entries - sparse.diags_array(entries.diagonal())
    return rates - sparse.diags_array(np.asarray(rates.sum(axis=1)).ravel())
