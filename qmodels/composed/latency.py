"""Latency of programs: a fold over their code with the responses of parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.decomposition import PartResponses
from qmodels.composed.moments import (
    NOTHING,
    Moments,
    max_of_n,
    max_of_random_n,
    max_of_staggered,
    mixture_of,
    moments_of,
    sum_of_n,
    without,
)
from qmodels.composed.stalls import Late, Stall, after_another, one_stall
from qmodels.composed.streams import Response
from qmodels.systems.composed.parts import thinned_law
from qmodels.systems.composed.program_form import (
    Alternatives,
    Branches,
    Count,
    Delay,
    Op,
    ProgramForm,
    Rules,
    Run,
    Site,
    Travel,
    fold,
)
from qmodels.systems.composed.steps import Release

TOGETHER = "fork"
DELAYED = "hold"
"""Names of the times that no part takes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramLatency:
    """Latency of a program by its moments and by part."""

    span: Moments  # its time, what is not counted included [ns]
    uncounted: Moments = NOTHING  # what of it is not counted
    # Mean times by part, which sum up to what is counted.
    parts: Mapping[str, float] = field(default_factory=dict)
    # Load that jobs of the program itself bring where it spends its time, mean over that time.
    busy: float = 0.0
    stall: Stall = Stall()  # of its time, a delay that few have
    late: Late = Late()  # of its time, the wait for bursts
    # As ``parts``, what is not counted included, with branches that join by the parts of these; as ``parts``
    # if left out.
    spent: Mapping[str, float] | None = None

    @property
    def by_part(self) -> Mapping[str, float]:
        """Mean times by part, which sum up to all: where those who go round meet each other."""
        return self.parts if self.spent is None else self.spent

    @property
    def punctual(self) -> Moments:
        """Time without the wait for bursts, which all that begin together have together."""
        return without(self.span, self.late.moments) if self.late.mean > 0 and self.span.finite else self.span

    @property
    def latency(self) -> Moments:
        """The counted part."""
        if not self.span.finite:
            return self.span
        return without(self.span, self.uncounted)


def association(count: float, load: float) -> float:
    r"""Share of the wait for the last of independent branches that is left where they begin together.

    ``load``: load that they bring themselves to where they go.

    From the formula of Nelson and Tantawi for a fork to k exponential single servers, the excess of the
    last over one branch, :math:`H_k - 1` if they were independent, is less by
    :math:`\rho\,a_k`, :math:`a_2 = 1/4`, :math:`a_k \to 5/12`. Approximation.

    References
    ----------
    .. [1] R. Nelson, A. N. Tantawi, "Approximate analysis of fork/join synchronization in parallel
       queues", IEEE Trans. Computers 37(6), 1988.

    Examples
    --------
    >>> round(association(2, 1.0), 3), association(2, 0.0)
    (0.75, 1.0)
    """
    harmonic = float(np.log(count) + 0.5772156649015329 + 1 / (2 * count) - 1 / (12 * count**2))
    if count <= 2:
        harmonic = 1.5
    full = (7 / 12 * harmonic - 0.5) / (harmonic - 1)
    return 1.0 - load * (1.0 - full)


def in_series(programs: list[ProgramLatency]) -> ProgramLatency:
    """Latency of programs in series."""
    span = sum((p.span for p in programs), NOTHING)
    busy = 0.0
    if 0 < span.mean < np.inf:
        busy = sum(p.busy * p.span.mean for p in programs) / span.mean
    return ProgramLatency(
        span=span,
        uncounted=sum((p.uncounted for p in programs), NOTHING),
        parts=weighted((1.0, p.parts) for p in programs),
        busy=busy,
        stall=after_another([p.stall for p in programs]),
        late=late_together([(1.0, p.late) for p in programs]),
        spent=weighted((1.0, p.by_part) for p in programs),
    )


def mixed(shares: tuple[float, ...], programs: list[ProgramLatency]) -> ProgramLatency:
    """Latency of one of several programs at random."""
    used = [(share, p) for share, p in zip(shares, programs, strict=True) if share > 0]
    return ProgramLatency(
        span=mixture_of(shares, [p.span for p in programs]),
        uncounted=mixture_of(shares, [p.uncounted for p in programs]),
        parts=weighted((share, p.parts) for share, p in used),
        busy=sum(share * p.busy for share, p in used),
        stall=one_stall(shares, [p.stall for p in programs]),
        late=late_together([(share, p.late) for share, p in used]),
        spent=weighted((share, p.by_part) for share, p in used),
    )


