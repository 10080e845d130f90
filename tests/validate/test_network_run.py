"""Laws every run obeys, its plain-Python twin, memory, overload, and what is refused."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs

from qmodels import JobClass, QueueingNetwork, Station, single_station, tandem
from qmodels.laws import Deterministic, Empirical, Erlang, Exponential, Geometric, HyperExponential, Replay
from qmodels.systems.stations.parts import DISCIPLINES, ForkJoin
from validate import simulate
from validate.campaigns.experiment import decode, encode
from validate.engine.calendar import EARLY, LATE, drop, new_calendar, pending, put
from validate.network.replication import (
    OUTCOMES,
    VISITS,
    NetworkJob,
    Run,
    advance,
    run_replication,
    visit_records,
)
from validate.network.world import FIRST_POOL, new_world

ONE = Exponential(mean=1.0)
MM1 = single_station(arrivals=Exponential(mean=1.25), service=ONE)


def state_series(spec, *, times, seed=0):
    """Return the jobs of each class at each node at some times of a run."""
    world, states = new_world(spec, seed=seed, replication=0), []
    for time in times:
        world = advance(world, until=float(time))
        states.append(world.tallies["number"].copy())
    return np.array(states)


@hs.composite
def specs(draw):
    """Networks of up to three stations and two classes with any feature that goes together."""
    names = [f"s{k}" for k in range(draw(hs.integers(1, 3)))]
    laws = hs.sampled_from(
        [ONE, Erlang(mean=0.7, phases=2), HyperExponential(probabilities=[0.5, 0.5], means=[0.2, 1.5])]
    )
    stations = []
    for name in names:
        discipline = draw(hs.sampled_from(DISCIPLINES))
        servers = 1 if discipline == "lifo-preemptive" else draw(hs.integers(1, 3))
        capacity = draw(hs.sampled_from([inf, 5, 8]))
        stations.append(
            Station(name=name, service=draw(laws), servers=servers, discipline=discipline, capacity=capacity)
        )
    impatient = all(s.discipline != "sharing" for s in stations) and draw(hs.booleans())
    classes = [
        JobClass(
            name=name,
            arrivals=Exponential(mean=draw(hs.floats(0.5, 4.0))),
            priority=k,
            patience=Exponential(mean=2.0) if impatient else None,
            entry=draw(hs.sampled_from(names)),
        )
        for k, name in enumerate(("x", "y"))
    ]
    routing = {name: {draw(hs.sampled_from(names)): draw(hs.floats(0.0, 0.7))} for name in names}
    return QueueingNetwork(stations=stations, classes=classes, routing=routing)


@given(spec=specs(), seed=hs.integers(0, 100))
def test_nothing_is_lost_and_little_holds_exactly(spec, seed):
    rows = np.concatenate(list(visit_records(spec, passages=2000, seed=seed)))
    run = run_replication(NetworkJob(spec=spec, seed=seed, replication=0, passages=1600))
    end = rows["left"].max()
    visits = state_series(spec, times=[end], seed=seed)[0]
    whole = dict(zip(VISITS, np.moveaxis(run.visits, -1, 0), strict=True))
    # The measured part: what came in and did not leave is still there, or was there before.
    assert np.all(whole["departures"] == whole["completions"] + whole["reneges"])
    assert np.all(np.abs(whole["arrivals"] - whole["losses"] - whole["departures"]) <= run.most_jobs)
    for node in range(len(spec.stations)):
        for k in range(len(spec.classes)):
            here = rows[(rows["node"] == node) & (rows["job_class"] == k) & (rows["outcome"] != 1)]
            assert np.all(here["left"] >= here["arrived"])
            served = here[~np.isnan(here["started"])]
            assert np.all(served["started"] >= served["arrived"])
            assert np.all(served["left"] >= served["started"])
            assert visits[node, k] >= 0
    station = [s.servers for s in spec.stations]
    assert np.all(whole["serving"].sum(axis=1) <= np.array(station) * run.duration * (1 + 1e-9))
    areas = [whole[name] for name in ("number", "queued", "serving")]
    assert all(np.all(area >= -1e-6) for area in areas)
    alone = [s.discipline != "sharing" for s in spec.stations]
    # A job that waits or is served is at the station; sharing splits the server.
    assert np.allclose(areas[0][alone], (areas[1] + areas[2])[alone], rtol=1e-9, atol=1e-6)


@given(
    places=hs.lists(hs.integers(1, 4), min_size=3, max_size=3),
    kinds=hs.lists(hs.sampled_from(["after-service", "before-service"]), min_size=3, max_size=3),
    servers=hs.lists(hs.integers(1, 3), min_size=3, max_size=3),
    disciplines=hs.lists(hs.sampled_from(["fifo", "lifo", "priority"]), min_size=3, max_size=3),
    seed=hs.integers(0, 100),
)
def test_no_station_holds_more_than_its_capacity(places, kinds, servers, disciplines, seed):
    stations = [
        Station(
            name=str(k), service=ONE, servers=min(c, n), capacity=n, when_full=kind, discipline=discipline
        )
        for k, (n, kind, c, discipline) in enumerate(zip(places, kinds, servers, disciplines, strict=True))
    ]
    # Only forwards: jobs cannot block each other in a circle.
    spec = QueueingNetwork(
        stations=stations,
        classes=[JobClass(name=n, arrivals=ONE, priority=p) for p, n in enumerate("xy")],
        routing={"0": {"1": 0.5, "2": 0.4}, "1": {"2": 0.8}},
    )
    times = np.linspace(0, 300, 3001)
    numbers = state_series(spec, times=times, seed=seed).sum(axis=2)
    assert np.all(numbers <= np.array(places))
    assert np.all(numbers.max(axis=0) == np.array(places))
    rows = np.concatenate(list(visit_records(spec, passages=300, seed=seed)))
    # Nothing is lost inside: only at the entry.
    assert set(rows["node"][rows["outcome"] == 1].tolist()) <= {0}


def test_closed_jobs_stay():
    spec = QueueingNetwork(
        stations=[
            Station(name="a", service=ONE),
            Station(name="b", service=ONE, capacity=2, when_full="after-service"),
            Station(name="c", service=ONE, capacity=2, when_full="before-service"),
        ],
        classes=[JobClass(name=n, population=p) for n, p in (("x", 3), ("y", 2))],
        routing={"a": {"b": 0.5, "c": 0.5}, "b": "a", "c": "a"},
    )
    numbers = state_series(spec, times=np.linspace(0, 500, 2001))
    assert np.all(numbers.sum(axis=1) == [3, 2])
    assert numbers.sum(axis=2).max(axis=0).tolist()[1:] == [2, 2]


def test_the_area_under_the_number_is_the_sum_of_the_times_spent():
    rows = np.concatenate(list(visit_records(MM1, passages=5000, seed=2)))
    arrived, left = np.sort(rows["arrived"]), np.sort(rows["left"])
    times = np.linspace(0, left[-100], 2000)
    expected = np.searchsorted(arrived, times, "right") - np.searchsorted(left, times, "right")
    # Jobs that were still there at the end are not in the rows: look only as long as none is missing.
    seen = state_series(MM1, times=times, seed=2)[:, 0, 0]
    missing = np.searchsorted(np.sort(seen - expected), 0)
    assert missing == 0 and np.mean(seen == expected) > 0.9


def test_first_come_first_served_keeps_the_order_and_the_server_busy():
    rows = np.concatenate(list(visit_records(MM1, passages=3000, seed=3)))
    assert np.all(np.diff(rows["arrived"]) >= 0)
    # Lindley: a job starts when it comes or when the one before leaves.
    assert np.array_equal(rows["started"][1:], np.maximum(rows["arrived"][1:], rows["left"][:-1]))


@pytest.mark.parametrize(
    "discipline", ["lifo", "priority", "priority-preemptive", "lifo-preemptive", "sharing"]
)
def test_no_discipline_changes_the_work(discipline):
    # Service times are drawn at the start of services: constant ones do not depend on the order.
    spec = single_station(arrivals=Exponential(mean=1.2), service=Deterministic(mean=1.0))
    times = np.linspace(1, 2000, 500)
    busy = [
        state_series(s, times=times, seed=4)[:, 0, 0] > 0
        for s in (spec, replace(spec, stations=[replace(spec.stations[0], discipline=discipline)]))
    ]
    assert np.array_equal(busy[0], busy[1])


def test_the_unit_of_time_scales_the_times_and_nothing_else():
    spec = single_station(arrivals=Exponential(mean=1.25), service=Erlang(mean=1.0, phases=2))
    scaled = single_station(arrivals=Exponential(mean=5.0), service=Erlang(mean=4.0, phases=2))
    one, two = (simulate(s, passages=2000, replications=2) for s in (spec, scaled))
    for name in one.metrics:
        factor = {"time": 4.0, "jobs/time": 0.25}.get(
            next(r["unit"] for r in one.rows() if r["metric"] == name), 1
        )
        # A power of two: not even rounding differs.
        assert two[name].best == factor * one[name].best
    assert two.quantile("response", 0.9).best == 4 * one.quantile("response", 0.9).best


def numbers(result):
    return [(name, e.low, e.best, e.high) for name, e in result.metrics.items()]


def test_designs_share_their_random_numbers():
    slow, fast = (
        simulate(single_station(arrivals=Exponential(mean=1.25), service=Exponential(mean=m)), passages=5000)
        for m in (1.0, 0.99)
    )
    assert fast["mean_waiting_time"].best < slow["mean_waiting_time"].best
    gap = slow["mean_waiting_time"].best - fast["mean_waiting_time"].best
    assert gap < slow["mean_waiting_time"].half_width


def test_mirrored_runs_are_opposed():
    spec = single_station(arrivals=Exponential(mean=2.0), service=ONE)
    columns = [VISITS.index("response_sum"), VISITS.index("departures")]
    means = []
    for mirrored in (False, True):
        runs = [
            run_replication(NetworkJob(spec=spec, seed=0, replication=k, passages=1000, antithetic=mirrored))
            for k in range(80)
        ]
        sums, counts = np.array([r.visits[0, 0, columns] for r in runs]).T
        means.append(sums / counts)
    # Measured -0.34; the standard error of 80 pairs is 0.11.
    assert np.corrcoef(means)[0, 1] < -0.1
    paired = simulate(spec, passages=5000, replications=20, antithetic=True, confidence=0.999)
    assert 2.0 in paired["mean_response_time"]


def test_memory_depends_on_the_jobs_inside_and_not_on_those_that_passed():
    short, long = (
        run_replication(NetworkJob(spec=MM1, seed=0, replication=0, passages=n)) for n in (1000, 400_000)
    )
    assert short.most_jobs == long.most_jobs == FIRST_POOL


def test_a_pool_that_grows_changes_nothing():
    # 2,000 jobs at once at a delay, whose number is Poisson.
    spec = single_station(arrivals=Exponential(mean=0.01), service=Deterministic(mean=20.0), servers=inf)
    result = simulate(spec, passages=20_000, replications=4)
    assert result.most_jobs > 2000
    assert result["mean_number_in_system"].best == pytest.approx(2000, rel=0.02)


def test_overload_is_inf_and_said():
    result = simulate(
        tandem(arrivals=Exponential(mean=0.8), services=[Exponential(mean=0.5), ONE]), passages=5000
    )
    assert not result.stable and result.overloaded == ("2",)
    assert result["mean_waiting_time[2]"].best == result["system_response_time"].best == inf
    assert result["mean_number_in_system[2]"].best == inf
    assert result["utilization[2]"].best == pytest.approx(1.0, abs=1e-6)
    assert result["mean_response_time[1]"].best == pytest.approx(0.5 / (1 - 0.5 / 0.8), rel=0.1)
    assert result.quantile("response[2]", 0.5).best == inf
    assert np.isfinite(result.quantile("response[1]", 0.5).best)
    assert "overloaded: 2" in repr(result)


def test_a_run_too_short_for_its_load_says_so():
    spec = single_station(arrivals=Exponential(mean=1 / 0.99), service=ONE)
    assert simulate(spec, passages=1000).short
    assert not simulate(MM1, passages=50_000).short


def test_all_jobs_stuck_is_an_error():
    # Two full stations that send to each other, and nothing in between.
    full = {"capacity": 2, "when_full": "after-service"}
    spec = QueueingNetwork(
        stations=[Station(name=n, service=ONE, **full) for n in "ab"],
        classes=[JobClass(name=n, population=2, reference=n) for n in "ab"],
        routing={"a": "b", "b": "a"},
    )
    with pytest.raises(RuntimeError, match=r"^no event is left at time .*: every job waits for another"):
        simulate(spec, passages=1000, replications=2)


def test_recorded_gaps_are_replayed():
    spec = single_station(arrivals=Replay(values=[1.0, 0.5, 2.0]), service=Deterministic(mean=0.75))
    rows = np.concatenate(list(visit_records(spec, passages=6)))
    assert rows["arrived"].tolist() == [1.0, 1.5, 3.5, 4.5, 5.0, 7.0]
    assert (rows["started"] - rows["arrived"]).tolist() == [0, 0.25, 0, 0, 0.25, 0]


def test_simultaneous_events_completions_first():
    # A job that leaves at 2 makes room for the one that comes at 2.
    spec = single_station(arrivals=Deterministic(mean=1.0), service=Deterministic(mean=1.0), capacity=1)
    assert simulate(spec, passages=1000, replications=2)["blocking_probability"].best == 0


def test_tasks_of_a_fork_are_recorded_under_their_job():
    spec = QueueingNetwork(
        stations=[Station(name=n, service=ONE) for n in "ab"],
        forks=[ForkJoin(name="f", branches=["a", "b"])],
        classes=JobClass(arrivals=Exponential(mean=3.0), entry="f"),
    )
    rows = np.concatenate(list(visit_records(spec, passages=500)))
    joins = rows[rows["task"] == -1]
    for join in joins[:50]:
        tasks = rows[(rows["job"] == join["job"]) & (rows["task"] >= 0)]
        assert sorted(tasks["task"].tolist()) == [0, 1]
        assert tasks["left"].max() == join["left"]


def test_runs_survive_storing():
    run = run_replication(NetworkJob(spec=MM1, seed=0, replication=0, passages=1000))
    again = decode(encode(run), Run)
    assert all(np.array_equal(getattr(run, name), getattr(again, name)) for name in Run.__dataclass_fields__)


@pytest.mark.parametrize("discipline", ["fifo", "lifo"])
def test_two_replications_show_a_plain_overload(discipline):
    def queue(load):
        return single_station(
            arrivals=Exponential(mean=1.0 / load), service=Exponential(mean=1.0), discipline=discipline
        )

    for load, stable in ((0.5, True), (0.95, True), (1.2, False), (2.0, False)):
        assert simulate(queue(load), replications=2, passages=20_000).stable == stable


@pytest.mark.parametrize("servers", [1, 2, inf])
def test_what_a_plain_network_leaves_out_changes_nothing(servers):
    two = (
        Station(name="a", service=ONE, servers=servers),
        Station(name="b", service=Erlang(mean=0.5, phases=2)),
    )
    classes = [JobClass(name=name, arrivals=Exponential(mean=5.0)) for name in "xy"]
    # Some come straight back to a station where others wait.
    routing = {"a": {"a": 0.25, "b": 0.75}, "b": {"a": 0.25}}
    spec = QueueingNetwork(stations=two, classes=classes, routing=routing)
    worlds = [new_world(spec, seed=5, replication=0) for _ in range(2)]
    assert not worlds[0].varied
    plain, whole = advance(worlds[0], ended=20_000), advance(worlds[1]._replace(varied=True), ended=20_000)
    for name in ("tallies", "histograms", "laws", "streams"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(whole, name))
    assert plain.state["now"] == whole.state["now"] > 0
    assert plain.histograms.sum() == 2 * plain.tallies["departures"].sum() + 20_000


EVENTS = 12
# Few times, so that ties are common.
steps = hs.lists(
    hs.tuples(hs.integers(0, EVENTS - 1), hs.integers(0, 5), hs.booleans(), hs.booleans()), max_size=80
)


@given(steps=steps)
def test_first_event_is_always_that_of_a_sorted_list(steps):
    heap, places = new_calendar(EVENTS), np.zeros(EVENTS, dtype=np.int64)
    expected: dict[int, tuple[float, bool, int]] = {}
    for number, (event, time, late, remove) in enumerate(steps):
        if remove and event in expected:
            drop(heap, places, event)
            del expected[event]
        else:
            put(heap, places, event, float(time), LATE if late else EARLY)
            expected[event] = (float(time), late, number)
        if number % 3:
            continue  # The place of a first event that was dropped may stay open for several steps.
        assert pending(heap, places) == len(expected)
        assert {e for e in range(EVENTS) if places[e] > 0} == set(expected)
        if expected:
            first = min(expected, key=lambda e: expected[e])
            assert (heap[1]["event"], heap[1]["time"]) == (first, expected[first][0])
    for event in sorted(expected, key=lambda e: expected[e]):
        assert pending(heap, places) and heap[1]["event"] == event
        drop(heap, places, event)


ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("network_twin", Path(__file__).parent / "network_twin.py")
assert _SPEC is not None and _SPEC.loader is not None
twin = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(twin)


def exponential(mean):
    return Exponential(mean=mean)


MIXED = QueueingNetwork(
    stations=[
        Station(name="in", service={"a": exponential(0.4), "b": Erlang(mean=0.5, phases=2)}, servers=2),
        Station(name="core", service=exponential(0.5), discipline="priority", capacity=6),
        Station(name="out", service=Deterministic(mean=0.3)),
    ],
    classes=[
        JobClass(name="a", arrivals=exponential(1.0), batch=Empirical(values=[1, 3]), priority=1),
        JobClass(name="b", arrivals=Erlang(mean=1.5, phases=3), entry={"in": 0.5, "core": 0.5}),
    ],
    routing={
        "in": {"core": 0.8},
        ("core", "a"): {("out", "b"): 0.5, "out": 0.25},
        ("core", "b"): "out",
        "out": {"in": 0.1},
    },
)


@pytest.mark.parametrize(
    "spec",
    [
        single_station(arrivals=exponential(1.1), service=exponential(1.0)),
        single_station(
            arrivals=exponential(0.4), service=exponential(1.0), servers=3, patience=exponential(2.0)
        ),
        single_station(arrivals=Geometric(mean=3), service=Geometric(mean=2), capacity=4, clocked=True),
        MIXED,
    ],
    ids=["M/M/1", "M/M/3+M", "Geo/Geo/1/4", "network"],
)
def test_visit_by_visit(spec):
    expected = twin.visits(spec, 2000, seed=4)
    (found,) = visit_records(spec, passages=2000, seed=4)
    assert len(found) == len(expected)
    for row, (job, k, node, arrived, started, left, outcome) in zip(found, expected, strict=True):
        assert (row["job"], row["job_class"], row["node"], OUTCOMES[int(row["outcome"])]) == (
            job,
            k,
            node,
            outcome,
        )
        # To the last bit: the same additions in the same order.
        assert (row["arrived"], row["left"]) == (arrived, left)
        assert isnan(row["started"]) if started is None else row["started"] == started


EVERYTHING = {
    "fork": QueueingNetwork(
        stations=[Station(name=n, service=exponential(1.0)) for n in "ab"],
        forks=[ForkJoin(name="f", branches=["a", ("b", "a")])],
        classes=JobClass(arrivals=exponential(4.0), entry="f"),
    ),
    "blocking": tandem(
        arrivals=exponential(1.0),
        services=[exponential(0.9)] * 3,
        capacity=[4, 2, 2],
        when_full="after-service",
    ),
    "before": tandem(
        arrivals=exponential(1.0),
        services=[exponential(0.9)] * 3,
        capacity=[4, 2, 2],
        when_full="before-service",
    ),
    "sharing": single_station(arrivals=exponential(1.3), service=exponential(1.0), discipline="sharing"),
    "preemptive": QueueingNetwork(
        stations=Station(name="s", service=exponential(1.0), discipline="priority-preemptive", servers=2),
        classes=[JobClass(name=n, arrivals=exponential(1.4), priority=p) for p, n in enumerate("ab")],
    ),
}
SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from test_network_run import EVERYTHING, everything_that_is_counted
with np.errstate(over="ignore"):
    for spec in EVERYTHING.values():
        print(everything_that_is_counted(spec))
"""


