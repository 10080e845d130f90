from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from math import fsum

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimize import Space, choose, explore
from optimize.programs.components import Component, chosen_spec, tabulate
from optimize.programs.front import exact_front
from optimize.programs.sums import sum_front
from optimize.search.pareto import nondominated

SENSES = ("minimize", "maximize")


def exhaustive(groups, metric, sense, budgets):
    """The best objective by looking at every combination, or None."""
    best = None
    for rows in itertools.product(*(range(len(table[metric])) for table in groups.values())):

        def total(name, rows=rows):
            return fsum(table[name][row] for table, row in zip(groups.values(), rows, strict=True))

        if all(
            (low is None or total(name) >= low) and (high is None or total(name) <= high)
            for name, (low, high) in budgets.items()
        ):
            value = total(metric)
            if best is None or (value < best if sense == "minimize" else value > best):
                best = value
    return best


@st.composite
def instances(draw, *, groups, options, number):
    """Groups of options with three metrics, budgets around what is typical."""
    names = ("a", "b", "c")
    tables = {}
    for g in range(draw(groups)):
        size = draw(options)
        column = st.lists(number, min_size=size, max_size=size)
        tables[f"g{g}"] = {name: draw(column) for name in names}
    budgets = {}
    for name in draw(st.sets(st.sampled_from(names))):
        low, high = (sum(pick(table[name]) for table in tables.values()) for pick in (min, max))
        ends = sorted(
            low + (high - low) * draw(st.sampled_from([-0.1, 0.0, 0.25, 0.5, 0.75, 1.0])) for _ in "ab"
        )
        budgets[name] = tuple(end if draw(st.booleans()) else None for end in ends)
    return tables, draw(st.sampled_from(names)), draw(st.sampled_from(SENSES)), budgets


def check_against_exhaustive(instance, tolerance):
    tables, metric, sense, budgets = instance
    choice = choose(tables, **{sense: metric}, subject_to=budgets)
    best = exhaustive(tables, metric, sense, budgets)
    assert choice.proven
    if best is None:
        assert (choice.status, choice.chosen, choice.objective, choice.bound) == (
            "infeasible",
            {},
            None,
            None,
        )
        assert choice.message
        return
    assert choice.status == "optimal" and choice.gap == 0 and choice.bound == choice.objective
    assert abs(choice.objective - best) <= tolerance
    for name, (low, high) in budgets.items():
        total = fsum(tables[group][name][row] for group, row in choice.chosen.items())
        assert low is None or total >= low
        assert high is None or total <= high
        if low is not None or high is not None:
            assert choice.totals[name] == total
    assert choice.objective == fsum(tables[group][metric][row] for group, row in choice.chosen.items())


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    instances(
        groups=st.integers(1, 4), options=st.integers(1, 5), number=st.integers(-8, 8).map(lambda n: n / 4)
    )
)
def test_groups_equal_exhaustive_exactly_on_exact_numbers(instance):
    check_against_exhaustive(instance, 0)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(instances(groups=st.integers(2, 4), options=st.integers(1, 5), number=st.floats(-1e3, 1e3)))
def test_groups_equal_exhaustive_on_any_numbers(instance):
    check_against_exhaustive(instance, 0)


extremes = st.sampled_from([0.0, 5e-324, -5e-324, 2.5e-310, 1e-300, 1.0, -1.0, 0.1, 7.0, 1e300, -1e300])


@settings(max_examples=150, deadline=None, derandomize=True)
@given(instances(groups=st.integers(2, 4), options=st.integers(1, 5), number=extremes))
def test_groups_equal_exhaustive_at_the_ends_of_the_numbers(instance):
    check_against_exhaustive(instance, 0)


decades = st.builds(lambda digit, exponent: digit * 10.0**exponent, st.integers(-9, 9), st.integers(-15, 8))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(instances(groups=st.integers(2, 4), options=st.integers(1, 5), number=decades))
def test_groups_equal_exhaustive_over_many_decades(instance):
    check_against_exhaustive(instance, 0)


@pytest.fixture
def no_room(monkeypatch):
    """Leave the enumeration one partial choice, so that the solver is asked and cannot be confirmed."""
    monkeypatch.setattr("optimize.programs.milp.FEW", 1)
    monkeypatch.setattr("optimize.programs.milp.MANY", 1)


