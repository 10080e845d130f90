"""The model beside the simulator: one network, a load curve, and closed loops."""

from __future__ import annotations

import numpy as np
import pytest

from qmodels.systems.noc import Noc
from qmodels.systems.noc_memory import transactions
from qmodels.systems.noc_traffic import uniform
from qmodels.systems.topologies import mesh, spidergon
from validate import compare

SMALL = {"packets": 1500, "cycles": 2000, "replications": 3}


def test_one_network():
    noc = Noc(topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=4, injection_rate=0.08)
    found = compare(noc, **SMALL)
    assert found["packet_latency"].unit == "cycles"
    assert found["throughput"].unit == "packets/cycle"
    assert abs(found["packet_latency"].relative_error) < 0.03
    assert {"packet_latency_p99", "data_throughput", "max_utilization"} <= set(found.rows)
    assert "packet_latency" in repr(found) and "cycles" in repr(found)


def test_a_load_curve():
    rates = np.array([0.02, 0.1, 0.6])
    noc = Noc(topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=4, injection_rate=rates)
    found = compare(noc, **SMALL)
    assert found.stable.tolist() == [True, True, False]
    # Of the busiest channel: 9 packets a cycle of 4 flits, a twelfth of all pairs on the middle links.
    assert found.loads[:2] == pytest.approx([0.08, 0.4], rel=0.02) and found.loads[2] == 1
    assert np.isinf(found["packet_latency"][2].model) and found.disputed == ()
    figure = found.plot("packet_latency", "throughput")
    assert [axes.get_ylabel() for axes in figure.axes[:1]] == ["packet latency [cycles]"]


def test_closed_loops():
    traffic = transactions(initiators=range(4), channels=[8, 9], think_cycles=100)
    found = compare(Noc(topology=spidergon(16), traffic=traffic), **SMALL)
    assert set(found.rows) == {"transaction_rate", "transaction_latency", "data_throughput"}
    assert found["transaction_rate"].unit == "transactions/cycle"
    assert abs(found["transaction_latency"].relative_error) < 0.05
