from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cases.joint_errors import directions
from cases.joint_errors.accuracy import (
    ABOUT,
    ARRIVALS,
    BURSTS,
    COMMAND,
    DESIGNS,
    DRAWN,
    FILE,
    GUIDE,
    LOADS,
    METRICS,
    REGIONS,
    cases,
    design,
    markdown,
    measure,
    summary,
)
from cases.tables import as_columns, load_table
from qmodels.evidence.error_map import ErrorMap, MeasuredError
from qmodels.packet_processor.burstiness import burstiness
from qmodels.packet_processor.error_map import ERRORS, measured_errors
from qmodels.systems.spec.metrics import is_relative

EVEN, BURSTY = BURSTS


def stated_unit(metric: str) -> str:
    return "%" if is_relative(metric) else "points"


def errors_at(load: float, dispersion: float) -> dict[str, MeasuredError]:
    one = np.ones(1)
    return measured_errors(load=load * one, dispersion=dispersion * one, step=one)


def test_the_kept_table_covers_the_space_and_the_loads() -> None:
    table = load_table(FILE)
    assert set(table["metric"]) == set(METRICS)
    assert set(table["load"]) == set(LOADS)
    for name, choices in DRAWN.items():
        assert set(table[name]) <= set(choices) and len(set(table[name])) > 1
    low, best, high = (np.array(table[name]) for name in ("low", "simulated", "high"))
    assert np.all((low <= best) & (best <= high))


def test_the_error_map_is_the_summary_of_the_kept_table(tmp_path: Path) -> None:
    lines = summary(load_table(FILE))
    again = ErrorMap(tmp_path / "map.csv")
    again.write(lines, about=ABOUT, command=COMMAND)
    assert again.path.read_text() == ERRORS.path.read_text()
    for line in lines:
        load = (line["load_above"] + line["load_to"]) / 2
        found = errors_at(load, (line["dispersion_above"] + line["dispersion_to"]) / 2)[line["metric"]]
        stated = found if line["unit"] == found.unit else found.relative
        assert stated is not None
        for name in ("bias", "mean", "largest", "designs"):
            assert getattr(stated, name)[0] == pytest.approx(line[name], rel=1e-5, nan_ok=True), name
        assert not abs(line["bias"]) > line["mean"] and not line["mean"] > line["largest"]
    assert np.isnan(errors_at(1.0, 1.0)["packet_latency"].mean).all()


def test_every_region_is_measured() -> None:
    """Poisson arrivals are even, both kinds of bursts are bursts, and none lies beyond the map."""
    assert all(row["designs"] > 0 for row in ERRORS.rows)
    table = load_table(FILE)
    (measured,) = np.nonzero(table["metric"] == METRICS[0])
    assert measured.size == DESIGNS
    for row in measured:
        what = {name: column[row] for name, column in table.items()}
        dispersion = burstiness(design(what).workload).dispersion[0]
        assert dispersion <= ERRORS.reach("dispersion") == BURSTS[BURSTY][1]
        assert (dispersion <= BURSTS[EVEN][1]) == (what["arrivals"] == "poisson")


def test_the_summary_is_signed() -> None:
    """By hand: errors of -30 and +10 % have a bias of -10, a mean size of 20 and a largest of 30."""
    latency = {"metric": "packet_latency", "simulated": 100.0, "dispersion": 1.0, "stable": True}
    conflicts = {**latency, "metric": "write_conflict_probability", "simulated": 0.02}
    table = as_columns(
        [
            {**latency, "load": 0.4, "model": 70.0, "error": -30.0},
            {**latency, "load": 0.5, "model": 110.0, "error": 10.0},
            {**latency, "load": 0.5, "model": 1.0, "error": -99.0, "stable": False},
            {**conflicts, "load": 0.5, "model": 0.01, "error": -1.0},
        ]
    )
    lines = {(line["metric"], line["unit"], line["load_to"], line["region"]): line for line in summary(table)}
    found = lines["packet_latency", "%", 0.5, EVEN]
    assert [found[name] for name in ("bias", "mean", "largest", "designs")] == [-10.0, 20.0, 30.0, 2]
    biases = [lines["write_conflict_probability", unit, 0.5, EVEN]["bias"] for unit in ("points", "%")]
    assert biases == [-1.0, -50.0]
    assert np.isnan(lines["packet_latency", "%", 0.65, EVEN]["mean"])


def test_the_guide_shows_the_summaries() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    assert markdown(summary(load_table(FILE))) in guide
    assert directions.markdown(load_table(directions.FILE)) in guide


def test_the_readme_says_what_the_map_says() -> None:
    """The row of the packet processor; of the two classes from 50 to 80 % it has the worse one."""
    rows = [row for row in ERRORS.rows if row["metric"] == "packet_latency"]
    cells = []
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.8), (0.8, 1.0)):
        mine = [row for row in rows if row["load_above"] >= low and row["load_to"] <= high]
        even, bursts = (
            max(row["mean"] for row in mine if (row["region"] == EVEN) == is_even)
            for is_even in (True, False)
        )
        cells.append(f"{even:.2g} ({bursts:.2g})")
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"| packet processor, Poisson arrivals (bursts) | {' | '.join(cells)} |" in readme


def test_bars_hold_up_to_80_percent() -> None:
    """Poisson packets: mean latency within 10 % on average, conflicts within 2 points on average."""
    lines = [
        line
        for line in summary(load_table(FILE))
        if line["load_to"] <= 0.8 and line["region"] == EVEN and line["unit"] == stated_unit(line["metric"])
    ]
    assert len(lines) == len(METRICS) * (len(REGIONS) - 1)
    for line in lines:
        if line["metric"] == "packet_latency":
            assert line["mean"] <= 10
        if "conflict" in line["metric"]:
            assert line["mean"] <= 2


@pytest.mark.slow
def test_the_kept_table_is_what_the_command_makes() -> None:
    """The first designs again (the command makes all of them)."""
    again, kept = measure(8), load_table(FILE)
    size = len(again["metric"])
    for name in ("model", "simulated"):
        np.testing.assert_allclose(again[name], kept[name][:size], rtol=1e-6)


def test_designs_are_drawn_from_the_whole_space() -> None:
    drawn = [what for what, _ in cases(16)]
    assert [what["load"] for what in drawn] == list(LOADS) * 2
    assert len({tuple(what.items()) for what in drawn}) == 16
    assert set(load_table(FILE)["arrivals"]) == set(ARRIVALS)
