"""The highest load a network carries, found by simulating it again and again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.answer import Answer
from validate.campaigns.simulate import simulate


@dataclass(frozen=True, kw_only=True)
class Saturation:
    """Where a network saturates."""

    # low, high: highest injection rate that was carried, and lowest one that was not [packets/cycle].
    low: float
    high: float
    # Injection rate that the network carries at a fifth more than ``high``, when all queues are full: well
    # below ``low`` where congestion makes the throughput collapse [packets/cycle].
    congested_rate: float
    bottleneck: str  # busiest channel just below saturation
    points: tuple[tuple[float, str], ...]  # all that was simulated: injection rate and verdict

    @property
    def rate(self) -> float:
        """The middle of the interval."""
        return (self.low + self.high) / 2

    @property
    def metastable(self) -> bool:
        """Whether the congested network carries less than 95 % of what it carried before."""
        return self.congested_rate < 0.95 * self.low


def saturation_rate(
    spec: Noc, *, precision: float = 0.02, replications: int = 4, seed: int = 0, **options: Any
) -> Saturation:
    """Return the injection rate from which the queues of a network grow without end.

    Parameters
    ----------
    spec : Noc
        Its injection rate does not matter.
    precision : float
        Width of the interval, relative to its upper end.
    replications, seed : int
        Of each simulation.
    **options
        Of the simulator, see `NocExperiment`: more ``cycles`` find smaller overloads.

    Raises
    ------
    ValueError
        If the spec is no network or its traffic closed, or the precision not between 0 and 1.

    Notes
    -----
    Bisection below the rate at which the busiest channel would have a flit in every cycle. A run of
    finite length takes a load a little above saturation for stable: of the order of a percent with
    10,000 cycles.

    Examples
    --------
    >>> from qmodels.systems.noc.patterns import uniform
    >>> from qmodels.systems.noc.topologies import mesh
    >>> noc = Noc(topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=1)
    >>> found = saturation_rate(noc, precision=0.2, replications=2, cycles=2000)
    >>> 0.6 < found.low < found.high <= 1.0, found.metastable
    (True, False)
    """
    if not isinstance(spec, Noc):
        raise ValueError(f"spec must be a Noc, got {spec!r}")
    if isinstance(spec.traffic, Transactions):
        raise ValueError("saturation_rate needs open traffic, got Transactions")
    if not 0 < checks.finite("precision", precision) < 1:
        raise ValueError(f"precision must be between 0 and 1, got {precision!r}")
    table = spec.flow_table()
    busiest = float(np.max(table.channel_load() * table.channel_cycles_per_flit))
    fastest = float(np.bincount(table.source, weights=table.unit_rate).max())
    low, high = 0.0, min(1 / busiest, 1 / fastest)
    found: list[tuple[float, Answer]] = []

    def carried(rate: float) -> bool:
        noc = replace(spec, injection_rate=rate)
        result = simulate(noc, replications=replications, seed=seed, progress=_silent, **options)
        found.append((rate, result))
        return result.stable is not False

    while high - low > precision * high:
        middle = (low + high) / 2
        low, high = (middle, high) if carried(middle) else (low, middle)
    # A Bernoulli source cannot inject more than a packet per cycle.
    beyond = min(1.2 * high, 1 / fastest)
    carried(beyond)
    overloaded = found[-1][1]
    below = [result.bottleneck for rate, result in found if rate == low]
    return Saturation(
        low=low,
        high=high,
        congested_rate=float(overloaded["delivered_rate"]) / spec.clock_ghz / float(table.unit_rate.sum()),
        bottleneck=below[0] if below else overloaded.bottleneck,
        points=tuple(sorted((rate, result.verdict) for rate, result in found)),
    )


def _silent(done: int, total: int) -> None:
    """Show nothing."""
