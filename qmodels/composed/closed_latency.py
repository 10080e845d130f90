"""Variance of the latency of closed flows, whose jobs are a fixed number wherever they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.decomposition import PartResponses
from qmodels.composed.figures import FlowFigures
from qmodels.composed.fixed_point.pool_waits import NO_POOLS, PoolWaits, pool_waits, walk
from qmodels.composed.fixed_point.state import State
from qmodels.composed.latency import ProgramLatency, by_part
from qmodels.composed.moments import Moments, moments_of
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.program_form import Site
from qmodels.systems.stations.parts import Station

SMALLEST = 1e-300


class ClosedLatency:
    r"""Latencies of closed flows, from those of the open streams that leave as many jobs at each part.

    An open stream brings a part any number of jobs. Of a closed flow those that are not there are elsewhere,
    and where few are elsewhere the number hardly varies. With the mean number :math:`q_{if}` of a flow's jobs
    that one finds at a part, and the number :math:`w_i` of all that wait there, numbers vary as in an open
    network, :math:`v_i = w_i^2 + \sum_f z_{if} q_{if}`, but those of each closed flow have a fixed sum.
    Conditioned on these sums as normal variables are, the time :math:`\sum_i s_i n_i` that a job waits keeps
    of its variance the share

    .. math:: 1 - \frac{b^T M^{-1} b}{\sum_i s_i^2 v_i}, \quad b_f = \sum_i s_i \mathrm{Cov}(n_i, n_{if}),
        \quad M_{fg} = \sum_i \mathrm{Cov}(n_{if}, n_{ig}).

    The services of those found, and the job's own, stay as variable as they are: exact for one station, and
    for constant services there; in a cycle of exponential stations a round trip is the sum of these given the
    numbers [1]_. Think times hold a number of variance :math:`z` times its mean. The peakedness
    :math:`z = 1 + (c^2 - 1) / (1 + c_s^2)` is that of times of SCV :math:`c_s^2` [2]_ in a flow that its
    fullest part paces with :math:`c^2`. Approximation.

    Parameters
    ----------
    state : State
        The system at its fixed point.
    programs : mapping of str to ProgramLatency
        Latency of the program of each flow.

    References
    ----------
    .. [1] R. Schassberger, H. Daduna, "The time for a round trip in a cycle of exponential queues", J. ACM
       30(1), 1983.
    .. [2] W. Whitt, "Heavy-traffic approximations for service systems with blocking", AT&T Bell Laboratories
       Technical Journal 63(5), 1984.
    """

    def __init__(self, state: State, programs: Mapping[str, ProgramLatency]) -> None:
        self.state, self.programs, self.met = state, programs, pool_waits(state)
        self.idle = state.parts.evaluate(dict.fromkeys(state.rates, 0.0))
        self.times = {name: by_part(program.by_part) for name, program in programs.items()}

    def share(self, flow: Flow) -> float:
        """Return the variance of the latency of a closed flow over that beside open streams."""
        latency = self.programs[flow.name].latency
        if not latency.finite or latency.variance <= 0:
            return 1.0
        parts = [part for part, time in self.times[flow.name].items() if time > 0]
        own, scvs = self._services(flow, parts)
        alone = by_part(walk(self.state, flow, self.idle, NO_POOLS)[0].by_part)
        times = np.array([self.times[flow.name][part] for part in parts])
        waits = np.maximum(times - [alone.get(part, 0.0) for part in parts], 0.0)
        found = self._found(flow, parts)
        number = np.maximum(found.sum(axis=1), SMALLEST)
        slopes = np.where(found.any(axis=1), waits / number, 0.0)
        steady = self._steady(flow) + own + float(number * slopes**2 @ scvs)
        varied = max(latency.variance - steady, 0.0)
        if varied <= 0:
            return 1.0
        left = self._left(flow, parts, found, slopes, number * waits / times, scvs)
        return (steady + left * varied) / latency.variance

    def _left(
        self,
        flow: Flow,
        parts: Sequence[str],
        found: FloatArray,
        slopes: FloatArray,
        waiting: FloatArray,
        scvs: FloatArray,
    ) -> float:
        """Return the share of the variance of waits that fixed numbers of closed jobs leave."""
        flows = self.state.system.flows
        closed = [k for k, other in enumerate(flows) if other.closed]
        pace = np.array([self._pace(other) for other in flows])
        chance = found * np.maximum(1 + (pace - 1) / (1 + scvs[:, None]), 0.0)
        whole = float(slopes**2 @ (waiting**2 + chance.sum(axis=1)))
        if whole <= 0:
            return 1.0
        shares = found / np.maximum(found.sum(axis=1), SMALLEST)[:, None]
        together = (shares * waiting[:, None])[:, closed]
        thinking = [self._thinking(flows[k], pace[k], flow) for k in closed]
        sums = together.T @ together + np.diag(chance[:, closed].sum(axis=0) + thinking)
        ordered = slopes * [self._in_order(part) for part in parts]
        both = (ordered * waiting) @ together + ordered @ chance[:, closed]
        return float(np.clip(1 - both @ np.linalg.pinv(sums, hermitian=True) @ both / whole, 0.0, 1.0))

    def _found(self, flow: Flow, parts: Sequence[str]) -> FloatArray:
        """Return the mean number of jobs that one of a flow finds, by part and flow."""
        flows = self.state.system.flows
        rows = [
            [self.state.rates[f.name] * self.times[f.name].get(part, 0.0) for f in flows] for part in parts
        ]
        found = np.nan_to_num(np.array(rows), posinf=0.0)
        found[:, flows.index(flow)] *= 1 - 1 / flow.population
        return found

    def _services(self, flow: Flow, parts: Sequence[str]) -> tuple[float, FloatArray]:
        """Return the variance of a job's services, and by part that over the square of their mean."""
        asked = [
            (site.part, site.visits, *self._service(site))
            for site in self.state.sites_of(flow.name)
            if site.number in self.idle.responses
        ]
        network = self.state.system.interconnect
        legs = zip(self.state.form.legs, self.idle.legs, strict=True)
        asked += [(network, leg.packets, t.mean, t.variance) for leg, t in legs if leg.flow == flow.name]
        mean, variance = np.zeros(len(parts)), np.zeros(len(parts))
        for part, often, each, spread in asked:
            if part in parts:
                mean[parts.index(part)] += often * each
                variance[parts.index(part)] += often * spread
        return float(variance.sum()), np.divide(variance, mean**2, out=np.zeros(len(parts)), where=mean > 0)

    def _service(self, site: Site) -> tuple[float, float]:
        """Return mean and variance of the time of a visit that meets no other job."""
        lone, station = self.idle.responses[site.number], self.state.system.parts.get(site.part)
        law = station.service_law(site.flow) if isinstance(station, Station) else None
        if law is None or station.servers > 1:
            return lone.last_mean, lone.last_variance
        mean, variance = moments_of(site.batch)
        return mean * law.mean, mean * law.scv * law.mean**2 + variance * law.mean**2

    def _steady(self, flow: Flow) -> float:
        """Return the variance of latency if parts and tokens always took their mean times."""
        met = PoolWaits(
            pools={k: replace(pool, wait=Moments(pool.wait.mean, 0.0)) for k, pool in self.met.pools.items()},
            within={name: _constant(answers) for name, answers in self.met.within.items()},
        )
        return walk(self.state, flow, _constant(self.state.answers(flow)), met)[0].latency.variance

    def _thinking(self, flow: Flow, pace: float, finder: Flow) -> float:
        """Return the variance of the number of jobs of a flow that think."""
        if flow.think is None:
            return 0.0
        number = self.state.rates[flow.name] * float(flow.think.mean)
        number *= 1 - 1 / flow.population if flow is finder else 1.0
        scv = float(flow.think.scv)
        return max(number * (1 + (pace - 1) / (1 + scv)), 0.0) if np.isfinite(scv) else number

    def _pace(self, flow: Flow) -> float:
        """Return the SCV of the times between the jobs of a flow, as its fullest part lets them go."""
        full = self.state.parts.evaluate(self.state.rates).intensity
        answers = [
            (full[site.part], self._service(site))
            for site in self.state.sites_of(flow.name)
            if site.number in self.idle.responses
        ]
        if not flow.closed or not answers:
            return 1.0
        load, service = max(answers, key=lambda answer: answer[0])
        return 1 + min(load, 1.0) ** 2 * (Moments(*service).scv - 1)

    def _in_order(self, part: str) -> bool:
        """Return whether jobs leave one queue as they come, so that waits follow from the jobs found."""
        found = self.state.system.parts.get(part)
        queue = isinstance(found, Tokens) or (isinstance(found, Station) and found.discipline == "fifo")
        return queue and self.state.system.copies(part) == 1


def with_fixed_numbers(
    state: State, programs: Mapping[str, ProgramLatency], flows: Mapping[str, FlowFigures]
) -> dict[str, FlowFigures]:
    """Return the figures of all flows, with the variance that the latencies of the closed ones have."""
    found = dict(flows)
    if not any(flow.closed for flow in state.system.flows):
        return found
    closed = ClosedLatency(state, programs)
    for flow in state.system.flows:
        latency = flows[flow.name].latency
        if flow.closed and latency.finite:
            latency = replace(latency, variance=latency.variance * closed.share(flow))
            found[flow.name] = replace(found[flow.name], latency=latency)
    return found


def _constant(answers: PartResponses) -> PartResponses:
    """Return responses of the same means that do not vary."""
    return replace(
        answers,
        responses={
            number: replace(each, variance=0.0, last_variance=0.0)
            for number, each in answers.responses.items()
        },
        legs=tuple(Moments(leg.mean, 0.0) for leg in answers.legs),
    )
