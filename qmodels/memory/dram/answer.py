"""The analytic answer for a DRAM system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.answer import Answer
from qmodels.checks import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DramAnswer(Answer):
    """Latency, bandwidth and limits of a DRAM system; see `Answer` for what all have.

    The parts of the mean read latency are ``fixed`` (controller, column access, burst), ``row`` (opening
    it), waiting for the ``bank``, for the rank's row commands (``activation``: tFAW, tRRD), for the
    ``bus``, for ``refresh`` while it lasts, and behind batches of writes (``queue``). In order, ``bank``
    is what the banks add to the wait for the bus alone.

    Errors are those of random reads of DDR4-3200 against our simulator and two others, otherwise of a sample
    of systems against ours, the largest beyond what the simulation leaves open.
    """

    # Accesses per cycle that each resource of a channel can sustain; ``refresh`` is the smallest of the
    # others less what refreshes take. [blocks/cycle]
    limits: Mapping[str, float] = field(default_factory=dict)
    # Share of the accesses of each channel
    channel_share: FloatArray = field(default_factory=lambda: np.ones(1))
    # Of a point by its number: probabilities of the read latencies 0, 1, 2, ... cells, and their width in
    # cycles. An answer that was loaded has none
    laws: Callable[[int], tuple[FloatArray, int]] | None = None

    def quantile(self, probability: float) -> Any:
        """Return a quantile of the read latency; ``inf`` where a channel is overloaded. [ns].

        Parameters
        ----------
        probability : float
            Its order, in [0, 1).

        Raises
        ------
        ValueError
            If the probability is not in that range, or the answer was loaded from a file.
        """
        checks.probability("probability", probability)
        if probability == 1:
            raise ValueError("probability must be below 1, got 1")
        if self.laws is None:
            raise ValueError("quantile needs an answer that was solved, got one from a file")
        return quantiles(self.laws, self.stable, (probability,))[0] / self.spec.clock_ghz


def quantiles(
    laws: Callable[[int], tuple[FloatArray, int]], stable: Any, probabilities: tuple[float, ...]
) -> list[Any]:
    """Return quantiles of the latencies of all points, each of the shape of ``stable``. [cycles]."""
    shape = np.shape(stable)
    values = np.full((len(probabilities), int(np.prod(shape))), np.inf)
    for k in np.flatnonzero(stable):
        law, cell = laws(int(k))
        below = np.cumsum(law)
        values[:, k] = cell * np.searchsorted(below, np.multiply(probabilities, below[-1]))
    return [row.reshape(shape)[()] for row in values]
