"""What the maps say about a design, by load, burstiness and step: the mechanism, not the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qmodels as qm
from qmodels.packet_processor import error_map
from qmodels.packet_processor.error_map import AGREED, FEWEST, measured_errors, wrong_directions
from qmodels.systems.noc.router import Router
from qmodels.systems.spec.fields import replace_fields

EVEN = {"dispersion_above": 0.0, "dispersion_to": 1.5}
BURSTS = {"dispersion_above": 1.5, "dispersion_to": 4.0}
LOW, HIGH = {"load_above": 0.0, "load_to": 0.5}, {"load_above": 0.5, "load_to": 1.0}
MEASURED = [
    {**LOW, **EVEN, "region": "even", "bias": -1.0, "mean": 2.0, "largest": 3.0, "designs": 7},
    {**HIGH, **EVEN, "region": "even", "bias": -4.0, "mean": 5.0, "largest": 6.0, "designs": 8},
    {**LOW, **BURSTS, "region": "bursts", "bias": -7.0, "mean": 8.0, "largest": 9.0, "designs": 9},
]
Direction = tuple[str, str, float, float, float, float, int, int]
"""Decision, metric, ends of load and of step, pairs that are separated, and ordered alike."""
NAMES = ("region", "metric", "load_above", "load_to", "step_above", "step_to", "separated", "agree")
NONE = ("slices", "packet_latency", 0.0, 0.0, 0.0, 0.0, 0, 0)


@pytest.fixture
def maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that puts maps of one's own in place of those measured."""

    def place(*directions: Direction) -> None:
        for name in ("ERRORS", "DIRECTIONS"):
            monkeypatch.setattr(getattr(error_map, name), "path", tmp_path / name)
        rows = [{"metric": "packet_latency", "unit": "%", **row} for row in MEASURED]
        error_map.ERRORS.write(rows, about="a map", command="a test")
        pairs = [dict(zip(NAMES, row, strict=True)) for row in directions or (NONE,)]
        pairs += [{**row, "region": error_map.ANY} for row in pairs]
        error_map.DIRECTIONS.write(pairs, about="a map", command="a test")

    yield place
    monkeypatch.undo()
    for one in (error_map.ERRORS, error_map.DIRECTIONS):
        one.forget()


def test_the_error_is_that_of_the_region(maps: Any) -> None:
    maps()
    load = np.array([0.3, 0.5, 0.51, 0.3, 0.3, 0.7, 1.0, 1.2])
    dispersion = np.array([1.0, 1.0, 1.5, 2.0, 4.1, 2.0, 1.0, 1.0])
    found = measured_errors(load=load, dispersion=dispersion, step=np.ones(8))["packet_latency"]
    assert found.bias[:4].tolist() == [-1, -1, -4, -7] and np.isnan(found.bias[4:]).all()
    assert found.mean[:4].tolist() == [2, 2, 5, 8] and found.known.tolist() == 4 * [True] + 4 * [False]
    assert found.largest[:4].tolist() == [3, 3, 6, 9]
    assert found.designs[:4].tolist() == [7, 7, 8, 9] and found.load_to[2] == 1.0
    assert np.isnan(found.load_above[4:]).all() and np.isnan(found.order).all()


def test_a_wrong_direction_is_one_of_its_region(maps: Any) -> None:
    separated = 4 * FEWEST
    right = int(AGREED * separated)
    inf = np.inf
    maps(
        ("alloc_trial_count", "write_conflict_probability", 0.0, 0.5, 2.0, 8.0, separated, right - 1),
        ("alloc_trial_count", "write_conflict_probability", 0.0, 0.5, 0.0, 2.0, separated, right),
        ("channels", "packet_latency", 0.5, 0.8, 8.0, inf, FEWEST, 0),
        ("slices", "packet_latency", 0.0, 0.8, 0.0, inf, FEWEST - 1, 0),
        ("slices", "read_conflict_probability", 0.0, 0.8, 0.0, inf, 20, 0),
    )
    load, step = np.array([0.3, 0.3, 0.3, 0.6, 0.6, 0.9]), np.array([1.0, 4, 16, 16, 64, 16])
    wrong = wrong_directions(load=load, step=step)
    assert [words.split(" is ")[0] for words in wrong] == [
        "write_conflict_probability along alloc_trial_count",
        "packet_latency along channels",
    ]
    trials, channels = wrong.values()
    assert trials.tolist() == [False, True, False, False, False, False]
    assert channels.tolist() == [False, False, False, True, True, False]
    found = measured_errors(load=load, dispersion=np.ones(6), step=step)["packet_latency"]
    assert found.order[[3, 4]].tolist() == [0.0, 0.0]


def processor(step: Any) -> qm.PacketProcessor:
    base = qm.PacketProcessor()
    return replace(base, dram=replace(base.dram, interleaving_step=step))


def test_an_answer_where_a_direction_is_wrong_is_not_validated(maps: Any) -> None:
    row = ("alloc_trial_count", "write_conflict_probability", 0.0, 0.8, 2.0, 8.0, 10)
    maps((*row, 10))
    assert qm.solve(processor(4)).validated and qm.solve(processor(4)).doubts == {}
    maps((*row, 0))
    one = qm.solve(processor(4))
    assert not one.validated
    assert "write_conflict_probability along alloc_trial_count is ordered against the simulation" in repr(one)
    sweep = qm.solve(processor(np.array([1, 4, 16])))
    assert sweep.validated.tolist() == [True, False, True]


def test_an_answer_shows_bias_mean_and_largest_and_where(maps: Any) -> None:
    maps()
    result = qm.solve(processor(1))
    assert result.error["packet_latency"].bias == -1.0 and result.error["packet_latency"].unit == "%"
    assert list(result.error) == ["packet_latency"] and result.error["packet_latency"].mean == 2.0
    text = repr(result)
    assert "error 2 %, bias -1, at most 3" in text
    assert "7 designs at loads of 0% to 50%, even" in text
    full = qm.solve(replace(processor(1), workload=qm.Workload(offered_gbps=400.0)))
    assert not full.error["packet_latency"].known and "error nan" not in repr(full)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"free_list.mean_run_length": 8.0}, "free-list runs shorter than 32 blocks"),
        ({"dram.banks": 2}, "fewer than 4 banks a channel"),
        (
            {"dram.page_policy": "closed", "free_list.alloc_trial_count": 1},
            "closed pages where consecutive blocks share a bank",
        ),
        (
            {"dram.page_policy": "closed", "dram.bank_step": 1, "free_list.alloc_trial_count": 3},
            "closed pages with several trials",
        ),
        ({"dram.bank_step": 8}, "blocks of a row on several banks"),
        ({"noc.router": Router(virtual_channels=1)}, "routers with fewer than 2 virtual channels"),
        ({"workload.offered_gbps": 90.0}, "load above 80%"),
    ],
)
def test_what_sets_a_design_apart_is_named(maps: Any, changes: dict[str, Any], words: str) -> None:
    maps()
    assert qm.solve(processor(1)).validated
    result = qm.solve(replace_fields(processor(1), changes))
    assert not result.validated and [doubt.startswith(words) for doubt in result.doubts] == [True]
    assert words in repr(result)
