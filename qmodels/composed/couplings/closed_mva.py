"""Jobs of a limited number and the parts they go round: what each meets when there are few of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.couplings.profile import Profile
from qmodels.composed.couplings.regions import AtRegion, Region, at_stations

_SETTLED = 1e-13
MOST_GROWTH = 1e6
"""By which factor rounding errors of the probability of an empty region may grow with the jobs to come."""
MOST = 1e12
"""Rate of jobs that nothing holds elsewhere. [1/ns]"""


@dataclass(frozen=True, kw_only=True, eq=False)
class PopulationTable:
    """What jobs do that go round, for 1, 2, ... of them."""

    rates: FloatArray  # rates at which they go round [1/ns]
    regions: tuple[float, ...] = ()  # of all of them, the time of a round that each takes at the regions [ns]
    found: tuple[float, ...] = ()  # how many the last of them finds at each part
    left: tuple[float, ...] = ()  # how many are at each part with it


def closed_mva(
    profile: Profile, jobs: int, *, idle: float = 0.0, regions: Sequence[Region] = ()
) -> PopulationTable:
    r"""Return the rates at which jobs go round, for 1 to so many of them.

    ``profile``: times at parts by the rate; ``idle``: time of a round that depends on nothing [ns];
    ``regions``: the pools on the way.

    Mean value analysis [1]_: a job meets what n - 1 jobs leave at each part, and takes there what an open
    stream answers that has as many at the part. Regions, and stations of several servers, by the
    probabilities of the numbers there [2]_, for stations multiplied by what their waits are over those of
    M/M/c. Exact for what has a product form; no more than the first full resource carries.
    Where a region of many jobs is next to never empty the recursion is not stable; the law of the number
    there then follows from the rates with as many jobs elsewhere (Norton's theorem), region by region.

    References
    ----------
    .. [1] M. Reiser, S. S. Lavenberg, "Mean-value analysis of closed multichain queuing networks", J. ACM 27,
       1980.
    .. [2] M. Reiser, "Mean-value analysis and convolution method for queue-dependent servers in closed
       queueing networks", Performance Evaluation 1, 1981.
    """
    walkers = [*(AtRegion(region, jobs) for region in regions), *at_stations(profile, jobs)]
    rates, found, last = np.zeros(jobs), [0.0] * len(profile.parts), 0.0
    taken: list[float] = []
    for n in range(1, jobs + 1):
        met = tuple(found)
        at = [profile.met(number, k) for k, number in enumerate(met)]
        taken = [walker.time() for walker in walkers]
        for walker, time in zip(walkers, taken, strict=True):
            if walker.part >= 0:
                at[walker.part] = time
        inside = taken[: len(regions)]
        at, rate = _round(profile, at, found, n, idle + sum(inside), last)
        found = [rate * time for time in at]
        for walker in walkers:
            walker.advance(rate)
        if any(walker.growth(rate, n) > MOST_GROWTH for walker in walkers):
            return _by_numbers(profile, jobs, idle, walkers)
        rates[n - 1] = rate
        if n > 1 and abs(rate - last) <= _SETTLED * rate:
            rates[n:] = rate
            break
        last = rate
    return PopulationTable(rates=rates, regions=tuple(taken[: len(regions)]), found=met, left=tuple(found))


def _round(
    profile: Profile, met: Sequence[float], found: Sequence[float], jobs: int, rest: float, rate: float
) -> tuple[list[float], float]:
    """Return the times at parts, as the rate of so many jobs leaves them, and that rate."""
    for _ in range(profile.states):
        at = [time + more for time, more in zip(met, profile.left(found, rate), strict=True)]
        whole = rest + sum(at)
        rate = profile.below(jobs / whole if whole > 0 else np.inf)
    return at, rate


def _by_numbers(profile: Profile, jobs: int, idle: float, walkers: Sequence[AtRegion]) -> PopulationTable:
    """Return what jobs do by the laws of their numbers at one region and elsewhere, each for itself."""
    own = {walker.part for walker in walkers}
    outside, found, rate = np.zeros(jobs), [0.0] * len(profile.parts), 0.0
    for n in range(1, jobs + 1):
        last = tuple(found)
        met = [0.0 if k in own else profile.met(number, k) for k, number in enumerate(last)]
        at, rate = _round(profile, met, last, n, idle, rate)
        outside[n - 1] = min(rate, MOST)
        found = [rate * time if time else 0.0 for time in at]
    times = []
    for walker in (one for one in walkers if one.part < 0):
        rates = outside
        for other in (*(one for one in walkers if one is not walker), walker):
            rates, time = other.joining(rates)
        times.append(time)
    if not times:
        rates = outside
        for walker in walkers:
            rates, _ = walker.joining(rates)
    rates = np.minimum(rates, profile.below(float(rates[-1])))
    return PopulationTable(rates=rates, regions=tuple(times), found=last, left=tuple(found))
