import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from optimize import compare_fronts, epsilon_thin, hypervolume, knee_index, nondominated
from optimize.decisions.decision import robust_choice


@st.composite
def tables(draw, *, infinite=True, positive=False, signed=False, max_points=20):
    """Small integers, so that ties and duplicates abound; a mask of maximised objectives."""
    objectives = draw(st.integers(1, 5))
    number = st.integers(-4 if signed else int(positive), 5).map(float)
    entry = st.one_of(number, st.sampled_from([np.inf, -np.inf])) if infinite else number
    rows = draw(
        st.lists(st.lists(entry, min_size=objectives, max_size=objectives), min_size=1, max_size=max_points)
    )
    mask = draw(st.lists(st.booleans(), min_size=objectives, max_size=objectives))
    return np.array(rows), np.array(mask)


def dominated_by_hand(values, mask):
    def dominates(a, b):
        at_least = all(x >= y if up else x <= y for x, y, up in zip(a, b, mask, strict=True))
        return at_least and any(x != y for x, y in zip(a, b, strict=True))

    def saturated(a):
        return any(x == (-np.inf if up else np.inf) for x, up in zip(a, mask, strict=True))

    return [saturated(b) or any(dominates(a, b) for a in values) for b in values]


@given(tables())
def test_nondominated_is_the_definition(table):
    values, mask = table
    before = values.copy()
    kept = nondominated(values, maximize=mask)
    assert_array_equal(~kept, dominated_by_hand(values, mask))
    assert_array_equal(values, before)


@given(tables(infinite=False), st.randoms(use_true_random=False))
def test_nondominated_does_not_depend_on_order_or_copies(table, random):
    values, mask = table
    kept = nondominated(values, maximize=mask)
    order = list(range(len(values)))
    random.shuffle(order)
    assert_array_equal(nondominated(values[order], maximize=mask), kept[order])
    assert_array_equal(nondominated(np.repeat(values, 2, axis=0), maximize=mask), np.repeat(kept, 2))


def test_a_saturated_design_is_never_on_the_front():
    # (inf, 1) is not dominated, yet nobody wants it; an infinitely good value is welcome.
    assert nondominated([[np.inf, 1.0], [2.0, 2.0]]).tolist() == [False, True]
    assert nondominated([[np.inf, 1.0]]).tolist() == [False]
    assert nondominated([[np.inf, 1.0], [2.0, 2.0]], maximize=[True, False]).tolist() == [True, False]
    assert nondominated(np.zeros((0, 3))).tolist() == []


@given(tables(signed=True))
def test_the_knee_is_the_nearest_point_of_the_front(table):
    values, mask = table
    front = values[nondominated(values, maximize=mask)]
    knee = knee_index(front, maximize=mask)
    if not len(front):
        assert knee is None
        return
    distances = []
    for point in front:
        total = 0.0
        for k, value in enumerate(point):
            finite = [other for other in front[:, k] if np.isfinite(other)] or [0.0]
            best, worst = (max(finite), min(finite)) if mask[k] else (min(finite), max(finite))
            if np.isfinite(value) and best != worst:
                total += ((value - best) / (worst - best)) ** 2
        distances.append(total)
    assert 0 <= knee < len(front)
    assert distances[knee] <= min(distances) * (1 + 1e-12)


def test_the_knee_does_not_depend_on_units():
    front = np.array([[1, 9], [2, 3], [6, 2], [9, 1]], dtype=float)
    assert knee_index(front) == knee_index(front * [1000, 1e-6] + [5, -7]) == 1
    assert knee_index(-front, maximize=True) == 1
    assert knee_index([[1, 1], [1, 1]]) == 0
    assert knee_index([[1.0, np.inf], [2.0, 0.0]]) == 1


def test_hypervolume_of_boxes():
    points = [[1, 5, 2], [4, 1, 3], [2, 2, 2]]
    cells = itertools.product(range(6), repeat=3)
    covered = sum(
        any(all(p <= c for p, c in zip(point, cell, strict=True)) for point in points) for cell in cells
    )
    assert hypervolume(points, reference=[6, 6, 6]) == covered
    assert hypervolume([[-1, 5, 2]], reference=[-6, 6, 6], maximize=[True, False, False]) == 5 * 1 * 4
    assert hypervolume([[7, 1, 1], [6, 6, 6]], reference=[6, 6, 6]) == 0
    assert hypervolume([[1.0], [2.0]], reference=[4.0]) == 3


@given(tables(infinite=False, signed=True), st.sampled_from([0.0, 0.1, 0.5, 2.0]))
def test_thinning_covers_every_point(table, epsilon):
    values, mask = table
    front = values[nondominated(values, maximize=mask)]
    kept = epsilon_thin(front, epsilon, maximize=mask)
    assert sorted(set(kept)) == kept.tolist()
    for point in front:
        assert any(
            all(
                p - k <= epsilon * abs(k) if up else k - p <= epsilon * abs(p)
                for k, p, up in zip(front[row], point, mask, strict=True)
            )
            for row in kept
        )
    if epsilon == 0:
        assert len(kept) == len(np.unique(front, axis=0))


