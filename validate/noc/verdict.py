"""Whether a network keeps up with its traffic, from the backlog and the deliveries over time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from qmodels.checks import IntArray
from validate.estimates.intervals import mean_interval
from validate.estimates.stopping import early_and_late, stability

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
