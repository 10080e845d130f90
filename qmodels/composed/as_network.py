"""Systems of stations alone as queueing networks, whose methods know more than a parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from qmodels.networks.facts import product_form_breaker
from qmodels.networks.solve import solve_network
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.program_form import Alternatives, Op, ProgramForm, Run, Site, fold
from qmodels.systems.composed.system import System
from qmodels.systems.laws.kinds import LAWS, is_renewal, scaled
from qmodels.systems.laws.times import Deterministic, Exponential, HyperExponential
from qmodels.systems.spec.answer import Answer
from qmodels.systems.stations.parts import LEAVE, JobClass, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork
from qmodels.systems.traffic.arrivals import OnOff, Poisson

THINK, HOLD = "think ", "hold "
"""What the delays of a flow are called in the network, with its name and a number."""
INF = float("inf")
Visits = dict[str, float]


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """A system as a network, and its answer."""

    answer: Answer  # the network's
    visits: Mapping[str, Visits]  # of each flow, its visits of each station a job
    uncounted: frozenset[str]  # delays that the latency leaves out

    def of(self, metric: str, station: str, flow: str) -> float:
        """Return a metric of a flow's jobs at a station."""
        network = self.answer.spec
        places = [station] if len(network.nodes) > 1 else []
        classes = [flow] if len(network.classes) > 1 else []
        inside = ", ".join([*places, *classes])
        return float(self.answer.metrics[f"{metric}[{inside}]" if inside else metric])


def solved_as_network(system: System, form: ProgramForm) -> Solved | None:
    """Return the answer of a system of stations as a queueing network, None if it is none or no method fits.

    A program whose visits each go to another station is routing as it stands. Of others only the numbers of
    visits are kept, which decide alone where there is a product form, and in approximate mean value analysis.
    """
    found = _delays(system, form)
    if found is None:
        return None
    visits, delays, uncounted = found
    made = _network(system, form, visits, delays)
    if made is None:
        return None
    network, stands = made
    try:
        answer = solve_network(network, by_visits=not stands)
    except (ValueError, RuntimeError):
        return None
    return Solved(answer=answer, visits=visits, uncounted=uncounted)


def _delays(
    system: System, form: ProgramForm
) -> tuple[dict[str, Visits], dict[str, Station], frozenset[str]] | None:
    """Return visits by flow, delays as stations, and those not counted; None if it is no network."""
    stations = {name: part for name, part in system.parts.items() if isinstance(part, Station)}
    if len(stations) < len(system.parts) or any(system.place.values()) or form.takes or form.legs:
        return None
    visits: dict[str, Visits] = {}
    delays: dict[str, Station] = {}
    uncounted = set()
    for flow in system.flows:
        mine: Visits = {}
        for node in form.nodes(form.roots[flow.name]):
            op, row = form.op[node], form.rows[node]
            if op in (Op.PARALLEL, Op.COPIES):
                return None
            if op == Op.VISIT and row.visits > 0:
                mine[row.part] = mine.get(row.part, 0.0) + row.visits
            if op == Op.HOLD and row.mean * row.times > 0:
                name = f"{HOLD}{flow.name} {len(delays)}"
                delays[name] = _delay(name, flow.name, row.mean)
                mine[name] = row.times
                uncounted |= set() if row.counted else {name}
        if flow.think is not None and flow.think.mean > 0:
            delays[THINK + flow.name] = _delay(THINK + flow.name, flow.name, flow.think.mean, flow.think)
            uncounted.add(THINK + flow.name)
        if not mine:
            return None
        visits[flow.name] = mine
    return visits, delays, frozenset(uncounted)


def _delay(name: str, flow: str, mean: float, law: Any = None) -> Station:
    """Return a delay; without a law, or with one that networks do not take, only the mean matters."""
    known = law is not None and is_renewal(law) and np.isfinite(law.scv)
    return Station(name=name, service={flow: law if known else Exponential(mean=mean)}, servers=INF)


