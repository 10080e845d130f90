"""Throughput of initiators that wait for their responses: a closed network of queues around a NoC."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from qmodels.checks import FloatArray, IntArray
from qmodels.networks.closed.amva import linearizer
from qmodels.noc.fixed_point import Load, Network, output_waits
from qmodels.noc.noc_answer import competing_flits
from qmodels.noc.turns import Turns, group_turns, hold_times
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.routes import LINK, may_deadlock
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.answer import Answer


class Stations(NamedTuple):
    """The stations of the closed network: names, visits per transaction, mean times of service, their SCVs.

    Those of a memory node are passed in the order of their ``stage``; -1 stands for an initiator's.
    ``times`` are the values and weights of a station's times, empty for exponential ones.
    """

    names: list[str]
    visits: FloatArray
    service: FloatArray
    scv: FloatArray
    node: IntArray
    stage: IntArray
    times: list[tuple[FloatArray, FloatArray]]


def stations(traffic: Transactions, turns: Turns) -> Stations:
    """Return the stations that take time; ``turns``: at one transaction per cycle."""
    table, per_transaction = turns.table, turns.flow_rate
    flits, number = np.unique(table.flits, return_inverse=True)
    hold = hold_times(table, turns.router, turns.channels[:, 2], flits)
    first, last = table.paths.first, table.paths.last
    places = [(node, True) for node in traffic.channels]
    places += [(node, False) for node in traffic.initiators if traffic.outstanding > 1]
    ends = [(first, node, node, 2 if memory else -1) for node, memory in places]
    ejection = table.channel_kind.size - table.nodes
    ends += [(last, ejection + node, node, 0 if memory else -1) for node, memory in places]
    names, rows, times = [], [], []
    for channels, channel, node, stage in ends:
        mine, held = (channels == channel) * per_transaction, hold[channel, number]
        visits = float(mine.sum())
        mean = float(mine @ held) / visits
        square = float(mine @ held**2) / visits
        names.append(table.channel_names[channel])
        rows.append((visits, mean, max(square / mean**2 - 1, 0.0), node, stage))
        times.append((held[mine > 0], mine[mine > 0] / visits))
    if traffic.service_cycles > 0:
        scv = 1.0 if traffic.service_law == "exponential" else 0.0
        share = 1 / len(traffic.channels)
        names += [f"memory {node}" for node in traffic.channels]
        rows += [(share, traffic.service_cycles, scv, node, 1) for node in traffic.channels]
        law = (np.full(1 - int(scv), traffic.service_cycles), np.ones(1 - int(scv)))
        times += [law for _ in traffic.channels]
    visits_of, service, scvs, nodes, stages = np.array(rows).T
    return Stations(names, visits_of, service, scvs, nodes.astype(int), stages.astype(int), times)


def whole(cycles: Any, law: str) -> Any:
    """Return the mean of times that end with a cycle, one at least, from those before. [cycles]."""
    return np.maximum(1.0, np.ceil(cycles) if law == "fixed" else np.add(cycles, 0.5))


def memory_time(traffic: Transactions, table: FlowTable, per_transaction: FloatArray) -> float:
    """Return the time from the last flit of a request to the first of its answer, if nothing waits."""
    asked = np.flatnonzero(table.reply >= 0)
    # With cut-through, what came before the last flit, and what leaves before the last one.
    first, last = (traffic.cut_through * (table.flits[each] - 1.0) for each in (asked, table.reply[asked]))
    done = np.maximum(0.0, traffic.service_cycles - first)
    answer = np.maximum(-first, done - last) + traffic.latency_cycles
    return float(per_transaction[asked] @ whole(answer, traffic.service_law))


def in_a_row(ends: Stations, waits: FloatArray) -> FloatArray:
    """Share of the waits in the stations of a memory node that is left if they are in a row."""
    left = waits.copy()
    for node in np.unique(ends.node):
        row = np.flatnonzero((ends.node == node) & (ends.stage >= 0))
        row = row[np.argsort(ends.stage[row])]
        most = np.maximum.accumulate(waits[row])
        left[row] = np.diff(most, prepend=0.0)
    return left


def finite_source_rate(*, customers: float, away: float, times: tuple[FloatArray, FloatArray]) -> float:
    r"""Return the throughput of the M/G/1//N queue. [customers/cycle].

    Customers are away for exponential times with mean 1/lambda. A busy period serves

    .. math:: M = \sum_{n=0}^{N-1} \binom{N-1}{n} \prod_{j=1}^{n} \left(\frac{1}{B^*(j\lambda)} - 1\right)

    of them on average, and an idle one takes :math:`1/(N\lambda)` [1]_. Exact; between whole numbers of
    customers it is interpolated.

    References
    ----------
    .. [1] L. Takacs, *Introduction to the Theory of Queues*, Oxford University Press, 1962, ch. 5.
    """
    values, weights = times
    floor, share = divmod(max(customers, 1.0), 1.0)
    n = np.arange(floor + 1)
    transform = np.clip(np.exp(-np.outer(n[1:] / away, values)) @ weights, 1e-300, 1 - 1e-16)
    logs = np.concatenate([[0.0], np.cumsum(np.log(1 / transform - 1))])

    def rate(count: int) -> float:
        terms = gammaln(count) - gammaln(n[:count] + 1) - gammaln(count - n[:count]) + logs[:count]
        served = np.exp(-terms.max()) / np.exp(terms - terms.max()).sum()
        return float(1 / (away * served / count + values @ weights))

    low = rate(int(floor))
    return low + share * (rate(int(floor) + 1) - low) if share else low


def finite_source_waits(
    ends: Stations, *, customers: int, rate: float, cycle: float, think: float, others: float
) -> FloatArray:
    """Return the wait of a visit to each station of memory nodes that are alike, if it were alone in its row.

    Customers come back to a node after thinking and visits to the others. What they are away for a fixed time
    keeps ``rate`` times as many from the queue, whose source is the rest. [cycles].

    ``rate``: of transactions; ``cycle``: of a transaction that waits at no memory node; ``others``: its waits
    at a node.
    """
    nodes = len(np.unique(ends.node))
    row = float(ends.visits @ ends.service)
    waits = np.zeros(len(ends.names))
    for k in np.flatnonzero(ends.node == ends.node[0]):
        service = ends.service[k]
        away = nodes * cycle - service + (nodes - 1) * others
        fixed = nodes * (cycle - think - row) + row - service
        inside = max(1.0, customers - rate / nodes * fixed)
        served = finite_source_rate(customers=inside, away=away - fixed, times=ends.times[k])
        like = (ends.stage == ends.stage[k]) & (ends.service == service)
        waits[like] = max(0.0, customers / served - away - service)
    return waits


def waits_behind_requests(ends: Stations, rate: float) -> FloatArray:
    """Return a transaction's waits at controllers for one whose request was shorter than its service.

    With requests of several lengths those that follow one another come to a controller that is still busy,
    whether or not there is a queue at the ejection channel. [cycles].
    """
    waits = np.zeros(len(ends.names))
    for k in np.flatnonzero(ends.stage == 1):
        (before,) = np.flatnonzero((ends.stage == 0) & (ends.node == ends.node[k]))
        values, weights = ends.times[before]
        busy = min(1.0, rate * ends.visits[before] * ends.service[before])
        waits[k] = ends.visits[k] * busy * (np.maximum(ends.service[k] - values, 0.0) @ weights)
    return waits


PACKET_TIMES = ("packet_latency", "source_queue_delay", "traversal_delay")
_TOLERANCE, _FINER = 1e-5, 0.1
_ROUNDS = 300


def closed_loop(noc: Noc) -> Answer:
    r"""Return throughput and latency of a network whose traffic is `Transactions`.

    A closed loop is never overloaded; routes on which packets may wait for each other in a circle are named
    in ``deadlock``; the numbers hold as long as they never do. Of the latency, ``alone`` is what a
    transaction takes that meets no other. Stations are the channels of network interfaces and the memory
    controllers.

    The stations of the closed network are the ejection channel, the controller and the injection
    channel of every memory node, and those of the initiators where these have several transactions
    under way; a packet holds a channel until others can go on. Thinking, the fixed
    latency of the memory and the way through the routers are delays. With N transactions under way
    and mean service demands :math:`D_i`, Linearizer gives the throughput *X* [1]_. In the links
    between routers packets wait as for the outputs of `qmodels.noc.solve_noc` (its step 1), at the rate that
    :math:`(N-1)/N` of the transactions cause, which adds to the delays; late credits make packets keep a link
    for longer. Rate and wait follow from each other.

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
    block others). The bound :math:`X \le \min(N/(Z + \sum D_i), 1/\max D_i)`, links among the
    :math:`D_i` of the maximum, is exact where credits are not late.

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

    turns = group_turns(table, noc.router, rate=per_transaction)
    think = float(whole(traffic.think_cycles, traffic.think_law))
    way = float(turns.zero_load @ per_transaction)
    alone = way + memory_time(traffic, table, per_transaction)
    ends, links = stations(traffic, turns), _Links(turns)
    demand = ends.visits * ends.service
    idle = think + alone
    bound = population / idle
    if population > 1:
        bound = min(bound, 1 / max(float(demand.max()), links.fullest))

    # A station serves the flits that pass anyway: the delays hold only the rest of the way.
    rate, wait, waits = _settled(noc, ends, links, idle - float(demand.sum()), bound)
    latency = population / rate - think
    parts = {"alone": alone, "waiting in the network": wait, "waiting at the ends": latency - alone - wait}
    packet = _packet_times(ends.names, waits, way + wait, float(per_transaction.sum()))
    busy = dict(zip(ends.names, (rate * demand).tolist(), strict=True)) | links.busy(rate)
    # One transaction has nobody to wait for.
    deadlock = noc.find_deadlock() or () if population > 1 else ()
    return _answer(noc, rate, parts, packet, bound, busy, deadlock)


