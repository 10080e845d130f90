"""Departure of the busiest of several queues from the mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.evidence.constants import kept


class RingLaw(NamedTuple):
    """The deviation of the tasks that one task passes on around a ring, see `ring_surplus`.

    Parameters
    ----------
    deviation : float
        In long rings, of equal tasks. [tasks]
    by_compute : float
        What it grows by with the coefficient of variation of the computing time. [tasks]
    full : float
        Queues of a long ring; below, the deviation falls with the root of their number. [queues]
    """

    deviation: float
    by_compute: float
    full: float


LAW = kept(RingLaw, "work_queues.ring")


def step_deviation(*, queues: int, compute_scv: float) -> float:
    """Return the deviation of the tasks that one task passes on around a ring."""
    full = LAW.deviation + LAW.by_compute * np.sqrt(compute_scv)
    return float(full * min(1.0, np.sqrt(queues / LAW.full)))


def expected_maximum(*, means: npt.ArrayLike, deviations: npt.ArrayLike) -> float:
    r"""Mean of the largest of independent normal numbers.

    :math:`E[\max] = b - \int_{-\infty}^b \prod_i \Phi((x - m_i)/\sigma_i)\,dx` for a b beyond them
    all, by the trapezoidal rule; numbers without deviation are exact.
    """
    from scipy.special import ndtr

    m, d = np.broadcast_arrays(
        checks.finite("means", means).ravel(), checks.nonnegative("deviations", deviations).ravel()
    )
    low, high = float(np.max(m - 9 * d)), float(np.max(m + 9 * d))
    if high <= low:
        return high
    x = np.linspace(low, high, 2001)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (x[:, None] - m) / d
    below = np.where(d > 0, ndtr(z), x[:, None] >= m)
    return high - float(np.trapezoid(below.prod(axis=1), x))


def ring_surplus(*, tasks: float, queues: int, compute_scv: float = 0.0) -> float:
    r"""Tasks by which the busiest of a ring of queues exceeds the mean when each passes on to the next.

    ``tasks``: tasks N of all queues together; ``queues``: queues M in the ring; ``compute_scv``: squared
    coefficient of variation of a task's time.

    Queue i + 1 runs the tasks found by queue i: around the ring the numbers form a random walk with M
    steps, each of variance :math:`\sigma^2 N/M`, that ends where it began. The mean range of a
    Brownian bridge is :math:`\sqrt{\pi/2}`, its largest departure from the mean half of that, and a
    walk in steps reaches less far than a continuous one by 0.5826 steps:

    .. math:: \sigma \left(\sqrt{\pi/8}\sqrt N - 0.5826 \sqrt{N/M}\right).

    An approximation: the :math:`\sigma` of `step_deviation` is measured, not derived, since who is
    late finds his neighbours taken, and short queues therefore find more than long ones.

    References
    ----------
    .. [1] N. H. Kuiper, "Tests concerning random points on a circle", Proc. Koninklijke Nederlandse
       Akademie van Wetenschappen A 63 (1960), 38-47: the range of a Brownian bridge.
    .. [2] D. Siegmund, "Corrected diffusion approximations in certain random walk problems", Advances
       in Applied Probability 11 (1979), 701-719: 0.5826.
    """
    total = float(checks.nonnegative("tasks", tasks))
    count = int(checks.count("queues", queues))
    scv = float(checks.nonnegative("compute_scv", compute_scv))
    deviation = step_deviation(queues=count, compute_scv=scv)
    reach = np.sqrt(np.pi / 8 * total) - 0.5826 * np.sqrt(total / count)
    return float(deviation * max(reach, 0.0)) if count > 1 else 0.0


def ring_block_imbalance(*, tasks: float, queues: int, blocks: int, compute_scv: float = 0.0) -> float:
    r"""Mean surplus of the busiest of equal sections of a ring of queues, as a share of an equal part.

    ``tasks``: tasks of all queues together; ``queues``, ``blocks``: queues in the ring, and its equal
    sections, such as clusters of cores; ``compute_scv``: squared coefficient of variation of a task's time.

    The departures of the queues are taken for independent and normal, so that the largest of them all is
    the `ring_surplus`; a section has the mean of its queues. Simulated imbalances of four clusters of
    four cores are 0.07 to 0.10 where this gives 0.07.
    """
    total = float(checks.positive("tasks", tasks))
    count = int(checks.count("blocks", blocks))
    if count == 1:
        return 0.0
    scv = float(checks.nonnegative("compute_scv", compute_scv))
    surplus = ring_surplus(tasks=total, queues=queues, compute_scv=scv)
    one = surplus / expected_maximum(means=np.zeros(queues), deviations=np.ones(queues))
    largest = expected_maximum(means=np.zeros(count), deviations=np.ones(count))
    return float(one * largest / np.sqrt(queues / count) / (total / queues))
