"""Intervals that rare large jobs make too narrow have no upper end, or come from the idle times."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from qmodels import JobClass, QueueingNetwork, Station, single_station
from qmodels.laws import (
    MAP,
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Pareto,
    Replay,
    Weibull,
)
from validate import Estimate, compare, simulate
from validate.engine.histogram import Histogram
from validate.estimates.doubts import decisive_share, lopsidedness, skewness_of_means, tail_index
from validate.estimates.intervals import more_replications
from validate.network.recursions import relaxations
from validate.network.run import NetworkExperiment

H2 = HyperExponential(probabilities=(0.95, 0.05), means=(0.5 / 0.95, 10.0))
ORDINARY = {
    "exponential": (Exponential(mean=1.0), 0.7),
    "exponential, .95": (Exponential(mean=1.0), 0.95),
    "constant": (Deterministic(mean=1.0), 0.7),
    "hyperexponential": (H2, 0.7),
    "log-normal 2": (LogNormal(mean=1.0, scv=2.0), 0.7),
    "Pareto 4.5": (Pareto(mean=1.0, shape=4.5), 0.7),
}
HEAVY = {
    "Pareto 2.5": (Pareto(mean=1.0, shape=2.5), 0.7),
    "Pareto 3.5": (Pareto(mean=1.0, shape=3.5), 0.7),
    "log-normal 10": (LogNormal(mean=1.0, scv=10.0), 0.7),
    "log-normal 10, .3": (LogNormal(mean=1.0, scv=10.0), 0.3),
    "log-normal 30": (LogNormal(mean=1.0, scv=30.0), 0.7),
}
SYSTEMS = ORDINARY | HEAVY
MARKED = ("mean_waiting_time", "mean_response_time", "mean_number_in_queue", "mean_number_in_system")
MARKED += ("system_response_time", "mean_number_in_network")


def queue(law: Any, load: float, **station: Any) -> QueueingNetwork:
    return single_station(arrivals=Exponential(mean=law.mean / load), service=law, **station)


def observe(
    name: str, seeds: range, passages: int, replications: int = 10, **station: Any
) -> tuple[float, list[Estimate]]:
    """Return the exact mean response of M/G/1 (Pollaczek, Khinchine) and its estimates."""
    law, load = SYSTEMS[name]
    found = []
    for seed in seeds:
        experiment = NetworkExperiment(
            spec=queue(law, load, **station), seed=seed, passages=passages, confidence=0.9999
        )
        pairs = [(job, experiment.run_replication(job)) for job in experiment.jobs(0, replications)]
        result = experiment.summarize(pairs, replications=replications, seconds=0.0)
        found.append(result["mean_response_time"])
    return law.mean * (1 + load * (1 + law.scv) / (2 * (1 - load))), found


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_systems_are_not_marked(name):
    seeds = 500 + 20 * list(SYSTEMS).index(name)
    _, found = observe(name, range(seeds, seeds + 2), 100_000)
    assert all(e.valid for e in found)


@pytest.mark.in_ci(2)
@pytest.mark.parametrize("name", HEAVY)
@pytest.mark.parametrize("passages", [5_000, 100_000])
def test_heavy_ones_are_whatever_the_runs_happened_to_see(name, passages):
    exact, found = observe(name, range(700, 702), passages, replications=3, discipline="lifo")
    assert not any(e.valid for e in found)
    assert all(e.high == np.inf and exact in e for e in found)


@pytest.mark.parametrize("name", HEAVY)
def test_first_come_first_served_they_are_told_from_the_idle_times(name):
    """Where the average of the waits is too low in most runs, and its interval as narrow as it is wrong."""
    exact, found = observe(name, range(700, 703), 100_000)
    assert all(e.valid and exact in e and e.relative_half_width < 0.06 for e in found)


def test_the_result_says_that_times_are_from_the_idle_times():
    law, load = HEAVY["Pareto 2.5"]
    result = simulate(queue(law, load), passages=20_000, replications=4, confidence=0.9999)
    assert result.from_idle_times and "rare services decide" in repr(result) and result.validated
    wait, rate = result["mean_waiting_time"], load / law.mean
    assert result["mean_number_in_queue"].best == pytest.approx(rate * wait.best)
    assert result["mean_response_time"].best == pytest.approx(wait.best + law.mean)
    assert not simulate(queue(*ORDINARY["constant"]), passages=20_000, replications=4).from_idle_times


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(
    "arrivals",
    [MAP(d0=[[-1.6, 0.1], [0.05, -0.25]], d1=[[1.5, 0.0], [0.0, 0.2]]), Pareto(mean=1.4, shape=2.5)],
)
def test_gaps_that_have_a_memory_or_rare_values_of_their_own_are_not_told_from_idle_times(arrivals):
    spec = single_station(arrivals=arrivals, service=Pareto(mean=0.5, shape=2.5))
    result = simulate(spec, passages=20_000, replications=4)
    assert not result.from_idle_times and result["mean_waiting_time"].high == np.inf


def test_runs_of_a_few_long_spells_have_no_upper_end():
    """M/M/1 at 0.95, last come first served, in 5000 jobs: 82 % of its 95 % intervals would cover."""
    # The laws tell it, and where they do not, as with room for so many, what was seen.
    for room, words in ({}, "relaxation times"), ({"capacity": 10_000}, "it takes longer runs"):
        spec = queue(Exponential(mean=1.0), 0.95, discipline="lifo", **room)
        short, long = (simulate(spec, passages=n)["mean_waiting_time"] for n in (5000, 100_000))
        assert words in short.doubt and 19 in short and long.valid


def test_a_part_of_a_recording_says_nothing_about_its_rest():
    gaps = np.random.default_rng(5).exponential(size=5000)
    spec = single_station(arrivals=Replay(values=tuple(gaps)), service=Exponential(mean=0.6))
    part, whole = (simulate(spec, passages=n)["mean_waiting_time"] for n in (2500, 20_000))
    assert "runs play 50% of a recording" in part.doubt and (part.low, part.high) == (0, np.inf)
    assert whole.valid


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("servers, from_idle_times", [(1, True), (8, False)])
def test_whether_a_run_is_too_short_does_not_depend_on_how_high_it_was(servers, from_idle_times):
    spec = queue(Exponential(mean=1.0), 0.95 * servers, servers=servers)
    for seed in range(6):
        result = simulate(spec, passages=20_000, replications=4, seed=seed)
        assert result.from_idle_times == from_idle_times
        if not from_idle_times:
            assert "relaxation times of the queue: passages=2" in result["mean_waiting_time"].doubt
    assert simulate(spec, passages=60_000, replications=4)["mean_waiting_time"].valid


def test_relaxation_times_of_a_run():
    # Twice the variance of the services and none of the gaps is as much as one of each.
    gaps, service = (
        Deterministic(mean=1.25),
        HyperExponential(probabilities=(0.5, 0.5), means=(1.7071, 0.2929)),
    )
    one = relaxations(queue(Exponential(mean=1.0), 0.8), 1000)
    other = relaxations(single_station(arrivals=gaps, service=service), 1000)
    assert one == pytest.approx(1250 * 0.2**2 / (0.8 * 2)) and other == pytest.approx(one, rel=1e-3)
    assert relaxations(queue(Exponential(mean=1.0), 1.2), 1000) == 0
    for order in ("lifo", "lifo-preemptive", "sharing"):  # the work is the same
        assert relaxations(queue(Exponential(mean=1.0), 0.8, discipline=order), 1000) == one
    assert relaxations(queue(Exponential(mean=1.0), 0.8, capacity=9), 1000) is None


def test_the_end_on_the_side_of_the_long_tail_lies_farther_out():
    rng = np.random.default_rng(5)
    even, tail = rng.normal(10, 1, (8, 64)), rng.exponential(size=(8, 64))
    longer = [lopsidedness(x, np.ones((8, 64)), confidence=0.95) for x in (tail, -tail, even)]
    # The skewness of a mean of 64 exponential times is 2 / 8.
    t = stats.t(7).ppf(0.975)
    assert longer[0] == pytest.approx(2 / 8 / np.sqrt(8) * (2 * t**2 + 1) / (6 * t), rel=0.4)
    assert longer[1] == pytest.approx(-longer[0]) and abs(longer[2]) < longer[0] / 3
    e = Estimate(low=1.0, best=2.0, high=3.0, confidence=0.95)
    assert (e.stretched(0.1).low, e.stretched(0.1).high) == (1.0, pytest.approx(3.1))
    assert (e.stretched(-0.1).low, e.stretched(-0.1).high) == (pytest.approx(0.9), 3.0)
    result = simulate(queue(Exponential(mean=1.0), 0.9), passages=50_000, replications=8)
    wait, load = result["mean_waiting_time"], result["utilization"]
    assert 1.02 < (wait.high - wait.best) / (wait.best - wait.low) < 1.5
    assert load.high - load.best == pytest.approx(load.best - load.low)


def test_precision_takes_all_replications_where_there_is_no_upper_end():
    e = Estimate(low=1.0, best=1.1, high=1.2, confidence=0.95).doubted("rare")
    assert more_replications([e], replications=10, precision=0.5, maximum=64) == 10
    assert more_replications([e], replications=40, precision=0.5, maximum=64) == 24


def test_the_result_its_tables_and_comparisons_say_so():
    result = simulate(queue(*HEAVY["Pareto 2.5"], discipline="lifo"), passages=20_000, replications=4)
    marked = {name for name, e in result.metrics.items() if not e.valid}
    assert marked == set(MARKED)  # a throughput's interval depends on no fourth moment
    frame = result.to_pandas()
    assert set(frame["metric"][~frame["interval_valid"]]) == marked
    assert "?" in repr(result) and "moment 4 of the service time" in repr(result)
    side = compare(result, model={"mean_waiting_time": 2.1, "throughput": 0.7})
    assert side["mean_waiting_time"].inside is None and side["throughput"].inside is not None
    assert "? no upper end, and a best value that is probably too low: moment 4" in side.table()
    ordinary = simulate(queue(*ORDINARY["exponential"]), passages=20_000, replications=4)
    assert "?" not in repr(ordinary) and all(e.valid for e in ordinary.metrics.values())


def test_a_trace_of_heavy_times_is_found_out_by_what_the_runs_saw():
    times = 0.6 * (1 - np.random.default_rng(3).random(50_000)) ** (-1 / 2.5)
    result = simulate(queue(Replay(values=tuple(times)), 0.7), passages=50_000, replications=4)
    assert "fall like a power of" in result["mean_waiting_time"].doubt


def test_only_the_station_that_has_them_and_the_passage_through_it():
    net = QueueingNetwork(
        stations=[
            Station(name="light", service=Exponential(mean=1.0)),
            Station(name="heavy", service=Pareto(mean=0.5, shape=3.0)),
        ],
        classes=[JobClass(arrivals=Exponential(mean=2.0), entry="light")],
        routing={"light": "heavy"},
    )
    result = simulate(net, passages=20_000, replications=4)
    assert result["mean_waiting_time[light]"].valid
    assert not result["mean_waiting_time[heavy]"].valid and not result["system_response_time"].valid


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("station", [{"servers": 4}, {"capacity": 20}, {"discipline": "sharing"}])
def test_where_the_wait_needs_fewer_moments_fewer_are_asked_for(station):
    load = 0.7 * station.get("servers", 1)
    result = simulate(queue(Pareto(mean=1.0, shape=3.9), load, **station), passages=20_000, replications=4)
    assert "infinite" not in result["mean_response_time"].doubt


@pytest.mark.parametrize(
    "law, quantile",
    [
        (Exponential(mean=2.0), stats.expon(scale=2).ppf),
        (Gamma(mean=1.0, scv=4.0), stats.gamma(0.25, scale=4).ppf),
        (LogNormal(mean=1.0, scv=0.5), stats.lognorm(np.sqrt(np.log(1.5)), scale=1.5**-0.5).ppf),
        (Weibull(mean=1.0, shape=0.8), stats.weibull_min(0.8).ppf),
        (Pareto(mean=1.0, shape=9.0), stats.pareto(9).ppf),
    ],
)
@pytest.mark.parametrize("order", [2.0, 4.0])
def test_the_decisive_share_by_quadrature(law, quantile, order):
    """On a grid of levels close to 1: the level beyond which half of the moment lies."""
    edges = np.concatenate([[0.0], 1 - np.geomspace(1, 1e-14, 200_001)[1:]])
    power = quantile((edges[:-1] + edges[1:]) / 2) ** order * np.diff(edges)
    level = edges[int(np.searchsorted(np.cumsum(power), power.sum() / 2))]
    assert decisive_share(law, order) == pytest.approx(1 - level, rel=2e-3)


def test_the_decisive_share_of_mixtures_and_tables():
    one = HyperExponential(probabilities=(0.3, 0.7), means=(2.0, 2.0))
    assert decisive_share(one, 4) == pytest.approx(decisive_share(Exponential(mean=1.0), 4))
    rare = HyperExponential(probabilities=(1 - 1e-6, 1e-6), means=(1.0, 1e4))
    assert decisive_share(rare, 4) == pytest.approx(1e-6 * decisive_share(Exponential(mean=1.0), 4), rel=1e-3)
    assert decisive_share(Empirical(values=(1.0, 100.0), weights=(0.999, 0.001)), 4) == pytest.approx(0.001)
    assert decisive_share(Deterministic(mean=1.0), 4) == 1


def test_tail_index_and_skewness_of_known_laws():
    rng = np.random.default_rng(1)
    for shape in (1.5, 3.0):
        histogram = Histogram()
        histogram.add(rng.pareto(shape, 400_000) + 1)
        assert tail_index([histogram]) == pytest.approx(shape, rel=0.06)
    same = Histogram()
    same.add(np.full(1000, 3.0))
    assert tail_index([same]) == np.inf
    batches = rng.exponential(size=(2000, 16))
    assert skewness_of_means(batches, np.ones((2000, 16))) == pytest.approx(2 / 4, rel=0.1)
