"""The ends of closed loops: the stations of memory nodes and of initiators, and what takes time there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from qmodels.checks import FloatArray, IntArray
from qmodels.noc.turns import Turns, hold_times
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.memory import Transactions


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
    first, last = table.path_channel[table.path_start[:-1]], table.path_channel[table.path_start[1:] - 1]
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
