"""Intervals of models: they cover what they say, and say where they know nothing."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qmodels as qm
from cases.evidence.__main__ import DRAWN
from cases.evidence.calibrate import ROOT, Residual, calibrated, coverage, residuals
from cases.evidence.record import read, resolved
from qmodels.evidence import intervals
from qmodels.evidence.features import Features
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.kind import kind_named


def population(count: int, seed: int, *, tail: float) -> list[Residual]:
    """Return log ratios whose centre and spread grow with load and dispersion, Student-distributed."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        load, dispersion = rng.uniform(0.05, 0.95), 2 ** rng.uniform(0, 5)
        resource = str(rng.choice(["bus", "link"]))
        spread = 0.02 * math.exp(2 * load) * dispersion**0.4 * (3.0 if resource == "link" else 1.0)
        found.append(
            Residual(
                kind="dram",
                number=number,
                metric="read_latency",
                features=Features(
                    kind="dram",
                    load=np.asarray(load),
                    resource=resource,
                    dispersion=np.asarray(dispersion),
                    recorded=False,
                    variant="",
                    doubted=False,
                ),
                value=0.1 * load + spread * rng.standard_t(tail),
                model=math.nan,
            )
        )
    return found


@settings(max_examples=6, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), tail=st.sampled_from([2.5, 5.0, 100.0]))
def test_intervals_cover_in_all_and_in_every_stratum(seed: int, tail: float) -> None:
    table = calibrated(population(800, seed, tail=tail))
    rows = coverage(table, population(800, seed + 10_000, tail=tail))
    shares = {row[2]: int(row[4].rstrip("%")) for row in rows}
    assert 85 <= shares["all"] <= 95
    assert min(shares.values()) >= 78


def test_a_metric_of_few_systems_has_no_interval() -> None:
    assert not calibrated(population(30, 1, tail=5.0))["dram"]["metrics"]


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return a table by which latencies are 10 % higher than the model says, give or take 5 %."""
    known = {"systems": 100, "centre": [0.1, *[0.0] * 6], "scale": [math.log(0.05), *[0.0] * 6]}
    known["ends"] = [[-k, k] for k in (0.7, 1.3, 1.7, 2.0)]
    known["values"] = None
    share = known | {"centre": [0.0] * 7, "ends": [[0.0, 0.0]] * 4, "values": [0.0, 1e-9]}
    found = {
        "packet-processor": {
            "load": 0.9, "dispersion": 10.0, "sorts": [],
            "metrics": {"packet_latency": known, "overflow_probability": share},
        }
    }  # fmt: skip
    monkeypatch.setattr(intervals, "measured", lambda: found)
    return found


def test_a_sweep_has_the_intervals_of_its_designs(table: dict[str, Any]) -> None:
    channels = np.array([2, 4, 8])
    answer = qm.solve(replace_fields(PacketProcessor(), {"dram.channels": channels}))
    low, high = intervals.interval(answer, "packet_latency")
    for k, count in enumerate(channels):
        alone = qm.solve(replace_fields(PacketProcessor(), {"dram.channels": int(count)}))
        expected = intervals.interval(alone, "packet_latency")
        np.testing.assert_allclose((low[k], high[k]), expected, rtol=1e-12)
        if alone.bottleneck_load <= 0.9:
            assert expected[0] == pytest.approx(alone.packet_latency * math.exp(0.1 - 0.05 * 1.7))


def test_a_higher_level_holds_a_lower_one(table: dict[str, Any]) -> None:
    answer = qm.solve(PacketProcessor())
    ends = [intervals.interval(answer, "packet_latency", level) for level in intervals.LEVELS]
    lows, highs = zip(*ends, strict=True)
    assert list(lows) == sorted(lows, reverse=True)
    assert list(highs) == sorted(highs)


def test_says_what_was_not_measured(table: dict[str, Any]) -> None:
    answer = qm.solve(replace_fields(PacketProcessor(), {"workload.load_factor": 0.01}))
    said = answer.evidence.not_measured
    assert not said(answer, "packet_latency") and "not measured" not in repr(answer)
    assert "too few systems were simulated for energy_per_packet" in said(answer, "energy_per_packet")
    assert np.isnan(answer.interval("energy_per_packet")).all()
    table["packet-processor"]["load"] = 1e-3
    again = qm.solve(answer.spec)
    assert np.isnan(again.interval("packet_latency")).all()
    assert "not measured: load is" in repr(again)


def test_a_share_beyond_those_drawn_has_no_interval(table: dict[str, Any]) -> None:
    """Lists that overflow were not drawn: that none did says nothing of one that does."""
    answer = qm.solve(replace_fields(PacketProcessor(), {"free_list.segments": 300}))
    assert answer.overflow_probability > 0.1
    assert np.isnan(answer.interval("overflow_probability")).all()
    words = answer.evidence.not_measured(answer, "overflow_probability")
    assert "overflow_probability is" in words and words.endswith("drawn up to 0")
    never = qm.solve(PacketProcessor())
    assert never.interval("overflow_probability") == (0.0, 0.0)


def test_the_kept_intervals_are_of_the_kept_systems_and_of_the_model_of_today() -> None:
    """Of a sample solved anew: 90 % intervals hold most of what was simulated."""
    cheap = {"packet-processor", "noc", "dram", "llc-processor"}
    kept = [record for record in read(ROOT / DRAWN) if record["kind"] in cheap][::13]
    anew = [resolved(record) for record in kept]
    assert len(anew) > 50
    shipped = json.loads(intervals.FILE.read_text(encoding="utf-8"))
    rows = [row for row in coverage(shipped, residuals(anew)) if row[2] == "all"]
    total = sum(int(row[3]) for row in rows)
    held = sum(int(row[3]) * int(row[4].rstrip("%")) / 100 for row in rows)
    assert total > 500 and 0.85 <= held / total <= 0.97


def test_refuses_other_levels_and_metrics(table: dict[str, Any]) -> None:
    answer = qm.solve(PacketProcessor())
    with pytest.raises(ValueError, match=r"level must be one of 0\.5, 0\.8, 0\.9, 0\.95, got 0\.99"):
        intervals.interval(answer, "packet_latency", 0.99)
    with pytest.raises(KeyError):
        intervals.interval(answer, "latency_of_packets")


def test_an_exact_answer_is_its_interval() -> None:
    answer = qm.solve(kind_named("queueing-network").starter())
    assert answer.kind == "exact"
    low, high = intervals.interval(answer, "system_response_time")
    assert low == high == answer.system_response_time