@given(tables(infinite=False, positive=True), st.sampled_from([0.0, 0.1, 0.5]))
def test_each_kept_point_covers_most_of_those_left(table, epsilon):
    values, mask = table
    front = values[nondominated(values, maximize=mask)]
    covered = [
        [
            all(
                p - k <= epsilon * abs(k) if up else k - p <= epsilon * abs(p)
                for k, p, up in zip(row, point, mask, strict=True)
            )
            for point in front
        ]
        for row in front
    ]
    left, kept = set(range(len(front))), []
    while left:
        kept.append(max(range(len(front)), key=lambda row: sum(covered[row][one] for one in left)))
        left -= {one for one in left if covered[kept[-1]][one]}
    assert epsilon_thin(front, epsilon, maximize=mask).tolist() == sorted(kept)


@given(tables(infinite=False, positive=True, max_points=10))
def test_thinning_of_positive_values_is_a_factor_and_near_the_smallest(table):
    values, mask = table
    front = values[nondominated(values, maximize=mask)]

    def covers(rows):
        return all(
            any(
                all(
                    p <= 1.3 * k if up else k <= 1.3 * p
                    for k, p, up in zip(front[row], point, mask, strict=True)
                )
                for row in rows
            )
            for point in front
        )

    kept = epsilon_thin(front, 0.3, maximize=mask)
    assert covers(kept)
    smallest = next(
        size
        for size in range(1, len(front) + 1)
        if any(covers(rows) for rows in itertools.combinations(range(len(front)), size))
    )
    assert len(kept) <= (1 + np.log(len(front))) * smallest


@given(tables(infinite=False), st.data())
def test_part_of_a_front_has_part_of_the_volume(table, data):
    values, mask = table
    exact = values[nondominated(values, maximize=mask)]
    rows = sorted(data.draw(st.sets(st.integers(0, len(exact) - 1))))
    result = compare_fronts(exact[rows], exact, maximize=mask)
    found = {tuple(exact[row]) for row in rows}
    assert [tuple(exact[row]) in found for row in result.missed] == [False] * len(result.missed)
    assert result.found_points == sum(tuple(point) in found for point in exact)
    assert 0 <= result.hypervolume_ratio <= 1 + 1e-12
    if not result.missed.size:
        assert_allclose(result.hypervolume_ratio, 1)
    elif len(exact[0]) > 1:
        assert result.hypervolume_ratio < 1 - 1e-9
    assert np.where(mask, result.reference < exact, result.reference > exact).all()


def test_comparison_by_hand():
    # Scaled to the unit square, reference (1.1, 1.1): corners 0.11 + 0.11 - 0.01 against the
    # same plus what (2/7, 1/7) adds inside it.
    result = compare_fronts([[1, 9], [8, 2]], [[1, 9], [3, 3], [8, 2]])
    assert result.missed.tolist() == [1] and result.found_points == 2
    assert_allclose(result.reference, [8.7, 9.7])
    middle = (1 - 2 / 7) * (1 - 1 / 7)
    assert_allclose(result.hypervolume_ratio, 0.21 / (0.21 + middle))
    assert str(result) == "2 of 3 points of the exact front found, hypervolume ratio 0.2554"
    constant = compare_fronts([[1, 5]], [[1, 5]])
    assert constant.reference.tolist() == [2, 6] and constant.hypervolume_ratio == 1
    nothing = compare_fronts([], [[1, 5], [2, 4]])
    assert nothing.hypervolume_ratio == 0 and nothing.missed.tolist() == [0, 1]
    assert compare_fronts(np.zeros((0, 2)), [[1, 5]]).found_points == 0


MINIMIZE, MAXIMIZE = ("latency", "cost"), ("rate",)


def table(rng, count=30, **columns):
    made = {name: np.round(rng.uniform(1, 9, count), 2) for name in (*MINIMIZE, *MAXIMIZE)}
    return {"design": np.arange(count), **made, **columns}


def by_definition(one, feasible):
    """The regret of each design, row by row and without arrays."""
    mask = [False, False, True]
    rows = [k for k, good in enumerate(feasible) if good]
    points = [[one["latency"][k], one["cost"][k], one["rate"][k]] for k in rows]
    front = [points[k] for k in np.flatnonzero(nondominated(points, maximize=mask))]
    far = {}
    for row, point in zip(rows, points, strict=True):
        parts = []
        for k, up in enumerate(mask):
            values = [other[k] for other in front]
            best, worst = (max(values), min(values)) if up else (min(values), max(values))
            parts.append((point[k] - best) / (worst - best) if best != worst else (point[k] - best) / best)
        far[row] = sum(part**2 for part in parts) ** 0.5
    least = min(far.values())
    return [far[k] - least if k in far else float("inf") for k in range(len(feasible))]


