"""When a request had better go to memory without asking the last-level cache."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray


def highest_miss_ratio(*, llc_time: npt.ArrayLike, memory_time: npt.ArrayLike) -> FloatArray:
    r"""Miss ratio of the last-level cache above which skipping it is faster.

    Parameters
    ----------
    llc_time : array_like
        Mean time a request spends at the last-level cache, waiting included. [any unit of time]
    memory_time : array_like
        Mean time it spends at memory, waiting included. [the same]

    Returns
    -------
    ndarray or float
        In [0, 1]; 0 where the cache is slower than memory, so that it never pays.

    Notes
    -----
    Asking costs :math:`t_c + m\,t_m`, skipping :math:`t_m`: asking pays while
    :math:`m < 1 - t_c / t_m`. Exact for one more request; that skipping changes the waiting
    times of both is the business of whoever gives the times.

    Examples
    --------
    >>> float(highest_miss_ratio(llc_time=20.0, memory_time=80.0))
    0.75
    """
    cache, memory = checks.nonnegative("llc_time", llc_time), checks.positive("memory_time", memory_time)
    return np.maximum(1.0 - cache / memory, 0.0)
