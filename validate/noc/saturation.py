"""The highest load a network carries, found by simulating it again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import IntArray
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.answer import Answer
from validate.campaigns.simulate import simulate
from validate.estimates.intervals import early_and_late, mean_interval, stability

VERDICTS = ("stable", "undecided", "metastable", "saturated", "deadlocked")

_SURE = 0.99
_COLLAPSE = 0.97
_FEW, _NOTICED = 5.0, 0.001
_LATE = 0.02


def verdict(series: Sequence[IntArray], *, deadlocked: bool, full: bool, closed: bool = False) -> str:
    """Return one of `VERDICTS`.

    ``series``: of each replication, from an empty network on: packets that wait at the sources at the end of
    each interval, packets delivered in it; ``deadlocked``, ``full``: whether a replication ended in a
    deadlock, or because too many packets waited; ``closed``: whether no more than so many can wait. Returns
    ``"saturated"`` where packets pile up; ``"metastable"`` where they do after the network had carried more
    than it carries then, or in some replications only; ``"undecided"`` where the runs cannot tell, see
    `stability`.

    Packets pile up where the backlog grew for certain, or to the double, in most replications, and by
    a thousandth of all packets or more.

    Rings and Spidergons carry less once they are congested, so that a load that an empty network
    carries for a while is too much after a burst [1]_. Far above that load the collapse comes at
    once and the verdict is "saturated". A collapse is a fall by 3 %, for certain (99 %), from the
    first twelfth of the run to its second half.

    References
    ----------
    .. [1] W. J. Dally, B. Towles, *Principles and Practices of Interconnection Networks*, 2004, the
       chapter on flow control and deadlock discusses throughput beyond saturation (from memory).
    """
    if deadlocked:
        return "deadlocked"
    early, late = (np.array(x) for x in zip(*(early_and_late(s[:, 0]) for s in series), strict=True))
    moved = np.array([s[:, 1].sum() for s in series])
    piled = late - early > np.maximum(_FEW, _NOTICED * moved)
    doubled = piled & (late > 2 * early)
    keeps_up = stability([s[len(s) // 5 :, 0] for s in series])
    unstable = 2 * piled.sum() > piled.size and keeps_up is False
    if not (full or unstable or 2 * doubled.sum() > doubled.size):
        return "stable" if closed or keeps_up or not piled.any() else "undecided"
    twelfth = len(series[0]) // 12
    carried = [(s[1 : twelfth + 1, 1].mean(), s[len(s) // 2 :, 1].mean()) for s in series]
    before, after = np.array(carried).T
    fall = mean_interval(after - before, confidence=_SURE)
    collapsed = fall.high < 0 and after.sum() < _COLLAPSE * before.sum()
    return "metastable" if collapsed or not np.all(late > early) else "saturated"


def overloaded_flows(lags: Sequence[IntArray], cycles: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return which flows wait in a source queue that grows.

    ``lags``: of each replication: how long the first packet of each flow's queue had waited in the middle and
    at the end; ``cycles``: cycles of the replications.

    A queue grows if its delay did so for certain (99 %), and by 2 % of the time or more: it is served
    at most 98 % of what comes.
    """
    growth = np.array([lag[1] - lag[0] for lag in lags]) / (np.array(cycles)[:, None] / 2)
    runs = len(lags)
    spread = growth.std(axis=0, ddof=1) / np.sqrt(runs)
    from scipy.special import stdtrit

    return np.asarray(growth.mean(axis=0) > np.maximum(_LATE, stdtrit(runs - 1, _SURE) * spread))


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
    >>> from qmodels.systems.noc.topology import mesh
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
