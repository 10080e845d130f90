"""Decisions on small spaces where the truth is known: fronts, the chosen design, interruptions, holes."""

import importlib
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize import Interrupted, Space, decide, explore, nondominated
from optimize.decisions.correction import Correction, features_of
from optimize.decisions.state import QUANTILE, chances
from optimize.search.feasibility import Goals
from optimize.search.pareto import ideal_distance


@dataclass(frozen=True)
class Memory:
    channels: int = 1
    width: int = 8


SPACE = Space(Memory(), channels=[1, 2, 3, 4, 6, 8], width=[8, 12, 16, 24, 32])
GOALS = {"minimize": ["latency", "cost"]}


def model(memory):
    rate = memory.channels * memory.width
    return {"latency": 640 / rate + 2 * memory.channels, "cost": 3 * memory.channels + memory.width / 4}


SOLVED = explore(SPACE, model, **GOALS)


class Truth:
    """A simulation without noise: the model times a factor that each design draws within the bound."""

    def __init__(self, seed, bound, broken=(), stop=None):
        draws = np.random.default_rng(seed).uniform(-bound, bound, SPACE.size)
        self.values = SOLVED.table["latency"] * np.exp(draws)
        self.broken, self.stop, self.seen = set(broken), stop, []

    def __call__(self, memories):
        results = []
        for memory in memories:
            row = next(k for k in range(SPACE.size) if SPACE.spec(k) == memory)
            if self.stop is not None and len(self.seen) == self.stop:
                raise Interrupted(dict(enumerate(results)))
            if row in self.broken:
                raise RuntimeError("no route")
            self.seen.append(row)
            results.append({"latency": self.values[row]})
        return results

    def front(self):
        values = np.stack([self.values, SOLVED.table["cost"]], axis=1)
        return np.flatnonzero(nondominated(values)).tolist()


def run(truth, **options):
    return decide(SOLVED, truth, **{"stated": {"latency": 0.2}, "budget_seconds": None, **options})


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), bound=st.sampled_from([0.0, 0.03, 0.15]))
def test_a_settled_front_is_the_true_one_where_the_intervals_hold(seed, bound):
    truth = Truth(seed, bound)
    found = run(truth, seed=seed)
    assert found.settled and not len(found.open)
    assert found.simulated.tolist() == truth.seen and len(set(truth.seen)) == len(truth.seen)
    assert found.table["latency"][truth.seen].tolist() == truth.values[truth.seen].tolist()
    ends = [found.table[f"latency_{end}"] for end in ("low", "high")]
    if ((ends[0] <= truth.values) & (truth.values <= ends[1])).all():
        assert found.front.tolist() == truth.front()
        assert found.chosen in truth.seen


@settings(max_examples=10)
@given(seed=st.integers(0, 1000), points=st.integers(1, 12))
def test_the_chosen_design_is_simulated_and_the_answer_follows_the_seed(seed, points):
    found = run(Truth(seed, 0.1), points=points, seed=seed)
    assert found.chosen in found.simulated and found.table["simulated"][found.chosen]
    assert len(found.simulated) == points or found.settled
    assert found.feasible[found.chosen]
    again = run(Truth(seed, 0.1), points=points, seed=seed)
    assert again.simulated.tolist() == found.simulated.tolist() and again.chosen == found.chosen
    assert again.table["latency_high"].tolist() == found.table["latency_high"].tolist()


