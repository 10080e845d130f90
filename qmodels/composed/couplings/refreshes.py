"""Refreshes of a memory: pauses that limited jobs meet once, and requests that go on as a batch after one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import expm1, inf, sqrt
from typing import Any, TypeAlias

from qmodels.composed.moments import moments_of
from qmodels.composed.streams import BySite, Response
from qmodels.systems.composed.program_form import Count, Delay, Op, ProgramForm, Rules, Run, Site, fold
from qmodels.systems.composed.system import System
from qmodels.systems.stations.parts import Station

_RANGE = 3.4
"""Range of some independent times over their standard deviation, as if they were evenly spread."""
LEAST_LEFT = 1e-3
"""Share of a station that is left for those that waited, at least."""


@dataclass(frozen=True)
class _RefreshBatch:
    """Jobs that come after a stall: how long it lasts, how often it comes, and over what time they come."""

    lasts: float
    every: float
    over: float


@dataclass(eq=False)
class RefreshBatches:
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

    def all(self, form: ProgramForm) -> dict[int, Response]:
        """Return the responses with these waits."""
        rules: Rules = {
            Op.VISIT: self._ask, Op.HOLD: _hold, Op.CHOICE: _latest, Op.PARALLEL: _latest, Op.REPEAT: _repeat
        }  # fmt: skip
        for flow in self.system.flows:
            if not flow.closed:
                fold(form, form.roots[flow.name], rules, (None, 1.0))
        return {**self.responses, **self.found}

    def _ask(self, site: Site, state: _State) -> _State:
        return self._visited(site, *state), state[1]

    def _visited(self, site: Site, table: _RefreshBatch | None, rounds: float) -> _RefreshBatch | None:
        answer, load = self.responses.get(site.number), self.intensity[site.part]
        if answer is None or load >= 1:
            return table
        if answer.stall.every < inf:
            lasts = 2 * answer.stall.mean
            over = lasts * load if table is None else max(table.over, lasts * load)
            return _RefreshBatch(lasts, answer.stall.every, over)
        part = self.system.parts[site.part]
        law = part.service_law(site.flow) if isinstance(part, Station) and not part.delay else None
        if table is None or law is None or not law.mean:
            return table
        most = float(part.servers) / float(law.mean)
        most *= max(self.system.copies(site.part), 1)
        come = self.rates[site.flow] * site.visits * moments_of(site.batch)[0] * table.lasts
        flow = self.system.flow(site.flow)
        if flow.window:
            come = min(come, flow.window * site.visits * moments_of(site.batch)[0])
        over = max(table.over, come / most)
        # Where jobs wait anyway nothing is missed while they are worked off.
        queue = max(answer.mean - float(law.mean), 0.0) / max(load, LEAST_LEFT) / table.lasts
        missed = come * (1 + queue * expm1(-1 / queue)) if queue > 0 else come
        each = max(missed / (2 * most * max(1 - load, LEAST_LEFT)) - table.over / 2, 0.0)
        wait = each * table.lasts / table.every / rounds
        if wait > 0:
            spread = wait**2 * (4 / 3 * table.every / table.lasts * rounds - 1)
            self.found[site.number] = replace(
                answer,
                mean=answer.mean + wait,
                last_mean=answer.last_mean + wait,
                variance=answer.variance + spread,
                last_variance=answer.last_variance + spread,
            )
        return replace(table, over=over)


_State: TypeAlias = tuple[_RefreshBatch | None, float]
"""Jobs that come after a stall, and rounds of the loops around."""


def _hold(delay: Delay, state: _State) -> _State:
    table, rounds = state
    if table is None:
        return state
    return replace(table, over=table.over + _RANGE * sqrt(delay.variance)), rounds


def _latest(row: Any, nodes: tuple[int, ...], run: Run, state: _State) -> _State:
    ends = [run(node, state)[0] for node in nodes]
    some = [end for end in ends if end is not None]
    return max(some, key=lambda end: end.over) if some else None, state[1]


def _repeat(count: Count, nodes: tuple[int, ...], run: Run, state: _State) -> _State:
    table, rounds = state
    return run(nodes[0], (table, rounds * max(moments_of(count.law)[0], 1.0)))[0], rounds


Responses: TypeAlias = Mapping[int, Response]
"""Responses of parts by site."""


def pause_share(pause: float, between: float) -> float:
    r"""Wait for pauses over that of arrivals at random.

    ``pause``: how long a part stands still [ns]; ``between``: mean time from one request of a job to its next
    one [ns].

    In a pause each job comes once, and then waits for the rest of it:
    :math:`E[(r - T)^+]` with an exponential T of mean t is, over the :math:`r^2 / 2t` of a Poisson stream of
    the same rate, :math:`2 (x - 1 + e^{-x}) / x^2`, :math:`x = r/t`. Derived here.
    """
    x = pause / between
    return 2 * (x + expm1(-x)) / x**2 if x > 1e-3 else 1 - x / 3


def limited_pauses(
    responses: Responses, sites: Sequence[Site], rates: Mapping[str, float], jobs: float
) -> Responses:
    """Responses to jobs of a limited number.

    ``responses``: those to streams; ``sites``: visits of these jobs; ``rates``: at which jobs of each flow
    begin [1/ns]; ``jobs``: how many there are.
    """
    asked = _asked(responses, sites, rates)
    mine = {site.number: jobs / asked[site.part] for site in sites if asked.get(site.part, 0.0) > 0}

    def limited(site: int) -> Response:
        answer = responses[site]
        less = 1 - pause_share(answer.pause, mine[site]) if site in mine else 0.0
        if not less:
            return answer
        return answer.changed(
            mean=answer.mean - less * answer.paused,
            last_mean=answer.last_mean - less * answer.paused,
            alone_mean=answer.alone_mean - less * answer.alone_paused,
            alone_last=answer.alone_last - less * answer.alone_paused,
        )

    return BySite(responses, limited)


def stalled(responses: Responses, sites: Sequence[Site], rates: Mapping[str, float], jobs: float) -> float:
    r"""Return the mean wait for pauses in which all of so many jobs wait, by others who come at random.

    Parameters are those of `limited_pauses`. Of a pause r all wait for :math:`D = E[(r - T)^+]`, which one
    who comes at random meets for :math:`D/2` with :math:`D` over the time from pause to pause.
    """
    found = 0.0
    for part, asked in _asked(responses, sites, rates).items():
        known = [responses[site.number] for site in sites if site.part == part]
        for answer in (each for each in known if each.pause > 0):
            x = answer.pause * asked / jobs
            found = max(found, answer.alone_paused * (pause_share(x, 1.0) * x / 2) ** 2)
    return found


def _asked(responses: Responses, sites: Sequence[Site], rates: Mapping[str, float]) -> dict[str, float]:
    """Rate of visits to each part that pauses. [1/ns]."""
    asked: dict[str, float] = {}
    for site in sites:
        if site.number in responses and responses[site.number].pause > 0:
            asked[site.part] = asked.get(site.part, 0.0) + rates[site.flow] * site.visits
    return asked
