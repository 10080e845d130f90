"""Directions that are wrong by load and step, and doubts: the mechanism, not the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qmodels as qm
from qmodels.packet_processor import error_map
from qmodels.packet_processor.error_map import AGREED, FEWEST, wrong_directions
from qmodels.systems.noc.router import Router
from qmodels.systems.spec.fields import replace_fields

Direction = tuple[str, str, float, float, float, float, int, int]
"""Decision, metric, ends of load and of step, pairs that are separated, and ordered alike."""
NAMES = ("region", "metric", "load_above", "load_to", "step_above", "step_to", "separated", "agree")
NONE = ("slices", "packet_latency", 0.0, 0.0, 0.0, 0.0, 0, 0)


@pytest.fixture
def maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that puts maps of one's own in place of those measured."""

    def place(*directions: Direction) -> None:
        monkeypatch.setattr(error_map.DIRECTIONS, "path", tmp_path / "directions")
        pairs = [dict(zip(NAMES, row, strict=True)) for row in directions or (NONE,)]
        pairs += [{**row, "region": error_map.ANY} for row in pairs]
        error_map.DIRECTIONS.write(pairs, about="a map", command="a test")

    yield place
    monkeypatch.undo()
    error_map.DIRECTIONS.forget()


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
