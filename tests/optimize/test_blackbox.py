"""The search of a black box: its fields, its arithmetic against integrals, and what it promises its user."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimize import Between, Domain, Search, Space, hypervolume
from optimize.blackbox.beliefs import tamed
from optimize.blackbox.cheap import Cheap
from optimize.blackbox.improvement import boxes, expected_improvement, thinned
from optimize.blackbox.learned import learn
from optimize.decisions.process import _loss, basis
from optimize.search.pareto import nondominated

fields = st.one_of(
    st.builds(lambda low, size: Between(low=low, high=low + size), st.integers(-3, 3), st.floats(0.1, 5)),
    st.builds(
        lambda low, size, log: Between(low=low, high=low + size, whole=True, log=log),
        st.integers(1, 4), st.integers(1, 30), st.booleans(),
    ),
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from([1, 2, 8, 64]), min_size=1, max_size=4, unique=True),
)  # fmt: skip


@st.composite
def domains(draw):
    """Up to five fields; each may hang on a choice of one before it that is not continuous."""
    given, conditions = {}, {}
    for k in range(draw(st.integers(1, 5))):
        parents = [n for n, one in given.items() if not isinstance(one, Between) and len(one) > 1]
        given[f"f{k}"] = draw(fields)
        if parents and draw(st.booleans()):
            parent = draw(st.sampled_from(parents))
            conditions[f"f{k}"] = {parent: given[parent][1:]}
    return given, conditions, Domain(given, conditions=conditions)


def matters(name, point, given, conditions):
    return all(
        point[other] in values and matters(other, point, given, conditions)
        for other, values in conditions.get(name, {}).items()
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(domains(), st.integers(0, 5))
def test_fields_matter_only_where_their_conditions_hold(drawn, seed):
    given, conditions, domain = drawn
    rng = np.random.default_rng(seed)
    codes = domain.draw(20, rng)
    codes = np.concatenate([codes, domain.near(codes, 0.1, rng)])
    points, features = domain.points(codes), domain.features(codes)
    assert np.allclose(domain.codes(points), codes, atol=1e-12) and np.isfinite(features).all()
    for point in points:
        active = tuple(name for name in given if matters(name, point, given, conditions))
        assert domain.active(point) == active
        for name, one in given.items():
            if isinstance(one, Between):
                assert one.low <= point[name] <= one.high and (not one.whole or isinstance(point[name], int))
                assert name in active or point[name] == one.low
            else:
                assert point[name] in one and (name in active or point[name] == one[0])
        # What does not matter may be left out, and what matters may not.
        assert np.array_equal(domain.codes([{n: point[n] for n in active}]), domain.codes([point]))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(domains(), st.integers(0, 5))
def test_no_design_is_asked_twice_until_none_is_left(drawn, seed):
    _, _, domain = drawn
    search = Search(domain, minimize="y", start=3, seed=seed)
    asked = []
    try:
        for _ in range(3):
            points = search.ask(4)
            asked += points
            search.tell(points, {"y": [sum(map(hash, map(str, p.values()))) % 97 for p in points]})
    except ValueError as error:
        assert "no design is left" in str(error) and len(asked) == len(domain.listed())
    assert len({json.dumps(p) for p in asked}) == len(asked)


def test_a_domain_lists_its_designs_and_takes_a_space():
    @dataclass(frozen=True)
    class Chip:
        policy: str = "a"
        cap: int = 1

    space = Space(
        Chip(), policy=["a", "b"], cap=[1, 2, 4], conditions={"cap": {"policy": ["b"]}},
        constraints=[lambda p: p["cap"] < 4],
    )  # fmt: skip
    points = Domain.of(space).points(Domain.of(space).listed())
    assert sorted(map(str, points)) == sorted(map(str, space.points()))
    assert Domain({"x": Between(low=0, high=1)}).listed() is None


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
def test_boxes_are_what_a_front_leaves_free(objectives):
    rng = np.random.default_rng(objectives)
    points = rng.random((15, objectives))
    corner = np.full(objectives, 0.9)
    low, high = boxes(points[nondominated(points)], corner)
    free = np.prod(np.maximum(high - np.maximum(low, 0), 0), axis=1).sum()
    assert free == pytest.approx(0.9**objectives - hypervolume(points, reference=corner), rel=1e-12)
    tests = rng.random((200, objectives)) * 0.9
    inside = ((tests[:, None] >= low) & (tests[:, None] < high)).all(axis=2).sum(axis=1)
    dominated = (points[None] <= tests[:, None]).all(axis=2).any(axis=1)
    assert np.array_equal(inside, ~dominated)


def noisy(log=False, low=None, offset=1.0):
    """Return what is learned of a line with noise, at features 0 to 1."""
    x = np.linspace(0, 1, 12)[:, None]
    y = offset + x[:, 0] + 0.05 * np.cos(40 * x[:, 0])
    return learn(x, np.exp(3 * y) if log else y, np.zeros(12), low, low)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("sign", [1, -1])
def test_shortfall_is_the_mean_over_draws(log, sign):
    learned = noisy(log)
    assert learned.log == log
    mean, spread = np.array([0.3, 1.0]), np.array([0.4, 1e-15])
    corners = np.array([-2.5, -1.0, 0.5, 2.0])
    draws = mean[:, None] + spread[:, None] * np.random.default_rng(0).standard_normal(400_000)
    values = sign * (np.exp(draws) if log else draws)
    found = learned.shortfall(mean, spread, corners, sign)
    for k, corner in enumerate(corners):
        assert found[:, k] == pytest.approx(np.maximum(corner - values, 0).mean(axis=1), rel=0.01, abs=2e-4)


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_expected_improvement_is_the_mean_volume_added(objectives):
    rng = np.random.default_rng(1)
    front = rng.random((6, objectives))
    front, corner = front[nondominated(front)], np.ones(objectives)
    learned = noisy()
    mean, spread = rng.random((2, objectives)) * 0.6, np.full((2, objectives), 0.2)
    shortfalls = [
        lambda ends, k=k: learned.shortfall(mean[:, k], spread[:, k], ends, 1) for k in range(objectives)
    ]
    found = expected_improvement(front, corner, shortfalls)
    volume = hypervolume(front, reference=corner)
    for design in range(2):
        draws = mean[design] + spread[design] * rng.standard_normal((4000, objectives))
        added = [hypervolume(np.vstack([front, d]), reference=corner) - volume for d in draws]
        assert found[design] == pytest.approx(np.mean(added), abs=4 * np.std(added) / np.sqrt(4000))


def test_a_large_front_is_thinned_to_points_far_apart():
    angle = np.linspace(0, np.pi / 2, 500)
    ball = np.stack([np.cos(angle), np.sin(angle), np.full(500, 0.5)], axis=1)
    kept = thinned(ball)
    assert len(kept) == 60 and np.diff(np.sort(kept[:, 0])).max() < 0.06


def test_the_model_is_used_as_far_as_it_explains_the_values():
    x = np.random.default_rng(0).random((14, 2)) * 3
    truth = np.exp(np.sin(3 * x[:, 0]) + np.cos(5 * x[:, 1]))
    good, bad = learn(x, truth, np.zeros(14), 1.3 * truth, 1.3 * truth), None
    bad = learn(x, truth, np.zeros(14), np.exp(9 * x[:, 0]), np.exp(9 * x[:, 0]))
    assert good.modelled and good.log and not bad.modelled
    new = np.random.default_rng(1).random((5, 2)) * 3
    right = np.exp(np.sin(3 * new[:, 0]) + np.cos(5 * new[:, 1]))
    mean, _ = good.about(new, 1.3 * right)
    assert good.value(mean) == pytest.approx(right, rel=1e-3)


def test_a_trend_is_carried_beyond_the_values():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (24, 4))
    corners = rng.choice((-2.0, 2.0), (30, 4))

    def bowl(x):
        return 3 + (x**2).sum(axis=1) - x[:, 0]

    learned = learn(x, bowl(x) + 0.01 * rng.standard_normal(24), np.zeros(24), None, None)
    assert learned.process.trend > 0
    assert learned.value(learned.about(corners, None)[0]) == pytest.approx(bowl(corners), rel=0.1)


@pytest.mark.parametrize("trend", [True, False])
def test_the_gradient_of_the_fit_is_that_of_its_value(trend):
    rng = np.random.default_rng(0)
    x, y, own = rng.random((9, 3)), rng.random(9), 0.1 * rng.random(9)
    squares, tilt = (x[:, None] - x) ** 2, basis(x) @ basis(x).T if trend else None
    theta = rng.random(5 + trend)

    def loss(theta):
        return _loss(theta, squares, tilt, y, np.zeros(5 + trend), np.ones(5 + trend), own)

    for k in range(len(theta)):
        step = 1e-6 * (np.arange(len(theta)) == k)
        slope = (loss(theta + step)[0] - loss(theta - step)[0]) / 2e-6
        assert loss(theta)[1][k] == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_a_value_of_large_noise_counts_for_little():
    x = np.linspace(0, 1, 10)[:, None]
    y = 1 + x[:, 0]
    y[4] = 40
    noise = np.full(10, 0.01)
    noise[4] = 40
    mean, spread = learn(x, y, noise, None, None).about(np.array([[4 / 9]]), None)
    assert mean[0] == pytest.approx(1 + 4 / 9, abs=0.1) and spread[0] < 0.2


def test_values_far_beyond_the_knee_keep_their_order_and_those_before_it_stay():
    values = np.array([-5.0, 0.0, 1.0, 2.0, 1e6])
    for sign in (1, -1):
        found = tamed(sign * values, sign, sign * 1.0, 2.0)
        assert np.array_equal(found[:3], sign * values[:3]) and (np.diff(sign * found) > 0).all()
        assert abs(found[-1]) < 40


def two_sided(point):
    """A trade between two answers, the better the smaller y."""
    return {"a": point["x"] ** 2 + point["y"], "b": (1 - point["x"]) ** 2 + point["y"]}


def columns(points, of=two_sided):
    found = [of(point) for point in points]
    return {name: [one[name] for one in found] for name in found[0]}


SQUARE = {"x": Between(low=0, high=1), "y": Between(low=0, high=1)}


def square(minimize, **options):
    return Search(Domain(SQUARE), minimize=minimize, **options)


def run(search, batches, count=3, of=two_sided):
    for _ in range(batches):
        points = search.ask(count)
        search.tell(points, columns(points, of))
    return search


def test_the_same_seed_gives_the_same_questions():
    first, again, other = (run(Search(Domain(SQUARE), minimize=["a", "b"], seed=s), 4) for s in (1, 1, 2))
    assert np.array_equal(first.table["x"], again.table["x"])
    assert not np.array_equal(first.table["x"], other.table["x"])


def test_a_search_that_was_saved_goes_on_as_if_it_had_not_stopped(tmp_path):
    def fresh():
        return Search(Domain(SQUARE), minimize=["a", "b"], seed=3)

    whole = run(fresh(), 3)
    asked = whole.ask(2)
    stopped = fresh().resume(whole.save(tmp_path / "search.json"))
    for search in (whole, stopped):
        search.tell(asked, columns(asked), noise={"a": 0.01 * np.ones(2)})
        run(search, 2)
    for name in ("x", "y", "a", "b"):
        assert np.array_equal(whole.table[name], stopped.table[name])
    assert (np.diff(stopped.table["seconds"]) >= 0).all() and stopped.table["seconds"][-1] < 600
    assert [file.name for file in tmp_path.iterdir()] == ["search.json"]


def test_it_finds_more_than_drawing_does():
    search = run(Search(Domain(SQUARE), minimize=["a", "b"], reference={"a": 1, "b": 1}, seed=1), 8)
    domain = Domain(SQUARE)
    drawn = columns(domain.points(domain.draw(24, np.random.default_rng(1))))
    random = hypervolume(np.array([drawn["a"], drawn["b"]]).T, reference=[1, 1])
    grid = np.linspace(0, 1, 1001)
    best = hypervolume(np.stack([grid**2, (1 - grid) ** 2], 1), reference=[1, 1])
    found = search.progress().hypervolume[-1]
    assert found > 0.95 * best > random


def test_the_model_says_where_to_begin():
    search = Search(Domain(SQUARE), minimize=["a", "b"], low=columns, seed=1)
    assert max(point["y"] for point in search.ask(5)) < 0.05


def test_constraints_are_kept_and_designs_that_do_not_work_are_left():
    def of(point):
        answers = two_sided(point) | {"heat": 1 - point["x"]}
        return answers if point["x"] < 0.7 else dict.fromkeys(answers, np.inf)

    domain = Domain(SQUARE, constraints=[lambda p: p["y"] > 0.1])
    search = Search(domain, minimize=["a", "b"], subject_to={"heat": (None, 0.8)}, start=10, seed=2)
    run(search, 10, of=of)
    x = search.table["x"]
    assert (search.table["y"] > 0.1).all()
    able = (x < 0.7) & (x >= 0.2)
    assert able[15:].mean() > able[:10].mean()
    assert np.array_equal(search.feasible(), able)
    front = search.front()
    assert front and all(0.2 <= row["x"] < 0.7 and row["y"] < 0.12 for row in front)


def test_what_is_maximized_and_told_unasked():
    def of(point):
        return {"cost": float(point["x"]), "rate": 200.0 - (point["x"] - 10) ** 2}

    search = Search(Domain({"x": list(range(30))}), minimize="cost", maximize="rate", start=4)
    known = [{"x": 3}, {"x": 20}]
    search.tell(known, columns(known, of))
    run(search, 5, of=of)
    assert {row["x"] for row in search.front()} >= {0, 3, 10} and search.feasible().all()


def test_a_model_without_an_answer_counts_as_its_worst():
    domain = Domain({"x": [0, 1, 2, 3]})
    cheap = Cheap(lambda points: {"a": [np.inf if p["x"] > 1 else p["x"] + 1.0 for p in points]}, domain,
                  {"a": 1, "b": 1}, domain.listed())  # fmt: skip
    assert cheap.scale["a"].tolist() == [1, 2, 2, 2] and cheap.scale["works"].tolist() == [1, 1, 0, 0]
    assert not cheap.complete


def test_the_volume_grows_and_has_a_picture():
    search = Search(Domain({"x": list(range(10))}), minimize=["a", "b"], reference={"a": 10, "b": 10})
    search.tell([{"x": k} for k in range(4)], {"a": [9, 1, 5, 11], "b": [9, 9, 2, 1]})
    progress = search.progress()
    assert progress.hypervolume.tolist() == [1, 9, 9 + 5 * 7, 44] and progress.reached(10) == 3
    assert progress.reached(45) is None
    assert search.progress({"a": 9, "b": 10}).hypervolume[-1] == 8 + 4 * 7
    axes = progress.plot(label="ours")
    progress.plot(axes, over="seconds")
    assert axes.get_xlabel().startswith("seconds") and len(axes.lines) == 2
    with pytest.raises(ValueError, match="over must be one of evaluations, seconds, got 'days'"):
        progress.plot(over="days")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Between(low=2, high=1), "low must be below high, got 2 and 1"),
        (lambda: Between(low=0, high=np.inf), "high must be a finite number, got inf"),
        (lambda: Between(low=0.5, high=2, whole=True), "low must be a whole number, got 0.5"),
        (lambda: Between(low=0, high=2, log=True), "low must be > 0 with log, got 0"),
        (lambda: Domain({}), "a domain needs at least one field"),
        (lambda: Domain({"x": []}), "x must have at least one choice"),
        (
            lambda: Domain(SQUARE, conditions={"x": {"y": [0.5]}}),
            "must not ask for continuous fields, got 'y'",
        ),
        (lambda: Domain(SQUARE, conditions={"z": {"y": [0.5]}}), "continuous fields, got 'y'"),
        (
            lambda: Domain({"x": [1, 2]}, conditions={"z": {"x": [1]}}),
            "must name fields of the space, got 'z'",
        ),
        (lambda: Domain(SQUARE, constraints=[3]), "constraints must be callables on a point, got 3"),
        (lambda: Search(Domain(SQUARE)), "needs at least one objective"),
        (lambda: square("x"), "must not have the name of a field or 'works', got 'x'"),
        (lambda: square("a", seed=-1), "seed must be a whole number >= 0, got -1"),
        (lambda: square("a", start=0.5), "start must be a whole number >= 0, got 0.5"),
        (lambda: square("a", reference={"b": 1}), "must have a value of each of a"),
        (lambda: square("a", reference={"a": np.nan}), "reference must be finite"),
        (lambda: square("a").ask(0), "count must be a whole number >= 1, got 0"),
        (
            lambda: square("a").tell([{"x": 2, "y": 0}], {"a": [1]}),
            "x must be a number from 0 to 1, got 2",
        ),
        (
            lambda: square("a").tell([{"x": 1}], {"a": [1]}),
            "point must have a value of 'y', got {'x': 1}",
        ),
        (
            lambda: square("a").tell([{"X": 1, "y": 0}], {"a": [1]}),
            "point has no field 'X'; known are x, y",
        ),
        (
            lambda: square("a").tell([{"x": 1, "y": 0}], {"b": [1]}),
            "values must have a column 'a', got b",
        ),
        (
            lambda: square("a").tell([{"x": 1, "y": 0}], {"a": [1, 2]}),
            r"values\['a'\] must have one value for each of 1 points, got 2",
        ),
        (
            lambda: square("a").tell([{"x": 1, "y": 0}], {"a": [1]}, noise={"a": [-1]}),
            r"noise\['a'\] must be finite and >= 0",
        ),
        *(
            (
                lambda value=value: square("a").tell([{"x": 1, "y": 0}], {"a": [value]}),
                r"values\['a'\] must be real numbers",
            )
            for value in (1j, "3", None, np.datetime64("2020-01-01"), 10**400, object(), [1, [2]])
        ),
        (
            lambda: square("a").tell([{"x": 1, "y": 0}], {"a": np.ma.array([1.0], mask=[True])}),
            r"values\['a'\] must be real numbers",
        ),
        (
            lambda: square("a", low=lambda points: {"a": ["1"] * len(points)}).ask(),
            r"low\['a'\] must be real numbers",
        ),
        (
            lambda: square("a", low=lambda points: {"a": [1]}).ask(),
            "low must give 'a' for each of 512 points, got 1 values",
        ),
        (
            lambda: Search(Domain(SQUARE, constraints=[lambda p: False]), minimize="a").ask(),
            "constraints leave hardly a design",
        ),
        (
            lambda: Search(Domain({"x": [1, 2]}, constraints=[lambda p: False]), minimize="a").ask(),
            "constraints leave no design",
        ),
    ],
)
def test_bad_input_is_one_line(call, message):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_file_of_another_search_is_refused(tmp_path):
    path = square("a").save(tmp_path / "one.json")
    with pytest.raises(ValueError, match="path must be of a search of the same fields, goals and seed"):
        square("a", seed=1).resume(path)
    path.write_text("{")
    with pytest.raises(ValueError, match="path must be a file that Search.save wrote"):
        square("a").resume(path)
