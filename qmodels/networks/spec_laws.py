"""From the laws of a spec to those that the formulas take."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.systems.laws import times as given
from qmodels.systems.laws.phases import MAP, HyperExponential, PhaseType


def is_exponential(law: Any) -> bool:
    """Return whether a law is the exponential one."""
    match law:
        case given.Exponential():
            return True
        case given.Erlang():
            return law.phases == 1
        case given.Gamma() | given.Weibull():
            return (law.scv if isinstance(law, given.Gamma) else law.shape) == 1
        case HyperExponential():
            return len(set(law.means)) == 1
        case PhaseType():
            return len(law.initial) == 1
        case MAP():
            return len(law.d0) == 1
    return False


def is_renewal(law: Any) -> bool:
    """Return whether successive times are independent."""
    return not isinstance(law, given.Replay | MAP) or is_exponential(law)


def queue_law(law: Any) -> Any:
    """Return the law as `qmodels.queues` takes it, or None if they have no such family."""
    from qmodels import queues

    match law:
        case given.Deterministic():
            return queues.Deterministic(mean=law.mean) if law.mean > 0 else None
        case given.Exponential():
            return queues.Exponential(mean=law.mean)
        case given.Erlang():
            return queues.Erlang(mean=law.mean, phases=law.phases)
        case given.Gamma():
            return queues.Gamma(mean=law.mean, scv=law.scv)
        case HyperExponential():
            return queues.HyperExponential(probabilities=law.probabilities, means=law.means)
        case given.Empirical():
            if min(law.values) <= 0:
                return None
            weights = np.array(law.weights)
            return queues.Discrete(probabilities=weights / weights.sum(), values=law.values)
        case PhaseType():
            return phase_type(law)
    return None


def phase_type(law: Any) -> Any:
    """Return the law as a `qmodels.markov.PhaseType`, or None if it is none."""
    from qmodels import markov

    match law:
        case given.Exponential():
            return markov.PhaseType.exponential(mean=law.mean)
        case given.Erlang():
            return markov.PhaseType.erlang(mean=law.mean, phases=law.phases)
        case HyperExponential():
            return markov.PhaseType.hyperexponential(probabilities=law.probabilities, means=law.means)
        case PhaseType():
            return markov.PhaseType(initial=law.initial, generator=law.generator)
    return None


def arrival_process(law: Any) -> Any:
    """Return the law of arrivals as a `qmodels.markov.MAP`, or None if it is none."""
    from qmodels import markov

    if isinstance(law, MAP):
        return markov.MAP(d0=law.d0, d1=law.d1)
    gaps = phase_type(law)
    return None if gaps is None else markov.MAP.renewal(gaps)


def mixture(weights: Any, means: Any, scvs: Any) -> tuple[float, float]:
    """Return mean and SCV of a time that is of one of several kinds."""
    shares = np.asarray(weights) / np.sum(weights)
    mean = float(shares @ means)
    if mean == 0:
        return 0.0, 0.0
    # Of constants, rounding may leave a little less than 0.
    return mean, max(float(shares @ (np.square(means) * (1 + np.asarray(scvs))) / mean**2 - 1), 0.0)
