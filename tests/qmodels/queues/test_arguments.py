"""What every model does at the ends of the range: no load, overload, nonsense."""

import numpy as np
import pytest

from qmodels.laws import Deterministic, Erlang, Exponential, HyperExponential
from qmodels.queues import (
    engset,
    erlang_a,
    erlang_b,
    erlang_c,
    geod1,
    geog1,
    geoxg1,
    gg1_kingman,
    gg1_klb,
    gg1_lower_bound,
    gg1_marchal,
    gg1_upper_bound,
    ggc_allen_cunneen,
    ggc_kimura,
    ggc_whitt,
    gm1,
    gmc,
    md1,
    md1k,
    mdc,
    mek1,
    mg1,
    mg1_fb,
    mg1_fcfs,
    mg1_nonpreemptive,
    mg1_preemptive_resume,
    mg1_ps,
    mg1_setup,
    mg1_srpt,
    mg1_vacations,
    mg1k,
    mgcc,
    mginf,
    mh21,
    mm1,
    mm1_dps,
    mm1_ps,
    mm1k,
    mmc,
    mmc_balking,
    mmc_finite,
    mmc_nonpreemptive,
    mmc_preemptive,
    mmcc,
    mmck,
    mminf,
    mxg1,
    polling,
    polling_limited,
    weighted_round_robin,
)

