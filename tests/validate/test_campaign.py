"""Campaigns: the same numbers wherever and however often they run, and a table of all points."""

import csv
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from qmodels import DataQueueing, PacketProcessor, single_station
from qmodels.laws import Exponential
from qmodels.systems.packets.data_queueing import Allocation, DataMemory
from qmodels.systems.spec import kind
from qmodels.systems.spec.fields import varied_fields
from validate import CampaignInterrupted, simulate, write_parquet
from validate.campaigns.run import TerminalProgress, announce
from validate.network.replication import visit_records


@pytest.fixture
def toy(monkeypatch):
    """Return the toy simulator's module; processes started here know it, too."""
    folder = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, str(Path(__file__).parents[2])]))
    import toy_simulator

    monkeypatch.setattr(kind, "entry_points", kind.entry_points)
    toy_simulator.register()
    yield toy_simulator
    monkeypatch.undo()
    toy_simulator.forget()
    sys.modules.pop("toy_simulator")


def toys(toy):
    return [toy.Toy(mean=mean, spread=spread) for mean, spread in ((1, 0.1), (2, 1.0), (3, 9.0), (4, 0.0))]


def assert_same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.metrics == b.metrics and a.replications == b.replications
        assert_array_equal(a.values, b.values)


PRECISE = {"replications": 3, "precision": 0.05, "max_replications": 40, "seed": 7}


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_the_numbers_do_not_depend_on_the_workers(toy, workers):
    alone = [simulate(spec, **PRECISE) for spec in toys(toy)]
    with ThreadPoolExecutor(workers) as executor:
        assert_same(simulate(toys(toy), executor=executor, **PRECISE), alone)


def test_the_numbers_are_the_same_from_processes(toy):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert_same(simulate(toys(toy), executor=executor, **PRECISE), simulate(toys(toy), **PRECISE))


def packet_processors():
    spec = PacketProcessor()
    return [replace(spec, workload=replace(spec.workload, load_factor=load)) for load in (0.5, 1.5)]


def networks():
    return [
        single_station(arrivals=Exponential(mean=mean), service=Exponential(mean=1.0), servers=servers)
        for mean, servers in ((2.0, 1), (0.5, 3))
    ]


def data_queueing():
    allocations = [Allocation(vms1_size=4096, alloc_trial_count=trials) for trials in (1, 3)]
    return [DataQueueing(data=DataMemory(segments=4096), allocation=allocation) for allocation in allocations]


SYSTEMS = {
    "data queueing": (data_queueing, {"packets": 1000}),
    "packet processors": (packet_processors, {"packets": 1000, "window": 64}),
    "queueing networks": (networks, {"passages": 1000, "precision": 0.1, "max_replications": 12}),
}


@pytest.mark.slow
def test_the_numbers_are_the_same_from_dask(toy):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        executor = client.get_executor()
        found = simulate(toys(toy), executor=executor, **PRECISE)
        real = {
            name: simulate(make(), executor=executor, replications=2, **options)
            for name, (make, options) in SYSTEMS.items()
        }
    assert_same(found, simulate(toys(toy), **PRECISE))
    for name, (make, options) in SYSTEMS.items():
        for one, other in zip(real[name], simulate(make(), replications=2, **options), strict=True):
            assert one.metrics == other.metrics and one.replications == other.replications


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
def test_workers_of_dask_that_are_killed_lose_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    specs, options = networks(), {"passages": 20_000, "replications": 12}
    killed: list[int] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        alive = list(client.run(os.getpid).values())

        def kill(done: int, _: int) -> None:
            if alive and done >= 8 / len(alive):
                killed.append(alive.pop())
                os.kill(killed[-1], signal.SIGKILL)

        store = tmp_path / "runs.sqlite"
        found = simulate(specs, executor=client.get_executor(), store=store, progress=kill, **options)
    assert len(killed) == 2 and found.simulated == 12 * len(specs)
    again = simulate(specs, store=store, **options)
    assert (again.restored, again.simulated) == (12 * len(specs), 0)
    for one, other, direct in zip(found, again, simulate(specs, **options), strict=True):
        assert one.metrics == other.metrics == direct.metrics


def test_a_seed_is_another_campaign_and_points_share_random_numbers(toy):
    first, second = (simulate(toy.Toy(spread=spread), replications=4, seed=1) for spread in (1.0, 2.0))
    assert np.allclose((second.values - 10) / (first.values - 10), 2.0)
    assert not np.array_equal(simulate(toy.Toy(), replications=4, seed=2).values, first.values)


def test_rounds_end_when_all_named_metrics_are_precise(toy):
    wanted = {"replications": 2, "max_replications": 2000}
    spec = toy.Toy(spread=4.0)
    main = simulate(spec, precision=0.05, **wanted)
    both = simulate(spec, precision={"time": 0.05, "excess": 0.2}, **wanted)
    assert main.metrics["time"].relative_half_width <= 0.05
    assert main.metrics["excess"].relative_half_width > 0.2 >= both.metrics["excess"].relative_half_width
    assert 10 <= main.replications < both.replications < 2000
    assert_array_equal(both.values[: main.values.size], main.values)


