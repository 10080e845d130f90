"""Speed of the closed forms over a million points (pytest tests/benchmarks --benchmark-enable)."""

import numpy as np
import pytest

from qmodels.laws import Deterministic
from qmodels.queues import erlang_b, erlang_c_servers, mdc, mg1, mg1k, mm1, mmc, mmck

POINTS = 1_000_000


@pytest.fixture(scope="module")
def sweep():
    rng = np.random.default_rng(0)
    servers = rng.integers(1, 65, POINTS)
    return rng.uniform(0.01, 0.999, POINTS), servers, servers + rng.integers(0, 257 - servers)


def test_mm1_a_million_points(benchmark, sweep):
    """Bar: 50 ms."""
    rho, _, _ = sweep
    assert benchmark(lambda: mm1(arrival_rate=rho, service_rate=1.0).mean_waiting_time).shape == (POINTS,)


def test_mg1_a_million_points(benchmark, sweep):
    """Bar: 50 ms."""
    rho, _, _ = sweep
    wait = benchmark(lambda: mg1(arrival_rate=rho, service_rate=1.0, service_scv=0.5).mean_waiting_time)
    assert wait.shape == (POINTS,)


def test_mmc_a_million_points(benchmark, sweep):
    rho, servers, _ = sweep
    load = rho * servers
    wait = benchmark(lambda: mmc(arrival_rate=load, service_rate=1.0, servers=servers).mean_waiting_time)
    assert wait.shape == (POINTS,)


def test_mmck_a_million_points(benchmark, sweep):
    """Up to 64 servers and 256 places; bar: 2 s."""
    rho, servers, capacity = sweep
    load = 1.5 * rho * servers
    wait = benchmark(
        lambda: (
            mmck(arrival_rate=load, service_rate=1.0, servers=servers, capacity=capacity).mean_waiting_time
        )
    )
    assert wait.shape == (POINTS,)


def test_erlang_b_of_ten_thousand_servers(benchmark):
    load = np.linspace(9000, 11_000, 1000)
    assert benchmark(lambda: erlang_b(servers=10_000, offered_load=load)).shape == (1000,)


def test_smallest_number_of_servers(benchmark):
    assert benchmark(lambda: erlang_c_servers(offered_load=9000.0, waiting_probability=0.01)) > 9000


def test_mdc_of_sixteen_servers(benchmark):
    load = np.linspace(1.0, 15.99, 100)
    assert benchmark(lambda: mdc(arrival_rate=load, service_rate=1.0, servers=16)).stable.all()


def test_mg1k_with_a_million_places(benchmark):
    law = Deterministic(mean=1.0)
    q = benchmark(lambda: mg1k(arrival_rate=0.999, service=law, capacity=10**6))
    assert q.stable
