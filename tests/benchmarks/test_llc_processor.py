"""Speed of the packet processor with LLC slices: simulated requests per second, and a model point."""

import pytest

from cases.published.paper import published_case
from qmodels import LlcProcessor
from qmodels.llc.processor_hits import _lines
from qmodels.llc.solve_processor import solve_llc_processor
from qmodels.systems.cache.llc_processor import ARCHITECTURES
from validate.composed.replication import advance
from validate.composed.world import new_machine

REQUESTS = 100_000


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_run(benchmark, architecture):
    machine = new_machine(LlcProcessor(architecture=architecture).system(), seed=1, replication=0)
    requests = 1000
    machine, _ = advance(machine, ended=requests)

    def more():
        nonlocal machine, requests
        requests += REQUESTS
        machine, _ = advance(machine, ended=requests)

    benchmark.pedantic(more, rounds=5)
    if benchmark.stats:  # not when benchmarks are disabled
        benchmark.extra_info["requests per second"] = round(REQUESTS / benchmark.stats["min"])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_solve(benchmark, architecture):
    spec = LlcProcessor(architecture=architecture)
    assert benchmark(solve_llc_processor, spec).blocking_probability > 0.01


@pytest.mark.parametrize("realistic_capacities", [False, True])
def test_solve_with_a_new_law(benchmark, realistic_capacities):
    """With the popularity of lines computed anew each time."""
    spec = published_case("llc3d").names["realistic"]("slices") if realistic_capacities else LlcProcessor()

    def anew():
        _lines.cache_clear()
        return solve_llc_processor(spec)

    assert benchmark(anew).data_rate > 0
