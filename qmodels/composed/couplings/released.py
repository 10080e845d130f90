"""Memories that stall for all and what comes behind them: what waited comes at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import expm1, inf, sqrt
from typing import Any

from qmodels.composed.moments import moments_of
from qmodels.composed.plan import Ask, Choice, Copies, Delay, Plan, Rounds, Series, Together
from qmodels.composed.streams import Response
from qmodels.systems.composed.system import System
from qmodels.systems.stations.parts import Station

_RANGE = 3.4
"""Range of some independent times over their standard deviation, as if they were evenly spread."""
LEAST_LEFT = 1e-3
"""Share of a station that is left for those that waited, at least."""


@dataclass(frozen=True)
class _Crowd:
    """Jobs that come after a stall: how long it lasts, how often it comes, and over what time they come."""

    lasts: float
    every: float
    over: float


@dataclass(eq=False)
class Released:
    r"""Finds what jobs wait at stations behind a memory that stalls.

    A refresh keeps all accesses for a time :math:`b` every :math:`T`. The :math:`N = \lambda b` that came
    meanwhile go on at once, or as fast as what is before lets them, within :math:`w`. A station that carries
    :math:`\mu` and has :math:`\lambda` then has a queue for which, as a fluid, one of them waits
    :math:`N / 2 (\mu - \lambda) - w / 2`. Of a queue that takes :math:`V` to work off, if there is one, that
    much less is missed: :math:`N (1 - (V / b)(1 - e^{-b / V}))`. Only for flows of open jobs: the
    others are few. Derived here.
    """

    system: System  # the system
    rates: Mapping[str, float]  # jobs of each flow [1/ns]
    responses: Mapping[int, Response]  # what parts answer to sites
    intensity: Mapping[str, float]  # traffic intensity of the parts
    found: dict[int, Response] = field(default_factory=dict)

    def all(self, plan: Plan) -> dict[int, Response]:
        """Return the responses with these waits."""
        for flow in self.system.flows:
            if not flow.closed:
                self._walk(plan.roots[flow.name], None, 1.0)
        return {**self.responses, **self.found}

    def _walk(self, node: Any, crowd: _Crowd | None, rounds: float) -> _Crowd | None:
        match node:
            case Ask():
                return self._ask(node, crowd, rounds)
            case Series():
                for inside in node.nodes:
                    crowd = self._walk(inside, crowd, rounds)
            case Choice() | Together():
                ends = [self._walk(inside, crowd, rounds) for inside in node.nodes]
                some = [end for end in ends if end is not None]
                return max(some, key=lambda end: end.over) if some else None
            case Copies():
                return self._walk(node.node, crowd, rounds)
            case Rounds():
                return self._walk(node.node, crowd, rounds * max(moments_of(node.law)[0], 1.0))
            case Delay() if crowd is not None:
                return replace(crowd, over=crowd.over + _RANGE * sqrt(node.variance))
        return crowd

    def _ask(self, node: Ask, crowd: _Crowd | None, rounds: float) -> _Crowd | None:
        site = node.site
        answer, load = self.responses.get(site.number), self.intensity[site.part]
        if answer is None or load >= 1:
            return crowd
        if answer.stall.every < inf:
            lasts = 2 * answer.stall.mean
            over = lasts * load if crowd is None else max(crowd.over, lasts * load)
            return _Crowd(lasts, answer.stall.every, over)
        part = self.system.parts[site.part]
        law = part.service_law(site.flow) if isinstance(part, Station) and not part.delay else None
        if crowd is None or law is None or not law.mean:
            return crowd
        most = float(part.servers) / float(law.mean)
        most *= max(self.system.copies(site.part), 1)
        come = self.rates[site.flow] * site.visits * moments_of(site.batch)[0] * crowd.lasts
        flow = self.system.flow(site.flow)
        if flow.window:
            come = min(come, flow.window * site.visits * moments_of(site.batch)[0])
        over = max(crowd.over, come / most)
        # Where jobs wait anyway nothing is missed while they are worked off.
        queue = max(answer.mean - float(law.mean), 0.0) / max(load, LEAST_LEFT) / crowd.lasts
        missed = come * (1 + queue * expm1(-1 / queue)) if queue > 0 else come
        each = max(missed / (2 * most * max(1 - load, LEAST_LEFT)) - crowd.over / 2, 0.0)
        wait = each * crowd.lasts / crowd.every / rounds
        if wait > 0:
            spread = wait**2 * (4 / 3 * crowd.every / crowd.lasts * rounds - 1)
            self.found[site.number] = replace(
                answer,
                mean=answer.mean + wait,
                last_mean=answer.last_mean + wait,
                variance=answer.variance + spread,
                last_variance=answer.last_variance + spread,
            )
        return replace(crowd, over=over)
