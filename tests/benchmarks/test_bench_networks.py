"""Speed of the exact solutions of closed networks; run with --benchmark-enable."""

import numpy as np
import pytest

from qmodels.networks import convolution, linearizer, mva, tandem_blocking

RNG = np.random.default_rng(1)
TEN, SIX = RNG.uniform(0.1, 1.0, 10), RNG.uniform(0.1, 1.0, (6, 3))


@pytest.mark.parametrize("people", [10_000, 100_000])
def test_mva_one_class_ten_stations(benchmark, people):
    # Target: 20 ms with 10,000 jobs.
    r = benchmark(lambda: mva(population=people, mean_service_time=TEN, think_time=5.0))
    assert abs(r.mean_number_in_network + 5 * r.system_throughput - people) < 1e-6


@pytest.mark.parametrize("solve", [mva, convolution])
def test_three_classes_of_forty_over_six_stations(benchmark, solve):
    # Target: 100 ms.
    r = benchmark(lambda: solve(population=[40] * 3, mean_service_time=SIX, think_time=[5.0, 3.0, 1.0]))
    assert r.system_throughput.shape == (3,)


def test_mva_with_several_servers(benchmark):
    servers = [1, 2, 4, 8, 16, 32, 1, 2, 4, 8]
    r = benchmark(
        lambda: mva(population=10_000, mean_service_time=TEN * servers, servers=servers, think_time=5.0)
    )
    assert np.all(r.utilization <= 1)


def test_linearizer_three_classes(benchmark):
    r = benchmark(lambda: linearizer(population=[40] * 3, mean_service_time=SIX, discipline="ps"))
    assert r.kind == "approximation"


def test_tandem_of_five_finite_stations(benchmark):
    line = {"arrival_rate": 0.9, "service_rate": [1.2, 1.0, 1.1, 1.3, 1.0], "capacity": 8}
    r = benchmark(lambda: tandem_blocking(**line, service_scv=0.5))
    assert 0 < r.system_throughput < 0.9
