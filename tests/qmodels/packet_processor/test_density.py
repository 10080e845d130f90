"""How dense packets lie around a packet, against pairs counted in realisations; what it does to conflicts."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from cases.joint_errors.accuracy import FILE, cases
from qmodels import solve, traffic
from qmodels.packet_processor.trials.density import density
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.workload import Workload

WRITES = "write_conflict_probability"


def test_poisson_packets_are_as_dense_everywhere() -> None:
    found = density(Workload())
    time = np.array([0.01, 1.0, 100.0])
    assert found.near(time) == pytest.approx(1.0)
    # Runs that end after every tenth packet: those on the packet's own run, 1 / (1 + c h), do not count.
    assert found.held(time, 0.1) == pytest.approx(1.0 - 1.0 / (1.0 + 0.1 * time), abs=2e-3)


def test_bursts_are_as_dense_as_their_pairs() -> None:
    """A realisation read as a trace has the density of the law; a hold meets the integral of its pairs."""
    arrivals = traffic.OnOff(on_packets=10, peak_to_mean=3)
    times = np.cumsum(arrivals.gaps(np.random.default_rng(3), 300_000)) * 50.0
    trace = traffic.Trace(times_ns=times - times[0], bytes=np.full(times.size, 64), source="test")
    law, counted = density(Workload(arrivals=arrivals), (4,)), density(Workload.from_trace(trace))
    time = np.array([0.3, 2.0, 10.0, 100.0])
    assert counted.near(time) == pytest.approx(law.near(time), rel=0.03)
    # g(u) = 1 + 2 exp(-0.45 u)
    assert law.held(time, np.inf) == pytest.approx(1.0 + 2.0 / (1.0 + 0.45 * time), rel=0.01)


def test_a_sweep_of_bursts_has_the_density_of_each() -> None:
    peaks = np.array([2.0, 5.0])
    both = density(Workload(arrivals=traffic.OnOff(on_packets=8, peak_to_mean=peaks)), (2,))
    one = [
        density(Workload(arrivals=traffic.OnOff(on_packets=8, peak_to_mean=p))).near(np.ones(1))[0]
        for p in peaks
    ]
    assert both.near(np.ones(2)) == pytest.approx(one)
    assert both.take(np.array([1])).near(np.ones(1))[0] == pytest.approx(one[1])


def kept_errors(arrivals: tuple[str, ...], low: float, high: float) -> np.ndarray:
    """Return errors of the write conflicts on kept designs of all link widths, at the rates simulated."""
    with FILE.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] in (WRITES, "saturation_data_rate")]
    model = [float(row["model"]) for row in rows if row["metric"] == "saturation_data_rate"]
    truth = [float(row["simulated"]) for row in rows if row["metric"] == WRITES]
    found = []
    for (what, spec), full, simulated in zip(cases(), model, truth, strict=True):
        if what["arrivals"] in arrivals and low <= what["load"] <= high:
            there = replace_fields(spec, {"workload.offered_gbps": what["load"] * full})
            found.append(float(solve(there).metrics[WRITES]) / simulated - 1.0)
    return np.array(found)


def test_write_conflicts_hold_on_designs_that_were_not_fitted() -> None:
    """Loads of 30 to 80 %; the plane that was fitted has one link width and no bursts."""
    error = kept_errors(("poisson",), 0.3, 0.8)
    assert np.abs(error).mean() < 0.12 and abs(np.median(error)) < 0.06
    error = kept_errors(("short bursts", "bursts"), 0.1, 0.8)
    # Counted as often as on average, packets in bursts gave 25 %, 20 % too low.
    assert np.abs(error).mean() < 0.17 and abs(np.median(error)) < 0.10
