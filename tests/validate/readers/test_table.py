from __future__ import annotations

import math
import re

import numpy as np
import pytest

from validate.readers import read_table

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


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n", {"metrics": {"y": "b"}}, "CSV with a header line or Parquet: it has 1 lines"),
        ("a,b\n1,2\n3\n", {"metrics": {"y": "b"}}, "row 2 has 1 cells for 2 columns"),
        ("a,b\n1,2\n", {"metrics": {"y": "bb"}}, "has no column 'bb'; did you mean 'b'?"),
        ("a,b\n1,x\n", {"metrics": {"y": "b"}}, "row 1 must have a number in column 'b', got 'x'"),
        ("a,b\n1,2\n", {"metrics": {}}, "metrics must name at least one column, got none"),
        (
            "a,b\n1,2\n",
            {"metrics": {"y": "b"}, "units": {"z": "ns"}},
            "intervals and units must be of a metric, got 'z'",
        ),
        (
            "a,b,c\n3,2,1\n",
            {"metrics": {"y": "b"}, "intervals": {"y": ("a", "c")}},
            "row 1 must have a <= b <= c, got 3, 2, 1",
        ),
        (
            "a,b\nmaybe,2\n",
            {"metrics": {"y": "b"}, "stable": "a"},
            "row 1 must have true or false in column 'a', got 'maybe'",
        ),
    ],
)
def test_says_what_is_wrong(tmp_path, text, options, message) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_table(write(tmp_path, text), **options)
