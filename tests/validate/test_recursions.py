import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import JobClass, QueueingNetwork, Station, single_station, tandem
from qmodels.laws import (
    MAP,
    Deterministic,
    Erlang,
    Exponential,
    Geometric,
    HyperExponential,
    LogNormal,
    Replay,
)
from qmodels.queues import lindley_waiting_times, mm1
from validate.engine.histogram import BINS, bins_of
from validate.engine.sampling import BLOCK, draw, draw_block, law_table
from validate.engine.streams import new_streams, uniform
from validate.estimates.intervals import mean_interval, paired_difference, stability
from validate.network import recursions
from validate.network import replication as network_replication
from validate.network.recursions import CUSTOMERS, DELAYED, SERVED, SPAN, TOTALS, WAITED, serve_batches
from validate.network.replication import VISITS, NetworkJob

POISSON = Exponential(mean=1.25)
LAWS = (
    Exponential(mean=1.3),
    Deterministic(mean=1.0),
    Erlang(mean=1.0, phases=3),
    HyperExponential(probabilities=[0.3, 0.7], means=[2.0, 0.5]),
    LogNormal(mean=1.0, scv=2.0),
    MAP(d0=[[-3.0, 1.0], [0.5, -1.0]], d1=[[1.5, 0.5], [0.1, 0.4]]),
    Replay(values=[1.0, 0.0, 2.5]),
)


def streams(seed=1):
    return new_streams(seed=seed, replication=0, sources=["arrivals", "service"])


def run(arrival, service, *, servers, batch, batches=1, seed=1, unit=1.0):
    table = law_table([arrival, service])
    totals, free_at = np.zeros((batches, TOTALS)), np.zeros(servers)
    waiting, response = np.zeros(BINS, dtype=np.int64), np.zeros(BINS, dtype=np.int64)
    serve_batches(*table, streams(seed), free_at, np.full(batches, batch), totals, unit, waiting, response)
    return totals, waiting, response


def drawn(arrival, service, count, seed=1):
    table, source = law_table([arrival, service]), streams(seed)
    gaps, services = np.empty(count), np.empty(count)
    draw_block(*table, source, 0, gaps)
    draw_block(*table, source, 1, services)
    return gaps, services


def waits_by_servers(gaps, services, servers):
    """Return the waiting times of customers that take the server that is free first, one by one."""
    free, now, waits = [0.0] * servers, 0.0, []
    for gap, service in zip(gaps, services, strict=True):
        now += gap
        server = min(range(servers), key=free.__getitem__)
        start = max(now, free[server])
        waits.append(start - now)
        free[server] = start + service
    return np.array(waits)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_blocks_hold_what_is_drawn_one_by_one(law):
    table = law_table([law, law])
    one, many = streams(), streams()
    expected = [draw(*table, one, 1) for _ in range(16 * BLOCK)]
    # The place in a record or the phase of a MAP is kept in the table.
    fresh, out = law_table([law, law]), np.empty(16 * BLOCK)
    draw_block(*fresh, many, 1, out[:200])
    draw_block(*fresh, many, 1, out[200:])
    assert np.array_equal(out, expected)
    assert np.array_equal(one, many)


def test_logarithms_are_exact_to_three_units_over_their_whole_range():
    table = law_table([Exponential(mean=1.0)] * 2)
    source, out = streams(), np.empty(200_000)
    copy = source.copy()
    draw_block(*table, source, 0, out)
    exact = -np.log([uniform(copy, 0) for _ in range(1000)])
    assert np.max(np.abs(out[:1000] / exact - 1)) < 7e-16
    # Mirrored streams bring the other end: the logarithm near 1.
    mirrored = new_streams(seed=1, replication=0, sources=["arrivals", "service"], antithetic=True)
    other = np.empty(out.size)
    draw_block(*table, mirrored, 0, other)
    assert np.max(np.abs(np.exp(-out) + np.exp(-other) - 1)) < 1e-15


