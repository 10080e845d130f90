"""The ends of closed loops: the stations of memory nodes and of initiators, and what takes time there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.memory import Transactions


class Stations(NamedTuple):
    """The stations of the closed network: names, visits per transaction, mean times of service, their SCVs.

    Those of a memory node are passed in the order of their ``stage``; -1 stands for an initiator's.
    """

    names: list[str]
    visits: FloatArray
    service: FloatArray
    scv: FloatArray
    node: IntArray
    stage: IntArray


def stations(traffic: Transactions, table: FlowTable, per_transaction: FloatArray) -> Stations:
    """Return the stations that take time."""
    first, last = table.path_channel[table.path_start[:-1]], table.path_channel[table.path_start[1:] - 1]
    places = [(node, True) for node in traffic.channels]
    places += [(node, False) for node in traffic.initiators if traffic.outstanding > 1]
    ends = [(first, node, node, 2 if memory else -1) for node, memory in places]
    ejection = table.channel_kind.size - table.nodes
    ends += [(last, ejection + node, node, 0 if memory else -1) for node, memory in places]
    names, rows = [], []
    for channels, channel, node, stage in ends:
        mine = (channels == channel) * per_transaction
        visits = float(mine.sum())
        mean = float(mine @ table.flits) / visits
        square = float(mine @ table.flits.astype(float) ** 2) / visits
        names.append(table.channel_names[channel])
        rows.append((visits, mean, max(square / mean**2 - 1, 0.0), node, stage))
    if traffic.service_cycles > 0:
        scv = 1.0 if traffic.service_law == "exponential" else 0.0
        share = 1 / len(traffic.channels)
        names += [f"memory {node}" for node in traffic.channels]
        rows += [(share, traffic.service_cycles, scv, node, 1) for node in traffic.channels]
    visits_of, service, scvs, nodes, stages = np.array(rows).T
    return Stations(names, visits_of, service, scvs, nodes.astype(int), stages.astype(int))


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
