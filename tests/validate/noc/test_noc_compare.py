"""The model beside the simulator: one network, a load curve, and closed loops."""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qmodels import Noc, mesh, solve, spidergon
from qmodels.noc import Router, transactions, uniform
from validate import compare, read_booksim

SMALL = {"packets": 1500, "cycles": 2000, "replications": 3}


def test_one_network():
    noc = Noc(topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=4, injection_rate=0.08)
    found = compare(noc, **SMALL)
    assert found["packet_latency"].unit == "ns"
    assert found["delivered_rate"].unit == "1/ns"
    assert abs(found["packet_latency"].relative_error) < 0.03
    assert {"packet_latency_p99", "bandwidth", "max_utilization"} <= set(found.rows)
    assert "packet_latency" in repr(found) and "ns" in repr(found)


def test_a_load_curve():
    rates = np.array([0.02, 0.1, 0.6])
    noc = Noc(topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=4, injection_rate=rates)
    found = compare(noc, **SMALL)
    assert found.stable.tolist() == [True, True, False]
    most = solve(noc).saturation_rate
    assert found.loads == pytest.approx(rates / most, rel=1e-6) and found.loads[2] > 1
    assert np.isinf(found["packet_latency"][2].model) and found.disputed == ()
    figure = found.plot("packet_latency", "delivered_rate")
    assert [axes.get_ylabel() for axes in figure.axes[:1]] == ["packet latency [ns]"]


def test_closed_loops():
    traffic = transactions(initiators=range(4), channels=[8, 9], think_cycles=100)
    found = compare(Noc(topology=spidergon(16), traffic=traffic), **SMALL)
    of_packets = {"packet_latency", "source_queue_delay", "traversal_delay", "delivered_rate"}
    of_transactions = {"transaction_rate", "transaction_latency"}
    assert set(found.rows) == of_packets | of_transactions | {"bandwidth", "max_utilization"}
    assert found["transaction_rate"].unit == "1/ns"
    assert abs(found["transaction_latency"].relative_error) < 0.05


LOG = """BEGIN Configuration File: mesh.cfg
topology = mesh; k = 4; n = 2; num_vcs = 2; vc_buf_size = 8; packet_size = 5;
END Configuration File: mesh.cfg
OVERRIDE Parameter: injection_rate={injection_rate}
====== Overall Traffic Statistics ======
====== Traffic class 0 ======
Packet latency average = {latency} (1 samples)
Accepted packet rate average = {injection_rate} (1 samples)
Total run time 1.5
"""


@pytest.fixture
def booksim_runs(tmp_path):
    """Return runs of BookSim2 on a mesh, read from logs that say what `booksim_latency.csv` keeps of them."""
    with Path(__file__).with_name("booksim_latency.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["network"] == "mesh 4x4" and row["flits"] == "5"]
    rows = [row for row in rows if row["virtual_channels"] == "2" and row["hold_switch_for_packet"] == "1"]
    rows = [row for row in rows if float(row["load"]) < 0.9]
    for k, row in enumerate(rows):
        (tmp_path / f"{k}.log").write_text(LOG.format(**row), encoding="utf-8")
    return read_booksim(str(tmp_path / "*.log"))


MESH = Noc(
    topology=mesh(4, 4),
    router=Router(virtual_channels=2, buffer_flits=8),
    traffic=uniform(nodes=16, self_traffic=True),
    flits_per_packet=5,
)


def test_runs_of_booksim_beside_a_model_of_their_settings(booksim_runs):
    def model(injection_rate, **settings):
        return solve(replace(MESH, injection_rate=injection_rate))

    found = compare(booksim_runs, model=model)
    assert len(found) == 4 and found["packet_latency"][0].unit == "ns"
    assert max(abs(one.relative_error) for one in found["packet_latency"][:3]) < 0.02


def test_cycles_of_runs_are_laid_beside_a_model_with_a_clock(booksim_runs):
    slow, fast = (compare(replace(MESH, clock_ghz=clock), reference=booksim_runs) for clock in (1.0, 2.0))
    for one, other in zip(slow["packet_latency"], fast["packet_latency"], strict=True):
        assert other.model == pytest.approx(one.model / 2)
        assert other.relative_error == pytest.approx(one.relative_error)


def test_a_load_curve_beside_runs(booksim_runs):
    rates = booksim_runs.setting("injection_rate")
    curve = replace(MESH, injection_rate=rates[::-1])
    by_rate = compare(curve, reference=booksim_runs)
    alone = compare(MESH, reference=booksim_runs)
    assert [one.error for one in by_rate["packet_latency"]] == [one.error for one in alone["packet_latency"]]
    assert max(abs(one.relative_error) for one in by_rate["packet_latency"][:3]) < 0.02
    # Runs that do not say their rate are taken in order.
    unsaid = replace(booksim_runs, runs=tuple(replace(run, settings={}) for run in booksim_runs))
    in_order = compare(replace(MESH, injection_rate=rates), reference=unsaid)
    assert [one.error for one in in_order["packet_latency"]] == [one.error for one in alone["packet_latency"]]
    with pytest.raises(ValueError, match="runs must be made at the points .* injection_rate = 0"):
        compare(replace(MESH, injection_rate=rates[1:]), reference=booksim_runs)
