"""Fits of phase-type laws and of Markovian arrival processes to moments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.laws.of_law import phases, process
from qmodels.laws.phases import Phases
from qmodels.markov.words import described
from qmodels.systems.laws.fields import nested
from qmodels.systems.laws.fields import weights as checked_weights
from qmodels.systems.laws.kinds import scaled
from qmodels.systems.laws.times import MAP, HyperExponential, Law, PhaseType


@described("neuts1981, ch. 2")
def ph_convolution(first: Law, second: Law) -> PhaseType:
    """Law of the sum of two independent times.

    Returns
    -------
    With the phases of both.

    Examples
    --------
    >>> from qmodels.laws import Erlang, Exponential
    >>> total = ph_convolution(Exponential(mean=1.0), Erlang(mean=3.0, phases=2))
    >>> len(total.initial), round(total.mean, 12)
    (3, 4.0)
    """
    one, other = phases("first", first), phases("second", second)
    n, m = one.phases, other.phases
    generator = np.zeros((n + m, n + m))
    generator[:n, :n] = one.generator
    generator[n:, n:] = other.generator
    generator[:n, n:] = np.outer(one.exit_rates, other.initial)
    return law_of(np.concatenate([one.initial, np.zeros(m)]), generator)


@described("neuts1981, ch. 2")
def ph_minimum(first: Law, second: Law) -> PhaseType:
    """Law of the smaller of two independent times.

    Returns
    -------
    With the product of their numbers of phases.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> ph_minimum(Exponential(mean=1.0), Exponential(mean=1.0)).mean
    0.5
    """
    one, other = phases("first", first), phases("second", second)
    n, m = one.phases, other.phases
    moves = np.kron(one.generator, np.eye(m)) + np.kron(np.eye(n), other.generator)
    initial = np.kron(np.array(one.initial, dtype=float), np.array(other.initial, dtype=float))
    return law_of(initial, np.asarray(moves, dtype=float))


@described("neuts1981, ch. 2")
def ph_maximum(first: Law, second: Law) -> PhaseType:
    """Law of the larger of two independent times, such as a join of two branches.

    Returns
    -------
    With :math:`nm + n + m` phases.

    Examples
    --------
    >>> from qmodels.laws import Exponential
    >>> ph_maximum(Exponential(mean=1.0), Exponential(mean=1.0)).mean
    1.5
    """
    one, other = phases("first", first), phases("second", second)
    n, m = one.phases, other.phases
    both = n * m
    generator = np.zeros((both + n + m, both + n + m))
    generator[:both, :both] = np.kron(one.generator, np.eye(m)) + np.kron(np.eye(n), other.generator)
    generator[:both, both : both + n] = np.kron(np.eye(n), other.exit_rates[:, None])
    generator[:both, both + n :] = np.kron(one.exit_rates[:, None], np.eye(m))
    generator[both : both + n, both : both + n] = one.generator
    generator[both + n :, both + n :] = other.generator
    return law_of(np.concatenate([np.kron(one.initial, other.initial), np.zeros(n + m)]), generator)


@described("neuts1981, ch. 2")
def ph_mixture(probabilities: Sequence[float], laws: Sequence[Law]) -> PhaseType:
    """Law of a time drawn from one of several laws.

    Parameters
    ----------
    probabilities : sequence of float
        Probability of each law, sum 1.
    laws : sequence of Law
        As many laws.

    Returns
    -------
    With the phases of all.

    Raises
    ------
    If the lists differ in length or the probabilities do not sum to 1.

    Examples
    --------
    >>> from qmodels.laws import Erlang
    >>> hit, miss = Erlang(mean=15.0, phases=9), Erlang(mean=40.0, phases=9)
    >>> round(ph_mixture([0.7, 0.3], [hit, miss]).mean, 10)
    22.5
    """
    if len(probabilities) != len(laws) or not laws:
        raise ValueError(
            f"probabilities must be as many as laws ({len(laws)}, at least 1), got {len(probabilities)}"
        )
    weights = checked_weights("probabilities", probabilities)
    parts = [phases("laws", law) for law in laws]
    sizes = [law.phases for law in parts]
    ends = np.cumsum(sizes)
    generator = np.zeros((ends[-1], ends[-1]))
    for law, end in zip(parts, ends, strict=True):
        generator[end - law.phases : end, end - law.phases : end] = law.generator
    initial = np.concatenate([weight * law.initial for weight, law in zip(weights, parts, strict=True)])
    return law_of(initial, generator)


@described("cumani1982")
def ph_canonical(law: Law | Phases) -> PhaseType:
    r"""Canonical form of an acyclic law: phases in series, the rates in ascending order.

    Parameters
    ----------
    law : Law
        Made of phases, acyclic: no phase can be visited twice.

    Returns
    -------
    The same law; phase i leads to phase i + 1, the last one to absorption.

    Raises
    ------
    If the law has a cycle of phases.

    Notes
    -----
    With the total rates sorted, :math:`\lambda_1 \le \dots \le \lambda_n`, and
    :math:`w_n = t/\lambda_n`, :math:`w_i = (T + \lambda_{i+1} I)\, w_{i+1} / \lambda_i`, the law
    starts in phase i with probability :math:`\alpha w_i`. The form is unique and has the fewest
    parameters, :math:`2n - 1`.

    Examples
    --------
    >>> from qmodels.laws import HyperExponential
    >>> ph_canonical(HyperExponential(probabilities=[0.5, 0.5], means=[1.0, 4.0]))
    PhaseType(initial=(0.375, 0.625), generator=((-0.25, 0.25), (0.0, -1.0)))
    """
    given = phases("law", law)
    n = given.phases
    links = (given.generator - np.diag(given.generator.diagonal()) > 0).astype(float)
    if np.linalg.matrix_power(links, n).any():
        raise ValueError("law must be acyclic, got one whose phases form a cycle")
    rates = np.sort(-given.generator.diagonal())
    weight = given.exit_rates / rates[-1]
    initial = np.empty(n)
    for i in range(n - 1, -1, -1):
        initial[i] = given.initial @ weight
        if i:
            weight = (given.generator @ weight + rates[i] * weight) / rates[i - 1]
    initial = np.maximum(initial, 0.0)
    return law_of(initial / initial.sum(), np.diag(-rates) + np.diag(rates[:-1], k=1))


def law_of(initial: FloatArray, generator: FloatArray) -> PhaseType:
    """Return the phase-type law with these arrays."""
    return PhaseType(initial=nested(initial), generator=nested(generator))


_ONE = PhaseType(initial=(1.0,), generator=((-1.0,),))
MOMENT_TOLERANCE = 1e-9
"""Largest relative error of a fitted moment."""


@described("tijms1994, appendix B", "bobbio2005")
def ph_from_moments(
    *, mean: float, scv: float, third_moment: float | None = None, max_phases: int = 200
) -> PhaseType:
    r"""Fit an acyclic phase-type law to two or three moments with the fewest phases.

    Parameters
    ----------
    mean : float
        Mean :math:`m_1 > 0`. [time]
    scv : float
        Squared coefficient of variation > 0.
    third_moment : float, optional
        Third raw moment :math:`m_3`. [time^3]
    max_phases : int
        Largest number of phases.

    Returns
    -------
    In the canonical form of `ph_canonical`; its moments agree to 1e-9.

    Raises
    ------
    If no acyclic law of at most `max_phases` phases has these moments; the bound that is
    missed is named.

    Notes
    -----
    Two moments: for scv >= 1 a mixture of two exponentials with balanced means, for scv < 1 the
    mixture of Erlang laws of n - 1 and n phases, n = ceil(1 / scv) [1]_.

    Three moments: a law of n phases exists iff, with :math:`n_2 = m_2/m_1^2` and
    :math:`n_3 = m_3/(m_1 m_2)`, :math:`n_2 \ge (n+1)/n` and :math:`n_3` lies within the bounds
    of [2]_ (`third_moment_bounds`). It is then B E + X or B X + E, with E Erlang of n - 1
    phases, X exponential and B 0 or 1. Eliminating the weight and one rate leaves a polynomial
    of degree 2 or 4 in the other mean, whose roots are tried.

    Examples
    --------
    >>> from qmodels.laws import formulas
    >>> law = ph_from_moments(mean=1.0, scv=0.4)
    >>> len(law.initial), round(law.scv, 10)
    (3, 0.4)
    >>> law = ph_from_moments(mean=1.0, scv=2.0, third_moment=20.0)
    >>> len(law.initial), round(float(formulas(law).moment(3)), 8)
    (2, 20.0)
    """
    m = float(checks.positive("mean", mean))
    c = float(checks.positive("scv", scv))
    limit = int(checks.count("max_phases", max_phases))
    if third_moment is None:
        return scaled(_two_moments(c, limit), m)
    third = float(checks.positive("third_moment", third_moment)) / m**3
    second = 1.0 + c
    if abs(second - 2) < MOMENT_TOLERANCE and abs(third - 6) < 6 * MOMENT_TOLERANCE:
        return scaled(_ONE, m)
    for n in range(2, limit + 1):
        bounds = third_moment_bounds(scv=c, phases=n)
        if bounds is None or not bounds[0] * (1 - 1e-12) <= third <= bounds[1] * (1 + 1e-12):
            continue
        for build in (_erlang_then_exponential, _exponential_then_erlang, _all_phases):
            for law in build(n, second, third):
                if law is not None and _matches(law, second, third):
                    return scaled(ph_canonical(law), m)
    bounds = third_moment_bounds(scv=c, phases=limit)
    if bounds is None:
        raise _too_small(c, limit)
    low, high = (bound * m**3 for bound in bounds)
    rule = f"> {low:.9g}" if third * m**3 <= low * (1 + 1e-9) else f"<= {high:.9g}"
    raise ValueError(
        f"third_moment must be {rule} for this mean and scv and at most {limit} phases, "
        f"got {third * m**3:.9g}"
    )


@described("bobbio2005; checked by a scan over all laws of both forms")
def third_moment_bounds(*, scv: float, phases: int) -> tuple[float, float] | None:
    """Least and largest third moment of acyclic laws of mean 1 with a given SCV and number of phases.

    Parameters
    ----------
    scv : float
        Squared coefficient of variation > 0.
    phases : int
        Number of phases >= 2.

    Returns
    -------
    tuple or None
        Bounds for mean 1 (multiply by the cube of the mean), the upper one possibly ``inf``;
        None where the SCV is below 1 / phases. The lower one is approached, not reached, where
        the SCV is at least 3 / (phases + 1).

    Examples
    --------
    >>> third_moment_bounds(scv=2.0, phases=2)
    (13.5, inf)
    """
    n = float(checks.count("phases", phases, minimum=2))
    n2 = 1.0 + float(checks.positive("scv", scv))
    if n2 < (n + 1) / n * (1 - 1e-14):
        return None
    n2 = max(n2, (n + 1) / n)
    if n2 < (n + 4) / (n + 1):
        p = (n + 1) * (n2 - 2) / (3 * n2 * (n - 1)) * (-2 * np.sqrt((n + 1) / (4 * (n + 1) - 3 * n * n2)) - 1)
        a = (n2 - 2) / (p * (1 - n2) + np.sqrt(max(p * p + p * n * (n2 - 2) / (n - 1), 0.0)))
        low = ((3 + a) * (n - 1) + 2 * a) / ((n - 1) * (1 + a * p))
        low -= 2 * a * (n + 1) / (2 * (n - 1) + a * p * (n * a + 2 * n - 2))
    else:
        low = (n + 1) / n * n2
    high = np.inf
    if n2 <= n / (n - 1):
        root = np.sqrt(max(1 + n * (n2 - 2) / (n - 1), 0.0))
        high = 2 * (n - 2) * (n * n2 - n - 1) * root + (n + 2) * (3 * n * n2 - 2 * n - 2)
        high /= n * n * n2
    return float(low * n2), float(high * n2)


def _two_moments(c: float, limit: int) -> PhaseType:
    if c >= 1:
        return ph_canonical(HyperExponential.balanced(mean=1.0, scv=c)) if c > 1 else _ONE
    if np.ceil(1 / c * (1 - 1e-12)) > max(limit, 2):
        raise _too_small(c, limit)
    n = max(2, int(np.ceil(1 / c * (1 - 1e-12))))
    # With probability p one phase is skipped.
    p = max((n * c - np.sqrt(max(n * (1 + c) - n * n * c, 0.0))) / (1 + c), 0.0)
    initial = np.zeros(n)
    initial[0], initial[1] = 1 - p, p
    return law_of(initial, (n - p) * (np.eye(n, k=1) - np.eye(n)))


def _too_small(c: float, limit: int) -> ValueError:
    return ValueError(f"scv must be >= 1 / max_phases = {1 / limit:.9g}, got {c:.9g}")


def _erlang_then_exponential(n: int, second: float, third: float) -> Iterator[Phases | None]:
    """Try B E + X: the mean x of X is a root of n (m3 - 3 x m2) (1 - x) = (n + 1) (m2 - 2 x)^2."""
    grown = 1 + 1 / n
    quadratic = [3 * second - 4 * grown, 4 * grown * second - third - 3 * second, third - grown * second**2]
    for x in _roots(quadratic):
        stages = (second - 2 * x) / (1 - x) * (n - 1) / n  # mean of E
        yield _series(n, (1 - x) / stages if stages > 0 else -1.0, x, stages, exponential_last=True)


def _exponential_then_erlang(n: int, second: float, third: float) -> Iterator[Phases | None]:
    """Try B X + E: with b = E[B X], u = 1 - b the mean of E and c = E[B X^2], quadratic in b,

    2 b m3 = 3 c^2 + 6 b c u + 6 b^2 (1 + 1/k) u^2 + 2 b (1 + 1/k) (1 + 2/k) u^3,  k = n - 1.
    """  # noqa: D400
    k = n - 1.0
    b = np.polynomial.Polynomial([0.0, 1.0])
    u = 1 - b
    c = second - (1 + 1 / k) + 2 / k * b + (1 - 1 / k) * b**2
    quartic = 3 * c**2 + 6 * b * c * u + 6 * b**2 * (1 + 1 / k) * u**2
    quartic = quartic + 2 * b * (1 + 1 / k) * (1 + 2 / k) * u**3 - 2 * b * third
    for optional in _roots(quartic.coef[::-1]):
        x = float(c(optional)) / (2 * optional)
        yield _series(n, optional / x if x > 0 else -1.0, x, 1 - optional, exponential_last=False)


def _all_phases(n: int, second: float, third: float) -> Iterator[Phases | None]:
    """Try X + E, the ends of both forms, where the weight of the optional part is 1."""
    grown = 1 + 1 / (n - 1)
    for mean in _roots([grown, -2.0, 2 - second]):
        yield _series(n, 1.0, 1 - mean, mean, exponential_last=True)


def _series(n: int, p: float, x: float, stages: float, *, exponential_last: bool) -> Phases | None:
    """Chain n - 1 phases of total mean `stages` and one of mean x; the optional part has probability p."""
    if not (-1e-9 <= p <= 1 + 1e-9 and x > 0):
        return None
    p = min(max(p, 0.0), 1.0)
    rates = np.full(n, (n - 1) / stages)
    rates[-1 if exponential_last else 0] = 1 / x
    initial = np.zeros(n)
    initial[0] = p
    initial[-1 if exponential_last else 1] += 1 - p
    return Phases(initial, np.diag(-rates) + np.diag(rates[:-1], k=1))


def _matches(law: Phases, second: float, third: float) -> bool:
    moments = np.array([law.moment(1), law.moment(2) / second, law.moment(3) / third])
    return bool(np.all(np.abs(moments - 1) <= MOMENT_TOLERANCE))


def _roots(coefficients: Any) -> list[float]:
    """Return the roots in (0, 1), ascending; a double root may come out with a small imaginary part."""
    slope = np.polyder(coefficients)
    found = []
    for root in np.roots(coefficients):
        x = float(root.real)
        if abs(root.imag) > 1e-6 or not 0 < x < 1:
            continue
        for _ in range(3):  # a small root has an absolute error only; at a double root Newton stays away
            steep = float(np.polyval(slope, x))
            step = float(np.polyval(coefficients, x)) / steep if steep else 0.0
            x -= step if abs(step) < 1e-3 * x else 0.0
        if x < 1:
            found.append(x)
    return sorted(found)


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
