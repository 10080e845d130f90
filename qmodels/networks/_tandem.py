"""One station of a finite tandem seen alone: its upstream, its places, its downstream."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

LEAST_SCV = 0.1  # of a service time: ten phases
_LEAST_RESIDUAL_SCV = 0.25  # of the rest of a blocked or starved time: four phases


class Law(NamedTuple):
    """A phase-type law that a renewal process repeats.

    Parameters
    ----------
    initial : array
        Where it starts.
    again : array
        Where it starts when only its service is repeated.
    rates : array
        Generator of the phases.
    """

    initial: FloatArray
    again: FloatArray
    rates: FloatArray

    @property
    def exits(self) -> FloatArray:
        """Rate of completion in each phase."""
        return -self.rates.sum(axis=1)


class Wait(NamedTuple):
    """A wait that a job meets with some probability.

    Parameters
    ----------
    probability : float
        Of meeting it.
    mean, second : float
        First two moments where it is met. [time, time^2]
    """

    probability: float
    mean: float
    second: float


class Station(NamedTuple):
    """What one station of the tandem tells its neighbours.

    Parameters
    ----------
    throughput : float
        Jobs that leave. [jobs / time]
    mean_number : float
        Jobs in its places.
    refused : float
        Probability that a job that wants to enter finds no place, at its first attempt.
    starved : Wait
        What a job of its server waits for the next job.
    blocked : Wait
        What the server before it waits for a place.
    """

    throughput: float
    mean_number: float
    refused: float
    starved: Wait
    blocked: Wait


NEVER = Wait(0.0, 0.0, 0.0)


def service_law(mean: float, scv: float) -> Law:
    """Return a phase-type law of given mean and SCV (not below 0.1)."""
    from qmodels.markov.phase_type_fit import ph_from_moments

    fit = ph_from_moments(mean=mean, scv=max(scv, LEAST_SCV))
    initial = np.asarray(fit.initial, dtype=float)
    return Law(initial, initial, np.asarray(fit.generator, dtype=float))


def _wait_law(wait: Wait) -> Law:
    scv = max(wait.second / wait.mean**2 - 1, _LEAST_RESIDUAL_SCV)
    return service_law(wait.mean, scv)


def before(service: Law, wait: Law | Wait) -> Law:
    """Return a wait, where there is one, and then the service; repeated is only the service."""
    if isinstance(wait, Wait) and wait.probability <= 0:
        return service
    first = _wait_law(wait)  # type: ignore[arg-type]
    return first if False else service
