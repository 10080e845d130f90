"""Phase-type laws from others: sum, minimum, maximum, mixture, canonical form."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from qmodels import checks
from qmodels.markov.chains.structure import ROW_SUM_TOLERANCE
from qmodels.markov.processes.phase_type import PhaseType
from qmodels.markov.words import described


@described("neuts1981, ch. 2", raises="nothing")
def ph_convolution(first: PhaseType, second: PhaseType) -> PhaseType:
    """Law of the sum of two independent times.

    Returns
    -------
    PhaseType
        With the phases of both.

    Examples
    --------
    >>> total = ph_convolution(PhaseType.exponential(mean=1.0), PhaseType.erlang(mean=3.0, phases=2))
    >>> total.phases, total.mean
    (3, 4.0)
    """
    n, m = first.phases, second.phases
    generator = np.zeros((n + m, n + m))
    generator[:n, :n] = first.generator
    generator[n:, n:] = second.generator
    generator[:n, n:] = np.outer(first.exit_rates, second.initial)
    return PhaseType(initial=np.concatenate([first.initial, np.zeros(m)]), generator=generator)


@described("neuts1981, ch. 2", raises="nothing")
def ph_minimum(first: PhaseType, second: PhaseType) -> PhaseType:
    """Law of the smaller of two independent times.

    Returns
    -------
    PhaseType
        With the product of their numbers of phases.

    Examples
    --------
    >>> ph_minimum(PhaseType.exponential(mean=1.0), PhaseType.exponential(mean=1.0)).mean
    0.5
    """
    return PhaseType(
        initial=np.kron(first.initial, second.initial),
        generator=np.kron(first.generator, np.eye(second.phases))
        + np.kron(np.eye(first.phases), second.generator),
    )


@described("neuts1981, ch. 2", raises="nothing")
def ph_maximum(first: PhaseType, second: PhaseType) -> PhaseType:
    """Law of the larger of two independent times, such as a join of two branches.

    Returns
    -------
    PhaseType
        With :math:`nm + n + m` phases.

    Examples
    --------
    >>> ph_maximum(PhaseType.exponential(mean=1.0), PhaseType.exponential(mean=1.0)).mean
    1.5
    """
    n, m = first.phases, second.phases
    both = n * m
    generator = np.zeros((both + n + m, both + n + m))
    generator[:both, :both] = np.kron(first.generator, np.eye(m)) + np.kron(np.eye(n), second.generator)
    generator[:both, both : both + n] = np.kron(np.eye(n), second.exit_rates[:, None])
    generator[:both, both + n :] = np.kron(first.exit_rates[:, None], np.eye(m))
    generator[both : both + n, both : both + n] = first.generator
    generator[both + n :, both + n :] = second.generator
    return PhaseType(
        initial=np.concatenate([np.kron(first.initial, second.initial), np.zeros(n + m)]), generator=generator
    )


@described("neuts1981, ch. 2")
def ph_mixture(probabilities: Sequence[float], laws: Sequence[PhaseType]) -> PhaseType:
    """Law of a time drawn from one of several laws.

    Parameters
    ----------
    probabilities : sequence of float
        Probability of each law, sum 1.
    laws : sequence of PhaseType
        As many laws.

    Returns
    -------
    PhaseType
        With the phases of all.

    Raises
    ------
    ValueError
        If the lists differ in length or the probabilities do not sum to 1.

    Examples
    --------
    >>> hit, miss = PhaseType.erlang(mean=15.0, phases=9), PhaseType.erlang(mean=40.0, phases=9)
    >>> round(ph_mixture([0.7, 0.3], [hit, miss]).mean, 10)
    22.5
    """
    weights = np.atleast_1d(checks.probability("probabilities", probabilities))
    if weights.size != len(laws) or not laws:
        raise ValueError(
            f"probabilities must be as many as laws ({len(laws)}, at least 1), got {weights.size}"
        )
    if abs(weights.sum() - 1.0) > ROW_SUM_TOLERANCE:
        raise ValueError(f"probabilities must sum to 1, got {weights.sum():.12g}")
    sizes = [law.phases for law in laws]
    ends = np.cumsum(sizes)
    generator = np.zeros((ends[-1], ends[-1]))
    for law, end in zip(laws, ends, strict=True):
        generator[end - law.phases : end, end - law.phases : end] = law.generator
    initial = np.concatenate([weight * law.initial for weight, law in zip(weights, laws, strict=True)])
    return PhaseType(initial=initial, generator=generator)


@described("cumani1982")
def ph_canonical(law: PhaseType) -> PhaseType:
    r"""Canonical form of an acyclic law: phases in series, the rates in ascending order.

    Parameters
    ----------
    law : PhaseType
        Acyclic: no phase can be visited twice.

    Returns
    -------
    PhaseType
        The same law; phase i leads to phase i + 1, the last one to absorption.

    Raises
    ------
    ValueError
        If the law has a cycle of phases.

    Notes
    -----
    With the total rates sorted, :math:`\lambda_1 \le \dots \le \lambda_n`, and
    :math:`w_n = t/\lambda_n`, :math:`w_i = (T + \lambda_{i+1} I)\, w_{i+1} / \lambda_i`, the law
    starts in phase i with probability :math:`\alpha w_i`. The form is unique and has the fewest
    parameters, :math:`2n - 1`.

    Examples
    --------
    >>> form = ph_canonical(PhaseType.hyperexponential(probabilities=[0.5, 0.5], means=[1.0, 4.0]))
    >>> form.initial, form.generator.tolist()
    (array([0.375, 0.625]), [[-0.25, 0.25], [0.0, -1.0]])
    """
    n = law.phases
    links = (law.generator - np.diag(law.generator.diagonal()) > 0).astype(float)
    if np.linalg.matrix_power(links, n).any():
        raise ValueError("law must be acyclic, got one whose phases form a cycle")
    rates = np.sort(-law.generator.diagonal())
    weight = law.exit_rates / rates[-1]
    initial = np.empty(n)
    for i in range(n - 1, -1, -1):
        initial[i] = law.initial @ weight
        if i:
            weight = (law.generator @ weight + rates[i] * weight) / rates[i - 1]
    initial = np.maximum(initial, 0.0)
    return PhaseType(initial=initial / initial.sum(), generator=np.diag(-rates) + np.diag(rates[:-1], k=1))
