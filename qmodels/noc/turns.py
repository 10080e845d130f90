"""The turns of a network: what goes from one channel into another, the unit of the wormhole model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.router import Router
from qmodels.systems.noc.routes import (
    EJECTION,
    INJECTION,
    PIECE,
    Integers,
    Onward,
    PathTable,
    Piece,
    onward,
    pieces,
)
from qmodels.systems.traffic.arrivals import OnOff

INJECTION_WIRE = 2
"""From a source to its router, whatever the pipeline of the routers. [cycles]"""


def credit_loops(table: PathTable, router: Router) -> FloatArray:
    """Return the cycles from a flit's start on each channel until the next one can start into its place."""
    ahead = np.where(np.asarray(table.channel_kind) == INJECTION, INJECTION_WIRE, router.pipeline_cycles)
    wires = 2 * np.asarray(table.channel_delay) + np.asarray(table.channel_cycles_per_flit) - 1
    loops: FloatArray = np.asarray(ahead + wires + router.credit_cycles - router.pipeline_cycles, dtype=float)
    return loops


def head_times(table: PathTable, router: Router) -> FloatArray:
    """Return when the head of a packet of each flow, alone, is at its sink [cycles]."""
    wires = np.asarray(table.channel_delay) + np.asarray(table.channel_cycles_per_flit, dtype=float) - 1
    routers = table.paths.hops - 1
    return np.asarray(INJECTION_WIRE + router.pipeline_cycles * routers + table.paths.along(np.add, wires))


def busy_times(table: PathTable, router: Router, flits: Integers) -> tuple[FloatArray, FloatArray]:
    r"""Return the cycles in which the tail of a packet follows its head, and the cycles of the last flit.

    The sum of both is how long the packet keeps the slowest channel of its path.

    ``flits``: flits of the packet of each flow.

    Let flit *k* start on channel *j* of the path at :math:`s_j(k)`. A channel takes :math:`w_j` cycles
    per flit, a head :math:`d_j` until it can start on the next one, and the place of a flit in one of the
    *B* slots behind the channel is free again :math:`r_j` after the flit has left it:

    .. math:: s_j(k) = \max\{s_{j-1}(k) + d_{j-1},\; s_j(k-1) + w_j,\; s_{j+1}(k-B) + r_j\}.

    The longest chain of these steps from the first start to the last flit at the sink takes every
    :math:`d_j` once. Of the other steps each :math:`w_j` advances by one flit and each step back,
    which comes with a second step ahead, by *B* in :math:`d_j + r_j`; any number of each fits in. So the
    tail is behind the head by

    .. math:: (L-1) W + \left\lfloor\frac{L-1}{B}\right\rfloor \max(0, R - BW), \qquad
              W = \max_j w_j, \quad R = \max_j (d_j + r_j),

    exactly.

    >>> from qmodels.systems.noc.spec import Noc
    >>> from qmodels.systems.noc.patterns import uniform
    >>> from qmodels.systems.noc.topology import mesh
    >>> noc = Noc(topology=mesh(2, 2), traffic=uniform(nodes=4), router=Router(buffer_flits=4))
    >>> table = noc.flow_table()
    >>> behind, last = busy_times(table, noc.router, table.flits)
    >>> float(behind[0]), float(last[0])  # 9 flits, two of them held up for a credit
    (10.0, 1.0)
    """
    slowest = table.paths.along(np.maximum, np.asarray(table.channel_cycles_per_flit, dtype=float))
    loop = table.paths.along(np.maximum, credit_loops(table, router))
    late = np.maximum(loop - router.buffer_flits * slowest, 0.0)
    return (flits - 1) * slowest + (flits - 1) // router.buffer_flits * late, slowest