@given(
    arrival=st.sampled_from(LAWS),
    service=st.sampled_from(LAWS),
    servers=st.integers(1, 9),
    count=st.integers(1, 3000),
    seed=st.integers(0, 1000),
)
def test_the_kernel_serves_as_its_plain_twin(arrival, service, servers, count, seed):
    gaps, services = drawn(arrival, service, count, seed)
    waits = waits_by_servers(gaps, services, servers)
    totals, waiting, response = run(arrival, service, servers=servers, batch=count, seed=seed)
    assert totals[0, CUSTOMERS] == count
    assert totals[0, SERVED] == pytest.approx(services.sum(), rel=1e-12)
    assert totals[0, WAITED] == pytest.approx(waits.sum(), rel=1e-9, abs=1e-9 * services.sum())
    # Rounding may make a wait of exactly 0 a very small one, at ties of constant times.
    assert np.sum(waits > 1e-9) <= totals[0, DELAYED] <= np.sum(waits > -1)
    assert waiting.sum() == response.sum() == count
    differing = np.abs(np.bincount(bins_of(waits + services), minlength=BINS) - response).sum()
    assert differing <= 2 + 0.2 * count * isinstance(service, Deterministic | Replay)


def test_one_server_is_lindleys_queue():
    arrival, service = Exponential(mean=1.25), LogNormal(mean=1.0, scv=2.0)
    gaps, services = drawn(arrival, service, 5000)
    waits = lindley_waiting_times(interarrival_time=gaps[1:], service_time=services)
    totals, waiting, _ = run(arrival, service, servers=1, batch=5000)
    assert totals[0, WAITED] == pytest.approx(waits.sum(), rel=1e-9)
    assert totals[0, DELAYED] == np.sum(waits > 0)
    assert np.abs(waiting - np.bincount(bins_of(waits), minlength=BINS)).sum() <= 2


@pytest.mark.parametrize("servers", [1, 4])
def test_batches_are_stretches_of_one_run(servers):
    arrival, service = Exponential(mean=1.25 / servers), Erlang(mean=1.0, phases=2)
    parts, waiting_parts, _ = run(arrival, service, servers=servers, batch=1500, batches=4)
    whole, waiting, _ = run(arrival, service, servers=servers, batch=6000)
    assert np.allclose(parts.sum(axis=0), whole[0], rtol=1e-9)
    assert np.abs(waiting_parts - waiting).sum() <= 2


def test_an_overloaded_station_is_always_busy():
    totals, _, _ = run(Exponential(mean=0.5), Exponential(mean=1.0), servers=1, batch=20_000)
    assert totals[0, SERVED] / totals[0, SPAN] == pytest.approx(1, abs=2e-3)
    assert totals[0, CUSTOMERS] / totals[0, SPAN] == pytest.approx(1, abs=0.03)


@pytest.fixture
def by_events(monkeypatch):
    """Return the replication by events of a job that the recursion applies to."""
    monkeypatch.setattr(recursions, "applies", lambda spec: False)
    return network_replication.run_replication


def station(*, arrivals=POISSON, service=LAWS[2], **fields):
    return single_station(arrivals=arrivals, service=service, **fields)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_one_server_by_recursion_is_one_server_by_events(law, by_events):
    """The same customers wait the same times in both, so every count and sum agrees."""
    spec = station(arrivals=law, service=HyperExponential(probabilities=[0.5, 0.5], means=[0.2, 1.0]))
    job = NetworkJob(spec=spec, seed=3, replication=1, passages=20_003)
    ours, events = recursions.run_replication(job), by_events(job)
    same = [VISITS.index(name) for name in ("completions", "departures", "wait_sum", "response_sum")]
    assert np.allclose(ours.visits[0, 0, same], events.visits[0, 0, same], rtol=1e-7)
    assert np.allclose(ours.departures, events.departures) and ours.times.shape == events.times.shape
    assert np.allclose(ours.responses, events.responses, rtol=1e-6)
    areas = [VISITS.index(name) for name in ("number", "queued", "serving")]
    assert np.allclose(ours.visits[0, 0, areas], events.visits[0, 0, areas], rtol=0.02)
    assert ours.duration == pytest.approx(events.duration, rel=5e-3)
    assert ours.passages[0] == pytest.approx(events.passages[0], rel=0.02)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("servers", [2, 7])
