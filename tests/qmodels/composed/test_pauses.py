"""Jobs of a limited number and the refreshes of a memory, against a recursion and simulation."""

import numpy as np
import pytest

import qmodels as qm
from cases.composed_errors.accuracy import simulated
from qmodels.composed.couplings.refreshes import pause_share
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.steps import Each, Read
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Exponential
from qmodels.systems.memory.dram_system import dram


@pytest.mark.parametrize(("pause", "between"), [(260.0, 40.0), (100.0, 300.0), (5.0, 1000.0)])
def test_the_share_is_that_of_random_arrivals_once_each(pause, between):
    gaps = np.random.default_rng(1).exponential(between, 400_000)
    waits = np.maximum(pause - gaps, 0.0)
    found, noise = waits.mean(), 4 * waits.std() / np.sqrt(waits.size)
    assert pause_share(pause, between) * pause**2 / (2 * between) == pytest.approx(found, abs=noise)


@pytest.mark.parametrize(("jobs", "think"), [(1, None), (2, None), (4, None), (3, 200.0)])
def test_jobs_that_go_round_meet_a_refresh_once(jobs, think):
    # As random arrivals they would wait 9 ns for refreshes at each read: 12 % too long for one job.
    law = None if think is None else Exponential(mean=think)
    flow = Flow(program=(Read("dram"),), population=jobs, think=law)
    system = System(parts={"dram": dram("HBM2", channels=2)}, flows=flow)
    run = simulated(system, passages=8000).metrics["latency"]
    assert run.high - run.low < 0.06 * run.best
    assert float(qm.solve(system).latency) == pytest.approx(run.best, rel=0.05)


def test_reads_at_random_addresses_issued_at_once_share_no_rows():
    # As 24 consecutive blocks they were to find rows open: 54 % more than can be read.
    parts = {"dram": dram("DDR4-3200")}
    flow = Flow(program=(Each((Read("dram", blocks=4),), 6),), population=6)
    system = System(parts=parts, flows=flow)
    run = simulated(system, passages=3000).metrics["flow_throughput"]
    assert float(qm.solve(system).metrics["flow_throughput"]) == pytest.approx(run.best, rel=0.05)
