"""Model everywhere, simulation where it decides: against the truth that both estimate."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.stats import t as student

from optimize import Space, explore
from optimize.search.allocation import Known, allocate
from optimize.search.two_stage import two_stage


@dataclass(frozen=True)
class Chip:
    channels: Any = 1
    width: Any = 8


SPACE = Space(Chip(), channels=[1, 2, 3, 4, 5, 6, 7, 8], width=[8, 12, 16, 24, 32, 48, 64])


def truth(chip):
    rng = np.random.default_rng([chip.channels, chip.width])
    wobble = 1 + rng.uniform(-0.04, 0.04)
    return (800 / (chip.channels * chip.width) + 1.5 * chip.channels) * wobble


def model(chip):
    return {
        "latency": 800 / (chip.channels * chip.width) + 1.5 * chip.channels,
        "cost": 3.0 * chip.channels + chip.width / 4,
    }


class Simulator:
    """Normal replications around the truth; the first ones of a larger number are those of a smaller one."""

    def __init__(self, noise: float = 0.03, level: float = 0.95) -> None:
        self.noise, self.level, self.asked = noise, level, []

    def __call__(self, chip, *, replications, seed):
        self.asked.append((chip.channels, chip.width, replications))
        rng = np.random.default_rng([seed, chip.channels, chip.width])
        runs = truth(chip) * (1 + self.noise * rng.standard_normal(replications))
        half = student.ppf((1 + self.level) / 2, replications - 1) * runs.std(ddof=1) / replications**0.5
        mean = runs.mean()
        return {"latency": SimpleNamespace(low=mean - half, best=mean, high=mean + half)}


GOALS: dict[str, Any] = {"minimize": ["latency", "cost"], "errors": {"latency": 0.04}}


def true_front():
    exact = explore(
        SPACE,
        lambda chip: {"latency": truth(chip), "cost": model(chip)["cost"]},
        minimize=["latency", "cost"],
    )
    return exact.front


def test_only_what_the_model_leaves_open_is_simulated():
    simulator = Simulator(noise=1e-9)
    answer = two_stage(SPACE, model, simulator, **GOALS)
    assert answer.front.tolist() == true_front().tolist()
    assert not answer.membership.undecided.any()
    simulated = answer.rows[answer.replications > 0]
    assert 0 < len(simulated) < len(answer.rows) < SPACE.size
    assert {(c, w) for c, w, _ in simulator.asked} == {tuple(SPACE.point(row).values()) for row in simulated}
    assert set(answer.results) == set(simulated.tolist())
    assert answer.exploration.evaluations == SPACE.size and answer.rounds >= 1
    assert answer.front.tolist() == answer.rows[answer.probability > 0.5].tolist()
    assert "56 designs by the model" in str(answer) and "0 undecided" in str(answer)


def test_designs_left_out_are_off_the_true_front():
    answer = two_stage(SPACE, model, Simulator(), **GOALS)
    front = set(true_front().tolist())
    assert front <= set(answer.rows.tolist())
    sure = answer.rows[answer.membership.on]
    off = answer.rows[answer.membership.off]
    assert set(sure.tolist()) <= front and not set(off.tolist()) & front
    assert answer.spent <= answer.budget == 1000 and (answer.replications <= 64).all()
    truths = [truth(SPACE.spec(row)) for row in answer.rows]
    covered = (answer.low[:, 0] <= truths) & (truths <= answer.high[:, 0])
    assert covered.mean() > 0.85


def test_replications_go_where_they_decide():
    """Fewer of them than the same number for every open design, for the same certainty."""
    simulator = Simulator(noise=0.02)
    answer = two_stage(SPACE, model, simulator, budget=100000, max_replications=4096, **GOALS)
    assert not answer.membership.undecided.any()
    assert answer.front.tolist() == true_front().tolist()
    used = answer.replications[answer.replications > 0]
    assert used.sum() < 0.5 * used.max() * used.size


def test_the_budget_holds_and_the_most_open_come_first():
    answer = two_stage(SPACE, model, Simulator(), budget=25, replications=5, **GOALS)
    assert answer.spent <= 25 and (answer.replications > 0).sum() <= 5
    assert answer.membership.undecided.any()
    open_at_first = answer.probability[answer.membership.undecided]
    assert ((open_at_first > 0) & (open_at_first <= 1)).all()
    assert two_stage(SPACE, model, Simulator(), budget=0, **GOALS).spent == 0


def test_it_is_the_same_with_an_executor_and_again():
    first = two_stage(SPACE, model, Simulator(), **GOALS)
    with ThreadPoolExecutor(3) as executor:
        again = two_stage(SPACE, model, Simulator(), executor=executor, **GOALS)
    assert again.replications.tolist() == first.replications.tolist()
    assert again.front.tolist() == first.front.tolist()
    assert again.probability.tolist() == first.probability.tolist()
    progress = []
    two_stage(SPACE, model, Simulator(), progress=lambda done, total: progress.append((done, total)), **GOALS)
    assert progress[-1] == (first.spent, 1000) and len(progress) == first.rounds


def test_uncertain_constraints_are_settled_by_simulation():
    limit = {"subject_to": {"latency": (None, 20.0)}}
    answer = two_stage(
        SPACE, model, Simulator(noise=1e-6), minimize="cost", errors={"latency": 0.05}, **limit
    )
    truths = np.array([truth(SPACE.spec(k)) for k in range(SPACE.size)])
    costs = np.array([model(SPACE.spec(k))["cost"] for k in range(SPACE.size)])
    allowed = np.flatnonzero(truths <= 20)
    assert answer.front.tolist() == allowed[costs[allowed] == costs[allowed].min()].tolist()
    assert answer.spent > 0 and not answer.membership.undecided.any()


def test_maximised_metrics_and_error_bands():
    def band(table):
        return table["speed"] * 0.9, table["speed"] * 1.02

    def speed(chip):
        return {"speed": 1 / model(chip)["latency"], "cost": model(chip)["cost"]}

    def simulate(chip, *, replications, seed):
        value = 1 / truth(chip)
        return {"speed": SimpleNamespace(low=value, best=value, high=value)}

    answer = two_stage(SPACE, speed, simulate, minimize="cost", maximize="speed", errors={"speed": band})
    undone = answer.replications == 0
    values = answer.exploration.table["speed"][answer.rows[undone]]
    assert (answer.low[undone, 1] == values * 0.9).all() and (answer.high[undone, 1] == values * 1.02).all()
    assert (answer.best[~undone, 1] == [1 / truth(SPACE.spec(row)) for row in answer.rows[~undone]]).all()


def test_a_hopeless_tie_stops_at_the_largest_number():
    space = Space(Chip(), channels=[1, 2], width=[8])

    def simulate(chip, *, replications, seed):
        runs = 10 + np.random.default_rng([seed, chip.channels]).standard_normal(replications)
        half = 2 * runs.std(ddof=1) / replications**0.5
        return {"latency": SimpleNamespace(low=runs.mean() - half, best=runs.mean(), high=runs.mean() + half)}

    answer = two_stage(
        space,
        lambda chip: {"latency": 10.0},
        simulate,
        minimize="latency",
        errors={"latency": 0.1},
        max_replications=40,
    )
    assert (answer.replications <= 40).all() and answer.replications.max() == 40


def known(centre, half, replications):
    centre, half = np.array(centre, dtype=float), np.array(half, dtype=float)
    return Known(
        centre=centre,
        low=centre - half,
        high=centre + half,
        limits=np.full(centre.shape[1], np.inf),
        objectives=np.ones(centre.shape[1], dtype=bool),
        replications=np.array(replications),
    )


def test_shares_follow_the_noise_over_the_difference():
    # Two open pairs with equal costs; the second pair is twice as far apart with the same noise.
    state = known([[10, 0], [11, 0], [30, -5], [32, -5]], [[2.2, 0]] * 4, [100] * 4)
    wanted = allocate(state, first=8, maximum=10**6, left=10**6, level=0.95)
    assert set(wanted) >= {0, 1} and max(wanted, key=lambda k: wanted[k]) in (0, 1)
    nothing = known([[10, 0], [11, 0]], [[0.1, 0]] * 2, [100] * 2)
    assert allocate(nothing, first=8, maximum=10**6, left=10**6, level=0.95) == {}
    fresh = known([[10, 0], [11, 0]], [[2.0, 0]] * 2, [0, 0])
    assert allocate(fresh, first=8, maximum=64, left=12, level=0.95) == {0: 8}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"replications": 1}, "replications must be a whole number >= 2, got 1"),
        ({"budget": -1}, "budget must be a whole number >= 0, got -1"),
        ({"level": 0}, "level must be between 0 and 1, got 0"),
        (
            {"errors": {"latancy": 0.1}},
            "errors must name objectives or limits, got 'latancy'; did you mean 'latency'",
        ),
        ({"errors": {"latency": 1.5}}, r"errors\['latency'\] must be >= 0 and < 1, or a function, got 1.5"),
        (
            {"errors": {"latency": lambda table: (1 + table["latency"], table["latency"])}},
            r"errors\['latency'\] must return low <= high",
        ),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        two_stage(SPACE, model, Simulator(), **{**GOALS, **arguments})


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"latncy": 1.0}, "simulate returned no metric 'latency'; did you mean 'latncy'"),
        ({"latency": float("nan")}, r"simulate returned NaN for 'latency' at design \d+ \(channels="),
    ],
)
def test_bad_simulations_are_named(result, message):
    with pytest.raises(ValueError, match=message):
        two_stage(SPACE, model, lambda spec, **options: result, **GOALS)
    with pytest.raises(ValueError, match="simulate must be a callable on a spec, got 3"):
        two_stage(SPACE, model, 3, **GOALS)


def test_nothing_to_choose_from_is_no_error():
    empty = Space(Chip(), channels=[1, 2], constraints=[lambda p: False])
    answer = two_stage(empty, model, Simulator(), **GOALS)
    assert answer.front.size == answer.spent == answer.rounds == 0
    limit = {"subject_to": {"latency": (None, 1e-3)}}
    answer = two_stage(SPACE, model, Simulator(), **GOALS, **limit)
    assert answer.front.size == answer.spent == 0 and answer.exploration.closest is not None


@pytest.mark.parametrize("says", [True, False, None])
def test_only_the_simulation_takes_a_design_off_the_front_for_being_unstable(says):
    def collapsed(chip):
        return chip.channels >= 3

    def judged(chip):
        # None: the model has no word; else it is wrong about all chips, or about those with one channel.
        word = {} if says is None else {"stable": says and not (chip.channels == 1 and chip.width == 64)}
        return model(chip) | word

    simulator = Simulator(noise=1e-9)

    def simulate(chip, **options):
        return simulator(chip, **options) | {"stable": not collapsed(chip)}

    answer = two_stage(SPACE, judged, simulate, minimize=["latency", "cost"], errors={"latency": 0.04})
    for row, result in answer.results.items():
        if not result["stable"]:
            assert row not in answer.front and answer.probability[answer.rows == row] == 0
    if says is False:  # nothing is taken for granted: what is left is the true front of the stable ones
        steady = explore(
            SPACE,
            lambda chip: model(chip) | {"latency": truth(chip), "stable": not collapsed(chip)},
            minimize=["latency", "cost"],
        )
        assert answer.front.tolist() == steady.front.tolist()
    assert any(not result["stable"] for result in answer.results.values())


def test_a_limit_of_the_user_on_stable_counts_instead():
    answer = two_stage(
        SPACE,
        lambda chip: model(chip) | {"stable": False},
        lambda chip, **options: Simulator(noise=1e-9)(chip, **options) | {"stable": False},
        **GOALS,
        subject_to={"stable": (0, 1)},
    )
    assert answer.front.tolist() == true_front().tolist()
