"""Speed of the DRAM simulator and model; run with ``--benchmark-enable``."""

import numpy as np
import pytest

from qmodels import dram
from qmodels.memory import RandomBlocks
from qmodels.memory.dram.solve import solve_dram
from validate.dram.experiment import DramJob, run_replication


@pytest.mark.parametrize(("policy", "rate"), [("closed", 0.02), ("closed", 0.1), ("open", 0.1)])
def test_a_million_reads(benchmark, policy, rate):
    spec = dram("DDR4-3200", page_policy=policy, traffic=RandomBlocks(arrival_rate=rate))
    run_replication(DramJob(spec=spec, seed=0, replication=0, accesses=1000))
    job = DramJob(spec=spec, seed=1, replication=0, accesses=1_000_000)
    assert benchmark(run_replication, job).served == 1_000_000


def test_a_curve_of_a_hundred_loads(benchmark):
    traffic = RandomBlocks(arrival_rate=np.linspace(0.001, 0.1, 100))
    assert benchmark(solve_dram, dram("DDR4-3200", traffic=traffic)).stable.all()