def test_it_ends_once_enough_are_simulated_and_the_best_or_one_tied_with_it_is_among_them():
    saved = 0
    for seed in range(8):
        truth, whole = Truth(seed, 0.15), Truth(seed, 0.15)
        found = run(truth, enough=3, seed=seed)
        run(whole, seed=seed)
        saved += len(whole.seen) - len(truth.seen)
        assert len(truth.seen) >= 3 and found.chosen in truth.seen
        assert not found.rivals.size or len(truth.seen) >= 10 * 3
        values = np.stack([found.table[name] for name in ("latency", "cost")], axis=1)
        far = ideal_distance(values, values[found.front])
        assert far[found.chosen] <= far[found.front].min() + 0.01 and found.chosen in found.front
        best = far[found.front].argmin()
        assert ("bears out" in found.reason) == (found.chosen == found.front[best])
        if "bears out" not in found.reason:
            assert f"among the {len(truth.seen)} simulated designs; no other is expected" in found.reason
    assert saved > 5 * 8
    found = run(Truth(0, 0.15), also=[27, 28, 29], enough=3)  # none of them the best, which is simulated too
    assert found.chosen in set(found.simulated.tolist()) - {27, 28, 29}


def test_no_budget_leaves_the_model_and_says_so():
    for limit in ({"budget_seconds": 0}, {"points": 0}):
        found = run(Truth(0, 0.1), **limit)
        assert found.chosen == SOLVED.knee and "not simulated" in found.reason
        assert found.front.tolist() == SOLVED.front.tolist() and len(found.simulated) == 0
        low, best, high = found.interval("latency", found.chosen)
        # 1.25 mean errors are a standard deviation, and 1.645 of these half an interval.
        assert high / best == pytest.approx(np.exp(1.645 * np.sqrt(np.pi / 2) * 0.2 * 2**0.5), rel=0.03)
        assert found.interval("cost", 3) == (SOLVED.table["cost"][3],) * 3


def test_a_tiny_budget_still_simulates_the_chosen_design():
    found = run(Truth(0, 0.1), budget_seconds=1e-9)
    assert found.simulated.tolist() == [SOLVED.knee] == [found.chosen]


class Clocked(Truth):
    """A simulation that takes a second for each design, by a clock of its own."""

    def __init__(self, monkeypatch, *arguments):
        super().__init__(*arguments)
        clock = SimpleNamespace(perf_counter=lambda: float(len(self.seen)))
        monkeypatch.setattr(importlib.import_module("optimize.decisions.decide"), "time", clock)


def test_asked_designs_and_the_first_take_no_time_of_the_others(monkeypatch):
    asked = [row for row in range(SPACE.size) if row != SOLVED.knee][:6]
    truth = Clocked(monkeypatch, 0, 0.1)
    found = run(truth, also=asked, budget_seconds=2.5)
    assert truth.seen[:6] == asked and len(truth.seen) >= 6 + 1 + 3
    assert found.seconds == len(truth.seen)


def test_beyond_a_limit_of_time_the_design_that_would_be_chosen_is_simulated(monkeypatch):
    """Without it an unsimulated knee leaves whatever was simulated as the recommendation."""
    for seed in range(8):
        truth = Clocked(monkeypatch, seed, 0.3)
        found = run(truth, budget_seconds=3.5, seed=seed)
        if "as far as the budget" in found.reason:
            assert len(truth.seen) > 6  # each of two more made another design the best
        else:
            assert "bears out" in found.reason


def test_a_decision_goes_on_from_an_earlier_one():
    before = run(Truth(0, 0.1, broken=[7]), also=[7], points=4)
    truth = Truth(0, 0.1)
    missing = next(row for row in range(SPACE.size) if row not in before.results and row != 7)
    found = run(truth, after=before, also=[missing, 7], points=1)
    assert truth.seen == [missing]
    assert found.simulated.tolist() == [*before.simulated.tolist(), missing] and set(found.failed) == {7}
    at_once = run(Truth(0, 0.1), also=found.simulated.tolist(), points=len(found.simulated))
    # The likelihood is climbed from another place.
    assert found.table["latency"] == pytest.approx(at_once.table["latency"], rel=1e-5)
    assert found.chosen == at_once.chosen


