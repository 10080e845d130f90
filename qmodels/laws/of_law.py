"""From a law to its formulas, and what models say of laws that they do not take."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels import checks
from qmodels.laws.densities import Geometrics, LogNormals, Paretos, Uniforms, Weibulls
from qmodels.laws.elementary import Constant, Exponentials, Gammas, Mixture
from qmodels.laws.formulas import Formulas
from qmodels.laws.phases import Phases
from qmodels.systems.laws.kinds import LAWS, PHASED, RENEWAL, is_renewal, markovian, names, phase_type
from qmodels.systems.laws.phases import MAP, HyperExponential, PhaseType
from qmodels.systems.laws.times import (
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    Law,
    LogNormal,
    Pareto,
    Replay,
    Uniform,
    Weibull,
)


def formulas(law: Law | Formulas) -> Formulas:
    """Return the formulas of a law: moments, tails, quantiles, transforms.

    Parameters
    ----------
    law : Law or Formulas
        Any law of times; of a `MAP` and of a `Replay` a single gap, whatever came before it. The
        formulas of an own law, a subclass of `Formulas`, are returned as they are.

    Returns
    -------
    Formulas
        Its methods broadcast over arrays of times, and over the parameters of the laws that may
        hold arrays.

    Raises
    ------
    ValueError
        If it is no law, or takes no time.

    Examples
    --------
    >>> law = formulas(Erlang(mean=20.0, phases=4))
    >>> float(law.moment(2)), round(float(law.tail(30.0)), 4), round(float(law.quantile(0.99)), 2)
    (500.0, 0.1512, 50.23)
    """
    match law:
        case Formulas():
            return law
        case Deterministic():
            found: Formulas = Constant(law.mean)
        case Exponential() | Erlang() | Gamma():
            found = Gammas(law.mean, law.scv)
        case HyperExponential():
            found = Exponentials(law.probabilities, law.means)
        case Empirical():
            weights = np.array(law.weights)
            found = Mixture(weights / weights.sum(), [Constant(value) for value in law.values])
        case Replay():
            values, counts = np.unique(law.values, return_counts=True)
            found = Mixture(counts / counts.sum(), [Constant(value) for value in values])
        case PhaseType():
            found = Phases(law.initial, law.generator)
        case MAP():
            found = Phases(law.start, law.d0)
        case LogNormal():
            found = LogNormals(law)
        case Weibull():
            found = Weibulls(law)
        case Pareto():
            found = Paretos(law)
        case Uniform():
            found = Uniforms(law)
        case Geometric():
            found = Geometrics(law)
        case _:
            raise ValueError(f"law must be {names(LAWS)}, got {checks.shown(law)}")
    if not np.all(found.mean > 0):
        raise ValueError(f"mean of a law must be > 0, got {float(np.min(found.mean))!r}")
    return found


def renewal(name: str, law: Law | Formulas) -> Formulas:
    """Return the formulas of an argument that has to be a law of independent times."""
    if not (isinstance(law, Formulas) or is_renewal(law)):
        raise ValueError(f"{name} must be {names(RENEWAL)}, got {_shown(law)}")
    return formulas(law)


def phases(name: str, law: Law | Phases) -> Phases:
    """Return the phases of an argument that has to be a law of independent times made of them."""
    if isinstance(law, Phases):
        return law
    found = phase_type(law)
    if found is None:
        raise ValueError(f"{name} must be {names(PHASED)}, got {_shown(law)}")
    return Phases(found.initial, found.generator)


def process(name: str, law: Law) -> MAP:
    """Return an argument that has to be a Markovian process as one."""
    found = markovian(law)
    if found is None:
        raise ValueError(f"{name} must be {names((*PHASED, MAP))}, got {_shown(law)}")
    return found


def _shown(law: Any) -> str:
    return type(law).__name__ if isinstance(law, LAWS) else checks.shown(law)
