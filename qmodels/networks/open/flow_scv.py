"""Variability of the flows of a network where they split, merge and pass a station: Whitt's equations."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST_SERVICE_SCV = 0.2
"""Of services that vary less departures are taken to vary as of these."""


def split_scv(scv: Any, share: Any) -> Any:
    """Return the SCV of the gaps of a random share of a renewal stream: exact."""
    return 1 - share + share * scv


def merging_weight(concentration: Any, load: Any) -> Any:
    """Weight of the variability of streams that merge: 1 for one stream, less for many.

    ``concentration``: sum of the squares of the streams' shares of the arrivals; ``load``: traffic intensity
    of the station, at most 1.
    """
    return 1 / (1 + 4 * (1 - load) ** 2 * (1 / concentration - 1))


def service_noise(service_scv: Any, servers: Any) -> Any:
    """Return the SCV of the departures of a station whose servers never idle."""
    return 1 + (np.maximum(service_scv, LEAST_SERVICE_SCV) - 1) / np.sqrt(servers)


def departing_scv(arrival_scv: Any, noise: Any, load: Any) -> Any:
    """Return the SCV of the gaps between departures, `noise` being that of a station that is never idle."""
    return (1 - load**2) * arrival_scv + load**2 * noise
