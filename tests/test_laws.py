"""One language of laws: formulas, draws, files and models agree on every law."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import laws, queues
from qmodels.systems.laws.kinds import LAWS, RENEWAL
from qmodels.systems.packets.data_queueing import QueueTraffic
from qmodels.systems.spec.text.toml import from_toml, to_toml
from qmodels.systems.traffic.arrivals import modelled
from qmodels.traffic import OnOff, Poisson
from validate import simulate
from validate.engine.sampling import sample, unit_gaps

means = st.floats(0.01, 100.0)
shares = st.floats(0.05, 0.95)
lists = st.lists(st.floats(0.01, 100.0), min_size=1, max_size=8).map(tuple)
rates = st.floats(0.1, 10.0)
FAMILIES = {
    laws.Deterministic: st.builds(laws.Deterministic, mean=means),
    laws.Exponential: st.builds(laws.Exponential, mean=means),
    laws.Erlang: st.builds(laws.Erlang, mean=means, phases=st.integers(1, 30)),
    laws.Gamma: st.builds(laws.Gamma, mean=means, scv=st.floats(0.05, 10.0)),
    laws.LogNormal: st.builds(laws.LogNormal, mean=means, scv=st.floats(0.05, 10.0)),
    laws.Weibull: st.builds(laws.Weibull, mean=means, shape=st.floats(0.5, 5.0)),
    laws.Pareto: st.builds(laws.Pareto, mean=means, shape=st.floats(2.1, 10.0)),
    laws.Uniform: st.builds(lambda low, width: laws.Uniform(low=low, high=low + width), means, means),
    laws.Geometric: st.builds(laws.Geometric, mean=st.floats(1.0, 50.0)),
    laws.HyperExponential: st.builds(
        lambda p, a, b: laws.HyperExponential(probabilities=(p, 1 - p), means=(a, b)), shares, means, means
    ),
    laws.PhaseType: st.builds(
        lambda p, a, b: laws.PhaseType(initial=(p, 1 - p), generator=((-a, a / 2), (0.0, -b))),
        shares,
        rates,
        rates,
    ),
    laws.MAP: st.builds(
        lambda a, b, fast, slow: laws.MAP.mmpp(generator=[[-a, a], [b, -b]], rates=[fast, slow]),
        *[rates] * 4,
    ),
    laws.Empirical: st.builds(laws.Empirical, values=lists),
    laws.Replay: st.builds(laws.Replay, values=lists),
}
each = pytest.mark.parametrize("kind", LAWS, ids=lambda kind: kind.__name__)
few = settings(max_examples=6)


@each
@few
@given(data=st.data())
def test_moments_are_those_of_the_structure(kind, data):
    law = data.draw(FAMILIES[kind])
    known = laws.formulas(law)
    assert_allclose(known.moment(1), law.mean, rtol=1e-10)
    assert_allclose(known.moment(2), (1 + law.scv) * law.mean**2, rtol=1e-9)
    if kind not in (laws.PhaseType, laws.MAP):  # theirs take seconds, see test_phase_type
        assert_allclose(known.expect(lambda x: x), law.mean, rtol=1e-9)
    x = np.array([0.2, 1.0, 3.3]) * law.mean
    for k in (0, 1, 2):
        total = known.truncated_moment(k, x) + known.tail_moment(k, x)
        assert_allclose(total, known.moment(k), rtol=1e-9)


@each
@few
@given(data=st.data())
def test_transforms_are_1_at_0_with_the_mean_for_slope(kind, data):
    law = data.draw(FAMILIES[kind])
    known = laws.formulas(law)
    assert_allclose(known.laplace(np.asarray(0.0)), 1.0, rtol=1e-10)
    s = np.array([1e-3, 1.0, 30.0, 2.0 + 9.0j]) / law.mean
    residual = (1 - known.laplace(s)) / (s * law.mean)
    assert_allclose(known.residual_complement(s), 1 - residual, rtol=1e-9, atol=1e-11)
    # The complement of the residual begins with s E[X^2] / (2 E[X]): so much for the slope.
    least = 1e-9 / law.mean
    slope = 1 - float(known.residual_complement(np.asarray(least)))
    assert slope == pytest.approx(1.0, abs=1e-5)
    if kind not in (laws.PhaseType, laws.MAP):
        assert_allclose(known.laplace(s[1]), known.expect(lambda x: np.exp(-s[1].real * x)), atol=1e-9)


@each
def test_draws_have_the_moments_of_the_formulas(kind):
    """40 batches of one long sample: the mean and the share beyond it within 4 standard errors."""
    law = TYPICAL[kind]
    known = laws.formulas(law)
    times = sample(law, size=400_000, seed=5).reshape(40, -1)
    beyond = 1.3 * law.mean
    for values, exact in ((times, law.mean), (times > beyond, float(known.tail(np.asarray(beyond))))):
        batches = values.mean(axis=1)
        error = batches.std(ddof=1) / np.sqrt(len(batches))
        assert abs(batches.mean() - exact) <= 4 * error + 1e-4 * exact
        assert error <= 0.02 * max(exact, 0.1)


@each
@few
@given(data=st.data())
def test_every_law_survives_a_file(kind, data):
    law = data.draw(FAMILIES[kind])
    assert from_toml(to_toml(law), kind) == law


@pytest.mark.parametrize("kind", RENEWAL, ids=lambda kind: kind.__name__)
@few
@given(data=st.data(), load=st.floats(0.01, 0.99))
def test_mg1_is_pollaczek_and_khinchine(kind, data, load):
    law = data.draw(FAMILIES[kind])
    rate, second = load / law.mean, float(laws.formulas(law).moment(2))
    wait = rate * second / 2 / (1 - rate * law.mean)
    for q in (queues.mg1(arrival_rate=rate, service=law), queues.mg1_fcfs(arrival_rate=rate, service=law)):
        assert_allclose(q.mean_waiting_time, wait, rtol=1e-8)
    same = queues.gg1_kingman(arrival=laws.Exponential(mean=1 / rate), service=law)
    assert_allclose(same.mean_waiting_time, wait, rtol=1e-8)


TYPICAL = {
    laws.Deterministic: laws.Deterministic(mean=2.0),
    laws.Exponential: laws.Exponential(mean=2.0),
    laws.Erlang: laws.Erlang(mean=2.0, phases=4),
    laws.Gamma: laws.Gamma(mean=2.0, scv=2.5),
    laws.LogNormal: laws.LogNormal(mean=2.0, scv=2.0),
    laws.Weibull: laws.Weibull(mean=2.0, shape=0.7),
    laws.Pareto: laws.Pareto(mean=2.0, shape=3.5),
    laws.Uniform: laws.Uniform(low=1.0, high=3.0),
    laws.Geometric: laws.Geometric(mean=3.0),
    laws.HyperExponential: laws.HyperExponential(probabilities=(0.2, 0.8), means=(5.0, 1.0)),
    laws.PhaseType: laws.PhaseType(initial=(0.4, 0.6), generator=((-1.0, 0.5), (0.0, -2.0))),
    laws.MAP: laws.MAP.mmpp(generator=[[-2, 2], [1, -1]], rates=[4, 1]),
    laws.Empirical: laws.Empirical(values=(1.0, 2.0, 9.0), weights=(3.0, 2.0, 1.0)),
    laws.Replay: laws.Replay(values=(1.0, 4.0, 2.0, 2.5)),
}


def test_a_law_in_place_of_numbers():
    service = [laws.Deterministic(mean=2), laws.Exponential(mean=10)]
    numbers = {"mean_service_time": [2, 10], "service_scv": [0, 1]}
    load = {"arrival_rate": [0.05, 0.06]}
    for model in (queues.mg1_nonpreemptive, queues.mg1_preemptive_resume):
        assert_allclose(
            model(**load, service=service).mean_waiting_time, model(**load, **numbers).mean_waiting_time
        )
    for model in (queues.polling, queues.polling_limited):
        switch = {"mean_switch_time": 0.5}
        assert_allclose(
            model(**load, **switch, service=service).mean_waiting_time,
            model(**load, **switch, **numbers).mean_waiting_time,
        )
    law, gaps = laws.Uniform(low=1.0, high=3.0), laws.Weibull(mean=4.0, shape=0.8)
    two = {"mean_service_time": law.mean, "service_scv": law.scv}
    both = {"arrival_rate": 1 / gaps.mean, "arrival_scv": gaps.scv, **two}
    for model in (queues.gg1_kingman, queues.gg1_klb, queues.gg1_marchal, queues.gg1_upper_bound):
        same = model(arrival=gaps, service=law)
        assert_allclose(same.mean_waiting_time, model(**both).mean_waiting_time, rtol=1e-12)
    for model in (queues.ggc_allen_cunneen, queues.ggc_kimura, queues.ggc_whitt):
        same = model(arrival=gaps, service=law, servers=2)
        assert_allclose(same.mean_waiting_time, model(**both, servers=2).mean_waiting_time, rtol=1e-12)
    for model, more in (
        (queues.mg1_vacations, {"vacation": laws.LogNormal(mean=2.0, scv=3.0)}),
        (queues.mg1_setup, {"setup": laws.LogNormal(mean=2.0, scv=3.0)}),
        (queues.mxg1, {"batch_mean": 2, "batch_scv": 0.5}),
        (queues.geog1, {}),
    ):
        same = model(arrival_rate=0.1, service=law, **more)
        assert_allclose(
            same.mean_waiting_time, model(arrival_rate=0.1, **two, **more).mean_waiting_time, rtol=1e-12
        )


def test_gm1_by_the_phases_of_a_uniform_law_is_bracketed_and_lognormal_times_are_waited_for():
    """Laws whose transforms are integrals: between the constant and the exponential of the same mean."""
    waits = [
        float(queues.gm1(arrival=law, service_rate=1.0).mean_waiting_time)
        for law in (
            laws.Deterministic(mean=1.25),
            laws.Uniform(low=0.0, high=2.5),
            laws.Exponential(mean=1.25),
            laws.LogNormal(mean=1.25, scv=4.0),
        )
    ]
    assert waits == sorted(waits)
    q = queues.mg1_fcfs(arrival_rate=0.5, service=laws.LogNormal(mean=1.0, scv=2.0))
    x, w = np.polynomial.legendre.leggauss(10)
    area = 0.0
    for low, high in ((0, 1), (1, 4), (4, 12), (12, 40), (40, 120), (120, 400), (400, 2000)):
        half = (high - low) / 2
        area += half * float(w @ q.waiting_time_tail(low + half * (1 + x)))
    assert area == pytest.approx(float(q.mean_waiting_time), rel=1e-4)


# Systems with arrivals

ON_OFF = OnOff(on_packets=10.0, peak_to_mean=4.0)


def as_law() -> laws.HyperExponential:
    p, fast, slow = ON_OFF.phases
    return laws.HyperExponential(probabilities=(p, 1 - p), means=(7 / fast, 7 / slow))


def test_bursts_by_their_law_are_bursts_to_every_model():
    law = as_law()
    noc = qm.Noc(topology=qm.mesh(3, 3), traffic=qm.noc.uniform(nodes=9), injection_rate=0.02)
    for make, metrics in (
        (lambda value: replace(noc, process=value), ("packet_latency", "saturation_rate")),
        (
            lambda value: qm.DataQueueing(traffic=QueueTraffic(arrivals=value)),
            ("write_conflict_probability", "enqueue_overhead", "pointer_overrun_probability"),
        ),
    ):
        known, same = (qm.solve(make(value)) for value in (ON_OFF, law))
        for name in metrics:
            assert_allclose(getattr(same, name), getattr(known, name), rtol=1e-9)
    known, same = (qm.solve(qm.PacketProcessor(workload=qm.Workload(arrivals=v))) for v in (ON_OFF, law))
    for name in ("packet_latency", "packet_latency_p99"):
        assert_allclose(same.metrics[name], known.metrics[name], rtol=1e-9)
    assert isinstance(modelled("arrivals", laws.Exponential(mean=3.0)), Poisson)


@pytest.mark.in_ci(3)
@pytest.mark.parametrize("law", TYPICAL.values(), ids=lambda law: type(law).__name__)
def test_every_law_enters_simulators_at_the_rate_of_the_spec(law):
    for spec, arrivals in ((qm.Workload(arrivals=law), law), (QueueTraffic(arrivals=law), law)):
        gaps = unit_gaps(arrivals, np.random.default_rng(3), 20_000)
        assert gaps.mean() == pytest.approx(1.0, abs=0.08)
        more = (64,) if isinstance(spec, QueueTraffic) else ()
        packets = spec.packets(np.random.default_rng(1), 20_000, *more, gaps=gaps)
        times = packets.times if more else packets.times_ns * spec.packet_rate
        assert np.all(np.diff(times) >= 0)
        if not more:
            assert times[-1] / 20_000 == pytest.approx(1.0, abs=0.08)
    if not isinstance(law, laws.Geometric):
        noc = qm.Noc(
            topology=qm.mesh(2, 2), traffic=qm.noc.uniform(nodes=4), injection_rate=0.05, process=law
        )
        assert from_toml(to_toml(noc), qm.Noc).process == law
        found = simulate(noc, replications=4, precision=0.5, seed=2)
        assert float(found["packet_latency"]) > 10


def test_models_and_specs_name_the_arrivals_they_take():
    wide = laws.LogNormal(mean=1.0, scv=3.0)
    noc = qm.Noc(topology=qm.mesh(2, 2), traffic=qm.noc.uniform(nodes=4), process=wide)
    workload = qm.Workload(arrivals=wide)
    for call, name in (
        (lambda: qm.solve(noc), "process"),
        (lambda: qm.solve(qm.PacketProcessor(workload=workload)), "workload.arrivals"),
        (lambda: qm.solve(qm.DataQueueing(traffic=QueueTraffic(arrivals=wide))), "traffic.arrivals"),
    ):
        with pytest.raises(ValueError, match=f"^{name} must be Poisson, OnOff, recorded"):
            call()
    with pytest.raises(ValueError, match="^process must be Deterministic, .* or Replay, got Geometric$"):
        qm.Noc(process=laws.Geometric(mean=3.0))
    with pytest.raises(ValueError, match="^gaps must be given with LogNormal arrivals"):
        workload.packets(np.random.default_rng(1), 10)
    assert from_toml(to_toml(workload), qm.Workload) == workload
