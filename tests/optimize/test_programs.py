"""Choices and fronts of tabulated components against enumeration, and the solver behind them."""

import itertools
import subprocess
import sys
import warnings
from dataclasses import dataclass
from math import fsum, inf

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimize import Component, Space, choose, exact_front, explore, nondominated, replace_fields, tabulate
from optimize.programs.linear import Model, gap_of, solver_name

METRICS = ("a", "b", "c", "d")
SENSES = ("minimize", "maximize")


def every_choice(groups):
    """Yield all choices with the totals of every metric."""
    axes, tables = {}, []
    for name, group in groups.items():
        shared = isinstance(group, Component)
        tables.append((group.fields, group.table) if shared else ((name,), group))
        axes.update(zip(tables[-1][0], np.shape(tables[-1][1]["a"]), strict=True))
    for rows in itertools.product(*map(range, axes.values())):
        choice = dict(zip(axes, rows, strict=True))
        cells = [(table, tuple(choice[name] for name in fields)) for fields, table in tables]
        yield choice, {m: fsum(float(np.asarray(t[m])[cell]) for t, cell in cells) for m in METRICS}


def within(totals, budgets):
    return all(
        (low is None or totals[m] >= low) and (high is None or totals[m] <= high)
        for m, (low, high) in budgets.items()
    )


decades = st.builds(lambda digit, power: digit * 10.0**power, st.integers(-9, 9), st.integers(-15, 8))
near = st.builds(lambda a, b: a + b, st.sampled_from([0, 0.1, 0.3, 1.0]), st.sampled_from([0, 1e-10, 1e-7]))
quarters = st.integers(-8, 8).map(lambda n: n / 4)
numbers = st.sampled_from([quarters, st.floats(-1e3, 1e3), decades, near])


@st.composite
def instances(draw):
    """Groups of their own, or components that share fields in a chain or a triangle; budgets in between."""
    number = draw(numbers)

    def table(shape):
        size = int(np.prod(shape))
        column = st.lists(number, min_size=size, max_size=size)
        return {name: np.reshape(draw(column), shape) for name in METRICS}

    if draw(st.booleans()):
        groups = {f"g{k}": table((draw(st.integers(1, 5)),)) for k in range(draw(st.integers(1, 4)))}
    else:
        sizes = {name: draw(st.integers(1, 3)) for name in "uvwx"}
        pairs = draw(st.sampled_from([("uv", "vw"), ("uv", "vw", "uw"), ("uvw", "vx"), ("uv", "w")]))
        groups = {
            pair: Component(fields=tuple(pair), table=table([sizes[one] for one in pair])) for pair in pairs
        }
    budgets = {}
    for name in draw(st.sets(st.sampled_from(METRICS[1:]), max_size=2)):
        known = sorted(totals[name] for _, totals in every_choice(groups))
        end, hair = known[draw(st.integers(0, len(known) - 1))], 1e-9 * max(map(abs, known))
        hair *= number is not quarters
        budgets[name] = draw(
            st.sampled_from([(None, end + hair), (end - hair, None), (end - hair, end + hair)])
        )
    return groups, draw(st.sampled_from(SENSES)), budgets


@given(instances())
def test_choices_equal_enumeration(instance):
    check_choice(*instance)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(instances())
def test_choices_of_the_solver_equal_enumeration_to_their_resolution(instance):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("optimize.programs.milp.FEW", 1)
        check_choice(*instance)


def check_choice(groups, sense, budgets):
    choice = choose(groups, **{sense: "a"}, subject_to=budgets)
    sign = 1 if sense == "minimize" else -1
    costs = [sign * totals["a"] for _, totals in every_choice(groups) if within(totals, budgets)]
    assert choice.proven
    if not costs:
        assert (choice.status, choice.chosen, choice.bound) == ("infeasible", {}, None) and choice.message
        return
    totals = next(totals for chosen, totals in every_choice(groups) if chosen == choice.chosen)
    assert within(totals, budgets) and all(choice.totals[m] == totals[m] for m in choice.totals)
    assert choice.objective == totals["a"] == choice.totals["a"]
    columns = [np.asarray(g.table["a"] if isinstance(g, Component) else g["a"]) for g in groups.values()]
    assert choice.resolution <= 1e-6 * max(map(np.ptp, columns))
    small = max(map(np.ptp, columns)) < 1e6
    assert not choice.resolution or not small or any((column % 1).any() for column in columns)
    hair = 1e-12 * sum(np.abs(column).max() for column in columns)
    assert sign * choice.bound - hair <= min(costs) <= sign * choice.objective
    assert sign * choice.objective <= min(costs) + choice.resolution + hair