@given(stop=st.integers(0, 20))
@settings(max_examples=10)
def test_killed_and_resumed_is_the_same(stop):
    whole = Truth(3, 0.1)
    expected = run(whole, points=20)
    killed = run(Truth(3, 0.1, stop=stop), points=20)
    assert killed.interrupted == (stop < len(whole.seen)) and not expected.interrupted
    assert killed.simulated.tolist() == whole.seen[:stop]
    assert killed.chosen in whole.seen[:stop] or stop == 0
    # What was finished is found in a store: the same call again simulates the same designs.
    assert run(Truth(3, 0.1), points=20).chosen == expected.chosen


def test_designs_that_cannot_be_simulated_are_holes():
    found = run(Truth(1, 0.1, broken=[SOLVED.knee]))
    assert list(found.failed) == [SOLVED.knee] and "RuntimeError: no route" in found.failed[SOLVED.knee]
    assert found.chosen != SOLVED.knee and found.chosen in found.simulated
    assert SOLVED.knee in found.open and not found.settled
    assert "1 could not be simulated: design" in str(found)
    none = run(Truth(1, 0.1, broken=range(SPACE.size)))
    assert len(none.failed) == SPACE.size and none.chosen is None


def test_a_contradicted_design_is_not_chosen():
    goals = {"minimize": "cost", "subject_to": {"latency": (None, 36)}}
    solved = explore(SPACE, model, **goals)
    for points in (None, 1):
        truth = Truth(0, 0.0)
        truth.values = truth.values * 1.3
        found = decide(
            solved, truth, stated={"latency": 0.1}, subject_to=goals["subject_to"], budget_seconds=None,
            points=points,
        )  # fmt: skip
        assert found.contradicted.tolist()[0] == solved.knee
        assert truth.values[found.chosen] <= 36 and found.chosen in found.simulated
        if points is None:
            able = truth.values <= 36
            assert solved.table["cost"][found.chosen] == solved.table["cost"][able].min()
            assert found.reason == "best cost, which its simulation bears out"


def flattered(seed, points):
    """Decide among designs near a limit, with simulations of 5 % noise; return the decision and the truth."""
    space = Space(Memory(), channels=[2, 3, 4], width=range(8, 33))
    goals = {"minimize": "cost", "subject_to": {"latency": (None, 20.0)}}
    solved, rng, spread = explore(space, model, **goals), np.random.default_rng(seed), 0.05
    truth = solved.table["latency"] * np.exp(rng.uniform(-0.1, 0.1, space.size))
    noise = np.exp(spread * rng.normal(size=space.size))
    best = {space.spec(k): value for k, value in enumerate(truth * noise)}
    wide = np.exp(QUANTILE * spread)

    def simulate(memories):
        values = [best[memory] for memory in memories]
        return [{"latency": SimpleNamespace(low=one / wide, best=one, high=one * wide)} for one in values]

    found = decide(
        solved, simulate, stated={"latency": 0.1}, subject_to=goals["subject_to"], budget_seconds=None,
        points=points, seed=seed,
    )  # fmt: skip
    return found, truth


def test_a_design_is_not_chosen_for_an_interval_that_flatters_it():
    """The best of many designs near a limit is one whose simulation was too low."""
    wrong, by_best = 0, 0
    for seed in range(20):
        found, truth = flattered(seed, 12)
        assert found.interval("latency", found.chosen)[2] <= 20.0
        wrong += truth[found.chosen] > 20.0
        rows = found.simulated[found.table["latency"][found.simulated] <= 20.0]
        by_best += truth[rows[found.table["cost"][rows].argmin()]] > 20.0
    assert wrong <= 1 < 4 < by_best


def test_where_no_interval_keeps_a_limit_best_values_decide_and_it_is_said():
    goals = {"minimize": "cost", "subject_to": {"latency": (None, 36.0)}}
    solved = explore(SPACE, model, **goals)

    def wide(memories):
        values = [model(memory)["latency"] for memory in memories]
        return [{"latency": SimpleNamespace(low=v / 9, best=v, high=9 * v)} for v in values]

    found = decide(
        solved, wide, stated={"latency": 0.1}, subject_to=goals["subject_to"], budget_seconds=None, points=6
    )
    assert found.table["latency"][found.chosen] <= 36.0 < found.interval("latency", found.chosen)[2]
    assert "no simulated design keeps every limit with its whole interval" in found.reason