def _settled(
    noc: Noc, ends: Stations, links: _Links, rest: float, bound: float
) -> tuple[float, float, FloatArray]:
    """Return the rate, a transaction's wait before links, and those at its ends, once they agree."""
    traffic = noc.traffic
    assert isinstance(traffic, Transactions)
    population = len(traffic.initiators) * traffic.outstanding
    alike = traffic.outstanding == 1 < population and traffic.service_cycles > 0
    exact = alike and (traffic.service_law, traffic.think_law) == ("fixed", "exponential")
    think, cycle = (
        float(whole(traffic.think_cycles, traffic.think_law)),
        rest + float(ends.visits @ ends.service),
    )
    rate, spared, waits = bound, 0.0, np.zeros(len(ends.names))

    def settle_ends(wait: float) -> None:
        """Find the rate, and the waits at the ends, for a wait before links."""
        nonlocal rate, spared, waits
        change = 0.0
        for turn in range(_ROUNDS):
            before = rate
            if exact:
                others = float(waits.sum())
                direct = ends.visits * finite_source_waits(
                    ends, customers=population, rate=rate, cycle=cycle + wait, think=think, others=others
                )
                row = np.maximum(in_a_row(ends, direct), waits_behind_requests(ends, rate))
                change = float(np.abs(row - waits).sum())
                # Near saturation whole steps go to and fro.
                waits = waits + (row - waits) / (2 + turn / 8)
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
                direct = ends.visits * np.maximum(net.mean_response_time - ends.service, 0.0)
                waits = in_a_row(ends, direct) if traffic.service_law == "fixed" else direct
                spared = float((direct - waits).sum())
            if max(abs(rate / before - 1), change / cycle) <= _FINER * _TOLERANCE:
                return
        raise RuntimeError(
            f"closed loop did not settle in {_ROUNDS} rounds (last change {abs(rate / before - 1):.1e})"
        )

    @cache
    def missing(wait: float) -> float:
        settle_ends(wait)
        return links.wait((population - 1) / population * rate) - wait

    # The longer the wait, the lower the rate and the wait at that rate: without it both are highest.
    wait = missing(0.0)
    if missing(wait) < 0:
        wait = float(brentq(missing, 0.0, wait, xtol=_TOLERANCE * cycle))
    settle_ends(wait)
    return rate, wait, waits


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
    flits = table.paths.by_channel(per_transaction * table.flits, len(table.channel_names))
    return float((flits * table.channel_cycles_per_flit).max())


