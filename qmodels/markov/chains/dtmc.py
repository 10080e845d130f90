"""Discrete-time Markov chains with finitely many named states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.chains.chain import Chain, reward_vector
from qmodels.markov.words import described
from qmodels.numerics.elimination import LARGEST_EXACT


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DTMC(Chain):
    r"""A discrete-time Markov chain, validated once and then asked.

    Parameters
    ----------
    transition_matrix : array or sparse array, shape (n, n)
        Probabilities :math:`p_{ij} \ge 0`, rows that sum to 1 (to 1e-9; the diagonal is
        recomputed from the rest).
    states : sequence of hashable, optional
        Names of the rows; 0 .. n - 1 by default.

    Raises
    ------
    ValueError
        If the matrix is not square and finite, a probability is negative, a row does not sum to
        1, or names are missing or repeated. Row and value are named.

    Examples
    --------
    A memory bank whose requests hit the open row with probability 0.7 after a hit, 0.4 after a miss:

    >>> bank = DTMC(transition_matrix=[[0.7, 0.3], [0.4, 0.6]], states=["hit", "miss"])
    >>> round(bank.stationary().probability("hit"), 6)
    0.571429
    >>> bank.transient(steps=2, initial="miss").round(4)
    array([0.52, 0.48])
    """

    transition_matrix: Any
    states: Sequence[Any] = None  # type: ignore[assignment]  # always a sequence once constructed

    _edge: ClassVar[str] = "probability"
    _matrix: ClassVar[str] = "transition_matrix"
    _row_sum: ClassVar[float] = 1.0

    @classmethod
    def _of(cls, entries: Any, states: Any) -> Self:
        return cls(transition_matrix=entries, states=states)

    @cached_property
    def period(self) -> int:
        """Greatest common divisor of the lengths of all cycles of the closed classes."""
        period = 0
        for members in self.classes.closed:
            part = self._rates[members][:, members]
            depth = np.full(members.size, -1)
            depth[0] = 0
            edge = np.array([0])
            while edge.size:
                following = np.unique(part[edge].indices)
                edge_depth = depth[edge[0]] + 1
                edge = following[depth[following] < 0]
                depth[edge] = edge_depth
            entries = part.tocoo()
            period = int(np.gcd.reduce(depth[entries.row] + 1 - depth[entries.col], initial=period))
            if np.any(self.transition_matrix.diagonal()[members] > 0):
                period = 1
        return period

    @described()
    def transient(self, *, steps: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Law after given numbers of steps, :math:`\pi(0) P^k`.

        Returns
        -------
        Of shape ``steps.shape + (n,)``.

        Examples
        --------
        >>> DTMC(transition_matrix=[[0.5, 0.5], [0, 1]]).transient(steps=[0, 1, 10**6], initial=0)
        array([[1. , 0. ],
               [0.5, 0.5],
               [0. , 1. ]])
        """
        return self._run(steps, initial)[0]

    @described()
    def occupancy(self, *, steps: npt.ArrayLike, initial: Any) -> FloatArray:
        r"""Mean number of visits to every state at steps 0 .. k - 1.

        Returns
        -------
        Of shape ``steps.shape + (n,)``; the states of one k sum to it.

        Examples
        --------
        >>> DTMC(transition_matrix=[[0.5, 0.5], [0, 1]]).occupancy(steps=3, initial=0)
        array([1.75, 1.25])
        """
        return self._run(steps, initial)[1]

    @described()
    def accumulated_reward(self, *, reward: Any, steps: npt.ArrayLike, initial: Any) -> FloatArray:
        """Mean reward collected at steps 0 .. k - 1.

        Parameters
        ----------
        reward : callable, mapping or array
            Reward per visit: a function of the state's name, a mapping (other states 0) or an array.

        Returns
        -------
        Of the shape of `steps`.

        Examples
        --------
        >>> bank = DTMC(transition_matrix=[[0.5, 0.5], [0, 1]], states=["miss", "hit"])
        >>> float(bank.accumulated_reward(reward={"miss": 40, "hit": 15}, steps=3, initial="miss"))
        88.75
        """
        return np.asarray(self.occupancy(steps=steps, initial=initial) @ reward_vector(self.states, reward))

    def _run(self, steps: npt.ArrayLike, initial: Any) -> tuple[FloatArray, FloatArray]:
        counts = checks.count("steps", steps, minimum=0)
        start = self.start(initial)
        flat = counts.ravel()
        laws, visits = np.tile(start, (flat.size, 1)), np.zeros((flat.size, start.size))
        longest = int(flat.max(initial=0))
        if start.size <= LARGEST_EXACT and longest > start.size:
            power = self.transition_matrix.toarray()
            within = np.eye(start.size)  # visits during as many steps as `power` takes
            for bit in range(longest.bit_length()):
                chosen = (flat >> bit) & 1 == 1
                visits[chosen] += laws[chosen] @ within
                laws[chosen] = laws[chosen] @ power
                within = within + power @ within
                power = power @ power
                power /= power.sum(axis=1, keepdims=True)
        else:
            into = self.transition_matrix.T.tocsr()
            v = start
            so_far = np.zeros(start.size)
            for k in range(longest + 1):
                now = flat == k
                laws[now], visits[now] = v, so_far
                so_far = so_far + v
                v = into @ v
        shape = (*counts.shape, start.size)
        return laws.reshape(shape), visits.reshape(shape)

    def __repr__(self) -> str:
        return f"DTMC with {len(self.states)} states and {self.transition_matrix.nnz} transitions"