@dataclass(frozen=True, kw_only=True, eq=False)
class Turns:
    """Rates at which packets go from each channel into the next, all flows together.

    Circuits make no turns: they have virtual channels of their own and pass all else.
    """

    table: FlowTable  # the flows
    router: Router  # the routers
    flow_rate: FloatArray  # packets per cycle of each flow
    # source, sink: the two channels of each turn.
    source: Integers
    sink: Integers
    pair: Integers  # number of the two channels: turns that differ in priority or weight alone share it
    level: Integers  # priority, counted from 0 without gaps
    weight: FloatArray  # for weighted arbitration
    # packets, work, square: packets per cycle, the cycles they keep the second channel busy per cycle, and
    # the squares.
    packets: FloatArray
    work: FloatArray
    square: FloatArray
    channels: FloatArray  # see `qmodels.noc.fixed_point.Network`
    # The turn of each pair of channels, see `qmodels.systems.noc.routes.Onward`, and group of packets that
    # are treated alike; -1 for none.
    number: Integers
    zero_load: FloatArray  # latency of a packet of each flow alone in the network [cycles]
    # Cycles that a packet of each flow keeps its slowest channel busy when alone [cycles].
    busy_cycles: FloatArray
    # Of sources that send in bursts: the process; of each channel the share of its packets that are of one
    # source, and all packets of that source per cycle, means.
    bursts: OnOff | None = None
    own_share: FloatArray = field(default_factory=lambda: np.zeros(0))
    sent: FloatArray = field(default_factory=lambda: np.zeros(0))
    # Loads at which rings collapse and that they carry then: `qmodels.noc.collapse`.
    jam: tuple[float, float] = (float("inf"), float("inf"))

    @property
    def offered(self) -> float:
        """Packets per cycle of all flows together."""
        return float(self.flow_rate.sum())

    def along(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values of all turns on the path of each flow, 0 for those that make none."""
        paths = _paths(self.table, self.router)
        table, of_flow = self.table.paths, paths.kinds.group[paths.kinds.of_flow]
        found = np.zeros(of_flow.size)
        for group in range(self.number.shape[1]):
            of_pair = np.append(values, 0.0)[self.number[:, group]]
            inside = np.zeros(table.link.size)
            for piece, _, pair in paths.inside():
                inside[piece.links] = of_pair[pair]
                inside[piece.links][piece.last] = 0.0
            sums = table.over_legs(np.add, table.within_legs(np.add, inside))
            for some, pair in paths.between():
                sums[some] += of_pair[pair]
            found = np.where(of_flow == group, sums, found)
        return np.where(self.table.circuit | (self.flow_rate <= 0), 0.0, found)


def group_turns(
    table: FlowTable,
    router: Router,
    *,
    rate: FloatArray,
    together: FloatArray | None = None,
    bursts: OnOff | None = None,
) -> Turns:
    """Return the turns of flows.

    ``table``: channels, flows and paths; ``rate``: packets per cycle of each flow [packets/cycle];
    ``together``: packets that each node sends at the same time, 1 if left out; ``bursts``: of all sources,
    None for Bernoulli and Poisson.
    """
    paths = _paths(table, router)
    kinds, ways = paths.kinds, paths.ways
    sent = np.where(table.circuit, 0.0, rate)
    onto = np.zeros((ways.place.size * ways.channels.shape[1], kinds.flits.size))
    limits, _, of_ends = table.paths.limits
    through = np.zeros((ways.place.size, len(limits), kinds.flits.size))
    for end in (table.paths.first, table.paths.last):
        through[:, of_ends] += paths.by_kind(end, rate, ways.place.size)
    legs = np.sum([paths.by_kind(leg, rate, table.paths.sizes.size) for leg in table.paths.legs], axis=0)
    for piece, at, pair in paths.inside():
        each = np.repeat(legs[piece.legs], piece.sizes, axis=0)
        _add(through.reshape(-1, kinds.flits.size), at, each)
        each[piece.last] = 0.0
        _add(onto, pair, np.where(kinds.circuit, 0.0, each))
    for some, pair in paths.between():
        onto += paths.by_kind(pair, sent[some], len(onto), some)
    channels, busy = _channels(table, router, kinds, limits, through)
    if together is not None and np.any(together != 1):
        channels[:, 8] *= 1 + _left(table, sent, together - 1)

    # Packets of all lengths that go from a channel into another with one level and weight make a turn.
    alike = (kinds.group == np.arange(kinds.level.size)[:, None]).astype(float)
    packets = onto @ alike.T
    pair, group = np.nonzero(packets)
    source, sink = ways.both(pair)
    each, taken = onto[pair] * alike[group], busy[sink]
    number = np.full(packets.shape, -1, dtype=np.int32)
    number[pair, group] = np.arange(pair.size)
    own_share, all_sent = (np.zeros(0),) * 2 if bursts is None else _sources(table, sent)
    return Turns(
        table=table,
        router=router,
        flow_rate=rate,
        source=source,
        sink=sink,
        pair=np.unique(pair, return_inverse=True)[1].astype(np.int64),
        level=kinds.level[group],
        weight=kinds.weight[group],
        packets=packets[pair, group],
        work=(each * taken).sum(axis=1),
        square=(each * taken**2).sum(axis=1),
        channels=channels,
        number=number,
        zero_load=paths.zero_load,
        busy_cycles=paths.busy_cycles,
        bursts=bursts,
        own_share=own_share,
        sent=all_sent,
    )


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Packets that the routers treat alike, of one length."""

    of_flow: Integers
    flits: Integers
    circuit: npt.NDArray[np.bool_]
    group: Integers  # of level and weight, in which packets of all lengths are together
    level: Integers  # of each group
    weight: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class _Paths:
    """Part of the turns of a network that does not depend on the rates of its flows."""

    table: FlowTable
    kinds: _Kinds
    ways: Onward
    zero_load: FloatArray
    busy_cycles: FloatArray
    known: dict[str, list[Any]] = field(default_factory=dict)

    def by_kind(
        self, place: Integers, values: FloatArray, places: int, flows: slice | Integers = slice(None)
    ) -> FloatArray:
        """Return the sum of the values of flows, all or some, by place and kind."""
        kinds = self.kinds.flits.size
        at = place * kinds + self.kinds.of_flow[flows] if kinds > 1 else place
        return np.asarray(np.bincount(at, values, minlength=places * kinds), dtype=float).reshape(places, -1)

    def inside(self) -> Iterable[tuple[Piece, Integers, Integers]]:
        """Return pieces of legs; of their links channel and limits as one number; pair with the next."""
        return self._kept("inside", self.table.paths.link.size, map(self._links, pieces(self.table.paths)))

    def between(self) -> Iterable[tuple[Integers, Integers]]:
        """Return flows, and pairs of channels that follow one another on their paths, but not in a leg."""
        paths = self.table.paths
        joints = paths.joints(paths.link, paths.first, paths.last)
        made = ((some, self.ways.pairs(before, after)) for _, some, before, after in joints)
        return self._kept("between", self.table.source.size, made)

    def _kept(self, name: str, size: int, made: Iterable[Any]) -> Iterable[Any]:
        """Return what is made anew each time where it takes much room."""
        if size > PIECE:
            return made
        if name not in self.known:
            self.known[name] = list(made)
        return self.known[name]

    def _links(self, piece: Piece) -> tuple[Piece, Integers, Integers]:
        link, (limits, used, _) = self.table.paths.link[piece.links], self.table.paths.limits
        at = link * len(limits) + used[piece.links] if len(limits) > 1 else link
        return piece, at, self.ways.along(link)


@lru_cache(maxsize=16)
def _paths(table: FlowTable, router: Router) -> _Paths:
    behind, last_flit = busy_times(table, router, table.flits)
    return _Paths(
        table=table,
        kinds=_kinds(table, router),
        ways=onward(table),
        zero_load=head_times(table, router) + behind,
        busy_cycles=behind + last_flit,
    )


def _kinds(table: FlowTable, router: Router) -> _Kinds:
    group, level, weight = np.zeros(table.flits.size, dtype=np.int64), np.zeros(1, dtype=np.int64), np.ones(1)
    if router.arbitration == "priority":
        found, group = np.unique(table.priority, return_inverse=True)
        level, weight = np.arange(found.size), np.ones(found.size)
    elif router.arbitration == "weighted":
        weight, group = np.unique(table.weight, return_inverse=True)
        level = np.zeros(weight.size, dtype=np.int64)
    of_flow, first = (
        np.zeros(table.flits.size, dtype=np.int64),
        np.zeros(min(1, table.flits.size), dtype=np.int64),
    )
    for values in (group, table.circuit, table.flits):
        if values.size and values.min() != values.max():
            both = of_flow * values.size + np.unique(values, return_inverse=True)[1]
            _, first, of_flow = np.unique(both, return_index=True, return_inverse=True)
    return _Kinds(of_flow, table.flits[first], table.circuit[first], group[first], level, weight)


def _add(total: FloatArray, at: Integers, values: FloatArray) -> None:
    """Add values of all kinds to those at their places."""
    for kind, column in enumerate(values.T):
        total[:, kind] += np.bincount(at, column, minlength=len(total))


def _channels(
    table: FlowTable, router: Router, kinds: _Kinds, limits: Integers, through: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the rows of the channels, see `qmodels.noc.fixed_point.Network`, without bursts; busy cycles.

    ``through``: packets per cycle by channel, limits of virtual channels and kind; the cycles for which a
    packet keeps a channel busy are by channel and kind.
    """
    every, ordinary = through.sum(axis=1), (through * ~kinds.circuit).sum(axis=2)
    wide = limits[:, 1] - limits[:, 0]
    vcs = np.full(len(through), float(table.virtual_channels))
    np.divide(through.sum(axis=2) @ wide, every.sum(axis=1), out=vcs, where=every.sum(axis=1) > 0)

    flits, busy = kinds.flits.astype(float), hold_times(table, router, vcs, kinds.flits)
    loop, room = (
        credit_loops(table, router),
        router.buffer_flits * table.channel_cycles_per_flit.astype(float),
    )
    packets = every * ~kinds.circuit
    carried, long = packets @ flits, packets @ flits**2
    channels = np.zeros((vcs.size, 10))
    channels[:, 0], channels[:, 1] = packets.sum(axis=1), (packets * busy).sum(axis=1)
    channels[:, 2], channels[:, 3], channels[:, 4] = vcs, router.buffer_flits, loop
    channels[:, 5] = np.divide(long, carried, out=np.ones(vcs.size), where=carried > 0)
    channels[:, 6] = (every * kinds.circuit * busy).sum(axis=1)
    channels[:, 7] = table.channel_kind != EJECTION
    # Late credits leave gaps in a packet's flits, which those of others fill: the packets share the
    # link, so that both are late where otherwise one would have waited for the other.
    shared = (loop > room) & (channels[:, 5] > router.buffer_flits) & (vcs > 1.5)
    channels[:, 8] = np.where(shared, 2 - router.buffer_flits / channels[:, 5], 1.0)
    # One over the probability that two packets on a channel use the same virtual channel.
    vc = np.arange(table.virtual_channels)
    inside = (limits[:, :1] <= vc) & (vc < limits[:, 1:])
    of_vc = (ordinary / wide) @ inside
    channels[:, 9] = table.virtual_channels
    np.divide(of_vc.sum(axis=1) ** 2, (of_vc**2).sum(axis=1), out=channels[:, 9], where=channels[:, 0] > 0)
    return channels, busy


def hold_times(table: FlowTable, router: Router, vcs: FloatArray, flits: Integers) -> FloatArray:
    """Return the cycles for which packets keep channels busy, by channel and number of flits.

    ``vcs``: virtual channels that a packet can choose from at each channel.
    """
    per_flit, loop = table.channel_cycles_per_flit.astype(float), credit_loops(table, router)
    waits = table.channel_kind != INJECTION
    # A packet longer than a buffer waits for credits once per buffer even when it is alone.
    slow = np.where(vcs < 1.5, np.maximum(loop - router.buffer_flits * per_flit, 0) * waits, 0)
    busy = np.multiply.outer(per_flit, flits) + np.multiply.outer(slow, (flits - 1) // router.buffer_flits)
    # Even many packets can not keep a link busy whose credits come back too late.
    starved = np.where(waits, loop / (vcs * router.buffer_flits), 0.0)
    return np.asarray(np.maximum(busy, np.multiply.outer(starved, flits)))


def by_source(table: FlowTable, rate: FloatArray) -> FloatArray:
    """Return the packets per cycle of each source on each channel."""
    from scipy.sparse import csr_array

    paths, count = table.paths, len(table.channel_names)
    legs = csr_array((np.ones(paths.link.size), paths.link, paths.leg_start), (paths.sizes.size, count))
    found = np.zeros((table.nodes, count))
    for leg in paths.legs:
        found += (csr_array((rate, (table.source, leg)), (table.nodes, paths.sizes.size)) @ legs).toarray()
    for end in (paths.first, paths.last):
        np.add.at(found, (table.source, end), rate)
    return found


def _left(table: FlowTable, rate: FloatArray, more: FloatArray) -> FloatArray:
    """Return how many more packets come together on each channel, of those that do at the nodes.

    Of a part of the packets, taken at random, so many fewer do; streams that join are as their mean.
    """
    of_source = by_source(table, rate)
    sent = of_source[:, table.channel_kind == INJECTION].sum(axis=1)
    return _over(more @ _over(of_source**2, sent[:, None]), of_source.sum(axis=0))


def _sources(table: FlowTable, rate: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of each channel's packets that are of one source, and what that sends, means."""
    of_source = by_source(table, rate)
    sent = of_source[:, table.channel_kind == INJECTION].sum(axis=1)
    through = of_source.sum(axis=0)
    return _over((of_source**2).sum(axis=0), through**2), _over(sent @ of_source, through)


def _over(values: FloatArray, through: FloatArray) -> FloatArray:
    return np.divide(values, through, out=np.zeros_like(values), where=through > 0)