class _Links:
    """Links between routers, and what packets of a transaction wait for them; ``turns``: at one per cycle."""

    def __init__(self, turns: Turns) -> None:
        onto = np.flatnonzero(turns.table.channel_kind[turns.sink] == LINK)
        self.names, self.load = turns.table.channel_names, np.zeros(len(turns.channels))
        np.add.at(self.load, turns.sink[onto], turns.work[onto])
        self.fullest = float(self.load.max(initial=0.0))
        rows = {name: getattr(turns, name)[onto] for name in Network._fields if name != "channels"}
        rows["pair"] = np.unique(rows["pair"], return_inverse=True)[1]
        self.net = Network(**rows, channels=turns.channels)

    def wait(self, rate: float) -> float:
        """Return a transaction's wait before links."""
        net, pairs = self.net, int(self.net.pair.max(initial=-1)) + 1
        busy, second, even = rate * net.work, rate * net.square, np.ones(len(self.load))
        load = Load(
            rate=rate * net.packets, second=second, factor=np.ones(busy.size),
            from_pair=np.bincount(net.pair, busy, minlength=pairs),
            pair_second=np.bincount(net.pair, second, minlength=pairs),
            lam=rate * net.channels[:, 0], rho=rate * self.load, smooth=even, alone=even,
        )  # fmt: skip
        return float(net.packets @ output_waits(net, load, busy))

    def busy(self, rate: float) -> dict[str, float]:
        """Return the part of the time for which each link is busy."""
        return {self.names[k]: float(rate * self.load[k]) for k in np.flatnonzero(self.load)}
