"""Directions: pairs judged by hand, regions, and that what is kept is what answers read."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases.joint_errors import directions
from cases.joint_errors.directions import (
    AXES,
    COMMAND,
    LOADS,
    OBJECTIVES,
    STEPS,
    bases,
    judged,
    markdown,
    summary,
)
from cases.tables import as_columns, load_table
from qmodels.evidence.error_map import ErrorMap
from qmodels.packet_processor.error_map import ANY, DIRECTIONS


def pair(
    model: tuple[float, float], simulated: tuple[float, float], half: float, **changes: Any
) -> dict[str, Any]:
    gap = simulated[1] - simulated[0]
    row: dict[str, Any] = {
        "decision": "channels",
        "metric": "packet_latency",
        "adjacent": True,
        "low": gap - half,
        "high": gap + half,
    }
    for end, k in (("first", 0), ("second", 1)):
        row |= {
            f"{end}_model": model[k],
            f"{end}_simulated": simulated[k],
            f"{end}_load": 0.4,
            f"{end}_step": 4,
        }
    return row | changes


def test_only_pairs_that_the_simulation_separates_count_and_a_tie_is_no_order() -> None:
    rows = as_columns(
        [
            pair((1.0, 2.0), (10.0, 20.0), 1.0),  # both grow
            pair((2.0, 1.0), (10.0, 20.0), 1.0),  # the model falls
            pair((1.0, 1.0), (10.0, 20.0), 1.0),  # the model is blind to the choice
            pair((1.0, 1.0 + 1e-12), (10.0, 20.0), 1.0),  # to rounding
            pair((1.0, 2.0), (10.0, 20.0), 11.0),  # within the noise
            pair((1.0, 2.0), (10.0, 10.05), 0.01),  # sure, and of no account
        ]
    )
    separated, agree = judged(rows)
    assert separated.tolist() == [True, True, True, True, False, False]
    assert agree.tolist() == [True, False, False, False, False, False]


def test_a_pair_belongs_to_the_regions_of_both_designs() -> None:
    pairs = as_columns(
        [
            pair((1.0, 2.0), (10.0, 20.0), 1.0, second_load=0.6),
            pair((2.0, 1.0), (10.0, 20.0), 1.0, second_step=32, adjacent=False),
        ]
    )
    lines = summary(pairs)
    assert len(lines) == (len(AXES) + 1) * len(OBJECTIVES) * len(LOADS) * len(STEPS)
    found = {
        (line["region"], line["load_to"], line["step_to"]): [
            line[name] for name in ("designs", "separated", "agree", "adjacent_separated", "adjacent_agree")
        ]
        for line in lines
        if line["designs"]
    }
    assert found == {
        (region, *where): counts
        for region in ("channels", ANY)
        for where, counts in {
            (0.5, 8.0): [2, 2, 1, 1, 1],
            (0.8, 8.0): [1, 1, 1, 1, 1],
            (0.5, np.inf): [1, 1, 0, 0, 0],
        }.items()
    }
    assert "| channels | 1 of 2 | " in markdown(pairs)


def test_the_map_is_the_summary_of_the_kept_pairs(tmp_path: Path) -> None:
    lines = summary(load_table(directions.FILE))
    again = ErrorMap(tmp_path / "map.csv")
    again.write(lines, about=directions.ABOUT, command=COMMAND)
    assert again.path.read_text() == DIRECTIONS.path.read_text()
    assert sum(line["separated"] for line in lines) > 100
    assert all(line["agree"] <= line["separated"] <= line["designs"] for line in lines)


def test_bases_cover_loads_steps_and_both_workloads() -> None:
    drawn = list(bases())
    assert len(drawn) == 2 * len(LOADS) * len(STEPS)
    for number, (what, spec) in enumerate(drawn):
        assert spec.dram.interleaving_step in STEPS[number % len(STEPS)]
        assert what["base"] == number and spec.dram.channels > 1


def test_pairs_are_measured_with_common_random_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wider links are faster, surely so over four pairs of short runs; the model knows."""
    monkeypatch.setattr(directions, "AXES", {"link_width": (8, 32)})
    base = one_base()
    monkeypatch.setattr(directions, "bases", lambda seed: iter([base]))
    monkeypatch.setattr(directions, "PACKETS", 2000)
    with ThreadPoolExecutor(1) as pool:
        rows = directions.measure(executor=pool)
    separated, agree = judged(rows)
    assert rows["metric"].tolist() == [name for name in OBJECTIVES if name != "saturation_data_rate"]
    assert separated[0] and agree[0] and rows["high"][0] < 0


def one_base() -> Any:
    from qmodels.systems.packets.packet_processor import PacketProcessor
    from qmodels.systems.spec.fields import replace_fields

    spec = replace_fields(PacketProcessor(), {"workload.offered_gbps": 20.0})
    return {"base": 0, "mix": "small", "load": 0.35}, spec


def test_the_command_is_named_where_the_maps_are_read() -> None:
    import qmodels.packet_processor.error_map as module

    assert "python -m cases.joint_errors.directions" in (module.__doc__ or "")
    assert Path(directions.FILE).exists()
