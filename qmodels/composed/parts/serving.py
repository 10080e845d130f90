"""Parts of others: they say themselves what they answer."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.streams import PartAnswer, Response, Stream
from qmodels.llc.processor_queues import spread_rates
from qmodels.queues.distributions import birth_death_law
from qmodels.systems.composed.parts import Offered, ServingPart
from qmodels.systems.memory.memory_map import BankedChannels


def serving_copy(part: ServingPart, streams: tuple[Stream, ...]) -> PartAnswer:
    """Return the answer of one copy of a part of another package.

    ``streams``: what comes to the copy. Jobs of a batch are taken to be independent of each other.
    """
    rates = np.array([s.request_rate for s in streams])
    served = part.served(
        Offered(
            rate=rates, arrival_scv=np.array([s.scv for s in streams]), flows=tuple(s.flow for s in streams)
        )
    )
    shape = rates.shape
    departure = np.asarray(served.departure_scv, dtype=float)
    for name in ("response", "variance"):
        if np.shape(getattr(served, name)) != shape:
            raise ValueError(
                f"{type(part).__name__}.served must answer a {name} for each of {len(streams)} streams, "
                f"got {getattr(served, name)!r}"
            )
    departure = departure if departure.size else np.ones(shape)
    responses = []
    for k, stream in enumerate(streams):
        mean, variance = float(served.response[k]), float(served.variance[k])
        last, spread = last_of_batch(stream, mean, variance)
        responses.append(
            Response(
                mean=mean,
                variance=variance,
                last_mean=last,
                last_variance=spread,
                departure_scv=float(departure[k]),
            )
        )
    several = any(s.batch[2:].any() for s in streams)
    doubt = f"jobs that come to {type(part).__name__} together are taken to be independent of each other"
    return PartAnswer(
        responses=tuple(responses),
        intensity={name: float(value) for name, value in served.intensity.items()},
        doubts=(doubt,) if several else (),
    )


def last_of_batch(stream: Stream, mean: float, variance: float) -> tuple[float, float]:
    """Return mean and variance of the longest of a batch's independent times of a gamma law."""
    from qmodels.numerics.largest import largest_moments

    sizes = np.arange(stream.batch.size)
    used = sizes[(stream.batch > 0) & (sizes > 0)]
    if not np.isfinite(mean) or used.size == 0 or used[-1] == 1:
        return mean, variance
    weight = stream.batch[used] / stream.batch[used].sum()
    each = np.array([largest_moments(mean=mean, variance=variance, count=n) for n in used])
    first = float(weight @ each[:, 0])
    return first, float(weight @ (each[:, 1] + (each[:, 0] - first) ** 2))


MOST = 8
"""Requests a channel for which it does not matter how many more there are."""
FULL = 1 - 1e-9


def respond_banks(part: BankedChannels, streams: tuple[Stream, ...]) -> PartAnswer:
    r"""Respond to streams as channels of two banks.

    ``streams``: what comes to it. Taken to be Poisson; the requests of a batch are taken to be independent.

    A station whose rate depends on the number of requests there (`spread_rates`), as if services were
    exponential: exact where there are never more requests than channels, with any services, and good where
    they are spread over channels as widely as possible.
    """
    rates = _rates(part)
    rate, most = sum(s.request_rate for s in streams), float(rates[-1])
    intensity, service = rate / most, float(part.service.mean)
    scv = float(part.service.scv)
    if intensity >= FULL:
        mean = variance = np.inf
    else:
        law = birth_death_law(np.full(rates.size - 1, rate), rates[1:])
        beyond = law[-1] * intensity / (1 - intensity)
        number = law @ np.arange(law.size) + beyond * (rates.size - 1 + 1 / (1 - intensity))
        mean = float(number / (1 + beyond)) / rate if rate > 0 else service
        variance = scv * service**2 + max(mean - service, 0.0) ** 2
    responses = []
    for stream in streams:
        last, spread = last_of_batch(stream, mean, variance)
        responses.append(
            Response(
                mean=mean, variance=variance, last_mean=last, last_variance=spread, departure_scv=stream.scv
            )
        )
    doubt = "requests for several blocks of banks at once are taken to be independent"
    several = any(s.batch[2:].any() for s in streams)
    return PartAnswer(
        responses=tuple(responses), intensity={"": intensity}, doubts=(doubt,) if several else ()
    )


@lru_cache(maxsize=64)
def _rates(part: BankedChannels) -> FloatArray:
    if part.banks != 2:
        raise ValueError(f"memory.banks must be 2 for the model, got {part.banks!r}; simulate it")
    one, both = part.speed_of_all
    mean = float(part.service.mean)
    return spread_rates(
        channels=part.channels, most=MOST * part.channels, alone=one / mean, both=both / mean
    )[0]
