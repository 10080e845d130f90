"""Parts of others: they say themselves what they answer."""

from __future__ import annotations

import numpy as np

from qmodels.composed.streams import PartAnswer, Response, Stream
from qmodels.systems.composed.parts import Offered, ServingPart


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
