"""What a program takes: times by part, in series, of one of several, of branches that join."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.moments import NOTHING, Moments, mixture_of
from qmodels.composed.stalls import Stall, after_another, one_stall

TOGETHER = "fork"
DELAYED = "hold"
"""Names of the times that no part takes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramLatency:
    """What a program takes."""

    span: Moments  # its time, what is not counted included [ns]
    uncounted: Moments = NOTHING  # what of it is not counted
    # Mean times by part, which sum up to what is counted.
    parts: Mapping[str, float] = field(default_factory=dict)
    # Load that jobs of the program itself bring where it spends its time, mean over that time.
    busy: float = 0.0
    stall: Stall = Stall()  # of its time, a delay that few have
    # As ``parts``, what is not counted included, with branches that join by the parts of these; as ``parts``
    # if left out.
    spent: Mapping[str, float] | None = None

    @property
    def by_part(self) -> Mapping[str, float]:
        """Mean times by part, which sum up to all: where those who go round meet each other."""
        return self.parts if self.spent is None else self.spent

    @property
    def latency(self) -> Moments:
        """What is counted."""
        if not self.span.finite:
            return self.span
        less = self.uncounted
        return Moments(max(self.span.mean - less.mean, 0.0), max(self.span.variance - less.variance, 0.0))


def association(count: float, load: float) -> float:
    r"""Return how much of the wait for the last of independent branches is left where they begin together.

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
    """Return what programs take one after the other."""
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
        spent=weighted((1.0, p.by_part) for p in programs),
    )


def mixed(shares: tuple[float, ...], programs: list[ProgramLatency]) -> ProgramLatency:
    """Return what one of several programs takes."""
    used = [(share, p) for share, p in zip(shares, programs, strict=True) if share > 0]
    return ProgramLatency(
        span=mixture_of(shares, [p.span for p in programs]),
        uncounted=mixture_of(shares, [p.uncounted for p in programs]),
        parts=weighted((share, p.parts) for share, p in used),
        busy=sum(share * p.busy for share, p in used),
        stall=one_stall(shares, [p.stall for p in programs]),
        spent=weighted((share, p.by_part) for share, p in used),
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
