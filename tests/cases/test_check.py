"""The simulated check: the error of the model, and what survives an interruption."""

from __future__ import annotations

import numpy as np
import pytest

from cases.study import PACKETS
from cases.study import check as check_module
from cases.study.analysis import analyse
from cases.study.check import LOAD_OF_THE_CLAIM, Runs, check, model_error
from cases.study.deciding import decide_case
from cases.study.goals import goals_of
from cases.study.packet_processor import default_space
from qmodels.systems.noc.spec import Noc
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.metrics import is_relative
from validate.estimates.statistics import exactly

NAMES = set(PacketProcessor.metric_names)
RUNS = Runs(packets=1000, replications=2, seed=5)


@pytest.fixture(scope="module")
def analysis(small_specs):
    return analyse(
        "large", default_space(small_specs["large-packets"]), goals_of(small_specs["large-packets"])
    )


@pytest.fixture(scope="module")
def results(analysis, tmp_path_factory):
    """What the simulation says of three designs."""
    return simulated(analysis, RUNS, tmp_path_factory.mktemp("whole") / "store")


@pytest.fixture(scope="module")
def whole(analysis, results):
    """The check of three designs."""
    return check(analysis.exploration, results)


def three(analysis):
    """Return three rows of the front, the first, the knee and the last."""
    front = analysis.exploration.front
    return sorted({int(front[0]), analysis.exploration.knee, int(front[-1])})


def simulated(analysis, runs, store):
    """Return what the simulation says of three rows."""
    rows = three(analysis)
    specs = [analysis.exploration.spec(row) for row in rows]
    return dict(zip(rows, runs.simulate(specs, store=store), strict=True))


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


class Interrupted(Runs):
    """Runs that the user stops once so many are finished."""

    def simulate(self, specs, *, progress=None, **options):
        def stop(done, total):
            if done >= STOP:
                raise KeyboardInterrupt

        return super().simulate(specs, progress=stop, **options)


STOP = RUNS_OF_A_DESIGN + 1


def test_an_interrupted_study_keeps_what_is_done_and_resumes(analysis, tmp_path, monkeypatch):
    monkeypatch.setattr("validate.campaigns.run.IN_FLIGHT", 1)
    options = {"store": tmp_path / "store", "budget_seconds": None, "points": 4}
    stopping = Interrupted(packets=1000, replications=2, seed=5)
    partial = decide_case(analysis.exploration, runs=stopping, **options)
    whole = decide_case(analysis.exploration, runs=RUNS, **options)
    # The first batch is one design; of the second one is finished when the user stops.
    assert partial.interrupted and not whole.interrupted
    assert partial.simulated.tolist() == whole.simulated[:2].tolist() and len(whole.simulated) == 4
    assert partial.chosen in partial.simulated and whole.chosen in whole.simulated
    fresh = decide_case(analysis.exploration, runs=RUNS, **{**options, "store": tmp_path / "other"})
    assert fresh.simulated.tolist() == whole.simulated.tolist() and fresh.chosen == whole.chosen
    for name, column in whole.table.items():
        assert np.array_equal(fresh.table[name], column), name


def test_the_length_given_is_that_of_any_kind(monkeypatch):
    seen = []
    monkeypatch.setattr("validate.simulate", lambda specs, **options: seen.append(options.get("packets")))
    for runs in (Runs(), Runs(packets=2000)):
        runs.simulate([PacketProcessor()])
        runs.simulate(Noc())
    assert seen == [PACKETS, None, 2000, 2000]


def test_workers_change_nothing(analysis, whole, tmp_path):
    runs = Runs(packets=1000, replications=2, seed=5, workers=1)
    alone = check(analysis.exploration, simulated(analysis, runs, tmp_path / "store"))
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


def test_a_dispute_about_stability_is_reported(analysis, results, monkeypatch):
    original = check_module.simulated_columns

    def saturated(result):
        return {
            **original(result),
            "stable": False,
            "packet_latency": exactly(np.inf, confidence=0.9),
        }

    monkeypatch.setattr(check_module, "simulated_columns", saturated)
    found = check(analysis.exploration, {row: results[row] for row in three(analysis)[:2]})
    assert found.disputed == tuple(analysis.exploration.table["design"][three(analysis)[:2]])
    latency = next(error for error in found.errors if error.metric == "packet_latency")
    assert (latency.designs, latency.finite, latency.covered) == (2, 0, 0)
    assert np.isnan(latency.mean)
    assert latency.largest == np.inf and latency.worst in found.disputed