def everything_that_is_counted(spec):
    run = run_replication(NetworkJob(spec=spec, seed=3, replication=0, passages=400))
    arrays = (run.visits, run.passages, run.blocked, run.bins, run.counts, run.numbers)
    return f"{run.events} " + b"".join(array.tobytes() for array in arrays).hex()


def test_compiled_and_plain_python_agree_to_the_last_bit():
    plain = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(folder=str(Path(__file__).parent))],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert plain.splitlines() == [everything_that_is_counted(spec) for spec in EVERYTHING.values()]


def test_records_come_in_blocks_of_the_same_rows():
    whole = np.concatenate(list(visit_records(MIXED, passages=3000, seed=1)))
    blocks = list(visit_records(MIXED, passages=3000, seed=1, rows=500))
    assert len(blocks) > 5
    assert np.concatenate(blocks).tobytes() == whole.tobytes()


def test_records_and_estimates_tell_of_the_same_run():
    spec = single_station(arrivals=exponential(1.25), service=exponential(1.0))
    result = simulate(spec, passages=20_000, replications=2, seed=9)
    waits = []
    for replication in (0, 1):
        rows = np.concatenate(list(visit_records(spec, passages=25_000, seed=9, replication=replication)))
        waits.append((rows["started"] - rows["arrived"])[5000:])
    assert np.mean(waits) == pytest.approx(result["mean_waiting_time"].best, rel=1e-9)
