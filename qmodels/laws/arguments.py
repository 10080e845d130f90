"""Arguments of models of two moments: numbers, or a law in place of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.laws.formulas import Formulas
from qmodels.laws.of_law import renewal
from qmodels.systems.laws.times import Law

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