def test_rounds_end_at_the_maximum_and_where_the_system_does_not_keep_up(toy):
    options = {"precision": 1e-9, "replications": 3, "max_replications": 25}
    assert simulate(toy.Toy(), **options).replications == 25
    assert simulate(toy.Toy(stable=False), **options).replications == 3
    assert (
        simulate(toy.Toy(spread=0.0), **options).replications == 10
    )  # a spread of 0 is not believed at once


def test_a_tidy_table_of_all_points(toy, tmp_path):
    specs = [toy.Toy(), toy.Toy(spread=2.0), toy.Toy(spread=2.0, stable=False)]
    campaign = simulate(specs, replications=2)
    assert campaign.specs == tuple(specs) and campaign.points == (0, 1, 2) and not campaign[-1].stable
    table = campaign.table()
    columns = [
        "point",
        "spread",
        "spec.stable",
        "metric",
        "unit",
        "value",
        "low",
        "high",
        "interval_valid",
        "stable",
    ]
    assert list(table) == columns
    frame = campaign.to_pandas()
    assert frame["stable"].tolist() == frame["spec.stable"].tolist() == [True] * 4 + [False] * 2
    assert frame["point"].tolist() == [0, 0, 1, 1, 2, 2]
    assert frame["spread"].tolist() == [1.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    assert frame["metric"].tolist() == ["time", "excess"] * 3
    assert set(frame["unit"]) == {"s"}
    time = campaign[1].metrics["time"]
    row = frame[(frame["point"] == 1) & (frame["metric"] == "time")].iloc[0]
    assert (row["low"], row["value"], row["high"]) == (time.low, time.best, time.high)

    campaign.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["value"]) for row in rows] == table["value"]
    assert [row["stable"] for row in rows] == [str(value) for value in table["stable"]]

    parquet = pytest.importorskip("pyarrow.parquet")
    campaign.to_parquet(tmp_path / "table.parquet")
    assert parquet.read_table(tmp_path / "table.parquet").to_pydict() == table
    assert repr(campaign).splitlines()[0].startswith("Campaign of 3 points: 6 runs made, 0 restored, ")
    assert repr(campaign).splitlines()[3] == "  2: 2 replications, saturated"


def test_varied_fields_reach_into_parts_of_specs():
    spec = PacketProcessor()
    other = replace(spec, dram=replace(spec.dram, channels=np.int64(2), page_policy="closed"))
    varied = varied_fields([spec, other])
    assert varied == {
        "dram.channels": [spec.dram.channels, 2],
        "dram.page_policy": [spec.dram.page_policy, "closed"],
    }
    stations = [
        single_station(arrivals=Exponential(mean=mean), service=Exponential(mean=1.0)) for mean in (2.0, 3.0)
    ]
    assert varied_fields(stations) == {"classes.job.arrivals.mean": [2.0, 3.0]}
    assert varied_fields([spec]) == varied_fields([spec, PacketProcessor()]) == {}


@pytest.mark.slow
def test_records_of_jobs_to_parquet(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    (network,) = networks()[:1]
    path = tmp_path / "visits.parquet"
    write_parquet(path, visit_records(network, passages=3000, rows=500))
    blocks = list(visit_records(network, passages=3000, rows=500))
    visits = np.concatenate(blocks)
    table = parquet.read_table(path)
    assert len(blocks) > 1 and table.num_rows == visits.size >= 3000
    assert table.column_names == list(visits.dtype.names)
    for name in visits.dtype.names:
        assert_array_equal(table[name].to_numpy(), visits[name])


def test_parquet_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    write_parquet(path, {"x": [1.5, np.inf], "name": ["a", "b"]})
    before = parquet.read_table(path).to_pydict()
    assert before == {"x": [1.5, np.inf], "name": ["a", "b"]}

    def failing():
        yield {"x": [1.0]}
        raise RuntimeError("lost the simulator")

    with pytest.raises(RuntimeError, match="lost the simulator"):
        write_parquet(path, failing())
    with pytest.raises(ValueError, match="must have the columns x of the first and their types, got y"):
        write_parquet(path, [{"x": [1.0]}, {"y": [1.0]}])
    with pytest.raises(ValueError, match="blocks must have at least one member, got none"):
        write_parquet(path, [])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"Parquet needs pyarrow: pip install 'qmodels-toolkit\[parquet\]'"):
        write_parquet(path, {"x": [1.0]})
    monkeypatch.undo()
    assert parquet.read_table(path).to_pydict() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.parquet"]


def test_a_failing_run_is_named(toy):
    with pytest.raises(RuntimeError, match="lost the simulator") as caught:
        simulate([toy.Toy(), toy.Toy(mean=-1.0)], replications=5)
    assert caught.value.__notes__ == ["while simulating point 1, job 3 of its round"]