@given(instances(), st.integers(2, 3))
def test_fronts_equal_enumeration_to_thirteen_digits(instance, count):
    groups, sense, budgets = instance
    goals = {sense: METRICS[:1], SENSES[sense == "minimize"]: METRICS[1:count]}
    front = exact_front(groups, **goals, subject_to=budgets)
    signs = np.array([1.0 if name in goals["minimize"] else -1.0 for name in front.objectives])
    points = [[t[name] for name in front.objectives] for _, t in every_choice(groups) if within(t, budgets)]
    costs = np.array(points).reshape(len(points), count) * signs
    expected, found = costs[nondominated(costs)], front.values * signs
    assert front.proven and len(front.chosen) == len(found)
    if not len(expected):
        assert (front.status, front.bound, front.gap) == ("infeasible", (), None) and front.message
        return
    assert (front.status, front.gap) == ("optimal", 0) and nondominated(found).all()
    hair = 1e-12 * np.abs(costs).max(axis=0)
    for point in expected:
        assert (found <= point + hair).all(axis=1).any()
    for choice, values in zip(front.chosen, front.values, strict=True):
        totals = next(totals for chosen, totals in every_choice(groups) if chosen == choice)
        assert values.tolist() == [totals[name] for name in front.objectives] and within(totals, budgets)
    np.testing.assert_array_equal(np.array(front.bound) * signs, found.min(axis=0))


def test_losses_over_ten_decades_are_all_found():
    groups = {
        "buffer": {"loss": [1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11], "cost": [1, 2, 3, 4, 5, 6]},
        "link": {"loss": [2e-2, 3e-4, 5e-8, 1e-12], "cost": [1, 2, 4, 8]},
    }
    front = exact_front(groups, minimize=["loss", "cost"])
    assert len(front.values) == 11 and front.bound == (1e-11 + 1e-12, 2.0) and front.status == "optimal"


def crowd(groups, options, metrics):
    """Groups whose sums are hard to tell apart: no option is better in all."""
    rng = np.random.default_rng(7)
    return {f"g{g}": dict(zip(metrics, rng.dirichlet([1.0] * len(metrics), options).T, strict=True))
            for g in range(groups)}  # fmt: skip


def test_a_front_out_of_time_or_room_has_points_and_says_so(monkeypatch):
    monkeypatch.setattr("optimize.programs.milp.HASTE", 200)
    groups = crowd(20, 12, "abc")
    front = exact_front(groups, minimize=METRICS[:3], time_limit=1e-9)
    assert front.status == "feasible" and not front.proven and front.gap is None
    assert len(front.values) > 1 and nondominated(front.values).all()
    assert (np.array(front.bound) <= front.values.min(axis=0)).all()
    none = exact_front(groups, minimize=["a", "b"], subject_to={"c": (4.5, 4.5000001)}, time_limit=1e-9)
    assert (none.status, none.chosen, none.bound) == ("time limit", (), ())
    assert none.message == "no choice was found; that there is none is not proven"


def hard_instance():
    """Correlated knapsacks with four budgets: feasible, far from provable in a second."""
    rng = np.random.default_rng(7)
    tables = {}
    for g in range(40):
        columns = {name: rng.integers(1000, 2000, 8).astype(float) for name in "abcd"}
        tables[f"g{g}"] = columns | {"gain": sum(columns.values()) + rng.integers(0, 300, 8)}
    return tables, {name: (None, 40 * 1430.0) for name in "abcd"}


