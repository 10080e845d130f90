from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cases.accuracy import DRAWN, LOADS, METRICS, REGIONS, cases, load_table, markdown, measure, summary
from qmodels.packet_processor.error_map import FILE, measured_error


def test_the_kept_table_covers_the_space_and_the_loads() -> None:
    table = load_table()
    assert set(table["metric"]) == set(METRICS)
    assert set(table["load"]) == set(LOADS)
    for name, choices in DRAWN.items():
        column = next(values for key, values in table.items() if key.split(" ")[0] == name)
        assert set(column) <= set(choices) and len(set(column)) > 1
    low, best, high = (np.array(table[name]) for name in ("low", "simulated", "high"))
    assert np.all((low <= best) & (best <= high))


def test_the_error_map_is_the_summary_of_the_kept_table() -> None:
    for line in summary(load_table()):
        middle = np.array([(line["load_above"] + line["load_to"]) / 2])
        assert measured_error(middle)[line["metric"]][0] == pytest.approx(line["mean"])
    assert FILE.exists() and np.isinf(measured_error(np.array([1.0]))["packet_latency"]).all()


def test_the_readme_shows_the_summary() -> None:
    readme = Path(__file__).parents[2] / "README.md"
    assert markdown(summary(load_table())) in readme.read_text(encoding="utf-8")


def test_bars_hold_up_to_80_percent() -> None:
    """Mean latency within 10 % on average, conflict probabilities within 2 points on average."""
    lines = [line for line in summary(load_table()) if line["load_to"] <= 0.8]
    assert len(lines) == len(METRICS) * (len(REGIONS) - 1)
    for line in lines:
        if line["metric"] == "packet_latency":
            assert line["mean"] <= 10
        if "conflict" in line["metric"]:
            assert line["mean"] <= 2


@pytest.mark.slow
def test_the_kept_table_is_what_the_command_makes() -> None:
    """The first designs again (the command makes all of them)."""
    again, kept = measure(8), load_table()
    size = len(again["metric"])
    for name in ("model", "simulated"):
        np.testing.assert_allclose(again[name], kept[name][:size], rtol=1e-6)


def test_designs_are_drawn_from_the_whole_space() -> None:
    drawn = list(cases(16))
    assert [what["load"] for what, _ in drawn] == list(LOADS) * 2
    assert len({tuple(what.items()) for what, _ in drawn}) == 16
