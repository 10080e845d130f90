"""Rings that jam: the load at which a network of rings with datelines collapses, and what it carries then."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.noc.turns import Turns, by_source

RINGS = ("ring", "spidergon")
"""Kinds of topologies of which the collapse was measured."""


class RingLaw(NamedTuple):
    """Loss of a flit at a link of a ring in a jam: the time, and exponents of the factors in `Ring`.

    Parameters
    ----------
    lost : float
        Time that a flit loses where all factors are 1. [cycles]
    inputs, virtual_channels, room, flits, length : float
        Exponents of the factors.
    """

    lost: float
    inputs: float
    virtual_channels: float
    room: float
    flits: float
    length: float


COLLAPSE = kept(RingLaw, "noc.collapse")
"""When a jam first keeps itself alive. On 32 networks held out the saturation rate is off by 3.4 % on
average and 9 % at most (12.7 % without the law), on 8 with permutations by 4 and 14 %."""


class JamLaw(NamedTuple):
    """The same when all buffers are full, where neither their room nor the length of packets matters.

    Parameters
    ----------
    lost : float
        Time that a flit loses where all factors are 1. [cycles]
    inputs, virtual_channels, length : float
        Exponents of the factors.
    """

    lost: float
    inputs: float
    virtual_channels: float
    length: float

    @property
    def whole(self) -> RingLaw:
        """As a law of all factors."""
        return RingLaw(**self._asdict(), room=0.0, flits=0.0)


CONGESTED = kept(JamLaw, "noc.congested")
"""The rate carried is off by 8.9 % on average, 24 % at most; less is known of permutations, which jam less or
not at all (up to 52 % too low)."""


class Ring(NamedTuple):
    """Properties that decide the throughput of a network's rings when buffers fill."""

    load: float  # flits per cycle that a flit finds on its links of the rings, itself included, at load 1
    # Cycles from flit to flit when credits come late: those of the credit loop for each place in the buffers
    # of a class, at least 1 [cycles].
    alone: float
    # Inputs of a router that want the same link, less one, taken for two where streams of two sources and
    # more share it; virtual channels of a class; buffer over the credit loop; flits of a packet; links of the
    # rings that it passes, as a flit on a ring finds it. In the order of `RingLaw`.
    factors: FloatArray

    def highest(self, law: RingLaw) -> float:
        """Return the load at which the rings are busy for all the time with what flits need and lose."""
        lost = law.lost * np.prod(np.maximum(self.factors, 1e-9) ** law[1:])
        return float(1 / (self.load * (self.alone + lost)))


def find_rings(turns: Turns) -> Ring | None:
    """Return the common properties of the channels with VC classes, None without any that is used."""
    table = turns.table
    paths = table.paths
    classed = paths.vc_high - paths.vc_low < paths.virtual_channels
    sent = turns.flow_rate * table.flits
    busy = np.repeat(paths.by_leg(sent), paths.sizes) * table.channel_cycles_per_flit[paths.link]
    load = np.bincount(paths.link, np.where(classed, busy, 0.0), minlength=len(table.channel_names))
    if not load.sum() > 0:
        return None
    part = load / load.sum()
    hops = paths.over_legs(np.add, paths.within_legs(np.add, classed.astype(float)))
    ways = np.unique(turns.source * load.size + turns.sink)
    inputs = float(part @ np.bincount(ways % load.size, minlength=load.size))
    streams = float(part @ np.count_nonzero(by_source(table, sent), axis=0))
    vcs, buffer, loop, flits = (float(part @ turns.channels[:, k]) for k in (2, 3, 4, 5))
    length = float(sent @ hops**2 / (sent @ hops))
    return Ring(
        load=float(part @ load),
        alone=max(1.0, loop / (vcs * buffer)),
        factors=np.array([max(inputs - 1, min(1.0, streams - 1)), vcs, buffer / loop, flits, length]),
    )


def jam_loads(turns: Turns, kind: str) -> tuple[float, float]:
    r"""Return the loads at which a network collapses and that it carries once jammed.

    ``turns``: the network at load 1; ``kind``: of the topology. Loads of kinds that are not in `RINGS` are
    ``inf``.

    Rings have two states: packets meet little, or a jam, once begun, keeps itself alive, because each
    packet that leaves it lets others in from the sides which have farther to go. The uncongested state
    ends where a link is busy all the time. Of all that was simulated one law holds for the load
    :math:`\lambda` of a link then:

    .. math:: \frac{1}{\lambda} = \max\left(1, \frac{C}{vB}\right)
              + a\,(n-1)^{e_1} v^{e_2} (B/C)^{e_3} L^{e_4} d^{e_5},

    with :math:`n` inputs that merge into a link, :math:`v` virtual channels of a class (half of all, for
    the datelines), :math:`B` places of a buffer, the credit loop :math:`C`, packets of :math:`L` flits
    and :math:`d` links on the way: the time of a flit on a link, and what it loses. Longer packets and
    more inputs lose more, room takes it up. Hot spots saturate before, where the usual model says.

    Fitted to uniform traffic and one hot node, 8 to 64 nodes, 2 to 8 virtual channels of 4 to 16 places,
    1 to 16 flits. A run of 25,000 cycles found the collapse; longer ones find it a little earlier.
    """
    ring = find_rings(turns) if kind in RINGS else None
    if ring is None:
        return float("inf"), float("inf")
    collapse = ring.highest(COLLAPSE)
    return collapse, min(collapse, ring.highest(CONGESTED.whole))
