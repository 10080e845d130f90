"""Parts of a system: those of qmodels, and of other packages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.nested import check_parts

GROUP = "qmodels.parts"
"""Entry points of this group give parts of other packages."""


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """A pool of tokens that jobs hold while they do something: MSHRs, requests under way, DMA channels.

    Parameters
    ----------
    count : int
        Tokens of one pool.
    turning : float
        Time to turn a token to another use than its last one, see `Acquire.use`; it passes once the job has
        it. Of the free tokens one that need not turn is taken first, then one that was never used. [ns]
    """

    count: int
    turning: float = 0.0

    def __post_init__(self) -> None:
        check_parts(self, "tokens.")
        checks.nonnegative("tokens.turning", self.turning)
        checks.count("tokens.count", self.count)


@dataclass(frozen=True, kw_only=True, eq=False)
class Offered:
    """Visits to a part that serves jobs, by stream, one array element each.

    A stream is a step of a flow.

    Parameters
    ----------
    rate : array of float
        Visits of one copy of the part. [1/ns]
    arrival_scv : array of float
        Squared coefficient of variation of the times between them.
    flows : tuple of str
        The flow that each stream is of.
    """

    rate: FloatArray
    arrival_scv: FloatArray
    flows: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Served:
    """Response of a part to its visits.

    Parameters
    ----------
    response : array of float
        Mean time from the arrival to the end of the service, by stream; ``inf`` if it cannot keep up. [ns]
    variance : array of float
        Variance of that time. [ns2]
    intensity : mapping of str to float
        Traffic intensity of each of its resources, which may exceed 1; "" is the part itself.
    departure_scv : array of float
        Squared coefficient of variation of the times between departures, by stream.
    """

    response: FloatArray
    variance: FloatArray
    intensity: Mapping[str, float]
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
    from qmodels.systems.memory.banked_channels import BankedChannels
    from qmodels.systems.memory.dram import Dram
    from qmodels.systems.memory.dram_system import DramSystem
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