def test_a_design_that_saturates_in_simulation_is_not_chosen_nor_are_fuller_ones():
    def loaded(memory):
        load = 30 / (memory.channels * memory.width)
        answer = model(memory) | {"stable": load < 1, "bottleneck_load": load}
        return answer if load < 1 else answer | {"latency": np.inf}

    def saturating(memories):
        answers = [loaded(memory) for memory in memories]
        full = [answer["bottleneck_load"] >= 0.6 for answer in answers]
        return [
            {"latency": np.inf if over else answer["latency"], "stable": not over}
            for answer, over in zip(answers, full, strict=True)
        ]

    solved = explore(SPACE, loaded, minimize="cost")
    found = decide(solved, saturating, stated={"latency": 0.1}, budget_seconds=None)
    load = solved.table["bottleneck_load"]
    assert load[solved.knee] >= 0.6 > load[found.chosen]
    assert found.table["cost"][found.chosen] == solved.table["cost"][load < 0.6].min()
    assert not found.feasible[load > 0.66].any() and not found.table["stable"][solved.knee]


def test_intervals_cover_designs_that_were_not_simulated():
    """A smooth error with noise: nine of ten held-out values lie within, on average over studies."""
    space = Space(Memory(), channels=range(1, 21), width=range(8, 48, 2))
    solved = explore(space, model, **GOALS)
    table = solved.table
    features = features_of(space, table)
    covered = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        error = (
            0.2 * np.sin(features[:, 0]) + 0.1 * features[:, 1] + 0.03 * rng.standard_normal(len(features))
        )
        truth = table["latency"] * np.exp(error)
        rows = rng.permutation(len(truth))[:40]
        correction = Correction(table, features, {"latency": 0.1}, level=0.9, seed=seed)
        low, best, high = correction.columns("latency", rows, truth[rows])
        rest = np.setdiff1d(np.arange(len(truth)), rows)
        covered.append(np.mean((low[rest] <= truth[rest]) & (truth[rest] <= high[rest])))
        raw = np.abs(np.log(table["latency"] / truth))[rest].mean()
        assert np.abs(np.log(best / truth))[rest].mean() < 0.4 * raw
    assert 0.86 <= np.mean(covered) <= 0.95


def test_two_points_have_the_probability_of_a_difference():
    """The second is on the front unless it is larger in the one uncertain objective."""
    from statistics import NormalDist

    best, half = np.array([10.0, 11.0]), np.array([1.0, 1.5])
    one = np.array([1.0, 1.0])
    ends = {"a": (best - half, best, best + half), "b": (one, one, one)}
    goals = Goals(minimize=("a", "b"), maximize=(), subject_to={})
    draws = [chances(ends, one, goals, seed)[0][1] for seed in range(200)]
    expected = NormalDist().cdf(-QUANTILE / np.hypot(1.0, 1.5))
    assert np.mean(draws) == pytest.approx(expected, abs=4 * np.sqrt(expected / (32 * 200)))
    limited = Goals(minimize=("a", "b"), maximize=(), subject_to={"a": (None, 5.0)})
    assert not np.any(chances(ends, one, limited, 0))


def test_estimates_bring_their_intervals():
    def noisy(memories):
        return [
            {"latency": SimpleNamespace(low=0.9 * value, best=value, high=1.2 * value)}
            for value in (model(memory)["latency"] for memory in memories)
        ]

    found = run(noisy, points=5)
    low, best, high = found.interval("latency", int(found.chosen))
    assert (low / best, high / best) == (pytest.approx(0.9), pytest.approx(1.2))
    assert "latency" in str(found) and f"[{low:.5g}, {high:.5g}]" in str(found)
