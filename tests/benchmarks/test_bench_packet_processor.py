"""Time of the analytic packet processor: one design, and the default space in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

import qmodels as qm
from cases.packet_processor import default_space


def test_one_design(benchmark: Any) -> None:
    result = benchmark(qm.solve, qm.PacketProcessor())
    assert result.stable


def test_the_default_space(benchmark: Any) -> None:
    space = default_space(qm.PacketProcessor())
    spec = space.batch(np.arange(space.size))
    result = benchmark.pedantic(qm.solve, args=(spec,), rounds=3, warmup_rounds=1)
    assert result.packet_latency.size == space.size == 2700