# Each model as a function of the load per server alone; service times are 1.
UNLIMITED = {
    "mm1": lambda r: mm1(arrival_rate=r, service_rate=1),
    "mmc": lambda r: mmc(arrival_rate=3 * np.asarray(r), service_rate=1, servers=3),
    "mg1": lambda r: mg1(arrival_rate=r, service_rate=1, service_scv=2, service_third_moment=30),
    "mg1 by time": lambda r: mg1(arrival_rate=r, mean_service_time=1, service_scv=0),
    "mg1_fcfs": lambda r: mg1_fcfs(arrival_rate=r, service=HyperExponential.balanced(mean=1, scv=3)),
    "md1": lambda r: md1(arrival_rate=r, service_rate=1),
    "mdc": lambda r: mdc(arrival_rate=3 * np.asarray(r), service_rate=1, servers=3),
    "mek1": lambda r: mek1(arrival_rate=r, service_rate=1, phases=3),
    "mh21": lambda r: mh21(arrival_rate=r, probability=0.5, service_rates=(2.0, 2 / 3)),
    "mxg1": lambda r: mxg1(
        arrival_rate=np.asarray(r) / 4, batch_mean=4, batch_scv=0.5, service_rate=1, service_scv=1
    ),
    "gg1_kingman": lambda r: gg1_kingman(arrival_rate=r, service_rate=1, arrival_scv=0.5, service_scv=2),
    "gg1_klb": lambda r: gg1_klb(arrival_rate=r, service_rate=1, arrival_scv=0.5, service_scv=0),
    "gg1_marchal": lambda r: gg1_marchal(arrival_rate=r, service_rate=1, arrival_scv=3, service_scv=2),
    "gg1_upper_bound": lambda r: gg1_upper_bound(
        arrival_rate=r, service_rate=1, arrival_scv=3, service_scv=2
    ),
    "gg1_lower_bound": lambda r: gg1_lower_bound(
        arrival_rate=r, service_rate=1, arrival_scv=3, service_scv=2
    ),
    "ggc_allen_cunneen": lambda r: ggc_allen_cunneen(
        arrival_rate=3 * np.asarray(r), service_rate=1, servers=3, arrival_scv=3, service_scv=2
    ),
    "ggc_kimura": lambda r: ggc_kimura(
        arrival_rate=3 * np.asarray(r), service_rate=1, servers=3, arrival_scv=0, service_scv=2
    ),
    "ggc_whitt": lambda r: ggc_whitt(
        arrival_rate=3 * np.asarray(r), service_rate=1, servers=3, arrival_scv=0, service_scv=0
    ),
    "geog1": lambda r: geog1(
        arrival_rate=np.minimum(np.asarray(r) / 4, 1), mean_service_time=4, service_scv=1
    ),
    "geoxg1": lambda r: geoxg1(
        arrival_rate=r, arrival_variance=2 * np.asarray(r), mean_service_time=1, service_scv=0
    ),
    "geod1": lambda r: geod1(arrival_rate=np.minimum(np.asarray(r) / 4, 1), service_slots=4),
    "mg1_vacations": lambda r: mg1_vacations(
        arrival_rate=r, service_rate=1, service_scv=1, vacation=Exponential(mean=2.0), multiple=False
    ),
    "mg1_setup": lambda r: mg1_setup(
        arrival_rate=r, service_rate=1, service_scv=1, setup=Deterministic(mean=2)
    ),
    "mg1_ps": lambda r: mg1_ps(arrival_rate=r, service_rate=1),
    "mm1_ps": lambda r: mm1_ps(arrival_rate=r, service_rate=1),
    "mg1_srpt": lambda r: mg1_srpt(arrival_rate=r, service=Erlang(mean=1, phases=3)),
    "mg1_fb": lambda r: mg1_fb(arrival_rate=r, service=Erlang(mean=1, phases=3)),
}
CLASSES = {
    "mg1_nonpreemptive": lambda lam: mg1_nonpreemptive(
        arrival_rate=lam, mean_service_time=1, service_scv=1, service_third_moment=6
    ),
    "mg1_preemptive_resume": lambda lam: mg1_preemptive_resume(
        arrival_rate=lam, mean_service_time=1, service_scv=1, service_third_moment=6
    ),
    "mmc_nonpreemptive": lambda lam: mmc_nonpreemptive(arrival_rate=lam, service_rate=1.0, servers=1),
    "mmc_preemptive": lambda lam: mmc_preemptive(arrival_rate=lam, service_rate=1.0, servers=1),
    "polling": lambda lam: polling(arrival_rate=lam, mean_service_time=1, service_scv=1),
    "polling gated": lambda lam: polling(
        arrival_rate=lam, mean_service_time=1, service_scv=1, mean_switch_time=0.1, discipline="gated"
    ),
    "polling_limited": lambda lam: polling_limited(arrival_rate=lam, mean_service_time=1, service_scv=1),
    "weighted_round_robin": lambda lam: weighted_round_robin(
        arrival_rate=lam, mean_service_time=1, service_scv=1, weights=[1, 2]
    ),
    "mm1_dps": lambda lam: mm1_dps(arrival_rate=lam, service_rate=1, weights=[1, 2]),
}
FINITE = {
    "mmck": lambda r: mmck(arrival_rate=3 * np.asarray(r), service_rate=1, servers=3, capacity=7),
    "mm1k": lambda r: mm1k(arrival_rate=r, service_rate=1, capacity=7),
    "mmcc": lambda r: mmcc(arrival_rate=3 * np.asarray(r), service_rate=1, servers=3),
    "mgcc": lambda r: mgcc(arrival_rate=3 * np.asarray(r), mean_service_time=1, servers=3),
    "mg1k": lambda r: mg1k(arrival_rate=r, service=Erlang(mean=1, phases=3), capacity=7),
    "md1k": lambda r: md1k(arrival_rate=r, service_rate=1, capacity=7),
    "mmc_finite": lambda r: mmc_finite(source_rate=r, service_rate=1, servers=3, sources=9),
    "engset": lambda r: engset(source_rate=r, service_rate=1, servers=3, sources=9),
    "erlang_a": lambda r: erlang_a(
        arrival_rate=3 * np.asarray(r), service_rate=1, servers=3, patience_rate=0.3
    ),
    "mmc_balking": lambda r: mmc_balking(
        arrival_rate=r, service_rate=1, servers=1, joining_probabilities=[1, 0.5, 0.2]
    ),
}
LOADS = np.array([0.0, 1e-6, 0.3, 0.999, 1 - 1e-6, 1.0, 1.5, 100.0])


def complete(q):
    """Every known metric, none of them NaN, and the obvious inequalities."""
    metrics = q.to_dict()
    for name, value in metrics.items():
        assert not np.isnan(value).any(), name
        assert np.all(value >= 0), name
    assert np.all(q.utilization <= 1) and np.all(q.throughput <= q.arrival_rate * (1 + 1e-12))
    for name in ("waiting_probability", "blocking_probability", "abandonment_probability"):
        if name in metrics:
            assert np.all(metrics[name] <= 1)
    return q


@pytest.mark.parametrize("name", UNLIMITED)
def test_unlimited_stations_from_no_load_to_overload(name):
    q = complete(UNLIMITED[name](LOADS))
    stable = LOADS < 1
    assert q.stable.tolist() == stable.tolist()
    assert np.isinf(q.mean_waiting_time[~stable]).all() and np.isinf(q.mean_number_in_system[~stable]).all()
    assert np.all(q.utilization[~stable] == 1)
    if name != "mg1_setup":  # rare jobs find the server asleep
        assert np.all(np.diff(q.mean_waiting_time[stable]) >= 0)
    assert q.throughput[0] == 0 and q.mean_number_in_system[0] == 0 and q.utilization[0] == 0
    if q.waiting_time_variance is not None:
        assert np.isinf(q.waiting_time_variance[~stable]).all()
    scalar = UNLIMITED[name](0.3)
    assert np.ndim(scalar.mean_waiting_time) == 0
    assert scalar.mean_waiting_time == pytest.approx(float(q.mean_waiting_time[2]), rel=1e-14)


