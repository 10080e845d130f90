"""Jobs of a limited number and those who wait for them: how unevenly they leave what they go round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from qmodels.composed.couplings.profile import Profile


def leaving_scv(profile: Profile, found: Sequence[float], noise: Mapping[str, float]) -> float:
    r"""Return the variance of the number of jobs that leave in a long time, over its mean.

    ``profile``: times at parts by the rate; ``found``: how many a job finds at each part; ``noise``: squared
    coefficient of variation of all that a job alone takes at a part; parts that are not there take it from
    the others.

    A part with :math:`L_k` jobs is left :math:`1 / L_k'` more often for each job more, :math:`L_k'(\lambda)`
    being the number that an open stream leaves there, and as unevenly as its services are. Of what happens
    at a part only so much is left in the end that no jobs get lost on the way round:

    .. math:: c^2 = \sum_k w_k^2 c_k^2, \quad w_k = L_k' / \sum_j L_j'.

    A single job is a renewal process, a full server leaves as it serves: exact in both limits. Balanced
    exponential servers have 1/m of m, which with many jobs is 2/3 for two of them [1]_. Derived here.

    References
    ----------
    .. [1] Y. Nazarathy, G. Weiss, "The asymptotic variance rate of the output process of finite capacity
       birth-death queues", Queueing Systems 59, 2008.
    """
    weights = np.array([profile.slope(number, k) for k, number in enumerate(found)])
    known = np.array([part in noise for part in profile.parts], dtype=bool)
    total = float(weights[known].sum()) if known.size else 0.0
    if not total > 0:
        return 1.0
    each = np.array([noise.get(part, 0.0) for part in profile.parts])
    return float((weights[known] / total) ** 2 @ each[known])
