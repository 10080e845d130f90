"""Bounds over boxes of specs against the answers of designs in them, overloaded and degenerate ones too."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qmodels as qm
from cases.study.goals import WORKLOADS, default_processor
from optimize import replace_fields
from qmodels.packet_processor.bounds import SPANS
from qmodels.traffic import OnOff

POINTS: dict[str, tuple[float, ...]] = {
    "dram.channels": (1, 2, 3, 4, 6, 8),
    "dram.interleaving_step": (1, 2, 4, 8, 16, 32, 64),
    "dram.banks": (1, 2, 4, 8, 16),
    "dram.bank_step": (1, 8, 32),
    "noc.link_width": (4, 8, 16, 32, 64),
    "noc.clock_ghz": (0.5, 1.0, 2.0),
    "free_list.clock_ghz": (0.4, 1.0, 2.0),
}
RANGES: dict[str, tuple[float, ...]] = {
    "free_list.segments": (64, 512, 4096, 20_000, 300_000),
    "free_list.vms1_share": (0.0, 0.3, 0.5, 1.0),
    "free_list.alloc_trial_count": (1, 2, 3, 5, 9),
    "free_list.small_packet_segments": (0, 1, 2, 4, 9),
    "llc.slices": (0, 1, 2, 4, 8),
    "llc.slice_lines": (16, 64, 512, 2048),
    "llc.access_cycles": (2, 8),
    "llc.bus_cycles": (0, 6),
    "llc.clock_ghz": (0.5, 1.0, 2.0),
}
BOXES, DESIGNS = 12, 16
"""Boxes of one kind of traffic, and designs looked at in each, its two corners among them."""


def traffic_of(rng: np.random.Generator) -> qm.PacketProcessor:
    """Return a spec of any traffic, idle to far beyond what memories carry."""
    kind = int(rng.integers(4))
    base = default_processor(WORKLOADS[kind]) if kind < 2 else qm.PacketProcessor()
    fields: dict[str, Any] = {
        "workload.offered_gbps": float(rng.choice([1.0, 10.0, 40.0, 80.0, 150.0])),
        "workload.lookups_per_packet": int(rng.choice([0, 1, 3])),
        "workload.hold_ns": float(rng.choice([0.0, 300.0, 5000.0, 50_000.0])),
        "free_list.mean_run_length": float(rng.choice([1.0, 8.0, 64.0, 1e6])),
    }
    if kind == 3:
        on, peak = float(rng.choice([3, 20, 80])), float(rng.choice([1.5, 4.0]))
        fields["workload.arrivals"] = OnOff(on_packets=on, peak_to_mean=peak)
    if rng.random() < 0.3:
        fields["dram.page_policy"] = "closed"
    if rng.random() < 0.3:
        fields |= {"dram.refresh_interval_cycles": 3000, "dram.refresh_cycles": 100}
    return replace_fields(base, fields)


def check_boxes(seed: int) -> None:
    """Compare the bounds of random boxes with the answers of designs in them."""
    rng = np.random.default_rng(seed)
    base = traffic_of(rng)
    cells = {name: rng.choice(values, BOXES) for name, values in POINTS.items()}
    low, high, design = dict(cells), dict(cells), {}
    for name, values in RANGES.items():
        ends = rng.integers(len(values), size=(2, BOXES))
        ends[1] = np.where(rng.random(BOXES) < 0.4, ends[1], ends[0])
        first, last = ends.min(axis=0), ends.max(axis=0)
        inside = rng.integers(first, last + 1, size=(DESIGNS, BOXES))
        inside[0], inside[1] = first, last
        low[name], high[name], design[name] = (np.array(values)[k] for k in (first, last, inside))
    every = {name: np.tile(values, DESIGNS) for name, values in cells.items()}
    every |= {name: values.reshape(-1) for name, values in design.items()}
    solved = qm.solve(replace_fields(base, every))
    stable = np.broadcast_to(solved.stable, BOXES * DESIGNS).reshape(DESIGNS, BOXES)
    corners = replace_fields(base, low), replace_fields(base, high)
    before: dict[str, Any] = {}
    bounds = qm.bounds(base)
    for stage in bounds.stages:
        found = stage(*corners)
        assert not (stable & (found["stable"][1] == 0.0)).any(), seed
        for name, (least, most) in found.items():
            if name == "stable":
                continue
            value = np.broadcast_to(solved.metrics[name], BOXES * DESIGNS).reshape(DESIGNS, BOXES)
            counts = stable | (name == "cost")
            assert (value >= least * (1 - 1e-9))[counts].all(), (seed, name)
            assert (value <= most * (1 + 1e-9))[counts].all(), (seed, name)
            assert (least >= before.get(name, 0.0) * (1 - 1e-9)).all(), (seed, name)  # none looser
            before[name] = least


@pytest.mark.parametrize("seed", range(4))
def test_no_design_of_a_box_is_beyond_its_bounds(seed: int) -> None:
    check_boxes(seed)


@given(seed=st.integers(100, 2**31))
@settings(max_examples=2)
def test_nor_of_any_other_box(seed: int) -> None:
    check_boxes(seed)


@pytest.mark.slow
def test_no_design_of_a_thousand_boxes_is() -> None:
    for seed in range(1000, 1090):
        check_boxes(seed)


def test_bounds_are_close_where_a_box_is_one_design() -> None:
    spec = replace_fields(default_processor(), {"interleaving_step": np.array([1, 4, 16])})
    solved, found = qm.solve(spec), qm.bounds(spec).stages[-1](spec, spec)
    assert (found["packet_latency"][0] > 0.95 * solved.packet_latency).all()
    assert (found["energy_per_packet"][0] > 0.99 * solved.energy_per_packet).all()
    assert (found["cost"][0] == found["cost"][1]).all() and (found["cost"][0] == solved.cost).all()


def test_what_one_spec_showed_is_not_taken_for_another() -> None:
    bounds, spec = qm.bounds(qm.PacketProcessor()), qm.PacketProcessor()
    for gbps in (10.0, 60.0, 10.0):
        here = replace(spec, workload=replace(spec.workload, offered_gbps=gbps))
        alone = qm.bounds(here).stages[0](here, here)["packet_latency"][0]
        np.testing.assert_array_equal(bounds.stages[0](here, here)["packet_latency"][0], alone)


def test_lists_too_short_for_the_load_are_told() -> None:
    spec = replace_fields(default_processor(), {"hold_ns": 50_000.0, "segments": np.array([64, 4096])})
    found = qm.bounds(spec).stages[0](spec, spec)["overflow_probability"][0]
    refused = qm.solve(spec).overflow_probability
    assert 0.9 * refused[0] < found[0] <= refused[0] and found[1] <= refused[1]


def test_a_list_of_its_own_that_is_too_short_is_told_beside_another_with_room() -> None:
    """Large packets have their own blocks; in a box that may give them all blocks nothing is sure."""
    fields = {
        "hold_ns": 50_000.0,
        "segments": 20_000,
        "small_packet_segments": np.array([1]),
        "vms1_share": 0.01,
    }
    spec = replace_fields(default_processor(), fields)
    found = qm.bounds(spec).stages[0](spec, spec)["overflow_probability"][0]
    refused = qm.solve(spec).overflow_probability
    assert 0.5 * refused[0] < found[0] <= refused[0]
    one = replace_fields(spec, {"small_packet_segments": np.array([0])})
    assert qm.bounds(spec).stages[0](one, spec)["overflow_probability"][0] == 0.0
    assert qm.solve(one).overflow_probability == 0.0


def test_other_kinds_and_boxes_are_refused_in_a_line() -> None:
    with pytest.raises(TypeError, match="bounds needs a kind with bounds, the packet processor, got 'numa'"):
        qm.bounds(qm.NumaMachine())
    with pytest.raises(ValueError, match="bounds are of memories without controllers"):
        qm.bounds(replace(qm.PacketProcessor(), dram=qm.dram("DDR4-3200")))
    few, many = (replace_fields(qm.PacketProcessor(), {"channels": np.array([n])}) for n in (1, 2))
    with pytest.raises(ValueError, match=r"dram.channels must have one value in a box, got \[1\] to \[2\]"):
        qm.bounds(few).stages[0](few, many)
    with pytest.raises(ValueError, match="noc.link_width must have one value in a box, got 8 to 16"):
        low, high = (replace_fields(qm.PacketProcessor(), {"link_width": n}) for n in (8, 16))
        qm.bounds(low).stages[0](low, high)


def test_fields_that_boxes_span_are_those_of_the_specs() -> None:
    assert set(RANGES) == set(SPANS)
