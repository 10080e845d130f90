"""Delays that few jobs meet, and what comes behind a memory that stalls for all."""

import numpy as np
import pytest

import qmodels as qm
from qmodels import Flow, System, dram
from qmodels.composed.couplings.refreshes import pause_share
from qmodels.composed.moments import Moments
from qmodels.composed.stalls import Late, Stall, after_another, one_stall, quantile_of
from qmodels.laws import Exponential
from qmodels.steps import Each, Read
from validate import simulate


def test_a_delay_is_evenly_spread_behind_the_rest():
    stall = Stall(0.1, 5.0)
    late = Moments(10.0 + 0.5, stall.variance)
    assert quantile_of([(1.0, late, stall, Late())], 0.89) == pytest.approx(10.0)
    assert quantile_of([(1.0, late, stall, Late())], 0.95) == pytest.approx(15.0, abs=10 / 8)
    gamma = quantile_of([(1.0, late, Stall(), Late())], 0.95)
    assert gamma == late.quantile(0.95)


def test_delays_keep_their_mean():
    two = Stall(0.1, 3.0), Stall(0.3, 5.0)
    for both, mean in ((after_another(two), 1.8), (one_stall((0.5, 0.5), two), 0.9)):
        assert both.probability * both.mean == pytest.approx(mean)
    assert after_another([two[0]], 3.0).probability == pytest.approx(1 - 0.9**3)
    assert after_another([Stall(), two[0]]) == two[0]


def test_what_a_refresh_held_up_comes_to_a_station_at_once():
    """Without it the time behind the memory was 37 % too low."""
    parts = {
        "dram": qm.dram("HBM2", channels=1),
        "next": qm.Station(service=qm.laws.Exponential(mean=6.2)),
    }
    flow = qm.Flow(arrivals=qm.traffic.Poisson(), rate=0.0377, program="write dram; each 3 { visit next }")
    system = qm.System(parts=parts, flows=flow)
    answer, runs = qm.solve(system), simulate(system, replications=2, passages=8000)
    times = [each["visit_latency[next]"] for each in (answer, runs)]
    assert float(times[0]) == pytest.approx(times[1].best, rel=0.15)


@pytest.mark.parametrize(("pause", "between"), [(260.0, 40.0), (100.0, 300.0), (5.0, 1000.0)])
def test_the_share_is_that_of_random_arrivals_once_each(pause, between):
    gaps = np.random.default_rng(1).exponential(between, 400_000)
    waits = np.maximum(pause - gaps, 0.0)
    found, noise = waits.mean(), 4 * waits.std() / np.sqrt(waits.size)
    assert pause_share(pause, between) * pause**2 / (2 * between) == pytest.approx(found, abs=noise)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("jobs", "think"), [(1, None), (2, None), (4, None), (3, 200.0)])
def test_jobs_that_go_round_meet_a_refresh_once(jobs, think):
    # As random arrivals they would wait 9 ns for refreshes at each read: 12 % too long for one job.
    law = None if think is None else Exponential(mean=think)
    flow = Flow(program=(Read("dram"),), population=jobs, think=law)
    system = System(parts={"dram": dram("HBM2", channels=2)}, flows=flow)
    run = simulate(system, passages=8000, replications=3, seed=1).metrics["latency"]
    assert run.high - run.low < 0.06 * run.best
    assert float(qm.solve(system).latency) == pytest.approx(run.best, rel=0.05)


def test_reads_at_random_addresses_issued_at_once_share_no_rows():
    # As 24 consecutive blocks they were to find rows open: 54 % more than can be read.
    parts = {"dram": dram("DDR4-3200")}
    flow = Flow(program=(Each((Read("dram", blocks=4),), 6),), population=6)
    system = System(parts=parts, flows=flow)
    run = simulate(system, passages=3000, replications=3, seed=1).metrics["flow_throughput"]
    assert float(qm.solve(system).metrics["flow_throughput"]) == pytest.approx(run.best, rel=0.05)


@pytest.mark.parametrize(
    ("device", "program", "rate", "within"),
    [
        # A lone stream finds its rows open, and those that a refresh has closed not: 39, 32 and 32 % off.
        ("DDR4-3200", "read dram 16 sequential", 0.005, 0.08),
        ("DDR5-6400", "write dram 1 sequential", 0.01, 0.05),
        ("DDR5-6400", "read dram 1 sequential", 0.01, 0.05),
        # Banks open one after the other after a refresh: 12 % off.
        ("HBM2", "read dram 4 sequential", 0.0921, 0.05),
        # As much is left behind a refresh as comes meanwhile, whatever refreshes take: 36 % off.
        ("DDR5-6400", "read dram 1", 0.65, 0.06),
        # A batch meets another on all channels that both use: 14 % off.
        ("HBM2", "read dram 8", 0.06, 0.05),
    ],
)
def test_a_lone_program_meets_refreshes_as_simulated(device, program, rate, within):
    flow = qm.Flow(arrivals=qm.traffic.Poisson(), rate=rate, program=program)
    system = qm.System(parts={"dram": qm.dram(device)}, flows=flow)
    runs = simulate(system, replications=2, passages=30_000, seed=2)
    assert float(qm.solve(system).latency) == pytest.approx(runs["latency"].best, rel=within)
