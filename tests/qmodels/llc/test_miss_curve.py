from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.llc import hit_ratio_curve, recorded_hit_ratio_curve
from qmodels.systems.traffic.popularity import Zipf

SIZES = [10, 100, 400, 1000]


def replayed(keys, capacity):
    held, hits = OrderedDict(), 0
    for key in keys:
        if key in held:
            hits += 1
            held.move_to_end(key)
        else:
            if len(held) >= capacity:
                held.popitem(last=False)
            held[key] = True
    return hits / len(keys)


def requests(kind):
    keys = Zipf(entries=2000, exponent=0.9).sample(np.random.default_rng(0), 60_000)
    if kind == "drifting":
        keys = (keys + np.arange(keys.size) // 50) % 4000
    return keys.tolist()


@pytest.mark.parametrize("kind", ["independent", "drifting"])
def test_against_exact_replay(kind):
    """Measured: at most 0.1 points of 100."""
    keys = requests(kind)
    exact = [replayed(keys, size) for size in SIZES]
    assert_allclose(recorded_hit_ratio_curve(keys, capacities=SIZES), exact, atol=2e-3)


def test_a_loop_misses_until_it_fits():
    keys = list(range(50)) * 40
    assert_allclose(recorded_hit_ratio_curve(keys, capacities=[0, 49, 50, 60]), [0, 0, 0.975, 0.975])


def test_the_law_agrees_with_its_own_requests():
    p = Zipf(entries=2000, exponent=0.9).probabilities()
    model = hit_ratio_curve(popularity=p, capacities=SIZES)
    assert np.all(np.diff(model) > 0)
    # Counting from an empty cache misses each key once.
    assert_allclose(recorded_hit_ratio_curve(requests("independent"), capacities=SIZES), model, atol=0.03)


def test_nonsense():
    with pytest.raises(ValueError, match="keys must have at least one request, got none"):
        recorded_hit_ratio_curve([], capacities=[1])
    with pytest.raises(ValueError, match="capacities must be finite and >= 0, got -1"):
        recorded_hit_ratio_curve("ab", capacities=[-1])