@pytest.mark.parametrize(
    "name", ["mm1", "mmc", "mg1", "md1", "mdc", "mek1", "mg1_fcfs", "mg1_ps", "geog1", "geod1"]
)
def test_nobody_waits_without_arrivals(name):
    assert UNLIMITED[name](0.0).mean_waiting_time == 0


@pytest.mark.parametrize("name", CLASSES)
def test_stations_with_classes(name):
    model = CLASSES[name]
    for lam in ([0.0, 0.0], [0.0, 0.5], [0.4, 0.0], [0.3, 0.4]):
        q = complete(model(lam))
        assert q.stable.all() and q.mean_waiting_time.shape == (2,)
        assert np.all(q.mean_number_in_queue[np.array(lam) == 0] == 0)
    over = complete(model([0.7, 0.6]))
    assert not over.stable[1] and over.utilization.sum() == pytest.approx(1)
    assert complete(model([[0.1, 0.2], [0.0, 0.9], [2.0, 1.0]])).mean_waiting_time.shape == (3, 2)
    # An endless queue of a class without arrivals holds nobody.
    nobody = model([1.5, 0.0])
    assert nobody.mean_number_in_system[1] == 0


@pytest.mark.parametrize("name", FINITE)
def test_finite_stations_are_always_stable(name):
    q = complete(FINITE[name](LOADS))
    assert q.stable.all()
    assert q.throughput[0] == 0 and q.mean_number_in_system[0] == 0
    if name != "mmc_finite":
        assert q.utilization[-1] > 0.3
    assert np.ndim(FINITE[name](0.3).mean_waiting_time) == 0
    if q.number_pmf is not None:
        n = np.arange(12)[:, None]
        law = q.number_in_system_probability(n)
        np.testing.assert_allclose(law.sum(axis=0), 1, rtol=1e-12)
        np.testing.assert_allclose((n * law).sum(axis=0), q.mean_number_in_system, rtol=1e-9, atol=1e-300)


def test_extreme_overload_of_finite_stations():
    for lam in (1e3, 1e6, 1e9):
        for q in (
            mm1k(arrival_rate=lam, service_rate=1, capacity=10**6),
            mg1k(arrival_rate=lam, service=Deterministic(mean=1.0), capacity=5),
            mmck(arrival_rate=lam, service_rate=1, servers=200, capacity=250),
        ):
            complete(q)
            assert q.blocking_probability == pytest.approx(1 - float(q.throughput) / lam, abs=1e-6)
            if q.model != "M/M/c/K":
                assert q.throughput == pytest.approx(1, rel=1e-9)


def test_inputs_broadcast_and_are_not_changed():
    lam, c = np.array([[0.5], [1.5]]), np.array([1, 2, 4])
    before = lam.copy(), c.copy()
    q = mmck(arrival_rate=lam, service_rate=1, servers=c, capacity=c + 3)
    assert q.blocking_probability.shape == q.mean_service_time.shape == (2, 3)
    assert np.array_equal(lam, before[0]) and np.array_equal(c, before[1])
    assert mm1(arrival_rate=[], service_rate=1).mean_waiting_time.shape == (0,)
    assert mmc(arrival_rate=[], service_rate=1, servers=2).mean_waiting_time.shape == (0,)
    assert erlang_b(servers=[[1], [2]], offered_load=[0.5, 1, 2]).shape == (2, 3)
    assert np.ndim(erlang_c(servers=2, offered_load=1.0)) == 0


def test_memoryless_models_need_no_law_but_take_any():
    assert mginf(arrival_rate=2.0, service_rate=4.0).mean_number_in_system == 0.5
    assert mminf(arrival_rate=2.0, service_rate=4.0).response_time_quantile(0.5) == pytest.approx(
        np.log(2) / 4
    )
    assert gm1(arrival=Exponential(mean=2.0), service_rate=1.0).mean_waiting_time == pytest.approx(
        1.0, rel=1e-13
    )
    law = Erlang(mean=np.array([2.0, 0.5]), phases=2)
    assert gmc(arrival=law, service_rate=1.0, servers=[1, 3]).stable.tolist() == [True, True]
