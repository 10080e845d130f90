"""What a program takes: times by part, in series, of one of several, of branches that join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.moments import NOTHING, Span, one_of
from qmodels.composed.stalls import Stall, after_another, one_stall

TOGETHER = "fork"
DELAYED = "hold"
"""Names of the times that no part takes."""

_OFTEN = 5 / 12
"""Of the spread of many branches, what full load takes away: the limit of Nelson and Tantawi's formula."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Passage:
    """What a program takes.

    Parameters
    ----------
    span : Span
        Its time, what is not counted included. [ns]
    uncounted : Span
        What of it is not counted.
    parts : mapping of str to float
        Mean times by part, which sum up to what is counted.
    busy : float
        Load that jobs of the program itself bring where it spends its time, mean over that time.
    stall : Stall
        Of its time, a delay that few have.
    """

    span: Span
    uncounted: Span = NOTHING
    parts: Mapping[str, float] = field(default_factory=dict)
    busy: float = 0.0
    stall: Stall = Stall()

    @property
    def by_part(self) -> dict[str, float]:
        """Mean times by part, which sum up to all, what is not counted included."""
        if not self.uncounted.mean:
            return dict(self.parts)
        return {**self.parts, DELAYED: self.parts.get(DELAYED, 0.0) + self.uncounted.mean}

    @property
    def latency(self) -> Span:
        """What is counted."""
        if not self.span.finite:
            return self.span
        less = self.uncounted
        return Span(max(self.span.mean - less.mean, 0.0), max(self.span.variance - less.variance, 0.0))


def association(count: float, load: float) -> float:
    r"""Return how much of the wait for the last of independent branches is left where they begin together.

    Parameters
    ----------
    count : float
        Branches.
    load : float
        Load that they bring themselves to where they go.

    Notes
    -----
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
    return 1.0 - load * (1.0 - max(full, 1.0 - _OFTEN))


def in_series(passages: list[Passage]) -> Passage:
    """Return what programs take one after the other."""
    span = sum((p.span for p in passages), NOTHING)
    together: dict[str, float] = {}
    for passage in passages:
        for part, time in passage.parts.items():
            together[part] = together.get(part, 0.0) + time
    busy = 0.0
    if 0 < span.mean < np.inf:
        busy = sum(p.busy * p.span.mean for p in passages) / span.mean
    return Passage(
        span=span,
        uncounted=sum((p.uncounted for p in passages), NOTHING),
        parts=together,
        busy=busy,
        stall=after_another([p.stall for p in passages]),
    )


def mixed(shares: tuple[float, ...], passages: list[Passage]) -> Passage:
    """Return what one of several programs takes."""
    together: dict[str, float] = {}
    busy = 0.0
    for share, passage in zip(shares, passages, strict=True):
        if share > 0:
            busy += share * passage.busy
            for part, time in passage.parts.items():
                together[part] = together.get(part, 0.0) + share * time
    return Passage(
        span=one_of(shares, [p.span for p in passages]),
        uncounted=one_of(shares, [p.uncounted for p in passages]),
        parts=together,
        busy=busy,
        stall=one_stall(shares, [p.stall for p in passages]),
    )


def some_of(law: FloatArray) -> FloatArray:
    """Return a law of 0, 1, 2, ... given that it is not 0."""
    some = law.copy()
    some[0] = 0.0
    total = some.sum()
    return some / total if total > 0 else law
