"""Channels of banks that hold parts of the same: as many are busy as requests want different ones."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.parts.serving import last_of_batch
from qmodels.composed.streams import PartAnswer, Response, Stream
from qmodels.llc.processor_channels import spread_rates
from qmodels.queues.distributions import birth_death_law
from qmodels.systems.memory.memory_map import BankedChannels

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
