import math

import numpy as np
import pytest

from validate.readers import Run, RunSet, read_table
from validate.readers.run_set import find_files, point, settings_of


def a_set() -> RunSet:
    return RunSet.from_columns(
        settings={"rate": [0.3, 0.1, 0.2], "kind": ["a", "a", "b"]},
        metrics={"latency": [30.0, 10.0, math.nan], "hops": [3.0, 3.0, 4.0]},
        units={"latency": "cycle"},
    )


def test_columns_and_what_varies() -> None:
    runs = a_set()
    assert len(runs) == 3 and runs.metrics == ("latency", "hops") and runs.varied == ("rate", "kind")
    np.testing.assert_array_equal(runs["hops"], [3, 3, 4])
    np.testing.assert_array_equal(runs.setting("rate"), [0.3, 0.1, 0.2])
    assert "latency" not in runs.runs[2].metrics
    assert runs.runs[0].metrics["latency"].confidence == 0
    assert [run.settings["rate"] for run in runs.sorted_by("rate")] == [0.1, 0.2, 0.3]
    assert len(runs.where(kind="a")) == 2


def test_convert_and_rename_leave_the_rest() -> None:
    runs = (
        a_set().where(kind="a").convert("latency", factor=0.5, unit="ns").rename({"rate": "injection_rate"})
    )
    np.testing.assert_array_equal(runs["latency"], [15, 5])
    assert runs.units == {"latency": "ns"} and runs.varied == ("injection_rate",)
    assert a_set().rename({"latency": "delay"}).units == {"delay": "cycle"}


def test_averaged_runs_have_the_interval_of_their_mean() -> None:
    runs = RunSet.from_columns(
        settings={"rate": [0.1, 0.1, 0.1, 0.2, 0.2], "seed": [1, 2, 3, 1, 2]},
        metrics={"latency": [9.0, 10.0, 11.0, 20.0, 22.0]},
    ).averaged()
    assert [run.settings for run in runs] == [{"rate": 0.1}, {"rate": 0.2}]
    estimate = runs.runs[0].metrics["latency"]
    # Student's t with 2 degrees of freedom at 97.5 %, 4.302653, times 1 / sqrt(3).
    assert (estimate.best, estimate.high) == (10.0, pytest.approx(10 + 4.302653 / 3**0.5, rel=1e-6))
    with pytest.raises(ValueError, match=r"average over seed must be at least 2, got 1 with \{'rate': 0.1\}"):
        RunSet.from_columns(settings={"rate": [0.1], "seed": [1]}, metrics={"x": [1.0]}).averaged()


def test_prints_and_tabulates() -> None:
    text = repr(a_set())
    assert text.splitlines()[0] == "observations: 3 runs, 2 metrics" and "0.3" in text
    frame = a_set().to_pandas()
    assert len(frame) == 5 and set(frame["metric"]) == {"latency", "hops"}


def test_a_run_holds_no_nan_but_may_be_infinite() -> None:
    assert Run(settings={}, metrics={"x": point(math.inf)}).metrics["x"].best == math.inf
    with pytest.raises(ValueError, match="left out where they are unknown, got NaN|low <= best <= high"):
        Run(settings={}, metrics={"x": point(math.nan)})


def test_files_by_pattern_in_the_order_of_their_numbers(tmp_path) -> None:
    for name in ("rate_0.1.log", "rate_0.05.log", "rate_0.2.log", "other.txt"):
        (tmp_path / name).write_text("x")
    found = find_files(f"{tmp_path}/*.log")
    assert [path.name for path in found] == ["rate_0.05.log", "rate_0.1.log", "rate_0.2.log"]
    assert find_files([tmp_path / "other.txt", f"{tmp_path}/o*"]) == [tmp_path / "other.txt"]
    with pytest.raises(ValueError, match="no file matches '.*none"):
        find_files(f"{tmp_path}/none*")
    with pytest.raises(ValueError, match="paths must name at least one file, got none"):
        find_files([])
    assert settings_of(found[0], r"rate_(?P<rate>\d\.\d+)\.") == {"rate": 0.05}
    with pytest.raises(ValueError, match="settings must be a pattern with named groups found in"):
        settings_of(found[0], r"load(?P<load>\d)")


CSV = """inj, lat [ns],lo,hi,ok,tag
0.1,12,11,13,yes,a
0.2,17.5,15,19,1,b

0.9,inf,inf,inf,False,
"""
COLUMNS = {"metrics": {"packet_latency": "lat [ns]"}, "intervals": {"packet_latency": ("lo", "hi")}}


def write(tmp_path, text, name="runs.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_columns_become_settings_metrics_intervals_and_verdicts(tmp_path) -> None:
    runs = read_table(
        write(tmp_path, CSV),
        **COLUMNS,
        settings={"injection_rate": "inj"},
        units={"packet_latency": "ns"},
        confidence=0.99,
        stable="ok",
    )
    np.testing.assert_array_equal(runs["packet_latency"], [12, 17.5, math.inf])
    np.testing.assert_array_equal(runs.setting("injection_rate"), [0.1, 0.2, 0.9])
    estimate = runs.runs[1].metrics["packet_latency"]
    assert (estimate.low, estimate.high, estimate.confidence) == (15, 19, 0.99)
    assert [run.stable for run in runs] == [True, True, False]
    assert runs.units == {"packet_latency": "ns"}


def test_the_columns_left_are_settings_and_empty_cells_are_absent(tmp_path) -> None:
    text = CSV.replace("17.5", "").replace("15,19", ",")
    runs = read_table(write(tmp_path, text), **COLUMNS, stable="ok")
    assert runs.runs[0].settings == {"inj": 0.1, "tag": "a"} and runs.runs[2].settings == {"inj": 0.9}
    assert "packet_latency" not in runs.runs[1].metrics


def test_tabs_and_chosen_columns(tmp_path) -> None:
    runs = read_table(write(tmp_path, "a\tb\tc\n1\t2\t3\n", "x.tsv"), metrics={"y": "c"}, settings=["a"])
    assert runs.runs[0].settings == {"a": 1} and runs["y"] == [3]


def test_parquet_is_the_same(tmp_path) -> None:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(
        {
            "inj": [0.1, 0.2],
            "lat [ns]": [12.0, None],
            "lo": [11.0, None],
            "hi": [13.0, None],
            "ok": [True, False],
        }
    )
    frame.to_parquet(tmp_path / "runs.parquet")
    runs = read_table(tmp_path / "runs.parquet", **COLUMNS, stable="ok")
    assert runs.runs[0].metrics["packet_latency"].high == 13 and runs.runs[0].settings == {"inj": 0.1}
    assert runs.runs[1].metrics == {} and not runs.runs[1].stable
    (tmp_path / "bad.parquet").write_text("hello")
    with pytest.raises(ValueError, match=r"bad.parquet must be a table .*Parquet"):
        read_table(tmp_path / "bad.parquet", **COLUMNS)
