"""Decisions judged by what is kept: the judgement by hand, the looked-up results, the share covered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cases.decision_errors.coverage import covered
from cases.decision_errors.front import judge
from cases.decision_errors.kept import (
    METRICS,
    STUDENT_90,
    STUDENT_95,
    WORKLOADS,
    Kept,
    _Lookup,
    drawn,
    file_of,
)
from cases.tables import load_table
from optimize.search.pareto import ideal_distance


@pytest.fixture(scope="module")
def kept():
    """Thirty of the kept designs."""
    table = load_table(file_of(WORKLOADS[0]))
    return Kept.of(WORKLOADS[0], {name: column[-30:] for name, column in table.items()})


def test_the_reference_judges_itself_without_loss(kept):
    best = judge(kept, kept.truth.front, kept.truth.knee)
    assert (best.hypervolume, best.regret) == (1.0, 0.0)
    other = next(row for row in kept.truth.front if row != kept.truth.knee)
    judged = judge(kept, kept.truth.front[:1], int(other))
    goal = kept.truth.values[kept.truth.front]
    far = ideal_distance(kept.truth.values[[other, kept.truth.knee]], goal, maximize=kept.truth.maximized)
    assert judged.hypervolume < 1 and judged.regret == pytest.approx(far[0] / far[1] - 1)
    assert judge(kept, kept.truth.front, None).regret == np.inf


def test_a_lookup_returns_the_row_of_its_design_with_90_percent(kept):
    rows = [3, 17]
    plain = _Lookup(kept, None)([kept.model.spec(row) for row in rows])
    for row, found in zip(rows, plain, strict=True):
        assert found["stable"] == kept.table["stable"][row]
        for name in METRICS[:-1]:
            value = found[name]
            assert value.best == kept.table[name][row]
            half = (kept.table[f"{name}_high"][row] - kept.table[f"{name}_low"][row]) / 2
            assert value.high - value.best == pytest.approx(half * STUDENT_90 / STUDENT_95)
    noisy = _Lookup(kept, np.random.default_rng(0))([kept.model.spec(3)])[0]
    assert noisy["packet_latency"].best != plain[0]["packet_latency"].best


def test_a_decision_is_replayed_and_its_intervals_counted(kept):
    decision = kept.decide(6, 0, noise=False)
    assert len(decision.simulated) == 6 and decision.chosen in decision.simulated
    name = "packet_latency"
    for row in decision.simulated:
        assert decision.table[name][row] == kept.table[name][row]
    held = ~decision.table["simulated"] & kept.table["stable"]
    wide = {**decision.table, f"{name}_low": 0 * kept.table[name], f"{name}_high": 9 * kept.table[name]}
    assert covered(kept, replace(decision, table=wide), name) == (1.0, pytest.approx(4.5))
    assert held.sum() > 10
    narrow = {**wide, f"{name}_low": 2 * kept.table[name]}
    assert covered(kept, replace(decision, table=narrow), name)[0] == 0.0


def test_drawn_designs_have_more_than_one_channel(kept):
    space = kept.model.space
    designs = drawn(space, WORKLOADS[1])
    assert len(set(designs.tolist())) == 100 and (space.columns(designs)["channels"] > 1).all()
    assert len(drawn(space, WORKLOADS[0])) == 2700
