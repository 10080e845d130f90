"""Visits of one job that are not independent: it comes several times, or its copies meet again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, sqrt
from typing import Any, TypeAlias

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.moments import moments_of
from qmodels.composed.streams import Response
from qmodels.systems.composed.program_form import (
    Alternatives,
    Count,
    Delay,
    Op,
    ProgramForm,
    Rules,
    Run,
    Site,
    fold,
)
from qmodels.systems.composed.system import System
from qmodels.systems.stations.parts import Station

_RANGE = 3.4
"""Range of some independent times over their standard deviation, as if they were evenly spread."""


@dataclass(frozen=True, kw_only=True)
class _Others:
    """The other copies: how many, how far apart they come, and how often they come round."""

    count: float = 0.0
    gap: float = 0.0
    rounds: float = 1.0
    loop: float = 0.0


@dataclass(eq=False)
class ForkCorrelation:
    """Finds how many copies of a job are at a station together.

    Attributes
    ----------
    together : dict of int to float
        By site, as many as come at once would wait for each other as much, itself included.

    Notes
    -----
    Copies leave the part that they ask first one after the other. Where the next part takes longer for each
    they queue again, in proportion to what it takes longer. Those that come again and again meet the others
    for the share of the time that these are there.
    """

    system: System  # The system
    responses: Mapping[int, Response]  # What parts answer to sites
    together: dict[int, float] = field(default_factory=dict)

    def find(self, form: ProgramForm, node: int) -> dict[int, float]:
        """Return ``together`` for a program."""

        def copies(count: Count, nodes: tuple[int, ...], run: Run, others: _Others) -> _Others:
            mean, variance = moments_of(count.law)
            more = variance / mean + mean - 1 if mean > 0 else 0.0
            after = run(nodes[0], _Others(count=(1 + others.count) * (1 + more) - 1))
            # Those that have been joined come as far apart as all their copies.
            return replace(others, gap=max(others.gap, after.gap * mean))

        def repeat(count: Count, nodes: tuple[int, ...], run: Run, others: _Others) -> _Others:
            mean, _ = moments_of(count.law)
            loop = others.loop if others.rounds > 1 else self._time(form, nodes[0])
            run(nodes[0], replace(others, rounds=others.rounds * max(mean, 1.0), loop=loop))
            return others

        rules: Rules = {
            Op.VISIT: self._ask, Op.HOLD: _hold, Op.CHOICE: _choice, Op.PARALLEL: _parallel,
            Op.COPIES: copies, Op.REPEAT: repeat,
        }  # fmt: skip
        fold(form, node, rules, _Others())
        return self.together

    def _ask(self, site: Site, others: _Others) -> _Others:
        pace = self._pace(site)
        if others.count <= 0 or pace <= 0:
            return others
        apart = site.batch.size <= 2
        if apart and isinstance(self.system.parts[site.part], Station) and site.number in self.responses:
            met = max(1 - others.gap / pace, 0.0) / 2 * others.count
            if others.rounds > 1 and others.loop > 0:
                mean = self.responses[site.number].mean
                share = min(mean / others.loop, 1.0) if mean < inf else 1.0
                # Those that find a server free as often as not are met as by chance.
                servers = float(self.system.parts[site.part].servers)
                again = (others.count + min(max(others.count + 1 - servers, 0.0), others.count)) / 2
                met = (met + (others.rounds - 1) * again * share) / others.rounds
            self.together[site.number] = 1 + 2 * max(met, 0.0)
        return replace(others, gap=max(others.gap, pace))

    def _pace(self, site: Site) -> float:
        """Return the time from one job to the next of a part that has many."""
        part = self.system.parts[site.part]
        if not isinstance(part, Station):
            answer = self.responses.get(site.number)
            count, _ = moments_of(site.batch)
            return max(answer.last_mean - answer.mean, 0.0) / max(count - 1, 1.0) if answer else 0.0
        law = part.service_law(site.flow)
        return 0.0 if part.delay or law is None else float(law.mean) / float(part.servers)

    def _time(self, form: ProgramForm, node: int) -> float:
        """Return the time of a round at stations and memories."""

        def visit(site: Site, time: float) -> float:
            answer = self.responses.get(site.number)
            return time + (answer.last_mean if answer is not None else 0.0)

        def choice(choice: Alternatives, nodes: tuple[int, ...], run: Run, time: float) -> float:
            return time + sum(p * run(n, 0.0) for p, n in zip(choice.shares, nodes, strict=True))

        def parallel(row: Any, nodes: tuple[int, ...], run: Run, time: float) -> float:
            return time + sum(run(node, 0.0) for node in nodes)

        def hold(delay: Delay, time: float) -> float:
            return time + delay.mean

        rules: Rules = {Op.VISIT: visit, Op.CHOICE: choice, Op.PARALLEL: parallel, Op.HOLD: hold}
        return float(fold(form, node, rules, 0.0))


def _choice(choice: Alternatives, nodes: tuple[int, ...], run: Run, others: _Others) -> _Others:
    for share, node in zip(choice.shares, nodes, strict=True):
        if share > 0:
            run(node, replace(others, count=others.count * share))
    return others


def _parallel(row: Any, nodes: tuple[int, ...], run: Run, others: _Others) -> _Others:
    for node in nodes:
        run(node, others)
    return others


def _hold(delay: Delay, others: _Others) -> _Others:
    spread = _RANGE * sqrt(delay.variance) / (others.count + 2)
    return replace(others, gap=max(others.gap, spread))


def equivalent_batch(together: float) -> FloatArray:
    """Return the law of batches of which a member has so many beside it, itself included."""
    low = int(together)
    law = np.zeros(low + 2)
    # Members of batches of k are k times as many as those batches.
    law[low], law[low + 1] = (low + 1 - together) / low, (together - low) / (low + 1)
    return law / law.sum()


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


def waits_longer(law: FloatArray) -> float:
    """Return by which factor visits in turns wait longer in all than those at once, see `effective_scv`.

    ``law``: probabilities that a job makes 0, 1, 2, ... visits.
    """
    numbers = np.arange(law.size)
    mean, square = float(law @ numbers) / float(law[1:].sum()), float(law @ numbers**2) / float(law[1:].sum())
    return 2 * mean**2 / (square + mean)


Laws: TypeAlias = dict[str, FloatArray]


def visit_laws(form: ProgramForm, node: int) -> Laws:
    """Return the laws of the visits of a job to each part; those at once count as one."""
    rules: Rules = {
        Op.VISIT: _visit_law,
        Op.CHOICE: _choice_law,
        Op.PARALLEL: _parallel_law,
        Op.REPEAT: _repeat_law,
    }
    found: Laws = fold(form, node, rules, {})
    return found


def _visit_law(site: Site, before: Laws) -> Laws:
    return _in_series(before, {site.part: np.array([0.0, 1.0])})


def _choice_law(choice: Alternatives, nodes: tuple[int, ...], run: Run, before: Laws) -> Laws:
    each = [run(node, {}) for node in nodes]
    parts = dict.fromkeys(part for laws in each for part in laws)
    found = {part: _mixed(choice.shares, [laws.get(part, np.ones(1)) for laws in each]) for part in parts}
    return _in_series(before, found)


def _parallel_law(row: Any, nodes: tuple[int, ...], run: Run, before: Laws) -> Laws:
    found: Laws = {}
    for node in nodes:
        found = run(node, {}) | found
    return _in_series(before, found)


def _repeat_law(count: Count, nodes: tuple[int, ...], run: Run, before: Laws) -> Laws:
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
