"""What the model walks: the program of a flow with its requests, packets and pools, each with how often."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from qmodels.checks import FloatArray, IntArray

ONE = np.array([0.0, 1.0])
"""The law of one request."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Leg:
    """Packets of one kind that a job sends through the interconnect."""

    flow: str  # the flow
    packets: float  # packets of a job, those among them that need not travel included
    # sources, targets: pairs of different nodes.
    sources: IntArray
    targets: IntArray
    shares: FloatArray  # share of the packets of each pair; what is missing to 1 does not travel
    bytes: int  # payload [bytes]
    together: float = 1.0  # packets that leave a node at the same time as one of these, itself included, mean


@dataclass(frozen=True, kw_only=True, eq=False)
class Site:
    """Where a program asks a part: a step at its place in the program."""

    number: int  # its place among all sites
    # flow, part: who asks whom.
    flow: str
    part: str
    step: Any  # the step
    visits: float  # issues of a job, mean
    batch: FloatArray  # probabilities of 0, 1, 2, ... requests an issue
    write: bool  # whether the requests write
    bytes: int  # payload of a request [bytes]
    sources: FloatArray  # share of the issues from each node; empty if the part is not placed
    own: bool  # whether a job always asks the copy at its own place
    # Of requests that copies of a job issued together and that have come apart since: the law of their
    # number; that of one otherwise.
    copies: FloatArray = field(default_factory=lambda: ONE)


@dataclass(frozen=True, eq=False)
class Ask:
    """Requests to a part, each of which travels there and back."""

    site: Site
    there: int | None = None
    back: int | None = None


@dataclass(frozen=True, eq=False)
class Travel:
    """A packet, by the number of its leg."""

    leg: int


@dataclass(frozen=True, eq=False)
class Delay:
    """Time that passes."""

    mean: float
    variance: float
    counted: bool


@dataclass(frozen=True, eq=False)
class Take:
    """Wait for tokens; the site says who takes them and how often."""

    site: Site
    tokens: int


@dataclass(frozen=True, eq=False)
class Give:
    """Give tokens back."""

    pool: str
    tokens: int


@dataclass(frozen=True, eq=False)
class Series:
    """One after the other."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """One of several at random."""

    shares: tuple[float, ...]
    nodes: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Together:
    """All at once, until the last is done."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Copies:
    """The same several times at once; the law of 0, 1, 2, ... says how often."""

    law: FloatArray
    node: Node


@dataclass(frozen=True, eq=False)
class Rounds:
    """The same several times, one after the other."""

    law: FloatArray
    node: Node


Node: TypeAlias = "Ask | Travel | Delay | Take | Give | Series | Choice | Together | Copies | Rounds"


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """All flows of a system as the model walks them."""

    roots: dict[str, Node]  # program of each flow
    sites: tuple[Site, ...]  # where programs ask parts, by number
    takes: tuple[Site, ...]  # where programs take tokens, numbered of their own
    legs: tuple[Leg, ...]  # packets

    def parts(self, network: str) -> tuple[str, ...]:
        """Return the parts that are asked, the interconnect among them."""
        asked = dict.fromkeys(site.part for site in self.sites)
        return (*asked, network) if self.legs else tuple(asked)