def test_a_time_limit_leaves_a_bound_and_a_gap():
    tables, budgets = hard_instance()
    choice = choose(tables, maximize="gain", subject_to=budgets, time_limit=1.0)
    assert choice.status == "feasible" and not choice.proven and set(choice.chosen) == set(tables)
    assert all(choice.totals[name] <= high for name, (_, high) in budgets.items())
    assert choice.gap == pytest.approx((choice.bound - choice.objective) / choice.objective)
    assert 0 < choice.gap < 0.05 and choice.solver.startswith("HiGHS 1.")
    none = choose(tables, maximize="gain", subject_to=budgets, time_limit=1e-9)
    assert (none.status, none.chosen, none.objective, none.gap) == ("time limit", {}, None, None)
    assert none.message == "the time limit came before the first solution"


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_budgets_hold_to_the_last_bit_and_no_choice_in_them_is_lost(monkeypatch, scale):
    monkeypatch.setattr("optimize.programs.milp.FEW", 1)
    # The second option of each group is a hair too expensive, far below the solver's tolerance.
    hair = scale * np.spacing(1.0)
    tables = {g: {"cost": [scale, scale + hair], "gain": [0.0, 1.0]} for g in "xyz"}
    under = {"cost": (None, np.nextafter(3 * scale, 0))}
    assert choose(tables, maximize="gain", subject_to=under).status == "infeasible"
    for allowed in (0, 1, 2, 3):
        end = fsum([scale] * 3 + [hair] * allowed)
        tight = choose(tables, maximize="gain", subject_to={"cost": (None, end)})
        most = max(k for k in range(4) if fsum([scale] * (3 - k) + [scale + hair] * k) <= end)
        assert tight.totals["cost"] <= end and tight.objective == most


def test_an_infinitely_bad_option_is_never_chosen():
    tables = {"m": {"latency": [inf, 5.0, 4.0], "cost": [1.0, 2.0, inf], "rate": [inf, 1.0, 2.0]}}
    assert choose(tables, minimize="latency", subject_to={"cost": (None, 10)}).chosen == {"m": 1}
    assert choose(tables, maximize="rate", subject_to={"latency": (None, 10)}).chosen == {"m": 2}
    assert exact_front(tables, minimize="latency", maximize="rate").values.tolist() == [[4, 2]]
    with pytest.raises(ValueError, match="'rate' of group 'm' must not be infinitely good, got inf"):
        choose(tables, maximize="rate")
    none = choose({"m": {"latency": [inf]}}, minimize="latency")
    assert none.status == "infeasible" and none.message == "no option of group 'm' has a finite 'latency'"
    either = choose({"m": {"x": [inf, 1], "y": [1, inf]}}, minimize="x", subject_to={"y": (None, 9)})
    assert either.message == "no option of group 'm' has a finite 'x' and 'y'"


def test_an_infeasible_choice_says_why():
    tables = {"a": {"x": [1.0, 2.0], "y": [2.0, 1.0]}, "b": {"x": [3.0, 4.0], "y": [4.0, 3.0]}}
    result = choose(tables, minimize="x", subject_to={"x": (None, 3.5), "y": (7, None)})
    assert result.status == "infeasible" and result.proven and result.chosen == {}
    assert result.message == (
        "x <= 3.5 cannot be met: the best sum is 4, off by 0.5; "
        "y >= 7 cannot be met: the best sum is 6, off by 1"
    )
    for find in (choose, exact_front):
        goals = {"minimize": "x"} if find is choose else {"minimize": ["x", "y"]}
        together = find(tables, **goals, subject_to={"x": (None, 5), "y": (None, 4.5)})
        assert (together.status, together.message) == ("infeasible", "the budgets cannot be met together")


def test_open_and_infinite_budgets_do_not_bind():
    tables = {"a": {"x": [1.0, 2.0]}}
    for budget in ((None, None), (None, inf), (-inf, None), (2, inf)):
        assert choose(tables, maximize="x", subject_to={"x": budget}).objective == 2
    assert choose(tables, maximize="x", subject_to={"x": (None, -inf)}).status == "infeasible"


def test_a_gap_needs_both_ends():
    assert gap_of(None, None) is None and gap_of(None, 1.0) is None and gap_of(1.0, None) is None
    assert gap_of(0.0, -1.0) == 1.0 and gap_of(0.0, 0.0) == 0.0 and gap_of(-2.0, -3.0) == 0.5


@dataclass(frozen=True)
class Chip:
    step: int = 1
    channels: int = 1
    trials: int = 1
    width: int = 8


