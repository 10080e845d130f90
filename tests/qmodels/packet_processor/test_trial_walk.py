"""Trials and row visits against plain-Python twins and counting, and their limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import qmodels as qm
from optimize import replace_fields
from qmodels.packet_processor.trials.density import row_visits
from qmodels.packet_processor.trials.walk import (
    EXTRA,
    FORCED,
    HORIZON,
    KINDS,
    LAW,
    LOADS,
    MET,
    PACES,
    _at,
    _one_after_another,
    _walk,
    _weights,
    lookup,
    tables,
)
from qmodels.systems.memory.dram_system import Dram


def walked(ring: int, chunk: int, trials: int, cut: float, arc: int) -> np.ndarray:
    """Return (`KINDS`, segments) of one ring, block by block as the simulator's free list goes."""
    total = np.zeros((len(KINDS), HORIZON))
    for start in range(ring * chunk):
        at, busy, heads = start, set(range(arc)), 0
        for k in range(HORIZON):
            weight = (1.0 - cut) ** heads
            met = at // chunk in busy
            rejected = 0
            while rejected + 1 < trials and at // chunk in busy:
                at, rejected = (at + 1) % (ring * chunk), rejected + 1
            extra = rejected + (rejected > 0)
            total[:, k] += weight * np.array([met, at // chunk in busy, extra, extra**2])
            busy.discard(at // chunk)
            at, heads = (at + 1) % (ring * chunk), heads + rejected + 1
    return total / (ring * chunk)


@pytest.mark.parametrize("ring, chunk, trials, arc", [(4, 1, 3, 2), (4, 4, 5, 2), (2, 8, 8, 1), (3, 2, 2, 3)])
def test_the_walk_is_that_of_the_free_list_block_by_block(
    ring: int, chunk: int, trials: int, arc: int
) -> None:
    found = _walk(np.array([ring]), np.array([chunk]), np.array([trials]), np.array([0.03]), arc)
    assert_allclose(found[0, arc - 1], walked(ring, chunk, trials, 0.03, arc), atol=1e-12)


def test_trials_help_once_they_lead_out_of_the_chunk() -> None:
    trials = (1, 2, 3, 4, 5, 8)
    table = tables(tuple((4, 4, t, 0.02) for t in trials), ((1, 0.5), (10, 0.5)), 4)
    forced = table.visits[:, 0, FORCED].reshape(len(trials), len(LOADS), len(PACES))[:, 4, 2]
    # A visit to a whole chunk is met at its first block, or where a packet begins inside it.
    assert np.all(np.diff(forced[:4]) > -0.25 * forced[0])
    assert forced[4] < 0.1 * forced[0] and forced[5] <= forced[4]
    extra = table.visits[:, 0, EXTRA].reshape(len(trials), -1)
    assert np.all(extra[0] == 0.0) and np.all(np.diff(extra, axis=0) >= -1e-12)


def test_with_one_trial_whatever_is_met_is_taken() -> None:
    table = tables(((4, 2, 1, 0.02), (8, 16, 1, 0.02)), ((3, 1.0),), 8)
    assert_allclose(table.visits[:, :, FORCED], table.visits[:, :, MET])
    assert_allclose(table.starts[:, FORCED], table.starts[:, MET])


def test_a_table_is_read_exactly_at_its_points_and_is_zero_where_nothing_stays_busy() -> None:
    table = tables(((4, 2, 3, 0.02),), ((3, 1.0),), 4).visits[0, 0, FORCED]
    exact = [lookup(table, LOADS[i], PACES[j], True) for i, j in ((3, 1), (5, 2))]
    assert_allclose(exact, table[[3 * len(PACES) + 1, 5 * len(PACES) + 2]])
    assert lookup(table, 0.0, 0.0, True) == 0.0


def test_places_that_became_busy_together_become_free_one_after_the_other() -> None:
    """So many are busy as survive: a probability each, and on average as many as survive one by one."""
    fresh, _ = _weights(((3, 0.5), (10, 0.5)))
    for arc, turns in ((2, (1 / 3, -1 / 3)), (3, (1 / 2, 0.0, -1 / 2))):
        busy = [_one_after_another(fresh, 3)[arc, k] for k in range(1, arc + 1)]
        assert min(one.min() for one in busy) >= 0.0
        each = [_at(fresh, 1.0 + np.sqrt(3.0) * LAW.spread * turn) for turn in turns]
        assert_allclose(sum(busy), each[0], atol=1e-12)
        assert_allclose(sum(k * one for k, one in enumerate(busy, start=1)), sum(each), atol=1e-12)


@pytest.mark.parametrize("channels", [1, 2])
def test_runs_of_one_block_with_rows_of_one_block(channels):
    """A run that ends with every block left its ring with a probability above 1: accesses of -11 and 82.

    With two channels two trials met more conflicts than one.
    """
    fields = {"mean_run_length": 1.0, "bank_step": 1, "alloc_trial_count": np.array([1, 2, 3, 5])}
    solved = qm.solve(replace_fields(qm.PacketProcessor(), {**fields, "channels": channels}))
    accesses = solved.metrics["pointer_accesses_per_allocation"]
    assert (np.diff(accesses) > 0.0).all()
    assert accesses[0] == 1.0
    assert (accesses <= solved.metrics["max_pointer_accesses_per_allocation"]).all()
    assert (np.diff(solved.metrics["write_conflict_probability"]) <= 0.0).all()


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
    address_map = Dram(interleaving_step=step, channels=channels, banks=banks, bank_step=rows)
    starts = np.arange(step * channels * banks * rows)
    channel, bank, row = address_map.locate(starts[:, None] + np.arange(n), rows)
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
    address_map = Dram(interleaving_step=step, channels=channels, banks=8, bank_step=rows)
    total = 0
    packets = 10_000
    for _ in range(packets):
        block = int(rng.integers(1 << 30))
        seen = set()
        for _ in range(n):
            seen.add(address_map.locate(block, rows))
            block = int(rng.integers(1 << 30)) if rng.random() < 1 / run else block + 1
        total += len(seen)
    assert_allclose(
        model(n, step, channels, rows, run)["visits"], total / packets, rtol=0.01
    )  # three standard errors
