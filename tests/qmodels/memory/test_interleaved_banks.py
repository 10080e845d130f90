from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.memory.interleaved_banks import memory_bandwidth, memory_bandwidth_rau


def by_balance(processors: int, banks: int) -> float:
    """Busy banks from the chain over which bank every single processor waits at."""
    states = list(product(range(banks), repeat=processors))
    number = {state: k for k, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for state in states:
        # The first processor in a bank's list is served; the others keep their places.
        served = [p for p in range(processors) if state[p] not in state[:p]]
        for targets in product(range(banks), repeat=len(served)):
            new = list(state)
            for p, target in zip(served, targets, strict=True):
                new[p] = target
            matrix[number[state], number[tuple(new)]] += banks ** -len(served)
    law = np.full(len(states), 1 / len(states))
    for _ in range(300):
        law = law @ matrix
    return float(law @ [len(set(state)) for state in states])


@pytest.mark.parametrize(("processors", "banks"), [(1, 3), (2, 2), (3, 2), (2, 5), (4, 3), (4, 4)])
def test_partitions_give_what_the_chain_of_single_processors_gives(processors, banks):
    assert_allclose(memory_bandwidth(processors=processors, banks=banks), by_balance(processors, banks))


def test_values_computed_elsewhere():
    # By another program of the project's notes, to all digits given there.
    for size, busy in ((4, 2.620968), (8, 4.947119), (16, 9.625850)):
        assert round(memory_bandwidth(processors=size, banks=size), 6) == busy


def test_laws():
    exact = memory_bandwidth(processors=6, banks=9)
    assert memory_bandwidth(processors=6, banks=10) > exact > memory_bandwidth(processors=5, banks=9)
    assert exact < 6
    assert memory_bandwidth(processors=20, banks=1) == pytest.approx(1.0)


def test_rau_is_close():
    sizes = range(2, 17)
    errors = [
        memory_bandwidth_rau(processors=n, banks=m) / memory_bandwidth(processors=n, banks=m) - 1
        for n in sizes
        for m in (2, 4, 9, 16)
    ]
    assert np.max(np.abs(errors)) < 0.0016
    assert_allclose(memory_bandwidth_rau(processors=[1, 7], banks=[5, 1]), [1.0, 1.0])
    # For many, (2 - sqrt 2) n of n.
    assert memory_bandwidth_rau(processors=20_000, banks=20_000) / 20_000 == pytest.approx(
        2 - np.sqrt(2), rel=1e-4
    )


def test_messages():
    with pytest.raises(ValueError, match="processors must be a whole number from 1 to 36, got 37"):
        memory_bandwidth(processors=37, banks=4)
    with pytest.raises(ValueError, match="banks must be a whole number >= 1, got 0"):
        memory_bandwidth(processors=4, banks=0)
    with pytest.raises(ValueError, match=r"banks must be a whole number >= 1, got 1\.5"):
        memory_bandwidth_rau(processors=4, banks=1.5)
