"""The simulated check: the error of the model, and what survives an interruption."""

from __future__ import annotations

import numpy as np
import pytest

from cases.study import check as check_module
from cases.study.analysis import analyse
from cases.study.check import LOAD_OF_THE_CLAIM, Runs, check, model_error
from cases.study.packet_processor import default_space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.metrics import is_relative
from validate.estimates.statistics import exactly

NAMES = set(PacketProcessor.metric_names)
RUNS = Runs(packets=1000, replications=2, seed=5)


@pytest.fixture(scope="module")
def analysis(small_specs):
    return analyse("large", default_space(small_specs["large-packets"]), points=3)


@pytest.fixture(scope="module")
def whole(analysis, tmp_path_factory):
    """The check without any interruption."""
    return check(
        analysis.exploration, analysis.chosen, runs=RUNS, store=tmp_path_factory.mktemp("whole") / "store"
    )


@pytest.mark.parametrize(
    ("metric", "model", "simulated", "error"),
    [
        ("packet_latency", 110.0, 100.0, 0.1),
        ("packet_latency", 90.0, 100.0, -0.1),
        ("packet_latency", np.inf, np.inf, 0.0),
        ("packet_latency", np.inf, 100.0, np.inf),
        ("packet_latency", 100.0, np.inf, -np.inf),
        ("overflow_probability", 0.0, 0.0, 0.0),
        ("write_conflict_probability", 0.05, 0.04, 0.01),
        ("pointer_accesses_per_allocation", 1.5, 1.2, 0.25),
    ],
)
def test_error_by_hand(metric, model, simulated, error):
    assert model_error(metric, model, simulated) == pytest.approx(error)


def test_shares_are_compared_in_points():
    points = {name for name in NAMES if not is_relative(name)}
    assert points == {name for name in NAMES if name.endswith(("probability", "ratio", "utilization"))}


def test_errors_are_those_of_the_table(analysis, whole):
    table, simulated = analysis.exploration.table, whole.simulated.table
    assert np.array_equal(table["design"][whole.rows], simulated["design"])
    for error, in_range in zip(whole.errors, whole.errors_in_range, strict=True):
        model, best = table[error.metric][whole.rows], simulated[error.metric]
        usable = np.isfinite(model) & np.isfinite(best)
        assert usable.all()
        sizes = np.abs(model[usable] - best[usable]) / (best[usable] if error.relative else 1)
        assert error.mean == pytest.approx(sizes.mean())
        assert error.largest == pytest.approx(sizes.max())
        assert error.worst == simulated["design"][usable][sizes.argmax()]
        inside = (simulated[f"{error.metric}_low"] <= model) & (model <= simulated[f"{error.metric}_high"])
        assert error.covered == (inside & usable).sum()
        assert error.designs == error.finite == usable.sum() > 0
        low_load = table["bottleneck_load"][whole.rows] <= LOAD_OF_THE_CLAIM
        assert in_range.designs == (usable & low_load).sum()
    assert {error.metric for error in whole.errors} == NAMES


def test_cost_is_the_same_on_both_sides(whole):
    errors = {error.metric: error for error in whole.errors}
    assert errors["cost"].largest == pytest.approx(0, abs=1e-12)


RUNS_OF_A_DESIGN = 2 * RUNS.replications
"""Open and closed ones."""


class Interrupt:
    """Progress that stops after some runs, and notes how many were found at the start."""

    def __init__(self, after=None):
        self.after = after
        self.found = None

    def __call__(self, done, total):
        assert done <= total == 3 * RUNS_OF_A_DESIGN
        if self.found is None:
            self.found = done
        if done == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("designs", [0, 1, 2])
def test_interrupted_check_keeps_what_is_done_and_resumes(analysis, whole, tmp_path, monkeypatch, designs):
    monkeypatch.setattr("validate.campaigns.run.IN_FLIGHT", 1)
    after = designs * RUNS_OF_A_DESIGN + 1
    options = {"runs": RUNS, "store": tmp_path / "store"}
    partial = check(analysis.exploration, analysis.chosen, progress=Interrupt(after), **options)
    assert partial.interrupted
    assert len(partial.rows) == designs
    assert partial.asked == 3
    assert len(partial.errors) == (len(NAMES) if designs else 0)

    seen = Interrupt()
    resumed = check(analysis.exploration, analysis.chosen, progress=seen, **options)
    assert seen.found == after
    assert not resumed.interrupted
    for name, column in whole.simulated.table.items():
        assert np.array_equal(resumed.simulated.table[name], column), name


def test_workers_change_nothing(analysis, whole, tmp_path):
    alone = check(
        analysis.exploration,
        analysis.chosen,
        runs=Runs(packets=1000, replications=2, seed=5, workers=1),
        store=tmp_path / "store",
    )
    for name, column in whole.simulated.table.items():
        assert np.array_equal(alone.simulated.table[name], column), name


def test_other_runs_are_not_taken_from_the_store(small_specs, tmp_path):
    spec = default_space(small_specs["large-packets"]).spec(0)
    first = Runs(packets=1000, replications=2, seed=5)

    def found(runs):
        seen = []
        runs.simulate(spec, store=tmp_path / "store", progress=lambda done, total: seen.append(done))
        return seen[0]

    assert found(first) == 0
    assert found(Runs(packets=1000, replications=2, seed=5, workers=7)) == RUNS_OF_A_DESIGN
    assert found(Runs(packets=1001, replications=2, seed=5)) == 0
    assert found(Runs(packets=1000, replications=2, seed=6)) == 0
    assert found(Runs(packets=1000, replications=3, seed=5)) == RUNS_OF_A_DESIGN


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"packets": 999}, "packets must be a whole number >= 1000, got 999"),
        ({"packets": 1e4 + 0.5}, "packets must be a whole number >= 1000, got 10000.5"),
        ({"replications": 1}, "replications must be a whole number >= 2, got 1"),
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"workers": 0}, "workers must be a whole number >= 1, got 0"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        Runs(**arguments)


def test_a_dispute_about_stability_is_reported(analysis, tmp_path, monkeypatch):
    original = check_module.simulated_columns

    def saturated(result):
        return {
            **original(result),
            "stable": False,
            "packet_latency": exactly(np.inf, confidence=0.95),
        }

    monkeypatch.setattr(check_module, "simulated_columns", saturated)
    found = check(analysis.exploration, analysis.chosen[:2], runs=RUNS, store=tmp_path / "store")
    assert found.disputed == tuple(analysis.exploration.table["design"][analysis.chosen[:2]])
    latency = next(error for error in found.errors if error.metric == "packet_latency")
    assert (latency.designs, latency.finite, latency.covered) == (2, 0, 0)
    assert np.isnan(latency.mean)
    assert latency.largest == np.inf and latency.worst in found.disputed
