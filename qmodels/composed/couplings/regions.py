"""Regions and stations of several servers on the way of jobs that go round: the laws of the numbers there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.composed.couplings.profile import Profile

MOST_NUMBERS = 100
"""Of more jobs the rates with as many numbers of them, in geometric steps, are found; all others between."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """A pool on the way of jobs that go round, with what is inside."""

    speeds: FloatArray  # rates at which 1, 2, ... jobs there leave it; the last holds for more [1/ns]
    scv: float = 1.0  # squared coefficient of variation of the time inside of a job alone

    @property
    def excess(self) -> float:
        """What is left beyond exponential times until a job leaves where all tokens are held. [ns]."""
        slowest, fastest = float(self.speeds[0]), float(self.speeds[-1])
        return (self.scv - 1) / 2 / fastest * slowest / fastest


class AtRegion:
    """The probabilities of the numbers at a region, and what a job takes that meets them."""

    part = -1

    def __init__(self, region: Region, jobs: int) -> None:
        self.excess, self.rate = region.excess, 0.0
        self.tokens = region.speeds.size
        self.down = region.speeds[np.minimum(np.arange(jobs), region.speeds.size - 1)]
        self.times, self.law = np.arange(1, jobs + 1) / self.down, np.ones(1)
        self.slowness = np.cumsum(np.log(np.maximum(self.down, 1e-300)))

    def growth(self, rate: float, jobs: int) -> float:
        """Return how much more often a number of at most so many jobs than none is there at a rate."""
        # Where others fill all there is, as in a round of a fixed point, there is no law of numbers.
        if rate <= self.down[0] or self.down[0] <= 0:
            return 1.0
        return float(np.exp(np.max(np.arange(1, jobs + 1) * np.log(rate) - self.slowness[:jobs])))

    def corrected(self, time: float, held: float, rate: float) -> float:
        """Return a time there as the region's own law makes it for jobs that find all tokens held."""
        return time + held * self.excess

    def time(self) -> float:
        """Return the time there of a job that goes round with those before."""
        met = float(self.law @ self.times[: self.law.size])
        return self.corrected(met, float(self.law[self.tokens :].sum()), self.rate)

    def advance(self, rate: float) -> None:
        """Let there be one job more, which go round at a rate."""
        up = rate / self.down[: self.law.size] * self.law
        self.law = np.concatenate([[max(1.0 - float(up.sum()), 0.0)], up])
        self.law /= self.law.sum()
        self.rate = rate

    def joining(self, others: FloatArray) -> tuple[FloatArray, float]:
        """Return the rates if the jobs come here too, and what all of them take here.

        Parameters
        ----------
        others : array of float
            Rates at which 1, 2, ... jobs go round elsewhere.
        """
        up, down = np.append(0.0, np.cumsum(np.log(others))), np.append(0.0, self.slowness)
        number = np.arange(others.size + 1)

        def at(n: int) -> tuple[float, float]:
            weight = -up[n::-1] - down[: n + 1]
            law = np.exp(weight - weight.max())
            rate = float(law[1:] @ self.down[:n]) / float(law.sum())
            time = float(law @ number[: n + 1]) / float(law.sum()) / rate
            more = self.corrected(time, float(law[self.tokens :].sum() / law.sum()), rate)
            return n / (n / rate + more - time), more

        some = number[1:]
        if some.size > MOST_NUMBERS:
            some = np.unique(np.geomspace(1, others.size, MOST_NUMBERS).round().astype(np.int64))
        rates = np.interp(number[1:], some, [at(n)[0] for n in some.tolist()])
        return rates, at(others.size)[1]


class AtStation(AtRegion):
    """The same at a station of several servers, with its waits over those of M/M/c."""

    def __init__(
        self, part: int, own: float, servers: int, ratio: tuple[FloatArray, FloatArray], jobs: int
    ) -> None:
        super().__init__(Region(speeds=np.arange(1, servers + 1) / own), jobs)
        self.part, self.own, self.ratio = part, own, ratio

    def corrected(self, time: float, held: float, rate: float) -> float:
        """Return a time there as the station's own law makes it."""
        return self.own + (time - self.own) * float(np.interp(rate, *self.ratio))


def at_stations(profile: Profile, jobs: int) -> list[AtStation]:
    """Return the stations of several servers of a profile."""
    return [
        AtStation(profile.parts.index(part), profile.first[part], servers, profile.wait_ratios[part], jobs)
        for part, servers in profile.servers.items()
    ]
