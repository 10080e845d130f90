"""Facts about laws, and one law as another: as phases, as a Markovian process, in another unit of time."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

import numpy as np

from qmodels import checks
from qmodels.systems.laws.fields import nested, number
from qmodels.systems.laws.times import (
    MAP,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    HyperExponential,
    Law,
    PhaseType,
    Replay,
    Uniform,
    Weibull,
)
from qmodels.systems.spec.cost import afford

AnyLaw = TypeVar("AnyLaw", bound=Law)
LAWS: tuple[type[Any], ...] = get_args(Law)
RENEWAL = tuple(law for law in LAWS if law not in (MAP, Replay))
"""Laws of independent times."""
PHASED = (Exponential, Erlang, HyperExponential, PhaseType)
"""Laws of independent times that are made of exponential phases."""


def names(kinds: tuple[type[Any], ...]) -> str:
    """Return the names of laws for an error: ``Exponential, Erlang or PhaseType``."""
    words = [kind.__name__ for kind in kinds]
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def require_law(name: str, value: Any, kinds: tuple[type[Any], ...] = LAWS) -> None:
    """Require a law of some kinds whose parameters are single numbers."""
    if not isinstance(value, LAWS):
        raise ValueError(f"{name} must be a law such as Exponential(mean=1.0), got {checks.shown(value)}")
    if not isinstance(value, kinds):
        raise ValueError(f"{name} must be {names(kinds)}, got {type(value).__name__}")
    for field in fields(value):
        if isinstance(getattr(value, field.name), np.ndarray):
            raise ValueError(
                f"{name} {field.name} must be one number, not an array of them, "
                f"got {checks.shown(getattr(value, field.name))}"
            )


def is_exponential(law: Any) -> bool:
    """Return whether a law is the exponential one."""
    match law:
        case Exponential():
            return True
        case Erlang():
            return bool(law.phases == 1)
        case Gamma() | Weibull():
            return bool((law.scv if isinstance(law, Gamma) else law.shape) == 1)
        case HyperExponential():
            return len(set(law.means)) == 1
        case PhaseType():
            return len(law.initial) == 1
        case MAP():
            return len(law.d0) == 1
    return False


def is_renewal(law: Any) -> bool:
    """Return whether successive times are independent."""
    return isinstance(law, RENEWAL) or is_exponential(law)


def phase_type(law: Law) -> PhaseType | None:
    """Return a law of independent times made of phases as such, or None.

    Examples
    --------
    >>> phase_type(Exponential(mean=0.5))
    PhaseType(initial=(1.0,), generator=((-2.0,),))
    """
    match law:
        case PhaseType():
            return law
        case HyperExponential():
            return PhaseType(initial=law.probabilities, generator=nested(np.diag(-1 / np.array(law.means))))
        case Exponential() | Erlang():
            count = law.phases if isinstance(law, Erlang) else 1
            afford("phases", count, operations=float(count) ** 3)
            moves = count / law.mean * (np.eye(count, k=1) - np.eye(count))
            return PhaseType(initial=nested(np.eye(count)[0]), generator=nested(moves))
    return None


def markovian(law: Law) -> MAP | None:
    """Return the process whose gaps have a law as one, or None.

    Examples
    --------
    >>> markovian(Exponential(mean=0.5))
    MAP(d0=((-2.0,),), d1=((2.0,),))
    """
    if isinstance(law, MAP):
        return law
    gaps = phase_type(law)
    if gaps is None:
        return None
    rates = np.array(gaps.generator)
    ends = np.maximum(-rates.sum(axis=1), 0.0)
    return MAP(d0=gaps.generator, d1=nested(np.outer(ends, gaps.initial)))


def scaled(law: AnyLaw, factor: float) -> AnyLaw:
    """Return the law of the times multiplied by a factor > 0.

    Examples
    --------
    >>> scaled(Uniform(low=1.0, high=3.0), 2.0)
    Uniform(low=2.0, high=6.0)
    """
    require_law("law", law)
    factor = number("factor", checks.positive, factor)
    changed: dict[str, Any]
    match law:
        case Geometric():
            raise ValueError(f"law must not count ticks to be scaled, got {law!r}")
        case MAP():
            changed = {"d0": nested(np.array(law.d0) / factor), "d1": nested(np.array(law.d1) / factor)}
        case PhaseType():
            changed = {"generator": nested(np.array(law.generator) / factor)}
        case Uniform():
            changed = {"low": law.low * factor, "high": law.high * factor}
        case HyperExponential():
            changed = {"means": nested(np.array(law.means) * factor)}
        case Empirical() | Replay():
            changed = {"values": nested(np.array(law.values) * factor)}
        case _:
            changed = {"mean": law.mean * factor}
    return replace(law, **changed)
