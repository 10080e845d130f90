"""Variability along programs: from the arrival of a job to each request that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import exp, pi, sqrt
from typing import Any

from scipy.special import erfc

from qmodels.composed.decomposition import PartResponses
from qmodels.systems.composed.program_form import (
    Alternatives,
    Op,
    ProgramForm,
    Rules,
    Run,
    Site,
    fold,
)

FULL = 1 - 1e-6
"""Load above which a part remembers for so long that more makes no difference."""


@dataclass(frozen=True)
class Passing:
    """A stream on its way."""

    scv: float  # squared coefficient of variation of the times between its jobs
    # The same in the long run, which no part on the way changes; None of jobs that go round.
    lasting: float | None
    memory: float = 0.0  # how long the slowest part on the way remembers [ns]

    def split(self, share: float) -> Passing:
        """Return a share of the stream at random."""
        lasting = None if self.lasting is None else share * self.lasting + 1 - share
        return replace(self, scv=share * self.scv + 1 - share, lasting=lasting)

    def seen(self, memory: float) -> float:
        """Return the variability of a stream for a part that remembers so long."""
        if self.memory <= 0 or self.lasting is None:
            return self.scv
        return self.scv + passed_on(memory / 2 / self.memory) * (self.lasting - self.scv)


@dataclass(eq=False)
class Variability:
    r"""Finds the squared coefficients of variation of a program's streams.

    Attributes
    ----------
    found : dict of int to float
        By the number of a site; of where tokens are taken by -1 less its number.

    Notes
    -----
    As in Whitt's network analyzer [1]_: what leaves a site arrives at the next; a share p of a stream of SCV
    :math:`c^2` has :math:`p c^2 + 1 - p`; choices that come together again have changed the stream by what
    they changed in their shares of it. Time that passes and the network leave it as it is.

    What a queue evens out comes back in times longer than it remembers, :math:`s / (1-\rho)^2`: over a time
    t its departures have a share :math:`w^*(t)` of the dispersion of its arrivals [2]_, and a queue with
    such arrivals waits by what it is over :math:`\rho^2 s / 2(1-\rho)^2` [3]_, services of all taken to be as
    variable. Bursts that are known go their own way (`qmodels.composed.couplings.bursts`).

    References
    ----------
    .. [1] W. Whitt, "The queueing network analyzer", Bell System Technical Journal 62(9), 1983.
    .. [2] W. Whitt, W. You, "Heavy-traffic limit of the GI/GI/1 stationary departure process and its variance
       function", Stochastic Systems 8(2), 2018.
    .. [3] W. Whitt, W. You, "Using robust queueing to expose the impact of dependence in single-server
       queues", Operations Research 66(1), 2018.
    """

    heard: PartResponses  # What parts answer to its sites, among it the variability of what leaves them
    # By which factor the variability that sites were asked with is above that of the stream itself
    raised: Mapping[int, float]
    found: dict[int, float] = field(default_factory=dict)

    def find(self, form: ProgramForm, node: int, scv: float, *, closed: bool) -> dict[int, float]:
        """Return ``found`` for a program whose jobs begin with such times between them."""
        rules: Rules = {
            Op.VISIT: self._ask, Op.TAKE: self._take, Op.CHOICE: self._choice, Op.PARALLEL: self._parallel
        }  # fmt: skip
        fold(form, node, rules, Passing(scv, None if closed else scv))
        return self.found

    def _take(self, take: Site, stream: Passing) -> Passing:
        self.found[-1 - take.number] = stream.scv
        return stream

    def _choice(self, choice: Alternatives, nodes: tuple[int, ...], run: Run, stream: Passing) -> Passing:
        change, memory = 0.0, stream.memory
        for share, node in zip(choice.shares, nodes, strict=True):
            split = stream.split(share)
            after = run(node, split)
            change += share * (after.scv - split.scv)
            memory = max(memory, after.memory)
        return replace(stream, scv=stream.scv + change, memory=memory)

    def _parallel(self, row: Any, nodes: tuple[int, ...], run: Run, stream: Passing) -> Passing:
        ends = [run(node, stream) for node in nodes]
        scv = sum(end.scv for end in ends) / len(ends)
        return replace(stream, scv=scv, memory=max(end.memory for end in ends))

    def _ask(self, site: Site, stream: Passing) -> Passing:
        number = site.number
        load = min(self.heard.intensity.get(site.part, 0.0), FULL)
        each = self._each(site.part, load)
        self.found[number] = max(stream.seen(load**2 * each / (1 - load) ** 2), 0.0)
        if number not in self.heard.responses:
            return stream
        scv = self.heard.responses[number].departure_scv / self.raised.get(number, 1.0)
        return replace(stream, scv=scv, memory=max(stream.memory, each / (1 - load) ** 2))

    def _each(self, part: str, load: float) -> float:
        """Return the time of a part for one issue of any stream. [ns]."""
        streams = [s for s in self.heard.asked.values() if s.step.part == part]
        rate = sum(s.rate for s in streams)
        return load / rate if rate > 0 else 0.0


def passed_on(time: float) -> float:
    r"""Return the share of the dispersion of its arrivals that the departures of a queue have.

    ``time``: over which it is looked at, in units of the queue's memory.

    :math:`w^*(t) = 1 - (1 - c^*(t)) / 2t`, where :math:`c^*` is the correlation of reflected Brownian motion,
    :math:`2 (1 - 2t - t^2) \Phi^c(\sqrt t) + 2 \sqrt t (1 + t) \phi(\sqrt t)`.
    """
    if time <= 1e-8:
        return 0.0
    root = sqrt(time)
    tail, density = erfc(root / sqrt(2)) / 2, exp(-time / 2) / sqrt(2 * pi)
    kept = 2 * (1 - 2 * time - time**2) * tail + 2 * root * (1 + time) * density
    return float(min(max(1 - (1 - kept) / (2 * time), 0.0), 1.0))
