"""Throughput of initiators that wait for their responses: a closed network of queues around a NoC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels.checks import FloatArray
from qmodels.error_map import MeasuredError
from qmodels.networks.closed.amva import linearizer
from qmodels.noc.turns import group_turns
from qmodels.systems.noc.flows import LINK, FlowTable
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import NOC_METRICS, Noc

_TOLERANCE = 1e-5
_ROUNDS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosedLoop:
    """Steady state of closed loops of transactions.

    Parameters
    ----------
    transaction_rate : float
        Transactions completed by all initiators. [transactions/cycle]
    transaction_latency : float
        From a request's injection until its response is in. [cycles]
    data_throughput : float
        Payload of requests and responses. [GB/s]
    upper_bound : float
        No closed loop with these times has a higher transaction rate. [transactions/cycle]
    latency_parts : mapping of str to float
        Where the latency goes: ``alone`` is what a transaction takes that meets no other. [cycles]
    utilization : mapping of str to float
        Busy fraction of the stations: channels of network interfaces and memory controllers.
    deadlock : tuple of str
        Virtual channels in which packets may wait for each other in a circle, empty without one. With
        one, several transactions end in a deadlock sooner or later: the rate is 0, the latency ``inf``.
    """

    transaction_rate: float
    transaction_latency: float
    data_throughput: float
    upper_bound: float
    latency_parts: Mapping[str, float]
    utilization: Mapping[str, float]
    deadlock: tuple[str, ...] = ()

    error: ClassVar[Mapping[str, MeasuredError]] = {}
    """Nothing was measured."""

    @property
    def stable(self) -> bool:
        """Whether the loops go on for ever: a closed loop is never overloaded, but may deadlock."""
        return not self.deadlock

    @property
    def bottleneck(self) -> str:
        """The busiest station."""
        return max(self.utilization, key=lambda name: self.utilization[name])

    @property
    def metrics(self) -> dict[str, float]:
        """Values by the names that the simulator uses."""
        names = ("transaction_rate", "transaction_latency", "data_throughput")
        return {name: float(getattr(self, name)) for name in names}

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per metric: its name, unit and value."""
        return [{"metric": n, "unit": NOC_METRICS[n].unit, "value": v} for n, v in self.metrics.items()]

    def to_pandas(self) -> Any:
        """Return the rows as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = ["Closed loop around a network-on-chip"]
        lines += [f"  {row['metric']:<22} {row['value']:>12.5g} {row['unit']}" for row in self.rows()]
        lines += [f"    {name:<20} {value:>12.5g} cycles" for name, value in self.latency_parts.items()]
        lines.append(f"  upper bound            {self.upper_bound:>12.5g} transactions/cycle")
        lines.append(f"  busiest: {self.bottleneck} ({self.utilization[self.bottleneck]:.3f})")
        if self.deadlock:
            number, first = len(self.deadlock), self.deadlock[0]
            lines.append(f"  packets may deadlock: {number} virtual channels in a circle from {first}")
        return "\n".join(lines)


def closed_loop(noc: Noc) -> ClosedLoop:
    r"""Return throughput and latency of a network whose traffic is `Transactions`.

    Parameters
    ----------
    noc : Noc
        A network with closed loops.

    Returns
    -------
    ClosedLoop
        A closed loop is never overloaded; routes on which packets may wait for each other in a circle
        are named in ``deadlock``.

    Raises
    ------
    ValueError
        If the traffic is not `Transactions`.
    RuntimeError
        If the iteration does not settle.

    Notes
    -----
    The stations of the closed network are the ejection channel, the controller and the injection
    channel of every memory node, and those of the initiators where these have several transactions
    under way; a packet holds a channel for as many cycles as it has flits. Thinking, the fixed
    latency of the memory and the way through the routers are delays. With N transactions under way
    and mean service demands :math:`D_i`, Linearizer gives the throughput *X* [1]_. In the links
    between routers packets wait for those that come from other inputs *k* of the same router,

    .. math:: w_{ab} = \frac{N-1}{N}\,\frac{\sum_{k \ne a} \lambda_{kb}\,\overline{L^2}_{kb}}
              {2\,(1 - \sum_{k \ne a} \lambda_{kb} \overline{L}_{kb})},

    which adds to the delays at rates that follow from *X*: both are repeated until they agree.

    Whatever comes in is answered in the next cycle at the earliest, which is the least thinking and the
    least time of a memory.

    Exact for one transaction at a time. Approximation otherwise: initiators are taken to be alike,
    and a network interface's queue to hold what waits for the memory (in the network it would block
    others). The bound :math:`X \le \min(N/(Z + \sum D_i), 1/\max D_i)` is exact.

    References
    ----------
    .. [1] K. M. Chandy, D. Neuse, "Linearizer: a heuristic algorithm for queueing network models of
       computing systems", *Communications of the ACM* 25(2), 1982.

    Examples
    --------
    Seven engines on a Spidergon of 16 nodes share two memory channels:

    >>> from qmodels.systems.noc.memory import transactions
    >>> from qmodels.systems.noc.topologies import spidergon
    >>> dma = transactions(initiators=range(7), channels=[8, 9], think_cycles=60, latency_cycles=30)
    >>> loop = closed_loop(Noc(topology=spidergon(16), traffic=dma))
    >>> round(loop.transaction_latency), loop.bottleneck
    (71, 'eject 8')
    """
    traffic = noc.traffic
    if not isinstance(traffic, Transactions):
        raise ValueError(f"traffic must be Transactions, got {type(traffic).__name__}")
    table = noc.flow_table()
    per_transaction = table.per_transaction()
    population = len(traffic.initiators) * traffic.outstanding

    zero_load = group_turns(table, noc.router, rate=per_transaction).zero_load
    # What comes in is answered in the next cycle at the earliest.
    think = max(1.0, traffic.think_cycles)
    alone = float(zero_load @ per_transaction) + max(1.0, traffic.latency_cycles + traffic.service_cycles)
    names, visits, service, scv = _stations(traffic, table, per_transaction)
    demand = visits * service
    idle = think + alone
    bound = population / idle if population == 1 else min(population / idle, 1 / float(demand.max()))

    deadlock = noc.find_deadlock() or () if population > 1 else ()
    if deadlock:
        return ClosedLoop(
            transaction_rate=0.0,
            transaction_latency=np.inf,
            data_throughput=0.0,
            upper_bound=bound,
            latency_parts={"alone": alone, "deadlock": np.inf},
            utilization=dict.fromkeys(names, 0.0),
            deadlock=deadlock,
        )
    turns = _turns(table)
    # A station serves the flits that pass anyway: the delays hold only the rest of the way.
    rest = idle - float(demand.sum())
    rate = bound
    for _ in range(_ROUNDS):
        wait = (population - 1) / population * _link_waits(table, turns, rate * per_transaction) / rate
        net = linearizer(
            population=population,
            mean_service_time=service,
            visits=visits,
            think_time=max(0.0, rest + wait),
            discipline="fcfs",
            service_scv=scv,
        )
        before, rate = rate, min(float(net.system_throughput), bound)
        if abs(rate - before) <= _TOLERANCE * before:
            break
    else:
        raise RuntimeError(
            f"closed loop did not settle in {_ROUNDS} rounds (last change {abs(rate / before - 1):.1e})"
        )
    latency = population / rate - think
    payload = traffic.request_bytes + traffic.response_bytes
    return ClosedLoop(
        transaction_rate=rate,
        transaction_latency=latency,
        data_throughput=rate * payload * noc.clock_ghz,
        upper_bound=bound,
        latency_parts={
            "alone": alone,
            "waiting in the network": wait,
            "waiting at the ends": latency - alone - wait,
        },
        utilization=dict(zip(names, (rate * demand).tolist(), strict=True)),
    )


def _stations(
    traffic: Transactions, table: FlowTable, per_transaction: FloatArray
) -> tuple[list[str], FloatArray, FloatArray, FloatArray]:
    """Return names, visits per transaction, mean service times and their SCVs."""
    first, last = table.path_channel[table.path_start[:-1]], table.path_channel[table.path_start[1:] - 1]
    nodes = traffic.channels + (traffic.initiators if traffic.outstanding > 1 else ())
    ends = [(first, node) for node in nodes] + [
        (last, table.channel_kind.size - table.nodes + node) for node in nodes
    ]
    names, rows = [], []
    for channels, channel in ends:
        mine = (channels == channel) * per_transaction
        visits = float(mine.sum())
        mean = float(mine @ table.flits) / visits
        square = float(mine @ table.flits.astype(float) ** 2) / visits
        names.append(table.channel_names[channel])
        rows.append((visits, mean, square / mean**2 - 1))
    for node in traffic.channels:
        names.append(f"memory {node}")
        scv = 1.0 if traffic.service_law == "exponential" else 0.0
        rows.append((1 / len(traffic.channels), traffic.service_cycles, scv))
    visits_of, service, scvs = np.array(rows).T
    busy = service > 0
    return (
        [n for n, b in zip(names, busy, strict=True) if b],
        visits_of[busy],
        service[busy],
        np.maximum(scvs[busy], 0),
    )


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
