"""The one form of error map: regions, what is not known, and the round trip of the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qmodels
from qmodels.evidence.error_map import COLUMNS, ErrorMap, MeasuredError, summarize

LATENCY: dict[str, Any] = {"metric": "latency", "unit": "%"}
LOW, HIGH = {"load_above": 0.0, "load_to": 0.5}, {"load_above": 0.5, "load_to": 1.0}


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Return a function that makes a map of rows."""

    def make(*rows: dict[str, Any]) -> ErrorMap:
        errors = ErrorMap(tmp_path / "map.csv")
        errors.write(rows, about="What was\nmeasured.", command="python -m this")
        return errors

    return make


def test_the_file_says_what_makes_it_and_keeps_what_is_not_known(made: Any) -> None:
    errors = made({**LATENCY, "region": "a, b", "mean": 2.5, "more": 1})
    text = errors.path.read_text().splitlines()
    assert text[:3] == ["# What was", "# measured.", "# Made by: python -m this"]
    assert text[3] == ",".join([*COLUMNS, "more"]) and text[4] == 'latency,%,"a, b",,,,,2.5,,,,1'
    (row,) = errors.rows
    assert row["region"] == "a, b" and row["mean"] == 2.5 and np.isnan(row["bias"])
    again = {name: value for name, value in row.items() if value == value}
    errors.write([again], about="What was\nmeasured.", command="python -m this")
    assert errors.path.read_text().splitlines() == text


def test_a_region_is_above_its_lower_and_up_to_its_upper_end(made: Any) -> None:
    errors = made({**LATENCY, **LOW, "mean": 1.0}, {**LATENCY, **HIGH, "mean": 2.0})
    found = errors.at(load=np.array([0.0, 0.5, 0.51, 1.0, 1.01, np.nan]))["latency"]
    assert found.mean[:4].tolist() == [1.0, 1.0, 2.0, 2.0] and np.isnan(found.mean[4:]).all()
    assert found.load_above[:4].tolist() == [0.0, 0.0, 0.5, 0.5]
    one = errors.at(load=0.7)["latency"]
    assert isinstance(one.mean, float) and one.mean == 2.0 and str(one) == "2 %"
    assert str(errors.at(load=2.0)["latency"]) == "not known"


def test_regions_by_name_and_by_further_conditions(made: Any) -> None:
    errors = made(
        {**LATENCY, "region": "a", "trials_above": 0, "trials_to": 2, "bias": 1.0, "largest": 2.0},
        {**LATENCY, "region": "a", "trials_above": 2, "trials_to": 5, "bias": 3.0, "largest": 4.0},
        {**LATENCY, "region": "b", "trials_above": 0, "trials_to": 2, "bias": 5.0, "largest": 6.0},
    )
    names, trials = np.array(["a", "b", "b", "c"]), np.array([[1], [3]])
    found = errors.at(region=names, trials=trials)["latency"]
    assert found.bias[0, :3].tolist() == [1.0, 5.0, 5.0] and found.region[0].tolist() == ["a", "b", "b", ""]
    assert found.bias[1, 0] == 3.0 and found.known.tolist() == [
        [True, True, True, False],
        [True] + 3 * [False],
    ]
    assert errors.at(region="c") == {} and errors.regions == ("a", "b")
    assert str(errors.at(region="b", trials=1)["latency"]) == "bias +5 %, at most 6"


def test_errors_are_summarized_with_their_sign() -> None:
    assert summarize([-30.0, 10.0, np.inf]) == {"designs": 2, "bias": -10.0, "mean": 20.0, "largest": 30.0}
    assert summarize([1.26], decimals=1)["mean"] == 1.3
    assert summarize([])["designs"] == 0 and np.isnan(summarize([])["bias"])


def test_every_map_beside_a_model_has_the_form_and_says_what_makes_it() -> None:
    paths = sorted(Path(qmodels.__file__).parent.rglob("*_map.csv"))
    assert len(paths) == 13
    for path in paths:
        rows = ErrorMap(path).rows
        assert tuple(rows[0])[: len(COLUMNS)] == COLUMNS, path
        assert "# Made by: " in path.read_text(encoding="utf-8"), path
        for row in rows:
            assert row["unit"] in ("%", "points", ""), path
            assert not abs(row["bias"]) > row["mean"] and not row["mean"] > row["largest"], (
                path,
                row,
            )


def test_every_answer_states_its_errors_in_the_one_form() -> None:
    specs = [
        qmodels.PacketProcessor(),
        qmodels.DataQueueing(),
        qmodels.LlcProcessor(),
        qmodels.WorkQueues(),
        qmodels.NumaMachine(),
    ]
    for spec in specs:
        errors = qmodels.solve(spec).error
        assert errors and all(isinstance(error, MeasuredError) for error in errors.values())
        assert all(name == error.metric and error.known for name, error in errors.items())