@pytest.mark.parametrize("seed", range(5))
def test_the_regret_is_that_of_the_definition_and_the_best_is_the_knee(seed):
    rng = np.random.default_rng(seed)
    tables = {"a": table(rng), "b": table(rng), "c": table(rng)}
    feasible = {name: rng.random(30) < 0.8 for name in tables}
    found = robust_choice(tables, feasible, minimize=MINIMIZE, maximize=MAXIMIZE)
    for k, name in enumerate(tables):
        assert found.regret[k] == pytest.approx(by_definition(tables[name], feasible[name]))
        rows = np.flatnonzero(feasible[name])
        values = np.stack([tables[name][one] for one in (*MINIMIZE, *MAXIMIZE)], axis=1)[rows]
        front = rows[nondominated(values, maximize=[False, False, True])]
        knee = front[knee_index(values[np.isin(rows, front)], maximize=[False, False, True])]
        assert found.best[k] == knee and found.regret_of(int(knee))[name] == 0
    worst = found.regret.max(axis=0)
    assert worst[found.chosen] == worst.min() and np.isfinite(worst.min())
    assert found.feasible == sum(all(feasible[name][k] for name in tables) for k in range(30))


@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
def test_units_and_offsets_of_objectives_do_not_matter(seed, scale, shift):
    rng = np.random.default_rng(seed)
    tables = {"a": table(rng), "b": table(rng)}
    every = {name: np.full(30, True) for name in tables}
    one = robust_choice(tables, every, minimize=MINIMIZE, maximize=MAXIMIZE)
    other = {name: {**columns, "cost": scale * (columns["cost"] + shift)} for name, columns in tables.items()}
    two = robust_choice(other, every, minimize=MINIMIZE, maximize=MAXIMIZE)
    assert two.regret == pytest.approx(one.regret, abs=1e-6)
    turned = {name: {**columns, "rate": -columns["rate"]} for name, columns in tables.items()}
    three = robust_choice(turned, every, minimize=("latency", "cost", "rate"))
    assert three.regret == pytest.approx(one.regret) and three.chosen == one.chosen


def test_one_scenario_regrets_nothing_and_equal_scenarios_agree():
    rng = np.random.default_rng(9)
    one = table(rng)
    for tables in ({"a": one}, {"a": one, "b": one}):
        found = robust_choice(tables, dict.fromkeys(tables, np.full(30, True)), minimize=MINIMIZE)
        assert found.chosen == found.best[0] and max(found.regret_of(found.chosen).values()) == 0


def test_a_single_objective_is_regretted_in_shares():
    tables = {
        name: {"design": np.arange(3), "latency": np.array(values)}
        for name, values in (("a", [10.0, 11.0, 20.0]), ("b", [50.0, 44.0, 40.0]))
    }
    every = dict.fromkeys(tables, np.full(3, True))
    found = robust_choice(tables, every, minimize=("latency",))
    assert found.regret == pytest.approx(np.array([[0, 0.1, 1], [0.25, 0.1, 0]]))
    assert found.chosen == 1 and found.best == (0, 2)


def test_what_fails_under_one_scenario_is_not_chosen():
    tables = {"a": table(np.random.default_rng(1)), "b": table(np.random.default_rng(2))}
    every = {name: np.full(30, True) for name in tables}
    first = robust_choice(tables, every, minimize=MINIMIZE).chosen
    every["b"][first] = False
    found = robust_choice(tables, every, minimize=MINIMIZE)
    assert found.chosen != first and found.regret_of(first)["b"] == np.inf
    every["b"][:] = False
    found = robust_choice(tables, every, minimize=MINIMIZE)
    assert found.chosen is None and found.best[1] is None and found.feasible == 0
    half = {"a": np.arange(30) < 15, "b": np.arange(30) >= 15}
    found = robust_choice(tables, half, minimize=MINIMIZE)
    assert found.chosen is None and None not in found.best


def test_tables_share_some_designs_only():
    """Rows are joined by number, in whatever rows they stand; the best may be one that others lack."""
    rng = np.random.default_rng(3)
    a = table(rng)
    b = {name: column[10:] for name, column in table(rng).items()}
    found = robust_choice(
        {"a": a, "b": b}, {"a": np.full(30, True), "b": np.full(20, True)}, minimize=MINIMIZE
    )
    assert found.designs.tolist() == list(range(10, 30))
    whole = by_definition({**a, "rate": np.ones(30)}, np.full(30, True))
    assert found.regret[0] == pytest.approx(whole[10:])
