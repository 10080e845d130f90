import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import validate
from qmodels import PacketProcessor
from validate import simulate
from validate.packet_processor import PARTS

ROOT = Path(__file__).parents[2]
SHORT = {"packets": 2000, "replications": 3, "window": 64}


def test_result_has_every_metric_and_adds_up():
    result = simulate(PacketProcessor(), **SHORT)
    assert tuple(result.latency_parts) == PARTS
    parts = result.lookup_latency.best + result.write_latency.best + result.read_latency.best
    assert parts == pytest.approx(result.packet_latency.best)
    assert result.max_utilization is result.utilization[result.bottleneck]
    assert result.stable and result.packet_latency_p99.best > result.packet_latency.best


def test_without_closed_runs_there_is_no_saturation_data_rate():
    result = simulate(PacketProcessor(), saturation=False, **SHORT)
    assert set(PacketProcessor.metric_names) - set(result.metrics) == {"saturation_data_rate"}
    assert result.saturation_utilization == {}


@pytest.mark.parametrize("policy", ["open", "closed"])
def test_overload_is_flagged(policy):
    spec = PacketProcessor()
    spec = replace(
        spec,
        workload=replace(spec.workload, load_factor=4.0, hold_ns=0.0),
        dram=replace(spec.dram, page_policy=policy),
    )
    result = simulate(spec, packets=2000, replications=2, saturation=False)
    assert not result.stable
    for name in ("packet_latency", "packet_latency_p99", "lookup_latency", "write_latency", "read_latency"):
        assert result.metrics[name].best == np.inf
    assert all(part.best == np.inf for part in result.latency_parts.values())
    assert result.max_utilization.best > 0.9
    assert 0 < result.data_rate.best < 160
    assert "overloaded" in repr(result)


def test_saturation_data_rate_separates_stable_from_overloaded():
    spec = PacketProcessor()
    limit = simulate(spec, packets=4000, replications=2).saturation_data_rate.best
    for share, stable in ((0.85, True), (1.1, False)):
        loaded = replace(spec, workload=replace(spec.workload, offered_gbps=share * limit))
        assert simulate(loaded, packets=8000, replications=2, saturation=False).stable is stable


def test_small_pool_overflows():
    spec = PacketProcessor()
    spec = replace(spec, free_list=replace(spec.free_list, segments=300))
    result = simulate(spec, **SHORT)
    assert 0 < result.blocking_probability.best < result.overflow_probability.best < 1
    assert result.data_rate.best < 40


def test_more_replications_until_precise():
    result = simulate(PacketProcessor(), packets=1000, replications=2, precision=0.1, saturation=False)
    assert 10 <= result.replications < 64
    assert result.packet_latency.relative_half_width <= 0.1


def test_replications_end_where_precision_is_out_of_reach():
    options = {"packets": 1000, "replications": 2, "saturation": False}
    result = simulate(PacketProcessor(), precision=1e-6, max_replications=5, **options)
    assert result.replications == 5


def test_short_runs_are_flagged():
    spec = PacketProcessor()
    held, once = replace(spec, workload=replace(spec.workload, hold_ns=1e6)), {"saturation": False}
    assert simulate(held, packets=1000, replications=2, **once).short
    assert not simulate(spec, packets=10_000, replications=2, **once).short


def test_names_are_imported_when_used():
    code = (
        "import sys, validate; validate.simulate; assert 'numba' not in sys.modules; "
        "import validate.packet_processor; assert 'numba' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"PYTHONPATH": str(ROOT)})
    with pytest.raises(AttributeError, match="has no attribute 'simulator'"):
        _ = validate.simulator
