"""A station and the jobs that come to it several times: bursts are longer the more often each comes."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.plan import Ask, Choice, Copies, Node, Rounds, Series, Together

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


def visit_laws(node: Node) -> dict[str, FloatArray]:
    """Return the laws of the visits of a job to each part; those at once count as one."""
    return _laws(node)


def _laws(node: Any) -> dict[str, FloatArray]:
    match node:
        case Ask():
            return {node.site.part: np.array([0.0, 1.0])}
        case Series():
            total: dict[str, FloatArray] = {}
            for inside in node.nodes:
                for part, law in _laws(inside).items():
                    total[part] = _both(total[part], law) if part in total else law
            return total
        case Choice() | Together():
            each = [_laws(inside) for inside in node.nodes]
            shares = node.shares if isinstance(node, Choice) else (1.0,) * len(each)
            parts = dict.fromkeys(part for laws in each for part in laws)
            if isinstance(node, Together):
                return {part: next(laws[part] for laws in each if part in laws) for part in parts}
            return {part: _mixed(shares, [laws.get(part, np.ones(1)) for laws in each]) for part in parts}
        case Copies():
            return _laws(node.node)
        case Rounds():
            return {part: _repeated(node.law, law) for part, law in _laws(node.node).items()}
    return {}


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
