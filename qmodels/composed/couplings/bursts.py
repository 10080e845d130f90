"""Bursts along paths: carried as they began, and paid once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Any, NamedTuple, TypeAlias

from qmodels.composed.moments import NOTHING, Moments, moments_of
from qmodels.composed.parts.bursty import FULL, two_moments
from qmodels.composed.stalls import Late
from qmodels.composed.streams import Added, Queue, Response
from qmodels.systems.composed.program_form import (
    Alternatives,
    Count,
    Op,
    ProgramForm,
    Rules,
    Run,
    Site,
    Travel,
    fold,
)
from qmodels.systems.composed.steps import Release

WITHIN = 0.25
"""Share of the wait of a whole burst that jobs wait within one at most, beyond that of Poisson arrivals."""

Legs: TypeAlias = tuple[Mapping[str, Added], ...]
"""What the bursts of each flow add to the packets of each leg."""


class OnOffSource(NamedTuple):
    """Bursts in which the jobs of a flow begin: an interrupted Poisson process."""

    peak: float  # rate in a burst over the mean rate
    size: float  # jobs of a burst, mean

    @property
    def excess(self) -> float:
        """Squared coefficient of variation of the times between jobs, less 1."""
        return 2 * self.size * (1 - 1 / self.peak) ** 2


@dataclass(frozen=True)
class Way:
    """Waits for bursts that jobs of a flow have met on their way."""

    paid: float = 0.0  # what they have waited, mean [ns]
    late: Late = Late()  # of that, for bursts
    slowest: tuple[float, float] = (0.0, 0.0)  # time of an issue at the slowest part, and its SCV [ns, 1]
    times: float = 1.0  # visits of each step from here on

    def waited(self, wait: float, more: float, decay: float) -> tuple[Way, Moments]:
        """Return the way behind visits, and what is waited for bursts at each of them."""
        if more <= 0:
            return replace(self, paid=self.paid + self.times * wait), NOTHING
        late = Late(self.late.mean + self.times * more, min(self.late.decay, decay))
        spread = max(late.moments.variance - self.late.moments.variance, 0.0) / self.times
        return replace(self, paid=self.paid + self.times * wait, late=late), Moments(more, spread)


@dataclass(eq=False)
class BurstWaits:
    r"""Finds what jobs wait for bursts, from what these add to each part as they began.

    Notes
    -----
    Where jobs would have waited :math:`w_k` if they came to part k as they began, they have waited
    :math:`C_k = \max(C_{k-1} + l_k, w_k)` behind it, :math:`l_k` being what they wait within a burst. Exact
    for constant services in a row [1]_. Where several sources meet, each adds what it would alone among
    Poisson arrivals, and to jobs of others so much less as its own have waited for it before.

    Of a backlog of jobs that come K times to a part, as many have 1, 2, ... visits left, in heavy traffic:
    they wait :math:`2 E[K]^2 / E[K(K+1)]` times as long in all as the work in front of them takes.

    A source keeps its times in bursts and between them wherever it goes; a share of it is thinned.

    References
    ----------
    .. [1] H. D. Friedman, "Reduction methods for tandem queuing systems", Operations Research 13(1), 1965.
    """

    form: ProgramForm
    sources: Mapping[str, OnOffSource]  # of the flows that come in bursts
    responses: Mapping[int, Response]  # of parts to sites, without bursts
    legs: Legs
    # Of jobs that come to a part several times, by which factor they wait longer in all than if all their
    # visits came at once.
    longer: Mapping[tuple[str, str], float] = field(default_factory=dict)
    pools: Mapping[str, float] = field(default_factory=dict)  # mean waits for tokens [ns]
    late: dict[int, Late] = field(default_factory=dict)  # of sites, the waits for bursts
    late_legs: dict[int, Late] = field(default_factory=dict)
    spread: dict[int, float] = field(default_factory=dict)  # of sites, the variances of these waits [ns2]
    spread_legs: dict[int, float] = field(default_factory=dict)
    paid: dict[int, float] = field(default_factory=dict)  # before tokens are taken, by acquisition [ns]
    # What jobs of each flow have waited before they first come to a part.
    _before: dict[tuple[str, str], float] = field(default_factory=dict)
    _left: dict[tuple[str, str], float] | None = None

    def find(self) -> BurstWaits:
        """Find all of it: first what each source waits for itself, then what it leaves to others."""
        for flow in self.sources:
            self._walk(flow)
        self._left = dict(self._before)
        for flow in self.form.roots:
            self._walk(flow)
        return self

    def _walk(self, flow: str) -> None:
        def visit(site: Site, way: Way) -> Way:
            way = leg(site.there, way)
            answer = self.responses.get(site.number)
            if answer is not None and answer.queue is not None and isfinite(answer.mean):
                self._before.setdefault((flow, site.part), way.paid)
                queue = answer.queue
                more, decay = self._more(flow, site.part, answer.added, queue.wait, way, queue)
                way, wait = way.waited(queue.wait + more, more, decay)
                self.late[site.number], self.spread[site.number] = Late(wait.mean, decay), wait.variance
                each = queue.mean / queue.servers / queue.units, queue.scv / queue.servers
                way = replace(way, slowest=max(way.slowest, each))
            return leg(site.back, way)

        def leg(number: int | None, way: Way) -> Way:
            if number is None or not self.legs[number]:
                return way
            self._before.setdefault((flow, ""), way.paid)
            more, decay = self._more(flow, "", self.legs[number], 0.0, way, None)
            way, wait = way.waited(more, more, decay)
            self.late_legs[number], self.spread_legs[number] = Late(wait.mean, decay), wait.variance
            return way

        def travel(packet: Travel, way: Way) -> Way:
            return leg(packet.leg, way)

        def take(site: Site, way: Way) -> Way:
            self.paid[site.number] = way.paid
            return way

        def give(step: Release, way: Way) -> Way:
            # Who waits for a token meets those inside that the pool lets in, not the burst.
            return replace(way, paid=max(way.paid, self.pools.get(step.part, 0.0)))

        def choice(row: Alternatives, nodes: tuple[int, ...], run: Run, way: Way) -> Way:
            ends = [
                (share, run(node, way)) for share, node in zip(row.shares, nodes, strict=True) if share > 0
            ]
            mean = sum(share * end.late.mean for share, end in ends)
            decay = min(end.late.decay for _, end in ends)
            paid = sum(share * end.paid for share, end in ends)
            slowest = max((end.slowest for share, end in ends if share >= MOSTLY), default=way.slowest)
            return replace(way, paid=paid, late=Late(mean, decay), slowest=slowest)

        def parallel(row: Any, nodes: tuple[int, ...], run: Run, way: Way) -> Way:
            ends = [run(node, way) for node in nodes]
            longest = max(ends, key=lambda end: end.paid)
            return replace(longest, slowest=max(end.slowest for end in ends))

        def repeat(count: Count, nodes: tuple[int, ...], run: Run, way: Way) -> Way:
            times = way.times * max(moments_of(count.law)[0], TINY)
            return replace(run(nodes[0], replace(way, times=times)), times=way.times)

        rules: Rules = {
            Op.VISIT: visit, Op.TRAVEL: travel, Op.TAKE: take, Op.GIVE: give, Op.CHOICE: choice,
            Op.PARALLEL: parallel, Op.REPEAT: repeat,
        }  # fmt: skip
        fold(self.form, self.form.roots[flow], rules, Way())

    def _more(
        self, flow: str, part: str, added: Mapping[str, Added], wait: float, way: Way, queue: Queue | None
    ) -> tuple[float, float]:
        """Return the wait of a visit for bursts beyond that for Poisson arrivals, and the tail's decay."""
        beside = [(name, each) for name, each in added.items() if name != flow and self._left is not None]
        others = sum(self._part_left(name, part, each) * each.others for name, each in beside)
        decay = min((each.decay for _, each in beside), default=inf)
        if flow not in added:
            return others, decay
        own = added[flow]
        longer = self.longer.get((flow, part), 1.0)
        raw = way.times * wait + others + own.own * longer
        inside = wait
        if queue is not None:
            inside = min(_within(queue, way.slowest, self.sources[flow]), WITHIN * raw + wait)
        return max(inside, (raw - way.paid) / way.times) - wait, min(decay, own.decay / longer)

    def _part_left(self, flow: str, part: str, added: Added) -> float:
        assert self._left is not None
        return max(1 - self._left.get((flow, part), 0.0) / added.own, 0.0) if added.own > 0 else 0.0


MOSTLY = 0.5
"""Share of the jobs from which on what they meet in a branch is met by the flow."""
TINY = 1e-9


def _within(queue: Queue, slowest: tuple[float, float], source: OnOffSource) -> float:
    """Return the mean wait within a burst, which the slowest part on the way lets out at its own rate."""
    each, noise = slowest
    if each * queue.units <= queue.mean / queue.servers:
        return queue.wait
    most = min(1 / (each * queue.units), source.peak * queue.own)
    together = queue.rate - queue.own + most
    if together * queue.mean >= queue.servers * FULL:
        return queue.wait
    return max(two_moments(together, queue.mean, queue.scv, queue.servers, noise), 0.0)
