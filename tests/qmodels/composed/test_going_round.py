"""Mean value analysis over parts against the exact one, and pools against chains."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.composed.couplings.closed_mva import Region, closed_mva
from qmodels.composed.couplings.correlated_visits import effective_scv, equivalent_batch
from qmodels.composed.couplings.pools import POISSON, ClosedPool, PoolSubnetwork, open_pool
from qmodels.composed.couplings.rate_profile import profile_of
from qmodels.composed.moments import Moments, max_of_n, max_of_staggered, mixture_of
from qmodels.laws import PhaseType
from qmodels.markov import ph_from_moments
from qmodels.networks import mva
from qmodels.queues import mmc


def single_servers(*services):
    def times_at(rate):
        return {str(k): s / (1 - rate * s) for k, s in enumerate(services)}

    return profile_of(times_at, limit=1 / max(services), most=1.0, servers={})


@pytest.mark.parametrize("idle", [0.0, 5.0])
def test_single_servers_go_round_as_in_exact_mva(idle):
    table = closed_mva(single_servers(1.0, 0.4, 2.0), 12, idle=idle)
    for jobs in (1, 2, 5, 12):
        exact = mva(population=jobs, mean_service_time=[1.0, 0.4, 2.0], think_time=idle)
        assert_allclose(table.rates[jobs - 1], exact.system_throughput, rtol=1e-9)


def test_several_servers_go_round_as_in_exact_mva():
    def times_at(rate):
        station = mmc(arrival_rate=max(rate, 1e-12), service_rate=0.5, servers=3)
        return {"many": float(station.mean_response_time), "one": 1 / (1 - rate)}

    profile = profile_of(times_at, limit=1.0, most=1.0, servers={"many": 3})
    table = closed_mva(profile, 10)
    exact = mva(population=10, mean_service_time=[2.0, 1.0], servers=[3, 1])
    assert_allclose(table.rates[-1], exact.system_throughput, rtol=1e-6)


def test_a_region_is_a_station_of_its_rates():
    table = closed_mva(single_servers(1.0), 8, regions=[Region(speeds=np.array([0.5, 1.0]))])
    exact = mva(population=8, mean_service_time=[1.0, 2.0], servers=[1, 2])
    assert_allclose(table.rates[-1], exact.system_throughput, rtol=1e-9)


def table_asked(known, population):
    """Return what a profile says that was asked everywhere before, or not, and where it was asked."""
    asked = []

    def times_at(rate):
        asked.append(rate)
        return {"a": 1 / (1 - rate), "b": np.inf if rate > 0.45 else 2 / (1 - 2 * rate)}

    profile = profile_of(
        times_at, limit=1.0, most=1.0, servers={}, alone_at=lambda rate: {"a": 1.0, "b": 2 + rate}
    )
    if known:
        assert all(np.isfinite(row).all() for row in profile.times.values())
        asked.sort()
    rate = closed_mva(profile, population, idle=3.0).rates[-1]
    return rate, profile.rate_of(4.0), profile.total(0.2), tuple(profile.times_near(0.17).values()), asked


@pytest.mark.parametrize("population", [1, 2, 7, 40])
def test_parts_are_asked_where_jobs_are_and_say_the_same(population):
    *few, some = table_asked(False, population)
    *all_known, every = table_asked(True, population)
    assert few == all_known and set(some) <= {*every}
    assert population > 2 or len(some) < len(every) / 1.5


def test_the_first_rate_at_which_something_is_full_is_found_by_halves():
    asked = []

    def times_at(rate):
        asked.append(rate)
        return {"a": np.inf if rate > 0.35 else 1 / (1 - rate)}

    profile = profile_of(times_at, limit=1.0, most=1.0, servers={})
    assert profile.limit == pytest.approx(0.4) and len(asked) <= 6
    assert_allclose(profile.rates, [0.0, 0.1, 0.2, 0.3])


def test_a_pool_before_a_single_server_changes_nothing():
    inside = PoolSubnetwork(profile=single_servers(1.0), tokens=3, copies=1)
    pool = open_pool(inside, 0.7, gaps=POISSON)
    assert_allclose(pool.wait.mean + pool.hold, 1 / 0.3, rtol=1e-9)
    assert_allclose(pool.most, 1.0, rtol=1e-9)


def test_phases_of_gaps_that_are_poisson_are_poisson():
    inside = PoolSubnetwork(profile=single_servers(1.0, 0.5), tokens=4, copies=1)
    # Two phases that are alike.
    same = PhaseType(initial=(0.5, 0.5), generator=((-1.0, 0.0), (0.0, -1.0)))
    one, two = (open_pool(inside, 0.6, gaps=gaps) for gaps in (POISSON, same))
    assert_allclose(two.wait.mean, one.wait.mean, rtol=1e-9)
    assert_allclose(two.hold, one.hold, rtol=1e-9)
    bursty = open_pool(inside, 0.6, gaps=ph_from_moments(mean=1.0, scv=4.0))
    assert bursty.wait.mean > one.wait.mean


def test_a_closed_pool_is_the_machine_repair_model():
    inside = PoolSubnetwork(profile=single_servers(1.0), tokens=1, copies=1)
    exact = mva(population=4, mean_service_time=[1.0], think_time=3.0)
    pool = ClosedPool(inside=inside, jobs=4).at(float(exact.system_throughput))
    assert_allclose(pool.wait.mean + pool.hold, 4 / exact.system_throughput - 3.0, rtol=1e-3)


def test_moments_of_the_last():
    exponential = Moments(1.0, 1.0)
    assert_allclose(max_of_n([exponential] * 3).mean, 1 + 1 / 2 + 1 / 3, rtol=1e-3)
    assert_allclose(max_of_n([exponential], [3]).variance, 1 + 1 / 4 + 1 / 9, rtol=1e-2)
    assert max_of_n([Moments(2.0, 0.0), Moments(3.0, 0.0)]) == Moments(3.0, 0.0)
    assert_allclose(max_of_staggered(2, 0.0, exponential).mean, 1.5, rtol=1e-3)
    assert mixture_of([1.0, 0.0], [exponential, Moments(np.inf, np.inf)]) == exponential


@pytest.mark.parametrize("together", [1.0, 1.3, 2.0, 6.7])
def test_batches_of_a_size_that_is_no_whole_number(together):
    law = equivalent_batch(together)
    numbers = np.arange(law.size)
    assert_allclose(law.sum(), 1)
    assert_allclose(law @ numbers**2 / (law @ numbers), together)


def test_visits_one_after_the_other_of_poisson_jobs_stay_poisson():
    for law in ([0, 1], [0, 0, 0, 1.0], [0.2, 0.3, 0.5]):
        if law[0] == 0:
            assert_allclose(effective_scv(scv=1.0, service_scv=1.0, law=np.array(law, float)), 1.0)
    geometric = 0.5 ** np.arange(1, 60)
    law = np.concatenate([[0.0], geometric / geometric.sum()])
    assert_allclose(effective_scv(scv=1.0, service_scv=1.0, law=law), 1.0, rtol=1e-9)


@pytest.mark.parametrize("tokens", [40, 256])
def test_a_region_that_is_never_empty_keeps_its_digits(tokens):
    """Jobs that think and one station of many servers: a birth and death chain."""
    jobs, think, service = 768, 60.0, 60.0
    speeds = np.arange(1, tokens + 1) / service
    table = closed_mva(
        profile_of(lambda rate: {"none": 0.0}, limit=np.inf, most=1.0, servers={}),
        jobs, idle=think, regions=[Region(speeds=speeds)],
    )  # fmt: skip
    number = np.arange(jobs)
    logs = np.cumsum(np.log((jobs - number) / think) - np.log(speeds[np.minimum(number, tokens - 1)]))
    law = np.exp(np.append(0.0, logs) - logs.max())
    rate = law[1:] @ speeds[np.minimum(number, tokens - 1)] / law.sum()
    assert_allclose(table.rates[-1], rate, rtol=1e-9)
    assert_allclose(table.regions, law @ np.arange(jobs + 1) / law.sum() / rate, rtol=1e-9)


def test_parts_are_asked_no_further_than_jobs_go():
    asked = []

    def times_at(rate):
        asked.append(rate)
        return {"one": 1 / (1 - rate)}

    closed_mva(profile_of(times_at, limit=1.0, most=1.0, servers={}), 2, idle=9.0)
    assert 0.1 < max(asked) < 0.5
