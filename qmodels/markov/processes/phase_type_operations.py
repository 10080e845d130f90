"""Phase-type laws from others: sum, minimum, maximum, mixture, canonical form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qmodels.checks import FloatArray
from qmodels.laws.of_law import phases
from qmodels.laws.phases import Phases
from qmodels.markov.words import described
from qmodels.systems.laws.fields import nested
from qmodels.systems.laws.fields import weights as checked_weights
from qmodels.systems.laws.phases import PhaseType
from qmodels.systems.laws.times import Law


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
