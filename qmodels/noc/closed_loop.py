"""Throughput of initiators that wait for their responses: a closed network of queues around a NoC."""

from __future__ import annotations

from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.networks.closed.amva import linearizer
from qmodels.noc.closed_ends import (
    Stations,
    finite_source_waits,
    in_a_row,
    memory_time,
    stations,
    waits_behind_requests,
    whole,
)
from qmodels.noc.noc_answer import competing_flits
from qmodels.noc.turns import group_turns
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.routes import LINK, may_deadlock
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.answer import Answer

PACKET_TIMES = ("packet_latency", "source_queue_delay", "traversal_delay")
_TOLERANCE = 1e-5
_ROUNDS = 300


def closed_loop(noc: Noc) -> Answer:
    r"""Return throughput and latency of a network whose traffic is `Transactions`.

    A closed loop is never overloaded; routes on which packets may wait for each other in a circle are named
    in ``deadlock``; the numbers hold as long as they never do. Of the latency, ``alone`` is what a
    transaction takes that meets no other. Stations are the channels of network interfaces and the memory
    controllers.

    The stations of the closed network are the ejection channel, the controller and the injection
    channel of every memory node, and those of the initiators where these have several transactions
    under way; a packet holds a channel for as many cycles as it has flits. Thinking, the fixed
    latency of the memory and the way through the routers are delays. With N transactions under way
    and mean service demands :math:`D_i`, Linearizer gives the throughput *X* [1]_. In the links
    between routers packets wait for those that come from other inputs *k* of the same router,

    .. math:: w_{ab} = \frac{N-1}{N}\,\frac{\sum_{k \ne a} \lambda_{kb}\,\overline{L^2}_{kb}}
              {2\,(1 - \sum_{k \ne a} \lambda_{kb} \overline{L}_{kb})},

    which adds to the delays at rates that follow from *X*: both are repeated until they agree.

    Where the service is fixed, a memory node is a row of stations - ejection channel, controller, injection
    channel - that take their times with little change from packet to packet, and packets leave one as far
    apart as its times are. In such a row packets wait in all for as long as they would in its slowest
    station alone [2]_: what Linearizer adds beyond the longest of the three waits is taken off the delays.
    With an exponential service the waits add up, as in a product form. With exponential thinking too, one
    transaction an initiator, each station's wait is that of the M/G/1//N queue (`finite_source_rate`): a
    memory that is nearly full idles now and then, which Linearizer does not see.

    Whatever comes in is answered in a whole cycle, the next one at the earliest: fixed times are rounded
    up, and drawn ones take half a cycle more.

    Exact for one transaction at a time with fixed times. Approximation otherwise: initiators are taken to
    be alike, and a network interface's queue to hold what waits for the memory (in the network it would
    block others). The bound :math:`X \le \min(N/(Z + \sum D_i), 1/\max D_i)` is exact.

    References
    ----------
    .. [1] K. M. Chandy, D. Neuse, "Linearizer: a heuristic algorithm for queueing network models of
       computing systems", *Communications of the ACM* 25(2), 1982.
    .. [2] H. D. Friedman, "Reduction methods for tandem queuing systems", *Operations Research* 13(1), 1965.
    """
    traffic = noc.traffic
    if not isinstance(traffic, Transactions):
        raise ValueError(f"traffic must be Transactions, got {type(traffic).__name__}")
    table = noc.flow_table()
    per_transaction = table.per_transaction()
    population = len(traffic.initiators) * traffic.outstanding

    zero_load = group_turns(table, noc.router, rate=per_transaction).zero_load
    think = float(whole(traffic.think_cycles, traffic.think_law))
    alone = float(zero_load @ per_transaction) + memory_time(traffic, table, per_transaction)
    ends = stations(traffic, table, per_transaction)
    demand = ends.visits * ends.service
    idle = think + alone
    bound = population / idle if population == 1 else min(population / idle, 1 / float(demand.max()))

    # A station serves the flits that pass anyway: the delays hold only the rest of the way.
    rate, wait, waits = _settled(noc, table, ends, idle - float(demand.sum()), bound)
    latency = population / rate - think
    parts = {"alone": alone, "waiting in the network": wait, "waiting at the ends": latency - alone - wait}
    packet = _packet_times(
        ends.names, waits, float(zero_load @ per_transaction) + wait, float(per_transaction.sum())
    )
    busy = dict(zip(ends.names, (rate * demand).tolist(), strict=True))
    # One transaction has nobody to wait for.
    deadlock = noc.find_deadlock() or () if population > 1 else ()
    return _answer(noc, rate, parts, packet, bound, busy, deadlock)