def late_together(waits: Sequence[tuple[float, Late]]) -> Late:
    """Return the wait for the same bursts at several parts, each so often: the longest tail counts."""
    return Late(
        sum(often * late.mean for often, late in waits),
        min((late.decay for _, late in waits if late.mean > 0), default=np.inf),
    )


def weighted(times: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """Return times by part, each of several so often."""
    total: dict[str, float] = {}
    for weight, parts in times:
        for part, time in parts.items():
            total[part] = total.get(part, 0.0) + weight * time
    return total


def joined_by_part(last: float, branches: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the time until branches have joined by the parts that they are at, in proportion to their times.

    Each under a name of its own: less is spent there than the parts have to do.
    """
    total = sum(sum(parts.values()) for parts in branches)
    if not 0 < total < np.inf:
        return {TOGETHER: last}
    own = ({f"{TOGETHER} {part.removeprefix(f'{TOGETHER} ')}": t for part, t in b.items()} for b in branches)
    return weighted((last / total, parts) for parts in own)


def by_part(times: Mapping[str, float]) -> dict[str, float]:
    """Return times by part, those in branches that join among them."""
    return weighted((1.0, {name.removeprefix(f"{TOGETHER} "): time}) for name, time in times.items())


def positive_law(law: FloatArray) -> FloatArray:
    """Return a law of 0, 1, 2, ... given that it is not 0."""
    some = law.copy()
    some[0] = 0.0
    total = some.sum()
    return some / total if total > 0 else law


@dataclass(eq=False)
class Held:
    """Time that a job holds tokens of a pool, times how many."""

    span: Moments = NOTHING  # mean, and sum of the variances
    parts: dict[str, float] = field(default_factory=dict)  # mean times by part
    # Variances by part; what varies with several is theirs in proportion to their times.
    spreads: dict[str, float] = field(default_factory=dict)

    def add(self, span: Moments, parts: Mapping[str, float], weight: float) -> None:
        """Add what happens so often."""
        self.span = self.span + Moments(weight * span.mean, 0.0)
        for part, time in parts.items():
            self.parts[part] = self.parts.get(part, 0.0) + weight * time
        self.vary(weight * span.variance, parts)

    def vary(self, variance: float, parts: Mapping[str, float]) -> None:
        """Add a variance of some parts."""
        self.span = self.span + Moments(0.0, variance)
        total = sum(parts.values())
        for part, time in parts.items() if total > 0 else ():
            self.spreads[part] = self.spreads.get(part, 0.0) + variance * time / total


@dataclass(frozen=True, kw_only=True, eq=False)
class LatencyInputs:
    """Inputs of the latency of programs."""

    answers: PartResponses  # what the parts answer
    # The same for jobs that hold tokens of a pool, if it differs.
    within: Mapping[str, PartResponses] = field(default_factory=dict)
    # Waits for tokens, by the number of the take; none if left out.
    waits: Mapping[int, Moments] = field(default_factory=dict)
    # What their tokens then need to turn to another use, if they do.
    turning: Mapping[int, Moments] = field(default_factory=dict)
    own: Mapping[int, float] = field(default_factory=dict)  # load that a site brings to its part
    # Of requests that come apart, as many as at once would wait for each other as much.
    together: Mapping[int, float] = field(default_factory=dict)
    bursty: frozenset[str] = frozenset()  # flows that come in bursts, whose waits for tokens are for these
    network: str = ""  # name of the interconnect
    # Of each leg, how long a packet keeps its channel at the job's own place busy [ns], and how many leave a
    # node together.
    rows: Mapping[int, tuple[float, float]] = field(default_factory=dict)


class LatencyWalk:
    """Latency of programs.

    Parameters
    ----------
    form : ProgramForm
        The programs.
    around : LatencyInputs
        What they meet.

    Attributes
    ----------
    held : dict of str to Held
        By pool.
    """

    def __init__(self, form: ProgramForm, around: LatencyInputs) -> None:
        self.form, self.around = form, around
        self.held: dict[str, Held] = {}
        self._rules: Rules = {
            Op.VISIT: self._visit, Op.TRAVEL: self._travel, Op.HOLD: self._delay, Op.TAKE: self._take,
            Op.GIVE: self._give, Op.MARK: self._nothing, Op.MOVE: self._nothing, Op.SERIES: self._series,
            Op.CHOICE: self._choice, Op.PARALLEL: self._parallel, Op.COPIES: self._copies,
            Op.REPEAT: self._repeat,
        }  # fmt: skip

    def latency_of(self, node: int, job: Job | None = None) -> ProgramLatency:
        """Latency of a program."""
        found: ProgramLatency = fold(self.form, node, self._rules, job or Job(1.0, {}))
        return found

    def _spent(self, program: ProgramLatency, job: Job) -> ProgramLatency:
        for pool, tokens in job.holds.items():
            self.held.setdefault(pool, Held()).add(program.span, program.by_part, job.weight * tokens)
        return program

    def _answers(self, holds: dict[str, int]) -> PartResponses:
        """Responses to a job that holds these: those of the innermost pool."""
        for pool in reversed(holds):
            if pool in self.around.within:
                return self.around.within[pool]
        return self.around.answers

    def _nothing(self, step: Any, job: Job) -> ProgramLatency:
        return ProgramLatency(span=NOTHING)

    def _visit(self, site: Site, job: Job) -> ProgramLatency:
        answers = self._answers(job.holds)
        answer = answers.responses.get(site.number)
        if answer is None:
            return ProgramLatency(span=NOTHING)
        at = Moments(answer.last_mean, answer.last_variance)
        if site.batch.size <= 2:
            # What is waited for others that began together, they wait alike.
            at = Moments(answer.mean, answer.variance / self.around.together.get(site.number, 1.0))
        way = NOTHING
        legs = [answers.legs[leg] for leg in (site.there, site.back) if leg is not None]
        if legs:
            way = sum(legs, NOTHING)
            if site.batch.size > 2 and way.finite and np.isfinite(answer.last_mean):
                way = Moments(max(way.mean, self._in_a_row(site, answer, way)), way.variance)
        parts = {site.part: at.mean}
        if legs:
            parts[self.around.network] = way.mean
        busy = self.around.own.get(site.number, 0.0)
        late = [
            answer.late,
            *(answers.late.get(leg, Late()) for leg in (site.there, site.back) if leg is not None),
        ]
        found = ProgramLatency(
            span=at + way,
            parts=parts,
            busy=busy,
            stall=answer.stall,
            late=late_together([(1.0, each) for each in late]),
        )
        return self._spent(found, job)

    def _in_a_row(self, site: Site, answer: Response, way: Moments) -> float:
        """Time that packets add to the last request of a batch, which pass the job's own place in a row.

        The last is there when the part is done with it, but not before all have passed after the first.
        """
        rows = [self.around.rows[leg] for leg in (site.there, site.back) if leg is not None]
        alone = way.mean - sum((together - 1) / 2 * each for each, together in rows)
        first = max(2 * answer.mean - answer.last_mean, 0.0)
        passing = (moments_of(site.batch)[0] - 1) * max((each for each, _ in rows), default=0.0)
        return max(alone, 0.0) + max(first + passing - answer.last_mean, 0.0)

    def _travel(self, packet: Travel, job: Job) -> ProgramLatency:
        if packet.leg is None:
            return ProgramLatency(span=NOTHING)
        answers = self._answers(job.holds)
        span, late = answers.legs[packet.leg], answers.late.get(packet.leg, Late())
        return self._spent(ProgramLatency(span=span, parts={self.around.network: span.mean}, late=late), job)

    def _delay(self, delay: Delay, job: Job) -> ProgramLatency:
        span = Moments(delay.mean, delay.variance)
        if delay.counted:
            return self._spent(ProgramLatency(span=span, parts={DELAYED: span.mean}), job)
        return self._spent(ProgramLatency(span=span, uncounted=span, spent={DELAYED: span.mean}), job)

    def _take(self, take: Site, job: Job) -> ProgramLatency:
        wait = self.around.waits.get(take.number, NOTHING)
        late = Late()
        if take.flow in self.around.bursty and 0 < wait.mean < np.inf:
            late = Late(wait.mean, 2 * wait.mean / (wait.variance + wait.mean**2))
        program = self._spent(ProgramLatency(span=wait, parts={take.part: wait.mean}, late=late), job)
        job.holds[take.part] = job.holds.get(take.part, 0) + take.step.tokens
        self.held.setdefault(take.part, Held())
        turning = self.around.turning.get(take.number)
        if turning is None:
            return program
        turned = ProgramLatency(span=turning, parts={take.part: turning.mean})
        return in_series([program, self._spent(turned, job)])

    def _give(self, step: Release, job: Job) -> ProgramLatency:
        left = job.holds.pop(step.part, 0) - step.tokens
        if left > 0:
            job.holds[step.part] = left
        return ProgramLatency(span=NOTHING)

    def _series(self, row: None, nodes: tuple[int, ...], run: Run, job: Job) -> ProgramLatency:
        return in_series([run(node, job) for node in nodes])

    def _choice(self, choice: Alternatives, nodes: tuple[int, ...], run: Run, job: Job) -> ProgramLatency:
        before, programs = dict(job.holds), []
        for share, node in zip(choice.shares, nodes, strict=True):
            after = dict(before)
            programs.append(run(node, Job(job.weight * share, after)))
            job.holds.clear()
            job.holds.update(after)
        found = mixed(choice.shares, programs)
        # Tokens that are held all the while are held for different times by choice.
        within = sum(p * one.span.variance for p, one in zip(choice.shares, programs, strict=True))
        for pool in before.keys() & job.holds.keys():
            between = max(found.span.variance - within, 0.0) if found.span.finite else 0.0
            self.held.setdefault(pool, Held()).vary(job.weight * before[pool] * between, found.by_part)
        return found

    def _repeat(self, rounds: Count, nodes: tuple[int, ...], run: Run, job: Job) -> ProgramLatency:
        mean, _ = moments_of(rounds.law)
        once = run(nodes[0], Job(job.weight * mean, job.holds))
        return ProgramLatency(
            span=sum_of_n(rounds.law, once.span),
            uncounted=sum_of_n(rounds.law, once.uncounted),
            parts=weighted([(mean, once.parts)]),
            busy=once.busy,
            stall=after_another([once.stall], mean),
            late=late_together([(mean, once.late)]),
            spent=weighted([(mean, once.by_part)]),
        )

    def _parallel(self, row: Branches, nodes: tuple[int, ...], run: Run, job: Job) -> ProgramLatency:
        branches = [self._branch(node, job) for node in nodes]
        late = max((b.late for b in branches), key=lambda late: late.mean)
        last = max_of_n([b.punctual for b in branches]) + late.moments
        return self._joined(last, branches, job)

    def _copies(self, count: Count, nodes: tuple[int, ...], run: Run, job: Job) -> ProgramLatency:
        mean, _ = moments_of(count.law)
        one = self._branch(nodes[0], Job(job.weight * mean, job.holds))
        last = self._staggered(count, nodes[0], job.holds)
        if last is None:
            share = 1.0 - float(count.law[0])
            last = mixture_of(
                [share, 1.0 - share],
                [max_of_random_n(positive_law(count.law), one.punctual) + one.late.moments, NOTHING],
            )
        return self._joined(last, [one], job)

    def _staggered(self, count: Count, node: int, holds: dict[str, int]) -> Moments | None:
        """Return when the last of copies is done that visit a part first, all at once; None if they do not.

        They share the wait there and leave it one after the other.
        """
        aside = LatencyWalk(self.form, self.around)

        def visit(site: Site, copies: float) -> _Row | None:
            answer = self._answers(holds).responses.get(site.number)
            if copies <= 0 or answer is None:
                return None
            first = aside._visit(site, Job(1.0, dict(holds))).span
            if not first.finite:
                return _Row(first, first, 0.0, 1.0)
            mean, variance = moments_of(positive_law(site.batch))
            apart = 2 * max(answer.last_mean - answer.mean, 0.0) / max(mean - variance / mean - 1, 1e-9)
            # Where they are served at once the last is later by chance, not by its place in a row.
            apart = min(apart, answer.mean, answer.last_mean / max(mean - 1, 1e-9))
            # What is shared is the time until the first of them has left.
            shared = Moments(max(first.mean - (mean - 1) * apart, 0.0), first.variance)
            asks = moments_of(site.batch)[0] / copies
            return _Row(shared, Moments((asks - 1) * apart, 0.0), apart, asks)

        def series(row: None, nodes: tuple[int, ...], run: Run, copies: float) -> _Row | None:
            first = run(nodes[0], copies) if nodes else None
            if first is None or not first.shared.finite:
                return first
            rest = sum((aside.latency_of(n, Job(1.0, dict(holds))).span for n in nodes[1:]), NOTHING)
            return replace(first, last=first.last + rest, others=first.others + rest)

        def choice(row: Alternatives, nodes: tuple[int, ...], run: Run, copies: float) -> _Row | None:
            pairs = zip(row.shares, nodes, strict=True)
            some = [(share, node) for share, node in pairs if not self.form.nothing(node)]
            if len(some) != 1:
                return None
            share, node = some[0]
            only = run(node, copies * share)
            # Those that do not go there have nothing to do in its stead.
            return only and replace(only, share=share * only.share, others=NOTHING)

        def several(count: Count, nodes: tuple[int, ...], run: Run, copies: float) -> _Row | None:
            each = run(nodes[0], copies * moments_of(count.law)[0])
            if each is None or not each.shared.finite:
                return each
            law = thinned_law(count.law, each.share)
            some = positive_law(law)
            numbers = np.flatnonzero(some).tolist()
            rows = [max_of_staggered(n, each.apart * each.asks, each.last) for n in numbers]
            last = mixture_of(some[numbers].tolist(), rows)
            asks, others = each.asks * moments_of(some)[0], max_of_random_n(count.law, each.others)
            return _Row(each.shared, last, each.apart, asks, 1.0 - float(law[0]), others)

        def none(*_: Any) -> None:
            return None

        rules: Rules = dict.fromkeys(Op, none) | {
            Op.VISIT: visit, Op.SERIES: series, Op.CHOICE: choice, Op.COPIES: several
        }  # fmt: skip
        row = several(count, (node,), lambda node, state: fold(self.form, node, rules, state), 1.0)
        if row is None:
            return None
        if not row.shared.finite:
            return row.shared
        return mixture_of([row.share, 1.0 - row.share], [row.shared + row.last, row.others])

    def _branch(self, node: int, job: Job) -> ProgramLatency:
        """Latency of a branch; what its job holds it holds until the last is done."""
        alone = Job(job.weight, {})
        if not job.holds:
            return self.latency_of(node, alone)
        aside = LatencyWalk(self.form, replace(self.around, answers=self._answers(job.holds)))
        program = aside.latency_of(node, alone)
        for pool, held in aside.held.items():
            self.held.setdefault(pool, Held()).add(held.span, held.parts, 1.0)
        return program

    def _joined(self, last: Moments, branches: list[ProgramLatency], job: Job) -> ProgramLatency:
        """Return the time until branches have joined, less than that of independent ones."""
        longest = max(b.span.mean for b in branches)
        load = max(b.busy for b in branches)
        if last.finite and last.mean > longest and len(branches) > 1:
            # Branches that begin together meet like queues.
            less = association(len(branches), min(load, 1.0))
            last = Moments(longest + (last.mean - longest) * less, last.variance)
        uncounted = max((b.uncounted for b in branches), key=lambda span: span.mean)
        program = ProgramLatency(
            span=last,
            uncounted=uncounted,
            parts={TOGETHER: last.mean - uncounted.mean},
            busy=load,
            # What begins together is delayed together.
            stall=max((b.stall for b in branches), key=lambda stall: stall.probability),
            late=max((b.late for b in branches), key=lambda late: late.mean),
            spent=joined_by_part(last.mean, [b.by_part for b in branches]),
        )
        return self._spent(program, job)


@dataclass(frozen=True)
class Job:
    """Position of a job in its program: how often it comes there, and what it holds of pools, changed."""

    weight: float
    holds: dict[str, int]


@dataclass(frozen=True)
class _Row:
    """Copies that leave a part one after the other."""

    shared: Moments  # time until the first has left
    last: Moments  # after it, when the last of them is done
    apart: float  # time from one request to the next
    asks: float  # requests
    share: float = 1.0  # probability that there are any
    others: Moments = NOTHING  # when all are done if there are none
