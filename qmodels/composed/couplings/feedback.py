"""A station and the jobs that come to it several times: bursts are longer the more often each comes."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.program_form import Alternatives, Count, Op, ProgramForm, Rules, Run, Site, fold

MOST = 64
"""Visits above which more make no difference."""


def effective_scv(*, scv: float, service_scv: float, law: FloatArray, sharing: bool = False) -> float:
    r"""Return the variability of visits from that of jobs that come several times.

    ``scv``: squared coefficient of variation of the times between jobs; ``service_scv``: that of the service
    of a visit; ``law``: probabilities that a job makes 0, 1, 2, ... visits; ``sharing``: whether all jobs
    share the server; a visit waits for its turn otherwise.

    The work that K visits of a job bring is queued with :math:`c_a^2 + v`, :math:`v = c_s^2/E[K] + c_K^2`,
    and a job that is found has :math:`E[K(K+1)]/2E[K]` visits to make, where it would have one; of jobs that
    share a server it has :math:`(1+v)/2` of all its work left, where it would have :math:`(1+c_s^2)/2` of a
    visit. Nothing changes for Poisson jobs and exponential services, where there is a product form. For
    visits that follow each other closely; heavy traffic.
    """
    some = law.copy()
    some[0] = 0.0
    total = float(some.sum())
    if total <= 0 or law.size <= 2:
        return scv
    some /= total
    numbers = np.arange(law.size)
    mean, square = float(some @ numbers), float(some @ numbers**2)
    whole = service_scv / mean + square / mean**2 - 1
    left = (1 + whole) / (1 + service_scv) if sharing else (square + mean) / (2 * mean**2)
    return max((scv + whole) / left - service_scv, 0.0)


Laws: TypeAlias = dict[str, FloatArray]


def visit_laws(form: ProgramForm, node: int) -> Laws:
    """Return the laws of the visits of a job to each part; those at once count as one."""
    rules: Rules = {Op.VISIT: _visit, Op.CHOICE: _choice, Op.PARALLEL: _parallel, Op.REPEAT: _repeat}
    found: Laws = fold(form, node, rules, {})
    return found


def _visit(site: Site, before: Laws) -> Laws:
    return _in_series(before, {site.part: np.array([0.0, 1.0])})


def _choice(choice: Alternatives, nodes: tuple[int, ...], run: Run, before: Laws) -> Laws:
    each = [run(node, {}) for node in nodes]
    parts = dict.fromkeys(part for laws in each for part in laws)
    found = {part: _mixed(choice.shares, [laws.get(part, np.ones(1)) for laws in each]) for part in parts}
    return _in_series(before, found)


def _parallel(row: Any, nodes: tuple[int, ...], run: Run, before: Laws) -> Laws:
    found: Laws = {}
    for node in nodes:
        found = run(node, {}) | found
    return _in_series(before, found)


def _repeat(count: Count, nodes: tuple[int, ...], run: Run, before: Laws) -> Laws:
    return _in_series(before, {part: _repeated(count.law, law) for part, law in run(nodes[0], {}).items()})


def _in_series(before: Laws, after: Laws) -> Laws:
    some = {part: _both(before[part], law) if part in before else law for part, law in after.items()}
    return {**before, **some}


def _mixed(shares: tuple[float, ...], laws: list[FloatArray]) -> FloatArray:
    total = np.zeros(max(law.size for law in laws))
    for share, law in zip(shares, laws, strict=True):
        total[: law.size] += share * law
    return total


def _repeated(rounds: FloatArray, law: FloatArray) -> FloatArray:
    power, total = np.ones(1), np.zeros(1)
    for share in (*rounds[:MOST], float(rounds[MOST:].sum())):
        total = _mixed((1.0, share), [total, power])
        power = _both(power, law)
    return total


def _both(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the law of the sum of two numbers; `MOST` is that many or more."""
    law = np.convolve(one, other)
    return law if law.size <= MOST + 1 else np.append(law[:MOST], law[MOST:].sum())