def test_several_servers_by_recursion_agree_with_events(servers, by_events):
    spec = station(arrivals=Exponential(mean=1.25 / servers), service=LAWS[2], servers=servers)
    job = NetworkJob(spec=spec, seed=3, replication=1, passages=50_000)
    ours, events = recursions.run_replication(job), by_events(job)
    # Customers leave out of order, so that a few are counted in one stretch and not in the other.
    assert np.allclose(ours.visits[0, 0], events.visits[0, 0], rtol=2e-3)
    assert ours.counts.sum() == events.counts.sum()


def test_where_it_applies():
    plain = {"servers": 3}
    assert recursions.applies(station(**plain)) and recursions.applies(station(servers=128))
    named = QueueingNetwork(
        stations=Station(name="a", service={"x": LAWS[0]}), classes=JobClass(name="x", arrivals=POISSON)
    )
    assert recursions.applies(named)
    assert recursions.applies(
        station(arrivals=Geometric(mean=3.0), service=Geometric(mean=2.0), clocked=True)
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"servers": 129},
        {"servers": np.inf},
        {"capacity": 5},
        {"discipline": "lifo"},
        {"discipline": "sharing"},
        {"rate_multiplier": (1.0, 2.0)},
        {"setup": LAWS[0]},
        {"vacation": LAWS[0]},
        {"batch": Geometric(mean=2.0)},
        {"patience": LAWS[0]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_where_it_does_not_apply(fields):
    assert not recursions.applies(station(**fields))


def test_networks_are_left_to_events():
    single = Station(name="a", service=LAWS[0])
    arrivals = JobClass(arrivals=POISSON)
    for spec in (
        QueueingNetwork(stations=single, classes=arrivals, routing={"a": {"a": 0.1}}),
        QueueingNetwork(stations=single, classes=JobClass(arrivals=POISSON, entry={"a": 0.5})),
        QueueingNetwork(stations=single, classes=JobClass(population=3), routing={"a": "a"}),
        QueueingNetwork(stations=single, classes=[arrivals, JobClass(name="other", arrivals=POISSON)]),
        tandem(arrivals=POISSON, services=[LAWS[0]] * 2),
    ):
        assert not recursions.applies(spec)


def test_overload_shows_as_growth():
    spec = station(arrivals=Exponential(mean=0.5), service=Exponential(mean=1.0))
    runs = [
        recursions.run_replication(NetworkJob(spec=spec, seed=1, replication=r, passages=20_000))
        for r in range(3)
    ]
    assert stability([run.numbers[:, 0] for run in runs]) is False
    served = [run.visits[0, 0, VISITS.index("completions")] / run.duration for run in runs]
    assert np.allclose(served, 1.0, atol=0.03)


def means(spec, replications, *, of="wait_sum", antithetic=False):
    column = [VISITS.index(name) for name in (of, "departures")]
    jobs = [
        NetworkJob(spec=spec, seed=5, replication=r, passages=20_000, antithetic=antithetic)
        for r in range(replications)
    ]
    sums = np.array([recursions.run_replication(job).visits[0, 0, column] for job in jobs])
    return sums[:, 0] / sums[:, 1]


def test_common_random_numbers_tell_close_designs_apart():
    """A server 2 % faster; apart, the two would need many times the runs."""
    slow, fast = (means(station(service=Exponential(mean=m)), 40) for m in (1.0, 0.98))
    pair = paired_difference(slow, fast, confidence=0.999)
    exact = [float(mm1(arrival_rate=0.8, service_rate=1 / m).mean_waiting_time) for m in (1.0, 0.98)]
    assert exact[1] - exact[0] in pair.difference
    assert pair.decided and pair.gain > 20


def test_mirrored_runs_narrow_the_interval():
    """Nearly half of the variance at a load of 0.1; a fifth at 0.8, where a run forgets its numbers."""
    spec, what = station(arrivals=Exponential(mean=10.0), service=Exponential(mean=1.0)), "response_sum"
    plain, mirrored = means(spec, 40, of=what), means(spec, 40, of=what, antithetic=True)
    pairs = mean_interval((plain + mirrored) / 2, confidence=0.999)
    assert float(mm1(arrival_rate=0.1, service_rate=1).mean_response_time) in pairs
    assert np.corrcoef(plain, mirrored)[0, 1] < -0.2
    assert pairs.half_width < 0.9 * mean_interval(means(spec, 80, of=what), confidence=0.999).half_width