@pytest.mark.usefixtures("no_room")
def test_a_choice_that_cannot_be_certified_says_its_resolution():
    losses = {"loss": [1e-1, 1e-9, 1e-11], "cost": [1.0, 2.0, 3.0]}
    groups = {"a": losses, "b": losses, "c": losses}
    choice = choose(groups, minimize="loss", subject_to={"cost": (None, 6)})
    best = exhaustive(groups, "loss", "minimize", {"cost": (None, 6)})
    assert choice.status == "resolved" and not choice.proven and choice.gap > 0
    assert choice.bound < best <= choice.objective
    assert choice.objective - choice.bound == pytest.approx(choice.resolution)


@pytest.mark.usefixtures("no_room")
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(instances(groups=st.integers(2, 4), options=st.integers(1, 5), number=decades))
def test_bounds_hold_whatever_the_solver_rounds(instance):
    tables, metric, sense, budgets = instance
    choice = choose(tables, **{sense: metric}, subject_to=budgets)
    best, sign = exhaustive(tables, metric, sense, budgets), 1 if sense == "minimize" else -1
    if best is None:
        assert choice.chosen == {} and choice.status in ("infeasible", "resolved")
        return
    assert choice.status != "infeasible"
    assert choice.bound is None or sign * choice.bound <= sign * best
    if choice.chosen:
        assert sign * best <= sign * choice.objective
        assert choice.proven == (choice.gap == 0) and (not choice.proven or choice.objective == best)


