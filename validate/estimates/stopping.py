"""When enough has been simulated, and when the simulation says nothing: pure rules."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.systems.spec.estimate import Estimate
from validate.estimates.intervals import mean_interval

FEWEST_REPLICATIONS = 10
"""Replications before their spread may stop a simulation."""
FEWEST_OBSERVATIONS = 500
"""Observations after the warm-up below which a run is short."""
GROWTH_OF_INSTABILITY = 1.5
"""Ratio of late to early numbers above which growth is not a rest of the warm-up.

A number that grows like the time reaches 3 between the second and the last fifth of a run, one that
grows like its square root (a load of exactly 1) reaches 1.7.
"""

OVERLOAD_GROWTH = 0.005
"""Jobs piled up for each that arrived above which a system is taken to be overloaded."""

PILE = 6.0
"""Growth of a pile, in square roots of the jobs that left meanwhile, that is no fluctuation."""
CONFIDENCE = 0.99
"""How sure a growth must be."""
POINTS = 32
"""Stretches of a run that are looked at for whether its mean wanders."""


def more_replications(
    estimates: Iterable[Estimate],
    *,
    replications: int,
    precision: float,
    minimum: int = FEWEST_REPLICATIONS,
    maximum: int | None = None,
) -> int:
    r"""Replications to add before every estimate is precise enough.

    ``estimates``: student-t intervals of all that must be precise, from the replications so far. One that is
    infinite cannot become precise and is left out; one without an upper end takes as many as ``maximum``
    allows; ``precision``: relative half-width asked for, > 0; ``minimum``: replications before the rule may
    say stop; at least 2; ``maximum``: replications beyond which none are added. Returns 0 to stop. At most as
    many as there are, so that a poor first guess of the spread costs little.

    The half-width shrinks like :math:`t_{n-1} / \sqrt n`. A rule that looks at the spread tends to
    stop where it happens to be small, so that the interval covers a little less often than it says;
    with 10 replications at least, 95 % intervals of normal and moderately skewed values covered
    92.3 to 96.3 %, and 99.9 % intervals 99.77 to 99.91 % (measured).

    >>> wide = Estimate(low=9.0, best=10.0, high=11.0, confidence=0.95)
    >>> more_replications([wide], replications=20, precision=0.08)
    10
    >>> more_replications([wide], replications=20, precision=0.1)
    0
    """
    so_far = int(checks.count("replications", replications, minimum=0))
    target = float(checks.positive("precision", precision))
    fewest = int(checks.count("minimum", minimum, minimum=2))
    limit = None if maximum is None else int(checks.count("maximum", maximum))
    if so_far < fewest:
        wanted = fewest - so_far
    else:
        wanted = max((_missing(e, so_far, target) for e in estimates), default=0)
    return wanted if limit is None else max(0, min(wanted, limit - so_far))


def _missing(estimate: Estimate, replications: int, precision: float) -> int:
    goal = precision * abs(estimate.best)
    if not np.isfinite(estimate.best) or estimate.relative_half_width <= precision:
        return 0
    if goal == 0 or not estimate.valid:
        return replications
    from scipy.special import stdtrit

    level = (1 + estimate.confidence) / 2
    counts = np.arange(replications + 1, 2 * replications + 1)
    shrink = stdtrit(counts - 1, level) / np.sqrt(counts)
    half_widths = estimate.half_width * shrink / (stdtrit(replications - 1, level) / np.sqrt(replications))
    return min(int(np.searchsorted(-half_widths, -goal)) + 1, replications)


def early_and_late(series: npt.ArrayLike) -> tuple[float, float]:
    """Return the means of the second and the last fifth of a series, for `stability`.

    >>> early_and_late(range(10))
    (2.5, 8.5)
    """
    array = np.asarray(series, dtype=float)
    checks.count("length of the series", array.size, minimum=5)
    fifth = array.size // 5
    return float(array[fifth : 2 * fifth].mean()), float(array[-fifth:].mean())


def stability(series: Iterable[npt.ArrayLike], *, left: npt.ArrayLike = np.inf) -> bool | None:
    r"""Return whether a system keeps up: true, false, or None where the runs cannot tell.

    ``series``: of each of two or more replications, what grows without end where the system does not keep up
    (jobs inside, latencies), at least 5 values at equal distances after the warm-up; ``left``: jobs that left
    meanwhile in each replication, where jobs are counted.

    False: the mean of the last fifth is above that of the second for certain (`CONFIDENCE`), and
    `GROWTH_OF_INSTABILITY` times; or in every replication by a pile that no steady queue holds.

    True: the opposite is tested as well, since what has not been seen to grow may yet do so. At a load of 1
    the number is a reflected random walk, above it has a drift besides: both wander, and von Neumann's ratio
    :math:`\sum (x_k - x_{k-1})^2 / \sum (x_k - \bar x)^2`, 2 for values that do not depend on
    each other [1]_, is small. It must be above what 99 % of such walks have (`wandering`).

    At the default lengths M/M/1 is called stable up to a load of 0.95, in half of the cases at 0.98.

    References
    ----------
    .. [1] J. von Neumann, "Distribution of the ratio of the mean square successive difference to the
       variance", *Annals of Mathematical Statistics* 12(4), 1941, pp. 367-395.

    Examples
    --------
    >>> grows, steady = [[10.0 * k + r for k in range(50)] for r in range(3)], [[4.0, 5.1] * 20] * 2
    >>> stability(grows), stability(steady), stability([[1.0, 3.0, 4.0, 4.0, 3.0]] * 2)
    (False, True, None)
    """
    runs = [np.asarray(one, dtype=float) for one in series]
    early, late = np.array([early_and_late(one) for one in runs]).T
    growth = mean_interval(late - early, confidence=CONFIDENCE)
    much = late > GROWTH_OF_INSTABILITY * early
    # Two replications tell nothing for certain, unless jobs pile up that a steady queue never holds.
    if np.all(much & (late - early > PILE * np.sqrt(left))):
        return False
    if growth.low > 0:
        return False if late.sum() > GROWTH_OF_INSTABILITY * early.sum() else None
    points = min(POINTS, *(one.size for one in runs))
    means = np.array([[part.mean() for part in np.array_split(one, points)] for one in runs])
    steps, spread = np.diff(means, axis=1), means - means.mean(axis=1, keepdims=True)
    return True if np.sum(steps**2) >= wandering(points, len(runs)) * np.sum(spread**2) else None


def periodic_stability(growth: npt.ArrayLike, *, confidence: float = 0.99) -> bool | None:
    """Return whether a system under periodic traffic keeps up, or None where the runs cannot tell.

    ``growth``: of each replication, by how much the number of jobs inside grew from an instant of one
    rotation to the same of a later one, for each job that came meanwhile. False where it grew for certain
    (``confidence``) by more than `OVERLOAD_GROWTH`, true where it did so in no replication.

    >>> [periodic_stability(found) for found in ([0.02, 0.021, 0.022], [1e-4, -1e-4], [0.0, 0.02])]
    [False, True, None]
    """
    found = mean_interval(np.asarray(growth, dtype=float), confidence=confidence)
    if found.best > OVERLOAD_GROWTH and found.low > 0:
        return False
    return True if np.asarray(growth).max() < OVERLOAD_GROWTH else None


def wandering(points: int, replications: int) -> float:
    """Return the ratio that 99 % of replicated random walks stay below, see `stability`.

    Fitted to 40,000 walks of 640 normal steps reflected at 0, without the first fifth, averaged in 16 and 32
    points, 2 to 64 of them together: 0 to 6 % above (``tests/validate/test_statistics_stopping.py`` draws
    them).

    >>> round(wandering(32, 8), 3)
    0.359
    """
    return (0.17 + 0.88 * replications**-0.74) * (POINTS / points) ** 0.9


def worst(verdicts: Iterable[bool | None]) -> bool | None:
    """Return whether all keep up: false if one does not, None if one cannot tell.

    >>> worst([True, None]), worst([None, False]), worst([])
    (None, False, True)
    """
    found = set(verdicts)
    return False if False in found else None if None in found else True