def test_ctrl_c_gives_the_points_that_are_finished(toy, monkeypatch):
    monkeypatch.setattr("validate.campaigns.run.IN_FLIGHT", 1)

    def stop(done, total):
        assert total == 12
        if done == 7:
            raise KeyboardInterrupt

    with pytest.raises(CampaignInterrupted, match="2 of 4 points are finished; give a store") as caught:
        simulate(toys(toy), replications=3, progress=stop)
    campaign = caught.value.campaign
    assert isinstance(caught.value, KeyboardInterrupt)
    assert campaign.points == (0, 1) and campaign.specs == tuple(toys(toy)[:2])
    assert_same(campaign, simulate(toys(toy)[:2], replications=3))


def test_ctrl_c_in_a_later_round_gives_the_rounds_before(toy, monkeypatch):
    monkeypatch.setattr("validate.campaigns.run.IN_FLIGHT", 1)

    def stop(done, total):
        if done == 15:
            raise KeyboardInterrupt

    with pytest.raises(CampaignInterrupted, match="0 of 1 points are finished") as caught:
        simulate(toy.Toy(), replications=12, precision=1e-9, progress=stop)
    assert_same(caught.value.campaign, [simulate(toy.Toy(), replications=12)])


def test_progress_counts_runs(toy):
    seen = []
    options = {"replications": 2, "precision": 1e-9, "max_replications": 12}
    simulate(toys(toy)[:2], progress=lambda *numbers: seen.append(numbers), **options)
    assert sorted({done for done, _ in seen}) == list(range(25)) and seen == sorted(seen)
    assert seen[0] == (0, 4) and seen[-1] == (24, 24)
    assert all(done <= total for done, total in seen)


class Terminal:
    """Standard error as a terminal that remembers what it was sent."""

    def __init__(self, terminal):
        self.terminal = terminal
        self.text = ""

    def isatty(self):
        return self.terminal

    def write(self, text):
        self.text += text

    def flush(self):
        pass


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_on_a_terminal_and_nothing_in_a_pipe(monkeypatch, terminal):
    error = Terminal(terminal)
    monkeypatch.setattr(sys, "stderr", error)
    monkeypatch.setenv("TERM", "xterm")
    clock = iter([0.0, 0.5, *(10.0,) * 3])
    monkeypatch.setattr("validate.campaigns.run.monotonic", lambda: next(clock))
    with TerminalProgress() as progress:
        progress(100, 500)
        assert error.text == ""
        progress(300, 500)
    assert ("runs" in error.text) == terminal
    if terminal:
        assert "/100" not in error.text
        assert "300/500" in error.text and "20/s" in error.text and "10 s left" in error.text
    else:
        assert error.text == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_long_runs_say_before_how_long_they_take_on_a_terminal(monkeypatch, terminal):
    error = Terminal(terminal)
    monkeypatch.setattr(sys, "stderr", error)
    runs = []

    @dataclass(frozen=True)
    class Long:
        packets: int
        least: int = 0

        def lengths(self):
            return [("packets", max(self.packets, self.least)), ("other", 5)]

    experiment = Long(400_000)

    def pilot(one, short):
        runs.append(short)

    clock = iter([0.0, 90.0, 100.0, 103.0])  # the second pilot counts: 3 s
    monkeypatch.setattr("validate.campaigns.run.perf_counter", lambda: next(clock))
    announce(pilot, [experiment] * 2, replications=4, cores=2)
    # 8 replications of 40 pilots' length, two at once.
    assert error.text == ("about 8:00 on 2 cores\n" if terminal else "")
    assert runs == [{"packets": 10_000}] * 2 * terminal
    announce(pilot, [Long(99_999)], replications=9, cores=1)
    announce(pilot, [Long(400_000, least=300_000)], replications=9, cores=1)  # a trace that long
    assert len(runs) == 2 * terminal


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"replications": 1}, "replications must be a whole number >= 2, got 1"),
        ({"max_replications": 1}, "max_replications must be a whole number >= 2, got 1"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"confidence": 0.0}, "confidence must be between 0 and 1, got 0.0"),
        ({"precision": -0.1}, "precision must be finite and > 0, got -0.1"),
        ({"precision": {"time": 0.0}}, r"precision\['time'\] must be finite and > 0, got 0"),
        ({"precision": {"tim": 0.1}}, "precision must be of a metric, got 'tim'; did you mean 'time'"),
    ],
)
def test_bad_arguments(toy, options, message):
    with pytest.raises(ValueError, match=message):
        simulate(toy.Toy(), **options)


def test_what_cannot_be_simulated_is_named(toy):
    with pytest.raises(TypeError, match="a system spec must be of a kind .*, got a int"):
        simulate(3)
    with pytest.raises(TypeError, match="a system spec must be of a kind .*, got a str"):
        simulate([toy.Toy(), "a"])
    message = "no option 'sizes' for a Toy; did you mean 'size'\\?; its options are size"
    with pytest.raises(TypeError, match=message):
        simulate(toy.Toy(), sizes=3)


def test_progress_goes_on_while_nothing_is_finished(toy, monkeypatch):
    monkeypatch.setenv("TOY_SECONDS", "1.3")
    seen = []
    simulate(toy.Toy(), replications=2, progress=lambda done, total: seen.append(done))
    assert seen.count(0) >= 2


def test_a_campaign_of_nothing_is_empty():
    campaign = simulate([])
    assert len(campaign) == 0 and campaign.table()["point"] == []