def _network(
    system: System, form: ProgramForm, visits: Mapping[str, Visits], delays: Mapping[str, Station]
) -> tuple[QueueingNetwork, bool] | None:
    """Return the network, and whether jobs go through it as the programs say."""
    stations = [*(s for s in system.parts.values()), *delays.values()]
    used = {name for mine in visits.values() for name in mine} | set(delays)
    stations = [s for s in stations if s.name in used]
    if any(s.capacity < INF and len(stations) > 1 for s in stations):
        return None  # A job that finds a station full is lost, which networks do not say alike.
    arrivals = {flow.name: arrival_law(flow) for flow in system.flows if not flow.closed}
    if any(law is None for law in arrivals.values()):
        return None
    bursty = any(isinstance(law, HyperExponential) for law in arrivals.values())
    if bursty and (len(stations) > 1 or len(system.flows) > 1):
        return None  # Methods of networks lose bursts on the way.
    chain = _as_it_stands(system, form)
    if chain is not None:
        flow = system.flows[0]
        if flow.closed:
            home = THINK + flow.name if THINK + flow.name in delays else next(iter(visits[flow.name]))
            one = JobClass(name=flow.name, population=flow.population, reference=home)
        else:
            one = JobClass(name=flow.name, arrivals=arrivals[flow.name], entry=chain[0])
        return QueueingNetwork(stations=stations, classes=[one], routing=chain[1]), True
    classes: list[JobClass] = []
    routing: dict[tuple[str, str], Visits] = {}
    for flow in system.flows:
        begin, after = _by_visits(flow, visits[flow.name], THINK + flow.name in delays)
        routing |= {(name, flow.name): rule for name, rule in after.items()}
        if flow.closed:
            at = THINK + flow.name if THINK + flow.name in delays else next(iter(visits[flow.name]))
            classes.append(JobClass(name=flow.name, population=flow.population, reference=at))
        else:
            classes.append(JobClass(name=flow.name, arrivals=arrivals[flow.name], entry=begin))
    network = QueueingNetwork(stations=stations, classes=classes, routing=routing)
    closed = all(flow.closed for flow in system.flows)
    once = len(stations) == 1 and all(set(mine.values()) == {1.0} for mine in visits.values())
    return (network, once) if closed or once or not product_form_breaker(network) else None


def arrival_law(flow: Flow) -> Any:
    """Return the law of the times between jobs of an open flow; None if it is not known as one."""
    mean = 1 / float(flow.mean_rate)
    match flow.arrivals:
        case Poisson():
            return Exponential(mean=mean)
        case OnOff():
            share, fast, slow = flow.arrivals.phases
            return HyperExponential(
                probabilities=(float(share), 1 - float(share)), means=(mean / float(fast), mean / float(slow))
            )
        case law if isinstance(law, LAWS):
            own = float(law.mean)
            if isinstance(law, Deterministic | Exponential):
                return replace(law, mean=mean)
            return law if own == mean else scaled(law, mean / own)
    return None


def _as_it_stands(system: System, form: ProgramForm) -> tuple[Visits, dict[str, Visits]] | None:
    """Return where one flow begins and where it goes from each station; None if the program has more.

    It has if there are other flows, delays, rounds, or two visits of one station, or jobs of a closed flow
    that may visit nothing or think for a time that networks do not take.
    """
    flow = system.flows[0]
    if len(system.flows) > 1:
        return None
    thinks = flow.think is not None and flow.think.mean > 0
    if thinks and not (is_renewal(flow.think) and np.isfinite(flow.think.scv)):
        return None
    nodes = [*form.nodes(form.roots[flow.name])]
    visited = [form.rows[node].part for node in nodes if form.op[node] == Op.VISIT]
    if len(set(visited)) < len(visited) or any(form.op[node] in (Op.HOLD, Op.REPEAT) for node in nodes):
        return None
    routing: dict[str, Visits] = {}
    begin: Visits = {}
    ends = _chain(form, flow.name, [(begin, 1.0)], routing)
    if not begin:
        return None
    if flow.closed:
        if any(rule is begin and share > 0 for rule, share in ends):
            return None
        home = THINK + flow.name
        for rule, share in ends:
            for to, part in ({home: 1.0} if thinks else begin).items():
                rule[to] = rule.get(to, 0.0) + share * part
        routing |= {home: begin} if thinks else {}
    return begin, {name: rule if rule else {LEAVE: 1.0} for name, rule in routing.items()}


Ends: TypeAlias = list[tuple[Visits, float]]


def _chain(form: ProgramForm, flow: str, ends: Ends, routing: dict[str, Visits]) -> Ends:
    """Join a program to the loose ends before it, each a rule and its probability; return those behind it."""

    def visit(site: Site, ends: Ends) -> Ends:
        for rule, share in ends:
            if share > 0:
                rule[site.part] = rule.get(site.part, 0.0) + share
        routing[site.part] = {}
        return [(routing[site.part], 1.0)]

    def choice(choice: Alternatives, nodes: tuple[int, ...], run: Run, ends: Ends) -> Ends:
        behind = []
        for share, node in zip(choice.shares, nodes, strict=True):
            behind += run(node, [(rule, p * share) for rule, p in ends])
        return behind

    found: Ends = fold(form, form.roots[flow], {Op.VISIT: visit, Op.CHOICE: choice}, ends)
    return found


def _by_visits(flow: Flow, visits: Visits, thinks: bool) -> tuple[Visits, dict[str, Visits]]:
    """Return a routing of independent choices that has these visits: where jobs begin, and go from where."""
    total = sum(visits.values())
    again = max(1 - 1 / total, 0.0) if thinks or not flow.closed else 1.0
    enter = {name: each / max(total, 1.0) for name, each in visits.items()}
    shares = {name: each / total for name, each in visits.items()}
    home = THINK + flow.name
    rules = {}
    for name in visits:
        rules[name] = {to: share * again for to, share in shares.items() if again > 0}
        if thinks and again < 1:
            rules[name][home] = 1 - again
        if not rules[name]:
            rules[name] = {LEAVE: 1.0}
    if thinks:
        rules[home] = enter if total >= 1 else {**enter, home: 1 - total}
    return enter, rules
