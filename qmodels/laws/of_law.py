"""From a law to its formulas, and what models say of laws that they do not take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.laws.densities import Geometrics, LogNormals, Paretos, Uniforms, Weibulls
from qmodels.laws.elementary import Constant, Exponentials, Gammas, Mixture
from qmodels.laws.formulas import Formulas
from qmodels.laws.phases import Phases
from qmodels.systems.laws.kinds import LAWS, PHASED, RENEWAL, is_renewal, markovian, names, phase_type
from qmodels.systems.laws.times import (
    MAP,
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    HyperExponential,
    Law,
    LogNormal,
    Pareto,
    PhaseType,
    Replay,
    Uniform,
    Weibull,
)

Laws = Law | Formulas | Sequence[Law | Formulas]
"""A law, or one for each class along the last axis."""


def service_moments(service: Laws | None, rate: Any, mean: Any, scv: Any) -> tuple[Any, Any, Any]:
    """Return rate, mean and SCV of the service time as given, or those of a law in place of them.

    >>> from qmodels.laws import Erlang
    >>> service_moments(Erlang(mean=2.0, phases=4), None, None, None)
    (None, 2.0, 0.25)
    """
    if service is None:
        return rate, mean, _required("service", scv)
    _alone("service", service_rate=rate, mean_service_time=mean, service_scv=scv)
    return None, *two_moments("service", service)


def arrival_moments(arrival: Laws | None, rate: Any, scv: Any) -> tuple[Any, Any]:
    """Return rate and SCV of renewal arrivals as given, or those of the law of the gaps."""
    if arrival is None:
        if rate is None:
            raise ValueError("arrival_rate must be given, or arrival, a law")
        return rate, _required("arrival", scv)
    _alone("arrival", arrival_rate=rate, arrival_scv=scv)
    mean, scv = two_moments("arrival", arrival)
    return 1 / mean, scv


def two_moments(name: str, law: Laws) -> tuple[Any, Any]:
    """Return mean and SCV of an argument that has to be a law, or several, with a finite variance."""
    if isinstance(law, Sequence):
        pairs = [two_moments(name, one) for one in law]
        return np.array([mean for mean, _ in pairs]), np.array([scv for _, scv in pairs])
    renewal(name, law)
    if not np.all(np.isfinite(law.scv)):
        raise ValueError(f"{name} must be a law with a finite second moment, got {checks.shown(law)}")
    return law.mean, law.scv


def _required(role: str, scv: Any) -> Any:
    if scv is None:
        raise ValueError(f"{role}_scv must be given, or {role}, a law")
    return scv


def _alone(role: str, **numbers: Any) -> None:
    both = [name for name, value in numbers.items() if value is not None]
    if both:
        raise ValueError(f"{both[0]} must be left out beside {role}, a law, got both")


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
