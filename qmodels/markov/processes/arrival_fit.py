"""Arrival processes with a given mean, variability and correlation."""

from __future__ import annotations

import numpy as np

from qmodels import checks
from qmodels.laws.of_law import phases, process
from qmodels.markov.processes.phase_type_fit import ph_from_moments
from qmodels.markov.words import described
from qmodels.systems.laws.fields import nested
from qmodels.systems.laws.kinds import scaled
from qmodels.systems.laws.phases import MAP


@described("lucantoni1991 (the process)")
def map_from_correlation(*, rate: float, scv: float, lag1_correlation: float, decay: float) -> MAP:
    r"""Fit a process to its rate, the SCV of its gaps and a geometrically decaying correlation.

    Parameters
    ----------
    rate : float
        Arrivals per unit of time. [1 / time]
    scv : float
        Squared coefficient of variation of the time between arrivals, > 0.
    lag1_correlation : float
        Correlation :math:`\rho_1` of successive times between arrivals.
    decay : float
        Ratio :math:`\gamma = \rho_{k+1}/\rho_k` in (-1, 1), of the sign of the correlation and
        larger in magnitude.

    Returns
    -------
    With :math:`\rho_k = \rho_1 \gamma^{k-1}`.

    Raises
    ------
    If the correlation is out of reach; the bound is named.

    Notes
    -----
    Each gap is of one of two types; the type changes as a two-state chain with second eigenvalue
    :math:`\gamma`, and the gap is phase-type given its type. Then

    .. math:: \rho_k = \gamma^k\, \frac{c_M^2}{c^2}, \qquad 1 + c^2 = (1 + c_M^2)(1 + c_w^2)

    with :math:`c_M^2` the SCV of the mean given the type and :math:`c_w^2` the SCV within a type.
    :math:`c_M^2 = c^2 \rho_1 / \gamma` gives both. The two types contribute equal parts of the
    mean, so that their probabilities p and 1 - p follow from :math:`4p(1-p) = 1/(1 + c_M^2)`.
    A negative :math:`\gamma` must be at least -p/(1 - p) for the smaller p.

    Examples
    --------
    Bursty packet arrivals, with correlations 0.2, 0.18, 0.162, ...:

    >>> from qmodels.markov import lag_correlation
    >>> packets = map_from_correlation(rate=0.5, scv=4.0, lag1_correlation=0.2, decay=0.9)
    >>> round(packets.rate, 10), round(packets.scv, 10), lag_correlation(packets, [1, 2, 3]).round(6)
    (0.5, 4.0, array([0.2  , 0.18 , 0.162]))
    """
    speed = float(checks.positive("rate", rate))
    c = float(checks.positive("scv", scv))
    rho = float(checks.finite("lag1_correlation", lag1_correlation))
    gamma = float(checks.finite("decay", decay))
    if not -1 < gamma < 1:
        raise ValueError(f"decay must be in (-1, 1), got {gamma:g}")
    if rho == 0:
        return process("gaps", ph_from_moments(mean=1 / speed, scv=c))
    if rho * gamma <= 0 or abs(rho) >= abs(gamma):
        raise ValueError(
            f"lag1_correlation must have the sign of decay, {gamma:g}, and a smaller magnitude, got {rho:g}"
        )
    between = c * rho / gamma
    within = (1 + c) / (1 + between) - 1
    smaller = (1 - np.sqrt(between / (1 + between))) / 2
    lowest = -smaller / (1 - smaller)
    if gamma < lowest:
        raise ValueError(f"decay must be >= {lowest:.6g} for this scv and lag1_correlation, got {gamma:g}")
    shape = ph_from_moments(mean=1.0, scv=within)
    probabilities = np.array([smaller, 1 - smaller])
    laws = [phases("gaps", scaled(shape, 0.5 / (p * speed))) for p in probabilities]
    change = gamma * np.eye(2) + (1 - gamma) * probabilities
    n = len(shape.initial)
    d0 = np.zeros((2 * n, 2 * n))
    d1 = np.zeros((2 * n, 2 * n))
    for i, law in enumerate(laws):
        here = slice(i * n, (i + 1) * n)
        d0[here, here] = law.generator
        for j, following in enumerate(laws):
            d1[here, j * n : (j + 1) * n] = change[i, j] * np.outer(law.exit_rates, following.initial)
    return MAP(d0=nested(d0), d1=nested(np.maximum(d1, 0.0)))
