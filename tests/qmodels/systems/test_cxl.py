"""The pool behind a CXL switch: what its links carry and how long they take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
from qmodels.noc import cxl_pool
from qmodels.systems.noc.patterns import RateMatrix
from validate import simulate


def one_flow(pool, source, target, rate, packet_bytes):
    rates = np.zeros((pool.topology.nodes,) * 2)
    rates[source, target] = rate
    matrix = RateMatrix(rates=tuple(map(tuple, rates.tolist())))
    return replace(pool, traffic=matrix, injection_rate=None, packet_bytes=packet_bytes)


@pytest.mark.parametrize(("attach", "switch", "lanes"), [(80, 90, 8), (70, 90, 16), (90, 115, 4)])
def test_an_idle_access_takes_what_was_published(attach, switch, lanes):
    pool = cxl_pool(3, 2, lanes=lanes, attach_ns=attach, switch_ns=switch)
    there = qm.solve(one_flow(pool, 1, 4, 1e-6, 0)).zero_load_latency
    back = qm.solve(one_flow(pool, 4, 1, 1e-6, 64)).zero_load_latency
    # An answer has four slots more than its header.
    both = there + back - 4 / pool.clock_ghz
    assert both == pytest.approx(attach + switch, abs=2 / pool.clock_ghz)


def test_every_host_reaches_every_device_through_the_switch():
    pool = cxl_pool(5, 3)
    assert all(pool.topology.route(h, d) == (h, 8, d) for h in range(5) for d in range(5, 8))
    assert len(pool.topology.links) == 16
    # Eight lanes of 32 GT/s are 32 GB/s each way, of which four slots in 68 bytes are data and headers.
    assert pool.clock_ghz * pool.link_width == pytest.approx(32 * 64 / 68)
    assert cxl_pool(5, 3, gigatransfers=16).clock_ghz == pytest.approx(pool.clock_ghz / 2)
    assert cxl_pool(2, 1, lanes=16, header_bytes=32).flits(64) == 6


def test_a_link_can_be_full_although_it_is_long():
    pool = one_flow(cxl_pool(2, 1), 0, 2, 0.19, 64)
    found = simulate(pool, replications=4)
    assert found.stable and found.max_utilization.best == pytest.approx(0.95, abs=0.03)
