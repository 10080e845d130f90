"""Speed of choices, fronts and placements."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from optimize import Space, choose, exact_front, place, sobol, tabulate


@dataclass(frozen=True)
class Chip:
    step: Any = 1
    channels: Any = 1
    trials: Any = 1
    width: Any = 8
    slices: Any = 1
    buffers: Any = 1
    banks: Any = 4


SPACE = Space(
    Chip(),
    step=[1, 2, 4, 8, 16, 32, 64],
    channels=range(1, 17),
    trials=range(1, 11),
    width=[4, 8, 12, 16, 24, 32, 48, 64],
    slices=[1, 2, 4, 8, 16, 32],
    buffers=range(1, 9),
    banks=[4, 8, 16],
)
"""1,290,240 designs."""

PARTS: dict[str, Any] = {
    "network": (
        lambda c: (400 * (c.channels + 2) / c.width + 30 / c.buffers, 0.05 * c.width * c.buffers),
        ("width", "channels", "buffers"),
    ),
    "memory": (
        lambda c: (300 * (1 + abs(np.log2(c.step) - 3) / c.banks) / c.channels, c.channels * c.banks / 4),
        ("channels", "step", "banks"),
    ),
    "allocator": (
        lambda c: (60 / (c.trials * c.channels) + 4 * c.trials, 0.2 * c.trials),
        ("trials", "channels"),
    ),
    "cache": (lambda c: (80 / c.slices + 24 * c.slices / c.width, 0.8 * c.slices), ("slices", "width")),
}


def components():
    return {
        name: tabulate(
            SPACE,
            lambda chip, model=model: dict(zip(("latency", "area"), model(chip), strict=True)),
            *fields,
            vectorized=True,
        )
        for name, (model, fields) in PARTS.items()
    }


def test_best_of_a_million_coupled_designs(benchmark):
    parts = components()
    choice = benchmark.pedantic(
        choose, (parts,), {"minimize": "latency", "subject_to": {"area": (None, 30)}}, rounds=1
    )
    assert choice.proven
    cells = sum(np.asarray(part.table["area"]).size for part in parts.values())
    assert cells < 0.002 * SPACE.size


def test_front_of_a_million_coupled_designs(benchmark):
    front = benchmark.pedantic(
        exact_front, (components(),), {"minimize": ["latency", "area"], "time_limit": 600}, rounds=1
    )
    assert front.proven and front.gap == 0


@pytest.mark.parametrize("objectives", [2, 3])
def test_front_of_eight_separate_components(benchmark, objectives):
    random = np.random.default_rng(4)
    names = "abc"[:objectives]
    groups = {f"g{g}": {n: random.integers(0, 20, 6).astype(float) for n in names} for g in range(8)}
    front = benchmark.pedantic(exact_front, (groups,), {"minimize": list(names)}, rounds=1)
    assert front.proven


def mesh(side):
    at = np.array([divmod(node, side) for node in range(side * side)])
    return np.abs(at[:, None] - at[None]).sum(axis=2).astype(float)


def traffic(kind):
    random = np.random.default_rng(1)
    flows = np.zeros((8, 8))
    if kind == "memory":  # four initiators to four channels
        flows[:4, 4:] = random.integers(1, 10, (4, 4))
    else:
        flows = random.integers(0, 10, (8, 8)) * (1.0 - np.eye(8))
    return flows


@pytest.mark.parametrize("kind", ["memory", "everyone"])
def test_eight_parts_on_a_mesh_of_sixteen(benchmark, kind):
    placement = benchmark.pedantic(place, (traffic(kind), mesh(4)), rounds=1)
    assert placement.proven and placement.seconds < 60


def test_sobol_indices_of_three_fields(benchmark):
    result = benchmark(
        sobol,
        Chip(),
        lambda chip: {"x": chip.step / chip.width + chip.banks},
        {"step": (1.0, 8.0), "width": (8.0, 64.0), "banks": (4.0, 16.0)},
        metric="x",
        vectorized=True,
    )
    assert result.total.sum() > 0.9