def _settled(
    noc: Noc, table: FlowTable, ends: Stations, rest: float, bound: float
) -> tuple[float, float, FloatArray]:
    """Return the rate, a transaction's wait before links, and those at its ends, once they agree."""
    traffic = noc.traffic
    assert isinstance(traffic, Transactions)
    per_transaction = table.per_transaction()
    population = len(traffic.initiators) * traffic.outstanding
    turns = _turns(table)
    alike = traffic.outstanding == 1 < population and traffic.service_cycles > 0
    exact = alike and (traffic.service_law, traffic.think_law) == ("fixed", "exponential")
    think, cycle = (
        float(whole(traffic.think_cycles, traffic.think_law)),
        rest + float(ends.visits @ ends.service),
    )
    rate, spared, change, waits, wait = bound, 0.0, 0.0, np.zeros(len(ends.names)), 0.0
    for turn in range(_ROUNDS):
        linked = (population - 1) / population * _link_waits(table, turns, rate * per_transaction) / rate
        # Near saturation whole steps go to and fro.
        step = 1 / (2 + turn / 8) if exact else 1.0
        wait, before = wait + step * (linked - wait), rate
        if exact:
            others = float(waits.sum())
            direct = ends.visits * finite_source_waits(
                ends, customers=population, rate=rate, cycle=cycle + wait, think=think, others=others
            )
            row = np.maximum(in_a_row(ends, direct), waits_behind_requests(ends, rate))
            change = float(np.abs(row - waits).sum()) + abs(linked - wait)
            waits = waits + step * (row - waits)
            rate = min(population / (cycle + wait + float(waits.sum())), bound)
        else:
            net = linearizer(
                population=population,
                mean_service_time=ends.service,
                visits=ends.visits,
                think_time=max(0.0, rest + wait - spared),
                discipline="fcfs",
                service_scv=ends.scv,
            )
            rate = min(float(net.system_throughput), bound)
            direct = ends.visits * (net.mean_response_time - ends.service)
            waits = in_a_row(ends, direct) if traffic.service_law == "fixed" else direct
            spared = float((direct - waits).sum())
        if abs(rate - before) <= _TOLERANCE * before and change <= _TOLERANCE * cycle:
            return rate, wait, waits
    raise RuntimeError(
        f"closed loop did not settle in {_ROUNDS} rounds (last change {abs(rate / before - 1):.1e})"
    )


def _packet_times(names: list[str], waits: FloatArray, on_the_way: float, packets: float) -> dict[str, float]:
    """Return the mean times of a packet from those of a transaction, at stations and on the way. [cycles]."""
    at = {
        place: sum(wait for name, wait in zip(names, waits.tolist(), strict=True) if name.startswith(place))
        for place in ("inject", "eject")
    }
    traversal = (on_the_way + at["eject"]) / packets
    source = at["inject"] / packets
    return dict(zip(PACKET_TIMES, (source + traversal, source, traversal), strict=True))


def _answer(
    noc: Noc,
    rate: float,
    parts: dict[str, float],
    packet: dict[str, float],
    bound: float,
    utilization: dict[str, float],
    deadlock: tuple[str, ...],
) -> Answer:
    """Return the answer; the rate is in transactions per cycle, times are in cycles."""
    traffic, clock = noc.traffic, noc.clock_ghz
    assert isinstance(traffic, Transactions)
    table = noc.flow_table()
    per_transaction = table.per_transaction()
    return Answer(
        model="closed loop around a network-on-chip",
        spec=noc,
        metrics={
            "transaction_latency": sum(parts.values()) / clock,
            "transaction_rate": rate * clock,
            **{name: cycles / clock for name, cycles in packet.items()},
            "delivered_rate": rate * float(per_transaction.sum()) * clock,
            "bandwidth": rate * (traffic.request_bytes + traffic.response_bytes) * clock,
            "max_utilization": rate * _largest_load(table, per_transaction),
        },
        latency_parts={name: cycles / clock for name, cycles in parts.items()},
        utilization=utilization,
        traffic_intensity=utilization,
        bottleneck=max(utilization, key=lambda name: utilization[name], default=""),
        doubts=may_deadlock(deadlock) | competing_flits(noc.router, table.flits),
        details={"upper_bound": bound * clock, "deadlock": deadlock},
    )


def _largest_load(table: FlowTable, per_transaction: FloatArray) -> float:
    """Time for which a transaction keeps its most used channel busy. [cycles]."""
    flow = np.repeat(np.arange(per_transaction.size), np.diff(table.path_start))
    cycles = (per_transaction * table.flits)[flow] * table.channel_cycles_per_flit[table.path_channel]
    return float(np.bincount(table.path_channel, cycles).max())


def _turns(table: FlowTable) -> tuple[Any, Any, Any]:
    """Return flow, channel before and link of every hop onto a link between routers."""
    hops = np.diff(table.path_start)
    flow = np.repeat(np.arange(hops.size), hops)
    onto = np.flatnonzero(table.channel_kind[table.path_channel] == LINK)
    return flow[onto], table.path_channel[onto - 1], table.path_channel[onto]


def _link_waits(table: FlowTable, turns: tuple[Any, Any, Any], rate: FloatArray) -> float:
    """Return the waits before links of all packets together. [packets/cycle x cycles]."""
    flow, before, link = turns
    if not flow.size:
        return 0.0
    size = len(table.channel_names)
    pair, place = np.unique(before.astype(np.int64) * size + link, return_inverse=True)
    link_of = pair % size
    cycles = table.flits[flow] * table.channel_cycles_per_flit[link]
    packets = np.bincount(place, weights=rate[flow])
    load = np.bincount(place, weights=rate[flow] * cycles)
    square = np.bincount(place, weights=rate[flow] * cycles.astype(float) ** 2)
    others_load = np.bincount(link_of, weights=load, minlength=size)[link_of] - load
    others_square = np.bincount(link_of, weights=square, minlength=size)[link_of] - square
    return float(packets @ (others_square / (2 * np.maximum(1 - others_load, 0.05))))