@pytest.mark.usefixtures("no_room")
def test_a_choice_that_the_solver_denies_is_not_proven_to_be_none():
    tables = {g: {"cost": [1.0, 2.0], "gain": [2.0, 1.0]} for g in "abc"}
    none = choose(tables, maximize="gain", subject_to={"cost": (4.2, 4.8)})
    assert none.chosen == {} and none.objective is None
    assert (
        none.status == "resolved" and none.message == "no choice was found; that there is none is not proven"
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(instances(groups=st.just(1), options=st.integers(1, 40), number=st.floats(-1e3, 1e3)))
def test_one_group_of_whole_designs_equals_exhaustive(instance):
    check_against_exhaustive(instance, 0)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_budgets_hold_to_the_last_bit(scale):
    # The second option of each group is a hair too expensive, far below the solver's tolerance.
    hair = scale * np.spacing(1.0)
    tables = {g: {"cost": [scale, scale + hair], "gain": [0.0, 1.0]} for g in "xyz"}
    budget = {"cost": (None, np.nextafter(3 * scale, 0))}
    assert choose(tables, maximize="gain", subject_to=budget).status == "infeasible"
    for allowed in (1, 2, 3):
        budget = {"cost": (None, fsum([scale] * 3 + [hair] * allowed))}
        tight = choose(tables, maximize="gain", subject_to=budget)
        assert tight.totals["cost"] <= budget["cost"][1]
        assert tight.objective == exhaustive(tables, "gain", "maximize", budget)


@dataclass(frozen=True)
class Memory:
    channels: int = 1
    width: int = 8


def test_the_choice_from_an_exploration_is_its_best_design():
    def model(memory):
        rate = memory.channels * memory.width
        return {
            "latency": np.where(rate > 24, 100 / np.maximum(rate - 24, 1), np.inf),
            "cost": 3 * memory.channels + memory.width / 4,
            "bottleneck": np.where(memory.channels > 2, "link", "memory"),
        }

    space = Space(Memory(), channels=range(1, 9), width=[8, 16, 32])
    budget = {"cost": (None, 15)}
    table = explore(space, model, minimize="latency", subject_to=budget, vectorized=True)
    best = table.table["latency"][table.feasible].min()
    choice = choose({"design": table.table}, minimize="latency", subject_to=budget)
    assert choice.proven and choice.objective == best
    assert table.feasible[choice.chosen["design"]]


def test_an_infinitely_bad_option_is_never_chosen():
    tables = {"m": {"latency": [np.inf, 5.0, 4.0], "cost": [1.0, 2.0, np.inf], "rate": [-np.inf, 1.0, 2.0]}}
    budget = {"cost": (None, 10)}
    assert choose(tables, minimize="latency", subject_to=budget).chosen == {"m": 1}
    assert choose(tables, minimize="cost").chosen == {"m": 0}
    assert choose(tables, maximize="rate", subject_to=budget).chosen == {"m": 1}
    none = choose({"m": {"latency": [np.inf]}}, minimize="latency")
    assert none.status == "infeasible" and none.message == "no option of group 'm' has a finite 'latency'"
    either = choose({"m": {"x": [np.inf, 1], "y": [1, np.inf]}}, minimize="x", subject_to={"y": (None, 9)})
    assert either.message == "no option of group 'm' has a finite 'x' and 'y'"


def test_an_option_that_is_never_chosen_may_be_infinitely_good_elsewhere():
    tables = {
        "m": {"latency": [np.inf, 5.0, 4.0], "rate": [np.inf, 1.0, 2.0]},
        "n": {"latency": [1], "rate": [1]},
    }
    assert choose(tables, maximize="rate", subject_to={"latency": (None, 10)}).chosen == {"m": 2, "n": 0}
    assert choose(tables, minimize="latency", subject_to={"rate": (1, None)}).chosen == {"m": 2, "n": 0}
    assert exact_front(tables, minimize="latency", maximize="rate").values.tolist() == [[5, 3]]
    assert sum_front(tables, minimize="latency", maximize="rate").values.tolist() == [[5, 3]]
    # With the infinite latency within the range the rate is beyond all numbers.
    with pytest.raises(ValueError, match="'rate' of group 'm' must not be infinitely good, got inf"):
        choose(tables, maximize="rate")


def test_an_infeasible_choice_says_why():
    tables = {"a": {"x": [1.0, 2.0], "y": [2.0, 1.0]}, "b": {"x": [3.0, 4.0], "y": [4.0, 3.0]}}
    result = choose(tables, minimize="x", subject_to={"x": (None, 3.5), "y": (7, None)})
    assert result.status == "infeasible" and result.proven and result.chosen == {}
    assert result.message == (
        "x <= 3.5 cannot be met: the best sum is 4, off by 0.5; "
        "y >= 7 cannot be met: the best sum is 6, off by 1"
    )
    together = choose(tables, minimize="x", subject_to={"x": (None, 5), "y": (None, 4.5)})
    assert together.message == "the budgets cannot be met together"
    one = choose({"a": tables["a"]}, minimize="x", subject_to={"x": (None, 1.5), "y": (None, 1.5)})
    assert one.message == "the budgets cannot be met together"


def test_open_and_infinite_budgets_do_not_bind():
    tables = {"a": {"x": [1.0, 2.0]}}
    for budget in ((None, None), (None, np.inf), (-np.inf, None), (-np.inf, np.inf), (2, np.inf)):
        assert choose(tables, maximize="x", subject_to={"x": budget}).objective == 2
    assert choose(tables, maximize="x", subject_to={"x": (None, -np.inf)}).status == "infeasible"


def test_constant_columns_and_zero_objectives():
    tables = {"a": {"x": [0.0, 0.0], "y": [3.0, 3.0]}, "b": {"x": [0.0], "y": [1.0]}}
    choice = choose(tables, minimize="x", subject_to={"y": (None, 4)})
    assert (choice.status, choice.objective, choice.bound, choice.gap) == ("optimal", 0, 0, 0)


def hard_instance():
    """Correlated knapsacks with four budgets: feasible, far from provable in a second."""
    rng = np.random.default_rng(7)
    tables = {}
    for g in range(40):
        columns = {name: rng.integers(1000, 2000, 8).astype(float) for name in "abcd"}
        columns["gain"] = sum(columns.values()) + rng.integers(0, 300, 8)
        tables[f"g{g}"] = columns
    return tables, {name: (None, 40 * 1430.0) for name in "abcd"}


def test_a_time_limit_leaves_a_bound_and_a_gap():
    tables, budgets = hard_instance()
    choice = choose(tables, maximize="gain", subject_to=budgets, time_limit=1.0)
    assert choice.status == "feasible" and not choice.proven
    assert set(choice.chosen) == set(tables)
    assert all(choice.totals[name] <= high for name, (_, high) in budgets.items())
    assert choice.bound > choice.objective
    assert choice.gap == pytest.approx((choice.bound - choice.objective) / choice.objective)
    assert 0 < choice.gap < 0.05


def test_no_time_is_a_status_and_no_choice():
    tables, budgets = hard_instance()
    choice = choose(tables, maximize="gain", subject_to=budgets, time_limit=1e-9)
    assert (choice.status, choice.chosen, choice.objective, choice.gap) == ("time limit", {}, None, None)
    assert choice.message == "the time limit came before the first solution" and not choice.proven


def test_the_solver_is_named_and_silent(capfd, no_room):
    assert choose({"a": {"x": [1.0, 2.0]}}, minimize="x").solver == "optimize, exact sums"
    tables = {g: {"x": [1.0, 2.0, 4.0], "y": [3.0, 2.5, 1.0]} for g in "abc"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        choice = choose(tables, minimize="x", subject_to={"y": (None, 6)})
    assert choice.solver.startswith("HiGHS 1.") and " through PuLP " in choice.solver
    assert choice.seconds > 0
    assert capfd.readouterr() == ("", "")


A = {"a": {"x": [1.0, 2.0]}}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: choose(A), "give one of minimize and maximize, got None and None"),
        (lambda: choose(A, minimize="x", maximize="x"), "give one of minimize and maximize, got 'x' and 'x'"),
        (lambda: choose({}, minimize="x"), "groups must have at least one group, got none"),
        (lambda: choose(A, minimize="x", time_limit=0), "time_limit must be > 0 seconds, got 0"),
        (
            lambda: choose({"a": {"latency": [1]}}, minimize="latancy"),
            "group 'a' has no metric 'latancy'; did you mean 'latency'",
        ),
        (
            lambda: choose(A, minimize="x", subject_to={"cost": (0, 1)}),
            "group 'a' has no metric 'cost'; known are x",
        ),
        (
            lambda: choose(A, minimize="x", subject_to={"x": (2, 1)}),
            r"subject_to\['x'\] must have low <= high, got \(2, 1\)",
        ),
        (
            lambda: choose(A, minimize="x", subject_to={"x": 3}),
            r"subject_to\['x'\] must be a pair \(low, high\), got 3",
        ),
        (
            lambda: choose({"a": {"x": []}}, minimize="x"),
            "'x' of group 'a' must be one number per option, got",
        ),
        (
            lambda: choose({"a": {"x": [1, 2], "y": [1]}}, minimize="x"),
            "'x' of group 'a' must be one number per option",
        ),
        (
            lambda: choose({"a": {"x": ["b"]}}, minimize="x"),
            "'x' of group 'a' must be one number per option, got",
        ),
        (
            lambda: choose({"a": {"x": [1, np.nan]}}, minimize="x"),
            "'x' of group 'a' must not be NaN, got NaN in option 1",
        ),
        (
            lambda: choose({"a": {"x": [1, -np.inf]}}, minimize="x"),
            "'x' of group 'a' must not be infinitely good, got -inf",
        ),
        (
            lambda: choose({"a": {"x": [1, np.inf]}}, maximize="x"),
            "'x' of group 'a' must not be infinitely good, got inf",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@dataclass(frozen=True)
class Processor:
    step: int = 1
    channels: int = 1
    trials: int = 1
    width: int = 8
    slices: int = 1
    buffers: int = 1


def network(chip):
    rate = chip.width / (chip.channels + 2)
    return {
        "latency": 200 / rate + 30 / chip.buffers,
        "wire": chip.width * (chip.channels + 2) / 8,
        "area": 0.05 * chip.width * chip.buffers,
        "power": 0.02 * chip.width * chip.channels,
    }


def memory(chip):
    spread = 1 + 0.3 * np.abs(np.log2(chip.step) - 2)
    return {
        "latency": 300 * spread / chip.channels + 5 * chip.step / chip.channels,
        "wire": 2.0 * chip.channels,
        "area": 1.5 * chip.channels,
        "power": 0.9 * chip.channels + 1 / chip.step,
    }


def allocator(chip):
    return {
        "latency": 60 / (chip.trials * chip.channels) + 4 * chip.trials,
        "wire": 0.1 * chip.trials,
        "area": 0.2 * chip.trials,
        "power": 0.05 * chip.trials,
    }


def cache(chip):
    return {
        "latency": 80 / chip.slices + 3 * chip.slices / chip.width * 8,
        "wire": 0.5 * chip.slices,
        "area": 0.8 * chip.slices,
        "power": 0.3 * chip.slices,
    }


PARTS = {
    "network": (network, ("width", "channels", "buffers")),
    "memory": (memory, ("channels", "step")),
    "allocator": (allocator, ("trials", "channels")),
    "cache": (cache, ("slices", "width")),
}
JOINT = Space(
    Processor(),
    step=[1, 2, 4, 8, 16, 32],
    channels=[1, 2, 4, 8],
    trials=range(1, 6),
    width=[8, 16, 32],
    slices=[1, 2, 4, 8],
    buffers=[1, 2, 4],
)


def whole(chip):
    parts = [model(chip) for model, _ in PARTS.values()]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


def real_model(choice):
    return whole(chosen_spec(JOINT, choice))


@pytest.fixture(scope="module")
def components():
    return {
        name: tabulate(JOINT, model, *fields, vectorized=name != "cache")
        for name, (model, fields) in PARTS.items()
    }


def test_the_joint_parameters_under_four_budgets_equal_exhaustive(components):
    exhaustive_table = explore(JOINT, whole, minimize="latency", vectorized=True).table
    for slack in (0.02, 0.1, 0.4):
        ends = {name: np.quantile(exhaustive_table[name], slack) for name in ("area", "power", "wire")}
        budgets = {name: (None, float(end)) for name, end in ends.items()}
        choice = choose(components, minimize="latency", subject_to=budgets)
        feasible = np.all([exhaustive_table[name] <= end for name, end in ends.items()], axis=0)
        best = exhaustive_table["latency"][feasible].min()
        assert choice.status == "optimal"
        assert choice.objective == pytest.approx(best, rel=1e-12)
        assert real_model(choice.chosen)["latency"] == pytest.approx(best, rel=1e-12)
        late = choose(
            components, minimize="area", subject_to={**budgets, "latency": (None, best * (1 - 1e-9))}
        )
        assert late.status == "infeasible" and late.message == "the budgets cannot be met together"


def test_the_joint_front_equals_exhaustive(components):
    goals = ["latency", "area", "power"]
    table = explore(JOINT, whole, minimize=goals, subject_to={"wire": (None, 11)}, vectorized=True)
    exact = np.unique(table.values[table.front].round(9), axis=0)
    # Totals are sums in another order here, which differ in the last bit and are points of their own.
    exact = exact[nondominated(exact)]
    front = exact_front(components, minimize=goals, subject_to={"wire": (None, 11)})
    assert len(front.values) > 20 and front.proven
    real = [[real_model(chosen)[goal] for goal in goals] for chosen in front.chosen]
    np.testing.assert_allclose(front.values, real, rtol=1e-14)
    np.testing.assert_allclose(front.values, exact, rtol=0, atol=2e-9)


@st.composite
def coupled(draw, number):
    """Components over fields u, v, w in a chain, a triangle or with a field of their own."""
    sizes = {name: draw(st.integers(1, 3)) for name in "uvwx"}
    groups = {}
    for pair in draw(st.sampled_from([("uv", "vw"), ("uv", "vw", "uw"), ("uvw", "vx"), ("u", "uv")])):
        shape = tuple(sizes[name] for name in pair)
        column = st.lists(number, min_size=int(np.prod(shape)), max_size=int(np.prod(shape)))
        table = {metric: np.reshape(draw(column), shape) for metric in "ab"}
        groups[f"part {pair}"] = Component(fields=tuple(pair), table=table)
    return groups, draw(st.floats(0, 1))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(coupled(st.integers(-8, 8).map(lambda n: n / 4)))
def test_components_with_shared_fields_equal_exhaustive_exactly(instance):
    groups, quantile = instance
    sizes = {}
    for group in groups.values():
        sizes.update(zip(group.fields, group.table["a"].shape, strict=True))
    totals = {}
    for rows in itertools.product(*(range(size) for size in sizes.values())):
        at = dict(zip(sizes, rows, strict=True))
        cells = [(group, tuple(at[name] for name in group.fields)) for group in groups.values()]
        totals[rows] = [float(sum(group.table[metric][cell] for group, cell in cells)) for metric in "ab"]
    budget = sorted(b for _, b in totals.values())[int(quantile * (len(totals) - 1))]
    choice = choose(groups, minimize="a", subject_to={"b": (None, budget)})
    assert choice.status == "optimal"
    assert choice.objective == min(a for a, b in totals.values() if b <= budget)
    assert totals[tuple(choice.chosen[name] for name in sizes)] == [choice.totals["a"], choice.totals["b"]]


def test_a_plain_group_may_share_its_field_with_a_component():
    part = Component(fields=("width", "depth"), table={"x": [[1.0, 5.0], [4.0, 0.5]]})
    choice = choose({"width": {"x": [0.0, 0.25]}, "part": part}, minimize="x")
    assert choice.chosen == {"width": 1, "depth": 1} and choice.objective == 0.75


P = Component(fields=("u", "v"), table={"x": [[1.0, 2.0], [3.0, 4.0]]})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Component(fields=(), table={"x": [1.0]}), "fields must name at least one field, got none"),
        (lambda: Component(fields=("u", "u"), table={"x": [1.0]}), "fields must name a metric once, got 'u'"),
        (lambda: Component(fields=("u",), table={}), "table must have at least one metric, got none"),
        (
            lambda: choose({"p": P, "u": {"x": [1.0, 2.0, 3.0]}}, minimize="x"),
            "field 'u' must have the same choices everywhere, got 2 and 3 in component 'u'",
        ),
        (
            lambda: choose({"p": Component(fields=("u", "v"), table={"x": [1.0, 2.0]})}, minimize="x"),
            r"'x' of component 'p' must be numbers with one axis per field \(u, v\), got float64 of shape",
        ),
        (lambda: choose({"p": P}, minimize="y"), "group 'p' has no metric 'y'; known are x"),
        (lambda: tabulate(JOINT, network, "widht"), "no field 'widht' in the space; did you mean 'width'"),
    ],
)
def test_bad_components_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
