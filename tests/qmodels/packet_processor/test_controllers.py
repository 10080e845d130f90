"""The model of a memory behind controllers: its recursion, its tables, and processors with one."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import qmodels as qm
from optimize import Space, explore, replace_fields
from qmodels.packet_processor import controller_stream as stream
from qmodels.packet_processor import controller_waits as table
from qmodels.packet_processor.controller_stream import follow, numbers
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.traffic import OnOff
from validate import simulate
from validate.dram.kernel import run_channel
from validate.dram.state import new_channel

DDR5 = qm.dram("DDR5-6400", channels=8)


def processor(**changes: Any) -> Any:
    return replace_fields(replace(qm.PacketProcessor(), dram=DDR5), changes)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"page_policy": "closed"},
        {"scheduler": "oldest-ready-first", "ranks": 2},
        {"write_high": 4, "write_low": 1},
    ],
)
def test_without_refreshes_the_recursion_ends_accesses_when_the_controller_does(changes: Any) -> None:
    spec = qm.dram("DDR4-3200", t_refi=0, t_rfc=0, controller_cycles=3, **changes)
    rng = np.random.default_rng(4)
    count = 3000
    asked = {
        "arrival": np.cumsum(rng.exponential(12, size=count)).astype(np.int64),
        "bank": rng.integers(spec.geometry.channel_banks, size=count),
        "row": rng.integers(3, size=count),
        "write": rng.integers(2, size=count),
    }
    end, _, _ = follow(numbers(spec), *asked.values())
    channel = new_channel(spec, **asked, start=0.0)._replace(end=np.zeros(count, dtype=np.int64))
    run_channel(channel)
    assert np.mean(end == channel.end) > 0.99


def test_a_conflict_is_an_unfinished_access_to_another_row() -> None:
    spec = qm.dram("DDR4-3200", t_refi=0, t_rfc=0)
    arrival = np.array([0, 10, 20, 500])
    bank, row, write = np.zeros(4, dtype=np.int64), np.array([1, 1, 2, 3]), np.zeros(4, dtype=np.int64)
    _, conflict, opened = follow(numbers(spec), arrival, bank, row, write)
    assert conflict.tolist() == [False, False, True, False]
    assert opened.tolist() == [True, False, True, True]


def test_an_idle_processor_is_as_fast_as_the_simulated_one() -> None:
    spec = processor(**{"workload.offered_gbps": 1.0})
    found = simulate(spec, packets=2000, replications=4, saturation=False)
    model = qm.solve(spec)
    for name in ("packet_latency", "lookup_latency", "write_latency", "read_latency"):
        assert_allclose(model.metrics[name], found.metrics[name].best, rtol=0.04)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("device", ["DDR4-3200", "DDR5-6400"])
def test_latency_at_half_load_is_within_a_tenth_of_the_simulated_one(device: str) -> None:
    spec = processor(**{"dram": qm.dram(device, channels=4)})
    spec = replace_fields(spec, {"workload.offered_gbps": qm.solve(spec).saturation_data_rate / 2})
    found, model = simulate(spec, packets=8000, replications=4, saturation=False), qm.solve(spec)
    assert abs(model.packet_latency / found.packet_latency.best - 1) < 0.1
    assert model.row_hit_ratio == pytest.approx(found.row_hit_ratio.best, abs=0.03)


def test_latency_grows_with_load_and_overload_has_none() -> None:
    full = qm.solve(processor()).saturation_data_rate
    rates = full * np.array([0.1, 0.3, 0.5, 0.7, 0.9, 1.1])
    found = qm.solve(processor(**{"workload.offered_gbps": rates}))
    assert (np.diff(found.packet_latency[:5]) > 0).all() and np.isinf(found.packet_latency[5])
    assert_array_equal(found.stable, [True] * 5 + [False])


def test_another_sample_of_accesses_gives_nearly_the_same_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of what four of them were apart: 2, 4 and 0.5 %."""
    spec = processor(**{"dram": qm.dram("DDR4-3200", channels=4), "workload.offered_gbps": 60.0})
    found = []
    for seed in range(1, 4):
        monkeypatch.setattr(stream, "SEED", seed)
        table.table.cache_clear()
        found.append(qm.solve(spec).metrics)
    table.table.cache_clear()
    bars = {"packet_latency": 0.05, "packet_latency_p99": 0.08, "saturation_data_rate": 0.01}
    for name, bar in bars.items():
        values = [one[name] for one in found]
        assert 0.0 < np.ptp(values) < bar * values[0]


def test_channels_are_explored() -> None:
    space = Space(
        processor(), {"dram.geometry.channels": [2, 8], "alloc_trial_count": [1, 2], "link_width": [16, 32]}
    )
    found = explore(space, qm.solve, minimize=["packet_latency", "cost"])
    assert found.evaluations == 8
    latency = found.table["packet_latency"]
    assert min(latency[4:]) < min(latency[:4])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"dram": qm.dram("HBM2", channels=8)}, "timings of a memory other than DDR4-3200 or DDR5-6400"),
        ({"dram.address_map": Interleaved(permute="xor")}, "banks that are permuted by the row"),
        ({"dram.scheduler": "oldest-ready-first"}, "a scheduler other than fr-fcfs"),
        ({"free_list.small_packet_segments": 1}, "lists for small packets with a memory behind controllers"),
        ({"workload.arrivals": OnOff(on_packets=4, peak_to_mean=2.0)}, "bursts with a memory behind"),
    ],
)
def test_what_was_not_measured_is_named(changes: Any, words: str) -> None:
    found = qm.solve(processor(**changes))
    assert not found.validated and [doubt.startswith(words) for doubt in found.doubts] == [True]


def test_closed_pages_are_doubted() -> None:
    found = qm.solve(processor())
    assert found.validated and found.doubts == {}
    closed = qm.solve(processor(**{"dram.page_policy": "closed", "free_list.alloc_trial_count": 1}))
    assert list(closed.doubts) == ["closed pages behind controllers: saturation up to 27 % off"]
