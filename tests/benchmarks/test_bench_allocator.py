"""Free lists solved: one fixed point, and the paper's techniques at once.

``pytest tests/benchmarks/test_bench_allocator.py --benchmark-enable -m ""``
"""

import numpy as np
import pytest

from qmodels import DataQueueing
from qmodels.allocator import free_list, list_memory
from qmodels.allocator.data_queueing import solve_data_queueing
from qmodels.systems.packets.data_queueing import Allocation

VMS1_SIZES = [2097152, 3145728, 3495232, 3670016, 3774848, 3984576, 4054528, 4194304]


@pytest.fixture(autouse=True)
def _without_memory():
    list_memory._steady.cache_clear()


@pytest.mark.parametrize(("busy", "trials"), [(1, 3), (1, 5), (2, 3), (2, 5)])
def test_one_list(benchmark, busy, trials):
    def solve():
        list_memory._steady.cache_clear()
        return free_list(
            banks=8,
            busy_accesses=busy,
            alloc_trial_count=trials,
            segments=[1, 10, 24],
            probability=[0.5, 0.3, 0.2],
        )

    assert 0 < benchmark(solve).taken_busy_probability < 0.1


def test_two_hundred_techniques(benchmark):
    spec = DataQueueing(
        allocation=Allocation(
            alloc_trial_count=np.arange(1, 6)[:, None, None],
            small_packet_segments=np.arange(5)[:, None],
            vms1_size=np.array(VMS1_SIZES),
        )
    )

    def solve():
        list_memory._steady.cache_clear()
        return solve_data_queueing(spec)

    assert benchmark(solve).write_conflict_probability.shape == (5, 5, 8)
