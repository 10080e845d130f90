"""Parts of a system: those of qmodels, and of other packages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import SEGMENTS
from qmodels.systems.spec.docstrings import Documented
from qmodels.systems.spec.ranges import Declared, count, nonnegative

ONE = np.array([0.0, 1.0])
"""The law of one request."""
MOST_CONVOLVED = 10_000_000
"""Products of probabilities beyond which laws are compounded by their transforms."""
LEAST_SHARE, REACH = 1e-18, 10.0
"""Probability of a number that is left out, and standard deviations beyond which none has a higher one."""


def law_mean(law: FloatArray) -> float:
    """Return the mean of a number from the probabilities of 0, 1, 2, ..."""
    return float(law @ np.arange(law.size))


def compound(outer: FloatArray, inner: FloatArray) -> FloatArray:
    """Return the law of a sum of as many independent numbers of the inner law as the outer law says."""
    if outer is ONE or np.array_equal(outer, ONE):
        return inner
    if np.array_equal(inner, ONE):
        return outer
    total = np.zeros((outer.size - 1) * (inner.size - 1) + 1)
    if inner[-1] == 1.0:  # always as many
        total[:: inner.size - 1] = outer
        return total
    if outer.size * total.size > MOST_CONVOLVED:
        transform = np.fft.rfft(inner, total.size)
        turned, found = np.ones_like(transform), np.zeros_like(transform)
        for share in outer:
            found, turned = found + share * turned, turned * transform
        return np.maximum(np.fft.irfft(found, total.size), 0.0)
    power = np.ones(1)
    for share in outer:
        total[: power.size] += share * power
        power = np.convolve(power, inner)[: total.size]
    return total


def thinned_law(law: FloatArray, share: float) -> FloatArray:
    """Return the law of how many of a random number of jobs do what each does with a probability.

    >>> thinned_law(np.array([0.0, 0.0, 1.0]), 0.5).round(9)
    array([0.25, 0.5 , 0.25])
    """
    from scipy import special

    if share == 1.0:
        return law
    kept = np.zeros(law.size)
    for of in np.flatnonzero(law > LEAST_SHARE).tolist():
        middle, reach = of * share, REACH * (1 + np.sqrt(of * share * (1 - share)))
        some = np.arange(max(int(middle - reach), 0), min(int(middle + reach) + 1, of) + 1)
        ways = special.gammaln(of + 1) - special.gammaln(some + 1) - special.gammaln(of - some + 1)
        logs = ways + special.xlogy(some, share) + special.xlog1py(of - some, -share)
        kept[some] += law[of] * np.exp(logs)
    return kept


def number_law(flow: Flow, count: int | str) -> FloatArray:
    """Return the probabilities of 0, 1, 2, ... for a count of a step."""
    if count == SEGMENTS:
        assert flow.sizes is not None
        numbers, probabilities = flow.sizes.segments(flow.segment_bytes)
    else:
        numbers, probabilities = np.array([int(count)]), np.ones(1)
    law = np.zeros(int(numbers[-1]) + 1)
    law[numbers] = probabilities
    return law


def batch_companions(law: FloatArray) -> float:
    """Mean size of the batch of a member, itself included."""
    numbers = np.arange(law.size)
    return float(law @ numbers**2) / max(float(law @ numbers), 1e-300)


GROUP = "qmodels.parts"
"""Entry points of this group give parts of other packages."""


@dataclass(frozen=True, kw_only=True)
class Tokens(Declared, prefix="tokens."):
    """A pool of tokens that jobs hold while they do something: MSHRs, requests under way, DMA channels."""

    count: int = count()  # Tokens of one pool
    # Time to turn a token to another use than its last one, see `Acquire.use`; it passes once the job has it.
    # Of the free tokens one that need not turn is taken first, then one that was never used. [ns]
    turning: float = nonnegative(0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Offered(Documented):
    """Visits to a part that serves jobs, by stream, one array element each.

    A stream is a step of a flow.
    """

    rate: FloatArray  # Visits of one copy of the part. [1/ns]
    arrival_scv: FloatArray  # Squared coefficient of variation of the times between them
    flows: tuple[str, ...]  # The flow that each stream is of


@dataclass(frozen=True, kw_only=True, eq=False)
class Served(Documented):
    """Response of a part to its visits."""

    # Mean time from the arrival to the end of the service, by stream; ``inf`` if it cannot keep up. [ns]
    response: FloatArray
    variance: FloatArray  # Variance of that time. [ns2]
    # Traffic intensity of each of its resources, which may exceed 1; "" is the part itself
    intensity: Mapping[str, float]
    # Squared coefficient of variation of the times between departures, by stream
    departure_scv: FloatArray = field(default_factory=lambda: np.ones(0))


class Service(ABC):
    """One simulated copy of a part of others: it says at each arrival when the service will end."""

    @abstractmethod
    def end(self, now: float, stream: int, rng: np.random.Generator) -> float:
        """Return when the job that arrives now will be done. [ns]."""


class ServingPart(ABC):
    """A part of another package that jobs visit: a frozen dataclass with a closed form and a simulation.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Wire(ServingPart):
    ...     ns: float = 2.0
    ...     def served(self, offered):
    ...         zero = np.zeros_like(offered.rate)
    ...         return Served(response=zero + self.ns, variance=zero, intensity={"": 0.0})
    ...     def service(self):
    ...         return WireService(self.ns)
    >>> class WireService(Service):
    ...     def __init__(self, ns):
    ...         self.ns = ns
    ...     def end(self, now, stream, rng):
    ...         return now + self.ns
    >>> Wire().service().end(1.0, 0, np.random.default_rng())
    3.0
    """

    @abstractmethod
    def served(self, offered: Offered) -> Served:
        """Return the analytic answer to what one copy of the part is offered."""

    @abstractmethod
    def service(self) -> Service:
        """Return a simulated copy of the part, idle."""


@cache
def part_types() -> dict[str, type[Any]]:
    """Return the classes of parts by the words that files use for them.

    Other packages add theirs by entry points of the group ``qmodels.parts``, each under the word it is
    called by.

    Raises
    ------
    ValueError
        If an entry point gives no dataclass that is a `ServingPart`, or its word is taken.
    """
    from qmodels.systems.cache.spec import CacheSystem
    from qmodels.systems.memory.dram_system import Dram, DramSystem
    from qmodels.systems.memory.memory_map import BankedChannels
    from qmodels.systems.noc.spec import Noc
    from qmodels.systems.packets.free_list import FreeList
    from qmodels.systems.stations.parts import Station

    ours: dict[str, type[Any]] = {
        "noc": Noc,
        "dram": DramSystem,
        "cache": CacheSystem,
        "free-list": FreeList,
        "station": Station,
        "tokens": Tokens,
        "banks": BankedChannels,
        "banks-in-order": Dram,
    }
    for point in entry_points(group=GROUP):
        part, where = point.load(), f"entry point {point.name} = {point.value}"
        if not (isinstance(part, type) and issubclass(part, ServingPart) and is_dataclass(part)):
            raise ValueError(f"{where} must give a dataclass that is a ServingPart, got {part!r}")
        if point.name in ours:
            raise ValueError(f"{where}: the part {point.name!r} is taken")
        ours[point.name] = part
    return ours
