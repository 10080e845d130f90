"""Answers about a chain by the names of its states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.markov.chains.structure import ChainClasses


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class StationaryDistribution:
    """Long-run law of a chain, with its classes and the quality of the numbers.

    Parameters
    ----------
    states : sequence
        Names of the states.
    classes : ChainClasses
        Closed classes and transient states.
    class_laws : tuple of array
        Stationary law within each closed class, over the states of ``classes.closed``.
    class_weights : array or None
        Probability to end in each closed class; None where it depends on a start that was not given.
    residual : float
        Largest balance residual of a class: the sum of ``|inflow - outflow|`` relative to the flow.
    method : str
        "gth", "direct" or "iterative"; the last used where classes differ.
    iterations : int
        Cycles of the iteration (0 for the others).
    """

    states: Sequence[Any]
    classes: ChainClasses
    class_laws: tuple[FloatArray, ...]
    class_weights: FloatArray | None
    residual: float
    method: str
    iterations: int

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability of every state, in the order of `states`."""
        if self.class_weights is None:
            raise ValueError(
                f"initial must be given for a chain with {len(self.classes.closed)} closed classes, "
                "the long-run law depends on the start; class_laws holds the law within each class"
            )
        result = np.zeros(len(self.states))
        for members, law, weight in zip(
            self.classes.closed, self.class_laws, self.class_weights, strict=True
        ):
            result[members] = weight * law
        return result

    def expected(self, reward: Any) -> float:
        """Return the long-run mean of a reward: a function of the state's name, a mapping or an array."""
        return float(self.probabilities @ reward_vector(self.states, reward))

    def probability(self, state: Any) -> float:
        """Return the long-run probability of a state by name."""
        try:
            return float(self.probabilities[self.states.index(state)])
        except ValueError:
            raise unknown_state("state", state, self.states) from None

    def __repr__(self) -> str:
        return (
            f"StationaryDistribution of {len(self.states)} states "
            f"({len(self.classes.closed)} closed classes, {self.classes.transient.size} transient states), "
            f"residual {self.residual:.2g} by method {self.method!r}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Absorption:
    """First passage into targets, from every state.

    Parameters
    ----------
    targets : tuple
        One name per absorbing state asked for, or the tuple of its names per closed class.
    mean_time : array
        Mean time to the first target from each state, 0 at a target, ``inf`` where it may never
        be reached. [time; steps for a DTMC]
    probabilities : array, shape (states, targets)
        Probability that the target is the first one reached.
    mean_reward : array or None
        Mean reward collected from each state while a target can still be reached.
    """

    targets: tuple[Any, ...]
    mean_time: FloatArray
    probabilities: FloatArray
    mean_reward: FloatArray | None


def unknown_state(name: str, state: Any, states: Iterable[Any]) -> ValueError:
    """Word the error for a name that no state has."""
    hint = checks.nearest(str(state), (str(s) for s in states)) if isinstance(state, str) else ""
    return ValueError(f"{name} must be a state of the chain, got {state!r}{hint}")


def reward_vector(states: Sequence[Any], reward: Any) -> FloatArray:
    """Return the reward of every state from a function, a mapping (others 0) or an array."""
    if callable(reward):
        return np.array([float(reward(state)) for state in states])
    if isinstance(reward, Mapping):
        unknown = set(reward) - set(states)
        if unknown:
            raise unknown_state("reward", next(iter(unknown)), states)
        return np.array([float(reward.get(state, 0.0)) for state in states])
    vector = checks.finite("reward", reward)
    if vector.shape != (len(states),):
        raise ValueError(f"reward must have one number per state ({len(states)}), got shape {vector.shape}")
    return vector
