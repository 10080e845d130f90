"""How long a program takes: its plan walked with what the parts answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qmodels.composed.asking import Heard
from qmodels.composed.bursts import some_copies
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
from qmodels.composed.plan import (
    Ask,
    Choice,
    Copies,
    Delay,
    Give,
    Node,
    Rounds,
    Series,
    Take,
    Together,
    Travel,
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
    """One walk through a plan.

    Parameters
    ----------
    around : Surroundings
        What it needs to know.

    Attributes
    ----------
    held : dict of str to Held
        By pool.
    """

    def __init__(self, around: Surroundings) -> None:
        self.around = around
        self.held: dict[str, Held] = {}

    def through(self, node: Node) -> Passage:
        """Return what a program takes."""
        return self._walk(node, 1.0, {})

    def _walk(self, node: Node, weight: float, holds: dict[str, int]) -> Passage:
        kinds: dict[type[Any], Callable[[Any, float, dict[str, int]], Passage]] = {
            Ask: self._ask, Travel: self._travel, Delay: self._delay, Take: self._take, Give: self._give,
            Series: self._series, Choice: self._choice, Together: self._together, Copies: self._copies,
            Rounds: self._rounds,
        }  # fmt: skip
        return kinds[type(node)](node, weight, holds)

    def _spent(self, passage: Passage, weight: float, holds: dict[str, int]) -> Passage:
        for pool, tokens in holds.items():
            self.held.setdefault(pool, Held()).add(passage.span, passage.by_part, weight * tokens)
        return passage

    def _heard(self, holds: dict[str, int]) -> Heard:
        """Return what the parts answer to a job that holds these: the innermost pool knows best."""
        for pool in reversed(holds):
            if pool in self.around.within:
                return self.around.within[pool]
        return self.around.heard

    def _ask(self, node: Ask, weight: float, holds: dict[str, int]) -> Passage:
        site, heard = node.site, self._heard(holds)
        answer = heard.responses.get(site.number)
        if answer is None:
            return Passage(span=NOTHING)
        at = Span(answer.last_mean, answer.last_variance)
        if site.batch.size <= 2:
            # What is waited for others that began together, they wait alike.
            at = Span(answer.mean, answer.variance / self.around.together.get(site.number, 1.0))
        way = NOTHING
        legs = [heard.legs[leg] for leg in (node.there, node.back) if leg is not None]
        if legs:
            way = sum(legs, NOTHING)
            if site.batch.size > 2 and way.finite and np.isfinite(answer.last_mean):
                way = Span(max(way.mean, self._in_a_row(node, answer, way)), way.variance)
        parts = {site.part: at.mean}
        if legs:
            parts[self.around.network] = way.mean
        busy = self.around.own.get(site.number, 0.0)
        return self._spent(Passage(span=at + way, parts=parts, busy=busy, stall=answer.stall), weight, holds)

    def _in_a_row(self, node: Ask, answer: Response, way: Span) -> float:
        """Return what the way adds to the last request of a batch, which pass the job's own place in a row.

        The last is there when the part is done with it, but not before all have passed after the first.
        """
        rows = [self.around.rows[leg] for leg in (node.there, node.back) if leg is not None]
        alone = way.mean - sum((together - 1) / 2 * each for each, together in rows)
        first = max(2 * answer.mean - answer.last_mean, 0.0)
        passing = (moments_of(node.site.batch)[0] - 1) * max((each for each, _ in rows), default=0.0)
        return max(alone, 0.0) + max(first + passing - answer.last_mean, 0.0)

    def _travel(self, node: Travel, weight: float, holds: dict[str, int]) -> Passage:
        span = self._heard(holds).legs[node.leg]
        return self._spent(Passage(span=span, parts={self.around.network: span.mean}), weight, holds)

    def _delay(self, node: Delay, weight: float, holds: dict[str, int]) -> Passage:
        span = Span(node.mean, node.variance)
        if node.counted:
            return self._spent(Passage(span=span, parts={DELAYED: span.mean}), weight, holds)
        return self._spent(Passage(span=span, uncounted=span, spent={DELAYED: span.mean}), weight, holds)

    def _take(self, node: Take, weight: float, holds: dict[str, int]) -> Passage:
        wait = self.around.waits.get(node.site.number, NOTHING)
        passage = self._spent(Passage(span=wait, parts={node.site.part: wait.mean}), weight, holds)
        holds[node.site.part] = holds.get(node.site.part, 0) + node.tokens
        self.held.setdefault(node.site.part, Held())
        turning = self.around.turning.get(node.site.number)
        if turning is None:
            return passage
        turned = Passage(span=turning, parts={node.site.part: turning.mean})
        return in_series([passage, self._spent(turned, weight, holds)])

    def _give(self, node: Give, weight: float, holds: dict[str, int]) -> Passage:
        left = holds.pop(node.pool, 0) - node.tokens
        if left > 0:
            holds[node.pool] = left
        return Passage(span=NOTHING)

    def _series(self, node: Series, weight: float, holds: dict[str, int]) -> Passage:
        return in_series([self._walk(inside, weight, holds) for inside in node.nodes])

    def _choice(self, node: Choice, weight: float, holds: dict[str, int]) -> Passage:
        before, passages = dict(holds), []
        for share, inside in zip(node.shares, node.nodes, strict=True):
            after = dict(before)
            passages.append(self._walk(inside, weight * share, after))
            holds.clear()
            holds.update(after)
        found = mixed(node.shares, passages)
        # Tokens that are held all the while are held for different times by choice.
        within = sum(p * one.span.variance for p, one in zip(node.shares, passages, strict=True))
        for pool in before.keys() & holds.keys():
            between = max(found.span.variance - within, 0.0) if found.span.finite else 0.0
            self.held.setdefault(pool, Held()).vary(weight * before[pool] * between, found.by_part)
        return found

    def _rounds(self, node: Rounds, weight: float, holds: dict[str, int]) -> Passage:
        mean, _ = moments_of(node.law)
        once = self._walk(node.node, weight * mean, holds)
        return Passage(
            span=so_many(node.law, once.span),
            uncounted=so_many(node.law, once.uncounted),
            parts=weighted([(mean, once.parts)]),
            busy=once.busy,
            stall=after_another([once.stall], mean),
            spent=weighted([(mean, once.by_part)]),
        )

    def _together(self, node: Together, weight: float, holds: dict[str, int]) -> Passage:
        branches = [self._branch(inside, weight, holds) for inside in node.nodes]
        last = last_of([b.span for b in branches])
        return self._joined(last, branches, len(branches), weight, holds)

    def _copies(self, node: Copies, weight: float, holds: dict[str, int]) -> Passage:
        mean, _ = moments_of(node.law)
        one = self._branch(node.node, weight * mean, holds)
        last = self._staggered(node, holds)
        if last is None:
            share = 1.0 - float(node.law[0])
            last = one_of([share, 1.0 - share], [last_of_law(some_of(node.law), one.span), NOTHING])
        return self._joined(last, [one], max(mean, 1.0), weight, holds)

    def _staggered(self, node: Copies, holds: dict[str, int]) -> Span | None:
        """Return when the last of copies is done that ask a part first, all at once; None if they do not.

        They share the wait there and leave it one after the other.
        """
        asked, asking = _first(node)
        if asked is None:
            return None
        aside = Walk(self.around)
        first = aside._walk(asked, 1.0, dict(holds)).span
        if not first.finite:
            return first
        answer = self._heard(holds).responses[asked.site.number]
        count, variance = moments_of(some_of(asked.site.batch))
        apart = 2 * max(answer.last_mean - answer.mean, 0.0) / max(count - variance / count - 1, 1e-9)
        # Where they are served at once the last is later by chance, not by its place in a row.
        apart = min(apart, answer.mean)
        row = aside._behind(node, apart, moments_of(asked.site.batch)[0] / asking, holds)
        # What is shared is the time until the first of them has left.
        shared = first.mean - (count - 1) * apart
        last = Span(max(shared, 0.0) + row.last.mean, first.variance + row.last.variance)
        return one_of([row.share, 1.0 - row.share], [last, row.others])

    def _behind(self, node: Node, apart: float, each_asks: float, holds: dict[str, int]) -> _Row:
        """Return what happens after the first of a row has left the part that it asks."""
        match node:
            case Series():
                row = self._behind(node.nodes[0], apart, each_asks, holds)
                rest = sum((self._walk(n, 1.0, dict(holds)).span for n in node.nodes[1:]), NOTHING)
                return replace(row, last=row.last + rest, others=row.others + rest)
            case Choice():
                share, inside = _only(node)
                row = self._behind(inside, apart, each_asks, holds)
                # Those that do not go there have nothing to do in its stead.
                return replace(row, share=share * row.share, others=NOTHING)
            case Copies():
                each = self._behind(node.node, apart, each_asks, holds)
                law = some_copies(node.law, each.share)
                some = some_of(law)
                rows = {
                    n: last_of_row(n, apart * each.asks, each.last) for n in np.flatnonzero(some).tolist()
                }
                last = one_of([float(some[n]) for n in rows], list(rows.values()))
                asks, share = each.asks * moments_of(some)[0], 1.0 - float(law[0])
                return _Row(last=last, asks=asks, share=share, others=last_of_law(node.law, each.others))
        return _Row(last=Span((each_asks - 1) * apart, 0.0), asks=each_asks)

    def _branch(self, node: Node, weight: float, holds: dict[str, int]) -> Passage:
        """Return what one branch takes; what its job holds it holds until the last is done."""
        if not holds:
            return self._walk(node, weight, {})
        aside = Walk(replace(self.around, heard=self._heard(holds)))
        passage = aside._walk(node, weight, {})
        for pool, held in aside.held.items():
            self.held.setdefault(pool, Held()).add(held.span, held.parts, 1.0)
        return passage

    def _joined(
        self, last: Span, branches: list[Passage], count: float, weight: float, holds: dict[str, int]
    ) -> Passage:
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
        return self._spent(passage, weight, holds)


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


def _first(node: Node) -> tuple[Ask | None, float]:
    """Return what a program asks first, None if it does something else, and how many copies of it do."""
    copies = 1.0
    while isinstance(node, Series | Copies | Choice):
        if isinstance(node, Copies):
            copies *= moments_of(node.law)[0]
            node = node.node
        elif isinstance(node, Choice):
            share, node = _only(node)
            copies *= share
        elif node.nodes:
            node = node.nodes[0]
        else:
            return None, copies
    return (node if isinstance(node, Ask) and copies > 0 else None), copies


def _only(node: Choice) -> tuple[float, Node]:
    """Return the one choice that does something, with its share; nothing to do if there are several."""
    some = [
        (share, inside)
        for share, inside in zip(node.shares, node.nodes, strict=True)
        if not (isinstance(inside, Series) and not inside.nodes)
    ]
    return some[0] if len(some) == 1 else (1.0, Series(()))
