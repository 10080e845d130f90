from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.packet_processor.trials.row_visits import row_visits
from qmodels.systems.memory.address_map import AddressMap


def model(n: int, step: int, channels: int, rows: int, run: float) -> dict[str, float]:
    one = np.ones(1)
    result = row_visits(
        segments=np.array([float(n)]),
        step=step * one,
        channels=channels * one,
        row_blocks=rows * one,
        mean_run_length=run * one,
    )
    return {name: getattr(result, name).item() for name in ("visits", "channels", "within", "across")}


@given(st.integers(1, 24), st.sampled_from([1, 2, 4, 8, 16, 32]), st.integers(1, 8))
def test_whole_runs_against_counting_over_every_start(n: int, step: int, channels: int) -> None:
    rows, banks = 32, 4
    address_map = AddressMap(
        interleaving_step=step, channels=channels, banks=banks, bank_step=rows, row_blocks=rows
    )
    starts = np.arange(step * channels * banks * rows)
    channel, bank, row = address_map.locate(starts[:, None] + np.arange(n))
    key = (row * banks + bank) * channels + channel
    visited = np.mean([len(set(line)) for line in key.tolist()])
    touched = np.mean([len(set(line)) for line in channel.tolist()])
    answer = model(n, step, channels, rows, np.inf)
    assert_allclose(answer["channels"], touched, rtol=1e-12)
    assert_allclose(answer["visits"], visited, rtol=1e-12)
    assert_allclose(answer["visits"] + answer["within"] + answer["across"], n, rtol=1e-12)


@given(st.integers(1, 24), st.sampled_from([1, 4, 32]), st.integers(1, 8), st.floats(1.0, 100.0))
def test_laws(n: int, step: int, channels: int, run: float) -> None:
    answer = model(n, step, channels, 32, run)
    assert 1.0 - 1e-12 <= answer["visits"] <= n + 1e-9
    assert answer["visits"] <= model(n, step, channels, 32, max(run / 2, 1.0))["visits"] + 1e-9
    assert_allclose(model(n, step, channels, 32, 1.0)["visits"], n, rtol=1e-9)
    assert_allclose(model(n, step, 1, 32, run)["visits"], model(n, 1, 1, 32, run)["visits"], rtol=1e-9)


@pytest.mark.parametrize("run", [4.0, 16.0])
def test_cut_runs_against_drawing_them(run: float) -> None:
    n, step, channels, rows = 12, 2, 4, 32
    rng = np.random.default_rng(3)
    address_map = AddressMap(
        interleaving_step=step, channels=channels, banks=8, bank_step=rows, row_blocks=rows
    )
    total = 0
    packets = 10_000
    for _ in range(packets):
        block = int(rng.integers(1 << 30))
        seen = set()
        for _ in range(n):
            seen.add(address_map.locate(block))
            block = int(rng.integers(1 << 30)) if rng.random() < 1 / run else block + 1
        total += len(seen)
    assert_allclose(
        model(n, step, channels, rows, run)["visits"], total / packets, rtol=0.01
    )  # three standard errors
