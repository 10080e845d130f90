"""How long a program takes: its plan walked with what the parts answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qmodels.composed.asking import Heard
from qmodels.composed.moments import (
    NOTHING,
    Span,
    last_of,
    last_of_law,
    last_of_row,
    moments_of,
    one_of,
    so_many,
)
from qmodels.composed.stalls import after_another
from qmodels.composed.streams import Response
from qmodels.composed.times import (
    DELAYED,
    TOGETHER,
    Passage,
    apart_by_part,
    association,
    in_series,
    mixed,
    some_of,
    weighted,
)
from qmodels.systems.composed.batch_laws import thinned_law
from qmodels.systems.composed.program_form import (
    Alternatives,
    Branches,
    Count,
    Delay,
    Op,
    ProgramForm,
    Run,
    Site,
    Travel,
    fold,
)
from qmodels.systems.composed.steps import Release


@dataclass(eq=False)
class Held:
    """How long a job holds tokens of a pool, times how many."""

    span: Span = NOTHING  # mean, and sum of the variances
    parts: dict[str, float] = field(default_factory=dict)  # mean times by part
    # Variances by part; what varies with several is theirs in proportion to their times.
    spreads: dict[str, float] = field(default_factory=dict)

    def add(self, span: Span, parts: Mapping[str, float], weight: float) -> None:
        """Add what happens so often."""
        self.span = self.span + Span(weight * span.mean, 0.0)
        for part, time in parts.items():
            self.parts[part] = self.parts.get(part, 0.0) + weight * time
        self.vary(weight * span.variance, parts)

    def vary(self, variance: float, parts: Mapping[str, float]) -> None:
        """Add a variance of some parts."""
        self.span = self.span + Span(0.0, variance)
        total = sum(parts.values())
        for part, time in parts.items() if total > 0 else ():
            self.spreads[part] = self.spreads.get(part, 0.0) + variance * time / total


@dataclass(frozen=True, kw_only=True, eq=False)
class Surroundings:
    """What a walk needs to know."""

    heard: Heard  # what the parts answer
    # The same for jobs that hold tokens of a pool, if it differs.
    within: Mapping[str, Heard] = field(default_factory=dict)
    # Waits for tokens, by the number of the take; none if left out.
    waits: Mapping[int, Span] = field(default_factory=dict)
    # What their tokens then need to turn to another use, if they do.
    turning: Mapping[int, Span] = field(default_factory=dict)
    own: Mapping[int, float] = field(default_factory=dict)  # load that a site brings to its part
    # Of requests that come apart, as many as at once would wait for each other as much.
    together: Mapping[int, float] = field(default_factory=dict)
    network: str = ""  # name of the interconnect
    # Of each leg, how long a packet keeps its channel at the job's own place busy [ns], and how many leave a
    # node together.
    rows: Mapping[int, tuple[float, float]] = field(default_factory=dict)


class Walk:
    """Latency of programs.

    Parameters
    ----------
    form : ProgramForm
        The programs.
    around : Surroundings
        What they meet.

    Attributes
    ----------
    held : dict of str to Held
        By pool.
    """

    def __init__(self, form: ProgramForm, around: Surroundings) -> None:
        self.form, self.around = form, around
        self.held: dict[str, Held] = {}
        self._rules = {
            Op.VISIT: self._visit, Op.TRAVEL: self._travel, Op.HOLD: self._delay, Op.TAKE: self._take,
            Op.GIVE: self._give, Op.MARK: self._nothing, Op.MOVE: self._nothing, Op.SERIES: self._series,
            Op.CHOICE: self._choice, Op.PARALLEL: self._parallel, Op.COPIES: self._copies,
            Op.REPEAT: self._repeat,
        }  # fmt: skip

    def through(self, node: int, job: Job | None = None) -> Passage:
        """Return what a program takes."""
        found: Passage = fold(self.form, node, self._rules, job or Job(1.0, {}))
        return found

    def _spent(self, passage: Passage, job: Job) -> Passage:
        for pool, tokens in job.holds.items():
            self.held.setdefault(pool, Held()).add(passage.span, passage.by_part, job.weight * tokens)
        return passage

    def _heard(self, holds: dict[str, int]) -> Heard:
        """Return what the parts answer to a job that holds these: the innermost pool knows best."""
        for pool in reversed(holds):
            if pool in self.around.within:
                return self.around.within[pool]
        return self.around.heard

    def _nothing(self, step: Any, job: Job) -> Passage:
        return Passage(span=NOTHING)

    def _visit(self, site: Site, job: Job) -> Passage:
        heard = self._heard(job.holds)
        answer = heard.responses.get(site.number)
        if answer is None:
            return Passage(span=NOTHING)
        at = Span(answer.last_mean, answer.last_variance)
        if site.batch.size <= 2:
            # What is waited for others that began together, they wait alike.
            at = Span(answer.mean, answer.variance / self.around.together.get(site.number, 1.0))
        way = NOTHING
        legs = [heard.legs[leg] for leg in (site.there, site.back) if leg is not None]
        if legs:
            way = sum(legs, NOTHING)
            if site.batch.size > 2 and way.finite and np.isfinite(answer.last_mean):
                way = Span(max(way.mean, self._in_a_row(site, answer, way)), way.variance)
        parts = {site.part: at.mean}
        if legs:
            parts[self.around.network] = way.mean
        busy = self.around.own.get(site.number, 0.0)
        return self._spent(Passage(span=at + way, parts=parts, busy=busy, stall=answer.stall), job)

    def _in_a_row(self, site: Site, answer: Response, way: Span) -> float:
        """Return what the way adds to the last request of a batch, which pass the job's own place in a row.

        The last is there when the part is done with it, but not before all have passed after the first.
        """
        rows = [self.around.rows[leg] for leg in (site.there, site.back) if leg is not None]
        alone = way.mean - sum((together - 1) / 2 * each for each, together in rows)
        first = max(2 * answer.mean - answer.last_mean, 0.0)
        passing = (moments_of(site.batch)[0] - 1) * max((each for each, _ in rows), default=0.0)
        return max(alone, 0.0) + max(first + passing - answer.last_mean, 0.0)

    def _travel(self, packet: Travel, job: Job) -> Passage:
        if packet.leg is None:
            return Passage(span=NOTHING)
        span = self._heard(job.holds).legs[packet.leg]
        return self._spent(Passage(span=span, parts={self.around.network: span.mean}), job)

    def _delay(self, delay: Delay, job: Job) -> Passage:
        span = Span(delay.mean, delay.variance)
        if delay.counted:
            return self._spent(Passage(span=span, parts={DELAYED: span.mean}), job)
        return self._spent(Passage(span=span, uncounted=span, spent={DELAYED: span.mean}), job)

    def _take(self, take: Site, job: Job) -> Passage:
        wait = self.around.waits.get(take.number, NOTHING)
        passage = self._spent(Passage(span=wait, parts={take.part: wait.mean}), job)
        job.holds[take.part] = job.holds.get(take.part, 0) + take.step.tokens
        self.held.setdefault(take.part, Held())
        turning = self.around.turning.get(take.number)
        if turning is None:
            return passage
        turned = Passage(span=turning, parts={take.part: turning.mean})
        return in_series([passage, self._spent(turned, job)])

    def _give(self, step: Release, job: Job) -> Passage:
        left = job.holds.pop(step.part, 0) - step.tokens
        if left > 0:
            job.holds[step.part] = left
        return Passage(span=NOTHING)

    def _series(self, row: None, nodes: tuple[int, ...], run: Run, job: Job) -> Passage:
        return in_series([run(node, job) for node in nodes])

    def _choice(self, choice: Alternatives, nodes: tuple[int, ...], run: Run, job: Job) -> Passage:
        before, passages = dict(job.holds), []
        for share, node in zip(choice.shares, nodes, strict=True):
            after = dict(before)
            passages.append(run(node, Job(job.weight * share, after)))
            job.holds.clear()
            job.holds.update(after)
        found = mixed(choice.shares, passages)
        # Tokens that are held all the while are held for different times by choice.
        within = sum(p * one.span.variance for p, one in zip(choice.shares, passages, strict=True))
        for pool in before.keys() & job.holds.keys():
            between = max(found.span.variance - within, 0.0) if found.span.finite else 0.0
            self.held.setdefault(pool, Held()).vary(job.weight * before[pool] * between, found.by_part)
        return found

    def _repeat(self, rounds: Count, nodes: tuple[int, ...], run: Run, job: Job) -> Passage:
        mean, _ = moments_of(rounds.law)
        once = run(nodes[0], Job(job.weight * mean, job.holds))
        return Passage(
            span=so_many(rounds.law, once.span),
            uncounted=so_many(rounds.law, once.uncounted),
            parts=weighted([(mean, once.parts)]),
            busy=once.busy,
            stall=after_another([once.stall], mean),
            spent=weighted([(mean, once.by_part)]),
        )

    def _parallel(self, row: Branches, nodes: tuple[int, ...], run: Run, job: Job) -> Passage:
        branches = [self._branch(node, job) for node in nodes]
        last = last_of([b.span for b in branches])
        return self._joined(last, branches, len(branches), job)

    def _copies(self, count: Count, nodes: tuple[int, ...], run: Run, job: Job) -> Passage:
        mean, _ = moments_of(count.law)
        one = self._branch(nodes[0], Job(job.weight * mean, job.holds))
        last = self._staggered(count, nodes[0], job.holds)
        if last is None:
            share = 1.0 - float(count.law[0])
            last = one_of([share, 1.0 - share], [last_of_law(some_of(count.law), one.span), NOTHING])
        return self._joined(last, [one], max(mean, 1.0), job)

    def _staggered(self, count: Count, node: int, holds: dict[str, int]) -> Span | None:
        """Return when the last of copies is done that visit a part first, all at once; None if they do not.

        They share the wait there and leave it one after the other.
        """
        site, asking = first_visit(self.form, node, moments_of(count.law)[0])
        if site is None or asking <= 0:
            return None
        aside = Walk(self.form, self.around)
        first = aside._visit(site, Job(1.0, dict(holds))).span
        if not first.finite:
            return first
        answer = self._heard(holds).responses[site.number]
        number, variance = moments_of(some_of(site.batch))
        apart = 2 * max(answer.last_mean - answer.mean, 0.0) / max(number - variance / number - 1, 1e-9)
        # Where they are served at once the last is later by chance, not by its place in a row.
        apart = min(apart, answer.mean)
        row = aside._behind(node, count, apart, moments_of(site.batch)[0] / asking, holds)
        # What is shared is the time until the first of them has left.
        shared = first.mean - (number - 1) * apart
        last = Span(max(shared, 0.0) + row.last.mean, first.variance + row.last.variance)
        return one_of([row.share, 1.0 - row.share], [last, row.others])

    def _behind(self, node: int, count: Count, apart: float, each_asks: float, holds: dict[str, int]) -> _Row:
        """Return what happens after the first of a row has left the part that it visits."""

        def leaf(row: Any, state: None) -> _Row:
            return _Row(last=Span((each_asks - 1) * apart, 0.0), asks=each_asks)

        def inner(row: Any, nodes: tuple[int, ...], run: Run, state: None) -> _Row:
            return leaf(row, None)

        def series(row: None, nodes: tuple[int, ...], run: Run, state: None) -> _Row:
            first = run(nodes[0], None)
            rest = sum((self.through(n, Job(1.0, dict(holds))).span for n in nodes[1:]), NOTHING)
            return replace(first, last=first.last + rest, others=first.others + rest)

        def choice(choice: Alternatives, nodes: tuple[int, ...], run: Run, state: None) -> _Row:
            only = _only(self.form, choice, nodes)
            if only is None:
                return leaf(None, None)
            row = run(only[1], None)
            # Those that do not go there have nothing to do in its stead.
            return replace(row, share=only[0] * row.share, others=NOTHING)

        def copies(count: Count, nodes: tuple[int, ...], run: Run, state: None) -> _Row:
            each = run(nodes[0], None)
            law = thinned_law(count.law, each.share)
            some = some_of(law)
            rows = {n: last_of_row(n, apart * each.asks, each.last) for n in np.flatnonzero(some).tolist()}
            last = one_of([float(some[n]) for n in rows], list(rows.values()))
            asks, share = each.asks * moments_of(some)[0], 1.0 - float(law[0])
            return _Row(last=last, asks=asks, share=share, others=last_of_law(count.law, each.others))

        rules = {op: leaf for op in Op} | {
            Op.PARALLEL: inner, Op.REPEAT: inner, Op.SERIES: series, Op.CHOICE: choice, Op.COPIES: copies
        }  # fmt: skip
        return copies(count, (node,), lambda node, state: fold(self.form, node, rules, state), None)

    def _branch(self, node: int, job: Job) -> Passage:
        """Return what one branch takes; what its job holds it holds until the last is done."""
        alone = Job(job.weight, {})
        if not job.holds:
            return self.through(node, alone)
        aside = Walk(self.form, replace(self.around, heard=self._heard(job.holds)))
        passage = aside.through(node, alone)
        for pool, held in aside.held.items():
            self.held.setdefault(pool, Held()).add(held.span, held.parts, 1.0)
        return passage

    def _joined(self, last: Span, branches: list[Passage], count: float, job: Job) -> Passage:
        """Return the time until branches have joined, less than that of independent ones."""
        longest = max(b.span.mean for b in branches)
        load = max(b.busy for b in branches)
        if last.finite and last.mean > longest and len(branches) > 1:
            # Branches that begin together meet like queues.
            less = association(count, min(load, 1.0))
            last = Span(longest + (last.mean - longest) * less, last.variance)
        uncounted = max((b.uncounted for b in branches), key=lambda span: span.mean)
        passage = Passage(
            span=last,
            uncounted=uncounted,
            parts={TOGETHER: last.mean - uncounted.mean},
            busy=load,
            # What begins together is delayed together.
            stall=max((b.stall for b in branches), key=lambda stall: stall.probability),
            spent=apart_by_part(last.mean, [b.by_part for b in branches]),
        )
        return self._spent(passage, job)


@dataclass(frozen=True)
class Job:
    """Position of a job in its program: how often it comes there, and what it holds of pools, changed."""

    weight: float
    holds: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class _Row:
    """Copies that leave a part one after the other.

    When the last of them is done after the first has left, how many requests they are, with which
    probability there are any, and when all are done if there are none.
    """

    last: Span
    asks: float
    share: float = 1.0
    others: Span = NOTHING


def first_visit(form: ProgramForm, node: int, copies: float) -> tuple[Site | None, float]:
    """Return what code visits first, None if it does something else, and how many copies of it do."""

    def visit(site: Site, copies: float) -> tuple[Site | None, float]:
        return site, copies

    def other(row: Any, copies: float) -> tuple[Site | None, float]:
        return None, copies

    def inner(row: Any, nodes: tuple[int, ...], run: Run, copies: float) -> tuple[Site | None, float]:
        return None, copies

    def series(row: None, nodes: tuple[int, ...], run: Run, copies: float) -> Any:
        return run(nodes[0], copies) if nodes else (None, copies)

    def choice(choice: Alternatives, nodes: tuple[int, ...], run: Run, copies: float) -> Any:
        only = _only(form, choice, nodes)
        return (None, copies) if only is None else run(only[1], copies * only[0])

    def several(count: Count, nodes: tuple[int, ...], run: Run, copies: float) -> Any:
        return run(nodes[0], copies * moments_of(count.law)[0])

    rules = {op: other for op in Op} | {
        Op.VISIT: visit, Op.PARALLEL: inner, Op.REPEAT: inner, Op.SERIES: series, Op.CHOICE: choice,
        Op.COPIES: several,
    }  # fmt: skip
    found: tuple[Site | None, float] = fold(form, node, rules, copies)
    return found


def _only(form: ProgramForm, choice: Alternatives, nodes: tuple[int, ...]) -> tuple[float, int] | None:
    """Return the one alternative that does something, with its share; None if there are several."""
    pairs = zip(choice.shares, nodes, strict=True)
    some = [(share, node) for share, node in pairs if not form.nothing(node)]
    return some[0] if len(some) == 1 else None