PARTS = {
    "network": (lambda c: (200 * (c.channels + 2) / c.width, 0.3 * c.width), ("width", "channels")),
    "memory": (
        lambda c: (300 * (1 + 0.3 * np.abs(np.log2(c.step) - 2)) / c.channels, 1.5 * c.channels),
        ("channels", "step"),
    ),
    "allocator": (
        lambda c: (60 / (c.trials * c.channels) + 4 * c.trials, 0.2 * c.trials),
        ("trials", "channels"),
    ),
}
SPACE = Space(Chip(), step=[1, 2, 4, 8, 16], channels=[1, 2, 4, 8], trials=range(1, 6), width=[8, 16, 32])


def whole(chip):
    parts = [model(chip) for model, _ in PARTS.values()]
    return {name: sum(part[k] for part in parts) for k, name in enumerate(("latency", "area"))}


def test_tables_of_components_give_the_best_design_and_the_front_of_the_space():
    groups = {
        name: tabulate(
            SPACE,
            lambda chip, model=model: dict(zip(("latency", "area"), model(chip), strict=True)),
            *fields,
            vectorized=True,
        )
        for name, (model, fields) in PARTS.items()
    }
    every = explore(SPACE, whole, minimize=["latency", "area"], vectorized=True)
    front = exact_front(groups, minimize=["latency", "area"])
    assert front.proven
    for point in every.values[every.front]:
        assert np.isclose(front.values, point, rtol=1e-12).all(axis=1).any()
    for limit in np.quantile(every.table["area"], [0.02, 0.3]).tolist():
        choice = choose(groups, minimize="latency", subject_to={"area": (None, limit)})
        best = every.table["latency"][every.table["area"] <= limit].min()
        assert choice.proven and choice.objective == pytest.approx(best, rel=1e-12)
        fields = {name: SPACE.choices[name][row] for name, row in choice.chosen.items()}
        assert whole(replace_fields(SPACE.base, fields))["latency"] == pytest.approx(best, rel=1e-12)
    designs = choose({"design": every.table}, minimize="latency", subject_to={"area": (None, limit)})
    assert designs.objective == best


A = {"a": {"x": [1.0, 2.0]}}
P = Component(fields=("u", "v"), table={"x": [[1.0, 2.0], [3.0, 4.0]]})


def test_the_solver_writes_nothing():
    """JSON on the standard output must be that alone; HiGHS 1.16 introduces itself there."""
    program = (
        "from optimize.programs.linear import Model; m = Model(); m.binary(1.0); print(m.solve().status)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("optimal\n", "")


def test_a_mixed_program():
    model = Model()
    taken = [model.binary(cost) for cost in (-5.0, -4.0, -3.0)]
    rest = model.continuous(0.5, 2.0, cost=-1.0)
    model.at_most({**dict(zip(taken, (2.0, 3.0, 1.0), strict=True)), rest: 1.0}, 5.0)
    outcome = model.solve()
    assert outcome.status == "optimal"
    # 5 + 3 + 2 = 10 with the rest at its limit; 5 + 4 leaves no room for the rest's 0.5.
    np.testing.assert_allclose(outcome.values, [1, 0, 1, 2], atol=1e-9)
    assert outcome.bound == pytest.approx(-10)


def test_a_program_is_solved_again_after_another_constraint():
    model = Model()
    x, y = model.binary(-2.0), model.binary(-1.0)
    assert model.solve().values == [1, 1]
    model.at_most({x: 1.0, y: 1.0}, 1.0)
    assert model.solve().values == [1, 0]
    model.equal({x: 1.0}, 0.0)
    assert model.solve().values == [0, 1]
    model.equal({y: 1.0}, 0.0)
    outcome = model.solve()
    assert outcome.status == "optimal" and outcome.values == [0, 0]
    model.at_most({x: -1.0}, -1.0)
    assert model.solve().status == "infeasible"
    with pytest.raises(RuntimeError, match="variables must be added before the first solve"):
        model.binary()


def test_an_unbounded_program_is_an_error_with_the_word_of_the_solver():
    model = Model()
    model.binary()
    model.continuous(cost=-1.0)
    with pytest.raises(RuntimeError, match="HiGHS stopped with status 'Unbounded'"):
        model.solve()


def test_neither_generation_warns_or_prints(capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = Model()
        model.equal({model.binary(1.0): 1.0}, 1.0)
        assert model.solve(10.0).values == [1]
    assert capfd.readouterr() == ("", "")


def test_the_generation_is_named():
    import pulp

    assert solver_name().endswith(f"through PuLP {pulp.__version__}")
