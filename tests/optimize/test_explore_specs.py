"""Memories, caches and run queues as the exploration meets them: every answer is a row of metrics."""

from __future__ import annotations

import numpy as np
import pytest

import qmodels as qm
from optimize import Space, explore
from qmodels.systems.cache.spec import CacheLevel
from qmodels.systems.memory.dram_system import dram

CACHES = qm.CacheSystem(cores=4, private=(CacheLevel(lines=64),), shared=CacheLevel(lines=512, slices=4))


@pytest.mark.parametrize(
    ("base", "choices", "minimize"),
    [
        (CACHES, {"shared.lines": [64, 256, 1024]}, ["shared.lines", "miss_ratio"]),
        (dram("DDR4-3200"), {"channels": [1, 2], "page_policy": ["open", "closed"]}, ["read_latency"]),
        (
            qm.NumaMachine(),
            {"dma.channels": [2, 8], "work.placement": ["one", "all", "clustered"]},
            ["execution_time", "dma.channels"],
        ),
        (
            qm.LlcProcessor(),
            {"architecture": ["slices", "shared", "none"], "load": [0.3, 0.7]},
            ["waiting_latency"],
        ),
        (
            qm.WorkQueues(),
            {"queues.organisation": ["central", "hierarchical"], "stealing.thieves": ["none", "every"]},
            ["execution_time"],
        ),
    ],
)
def test_every_point_is_that_of_its_spec(base, choices, minimize):
    space = Space(base, choices)
    table = explore(space, qm.solve, minimize=minimize).table
    metric = next(name for name in minimize if name not in choices)
    assert len(table["design"]) == np.prod([len(values) for values in choices.values()])
    for design, value in zip(table["design"], table[metric], strict=True):
        assert value == getattr(qm.solve(space.spec(int(design))), metric)
