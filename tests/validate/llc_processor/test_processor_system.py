"""The processor as a system of parts: its simulation and its model beside those of the processor itself."""

from __future__ import annotations

import pytest

from qmodels import solve
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.traffic.popularity import Zipf
from validate import simulate

SAME = {
    "waiting_latency": "visit_latency[core]",
    "response_latency": "latency",
    "blocking_probability": "blocking_probability",
    "on_chip_hit_ratio": "hit_ratio[caches]",
}
"""Metrics of the processor and of its system."""

# With consecutive ranks in a line there is one table; of random ones a system has one, the processor any.
DESIGNS = {
    "slices": {},
    "uneven slices of removed lines": {"whole_lines": "total", "llc_hit": "remove", "load": 1.0},
    "shared, overloaded": {"architecture": "shared", "popularity": Zipf(entries=20_000, exponent=0.3)},
    "none, few channels": {"architecture": "none", "channels": 8, "load": 1.5, "capacity": 40},
    "one core": {"cores": 1, "slices": 1, "load": 0.02},
    "everything in L1": {"popularity": Zipf(entries=64, exponent=0.5)},
}


@pytest.mark.parametrize("name", DESIGNS)
def test_the_simulations_agree(name):
    """Event by event, and as a jump process of its own."""
    spec = LlcProcessor(**{"assignment": "consecutive", **DESIGNS[name]})
    known = simulate(spec, requests=60_000, replications=12, confidence=0.999)
    found = simulate(spec.system(), passages=30_000, replications=12, confidence=0.999)
    for metric, same in SAME.items():
        one, other = known.metrics[metric], found.metrics[same]
        assert one.low <= other.high and other.low <= one.high, (metric, one, other)
    dram = known.memory_utilization
    assert found.utilization["dram"].best == pytest.approx(dram.best, rel=0.02, abs=1e-9)


@pytest.mark.parametrize("name", ["slices", "none, few channels", "one core", "everything in L1"])
def test_the_models_agree(name):
    """Where neither the LLC nor the DRAM is nearly full."""
    spec = LlcProcessor(**{"assignment": "consecutive", **DESIGNS[name]})
    own, answer = solve(spec), solve(spec.system())
    assert answer.blocking_probability == pytest.approx(own.blocking_probability, abs=0.003)
    assert answer.latency == pytest.approx(own.response_latency, rel=0.02)
    assert answer.metrics["hit_ratio[caches]"] == pytest.approx(own.on_chip_hit_ratio, abs=1e-3)


def test_the_system_is_written_and_read():
    system = LlcProcessor(slices=4, whole_lines="total").system(assignment_seed=3)
    assert spec_from_toml(to_toml(system, kind=True)) == system
    assert system.parts["caches"].shared.slice_lines.tolist() == [3, 2, 2, 2]
    assert system.parts["caches"].assignment_seed == 3
