"""The model of an LLC whose lines leave when they are found, and of uneven slices, against simulation."""

from __future__ import annotations

import pytest

from qmodels import solve
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.traffic.popularity import Zipf
from validate import simulate

LINE = 64

DESIGNS = [
    {"architecture": "shared", "llc_bytes": 1250 * LINE, "cores": 28, "load": 0.1},
    {"slice_bytes": 40 * LINE, "cores": 28},
    {"slice_bytes": 14 * LINE, "cores": 64},
    {"slice_bytes": 2 * LINE + 18, "whole_lines": "total"},
    {"slice_bytes": 14 * LINE + 32, "slices": 9, "whole_lines": "total"},
    {"slice_bytes": 2 * LINE + 18, "whole_lines": "total", "llc_hit": "keep"},
    {"slice_bytes": 2 * LINE + 32, "whole_lines": "total", "llc_hit": "keep", "slices": 5, "cores": 12},
    {"slice_bytes": 14 * LINE, "cores": 8, "slices": 8},
    {"slice_bytes": 70 * LINE, "cores": 2, "slices": 8, "load": 0.05},
    {"slice_bytes": 20 * LINE, "cores": 40, "capacity": 20},
    {"slice_bytes": 80 * LINE, "cores": 40, "popularity": Zipf(entries=60_000, exponent=1.1)},
]


@pytest.mark.parametrize("design", DESIGNS)
def test_any_capacity(design):
    """What the model said before: that everything is found in a level of half of the table, by any core."""
    spec = LlcProcessor(**{"llc_hit": "remove", **design})
    # Tables drawn at random differ, the more the fewer lines there are: many short replications.
    model, simulated = solve(spec), simulate(spec, requests=30_000, replications=12, seed=1)
    assert model.on_chip_hit_ratio == pytest.approx(simulated.on_chip_hit_ratio.best, abs=0.007)
    assert model.blocking_probability == pytest.approx(simulated.blocking_probability.best, abs=0.007)
    wait = simulated.waiting_latency.best
    assert model.waiting_latency == pytest.approx(wait, rel=0.05)
