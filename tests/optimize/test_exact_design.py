"""The exact program against enumeration, on models with couplings, infinities, ties and nothing feasible."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from optimize import Space, exact_design
from optimize.exact.master import Master, Sum


@dataclass(frozen=True)
class Chip:
    step: int = 0
    channels: int = 0
    width: int = 0
    lines: int = 0


FIELDS = ("step", "channels", "width", "lines")
GROUPS = [("step", "channels"), ("channels", "width")]
SUMS = {"cost": [("channels", "width"), ("lines",)]}


@st.composite
def models(draw):
    """Metrics as arrays over all designs: latency falls with width and lines, in any way with the others."""
    shape = tuple(draw(st.integers(1, 4)) for _ in FIELDS)
    small = st.sampled_from([0, 1, 2, 3, 5, 8])

    def array(*axes):
        size = [n if k in axes else 1 for k, n in enumerate(shape)]
        values = draw(st.lists(small, min_size=int(np.prod(size)), max_size=int(np.prod(size))))
        return np.array(values, dtype=float).reshape(size)

    plane, cache = array(0, 1), array(3)
    wires = -np.sort(-array(1, 2), axis=2)
    latency = 1.0 + plane + wires * (1 + plane) - np.sort(cache, axis=3) / 10 + 0 * np.zeros(shape)
    if draw(st.booleans()):
        latency = np.where((array(0, 1) > 4) & (np.zeros(shape) == 0), np.inf, latency)
    loss = array(0, 1, 3) * np.ones(shape)
    loss = np.minimum.accumulate(loss, axis=3)
    cost = (array(1, 2) + array(3)) * np.ones(shape)
    return {"latency": latency, "loss": loss, "cost": cost}


def solve(metrics, **options):
    shape = metrics["cost"].shape

    def evaluate(chip):
        return {name: values[tuple(getattr(chip, f) for f in FIELDS)] for name, values in metrics.items()}

    space = Space(Chip(), {name: range(n) for name, n in zip(FIELDS, shape, strict=True)})
    options = {"groups": GROUPS, "sums": SUMS, "vectorized": True, "lines": 2} | options
    return exact_design(space, evaluate, **options)


def best_of(metrics, objective, limits, sign=1.0):
    good = np.isfinite(metrics[objective])
    for name, (low, high) in limits.items():
        good &= (low is None or metrics[name] >= low) & (high is None or metrics[name] <= high)
    return sign * np.where(good, sign * metrics[objective], np.inf).min()


DECLARED = {
    "latency": {"width": "decreasing", "lines": "decreasing"},
    "loss": {"width": "constant", "lines": "decreasing"},
    "stable": dict.fromkeys(FIELDS, "constant"),
}


@given(metrics=models(), objective=st.sampled_from(["latency", "cost", "loss"]), data=st.data())
@settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_equals_enumeration_under_declared_bounds(metrics, objective, data):
    limits = {}
    for name, values in metrics.items():
        if name != objective and data.draw(st.booleans()):
            finite = values[np.isfinite(values)]
            level = data.draw(st.sampled_from([0.0, 0.3, 0.6, 1.0]))
            limits[name] = (None, float(np.quantile(finite, level)) if finite.size else 1.0)
    found = solve(metrics, minimize=objective, subject_to=limits, bounds=DECLARED)
    expected = best_of(metrics, objective, limits)
    if np.isinf(expected):
        assert (found.status, found.design, found.gap) == ("infeasible", None, None)
    else:
        assert found.status == "optimal"
        assert found.objective == pytest.approx(expected, rel=1e-12)
        assert found.bound <= expected * (1 + 1e-12)
        assert found.gap <= 1.001e-9  # sums are told apart to 1e-9
        assert metrics[objective].reshape(-1)[found.design] == found.objective


@given(metrics=models())
@settings(max_examples=5, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_maximises(metrics):
    limits = {"latency": (None, float(np.median(metrics["latency"]))), "cost": (2.0, None)}
    found = solve(metrics, maximize="cost", subject_to=limits, bounds=DECLARED)
    expected = best_of(metrics, "cost", limits, -1.0)
    assert found.objective == (None if np.isinf(expected) else pytest.approx(expected))


def falling(shape=(4, 5, 6, 6)):
    """A model of which nothing is declared: coupled fields, and two that it only falls with."""
    step, channels, width, lines = (np.arange(n, dtype=float) for n in shape)
    grid = np.meshgrid(step, channels, width, lines, indexing="ij")
    latency = 10 + (grid[0] - grid[1]) ** 2 + 20 / (1 + grid[2]) + 8 / (1 + grid[3] * (1 + grid[1]))
    return {"latency": latency, "cost": grid[1] * (1 + grid[2]) + 2 * grid[3], "loss": 0 * latency}


def test_learned_order_is_measured_and_says_on_what():
    metrics = falling()
    found = solve(metrics, minimize="latency", subject_to={"cost": (None, 14)}, lines=4)
    assert found.status == "optimal as measured"
    assert found.objective == pytest.approx(best_of(metrics, "latency", {"cost": (None, 14)}))
    assert found.evaluations < metrics["cost"].size
    assert f"{found.evaluations} designs evaluated of {metrics['cost'].size}" in found.rests_on
    assert found.rests_on.endswith(" designs drawn from what is excluded, 0 orders given up for them")
    assert found.errors[0].metric == "latency" and found.errors[0].largest > 0


def test_all_designs_evaluated_is_a_proof():
    found = solve(falling((2, 2, 2, 2)), minimize="latency", lines=16)
    assert (found.status, found.rests_on) == ("optimal", "all 16 designs evaluated")


def test_drawn_designs_correct_a_wrong_order():
    """One cell that breaks the rule, which the lines of one design do not show."""
    metrics = falling()
    metrics["latency"][3, 1, 1, 2] = 1.0
    solved = [solve(metrics, minimize="latency", lines=1, seed=seed, draws=600) for seed in range(2)]
    blind = [solve(metrics, minimize="latency", lines=1, seed=seed, draws=0) for seed in range(2)]
    assert [one.objective for one in solved] == [1.0] * 2
    assert any(one.objective > 1.0 for one in blind)
    assert all(one.status == "optimal as measured" for one in blind)


def test_budget_leaves_a_gap():
    metrics = falling()
    found = solve(metrics, minimize="latency", subject_to={"cost": (None, 14)}, lines=1, evaluations=60)
    best = best_of(metrics, "latency", {"cost": (None, 14)})
    assert found.status in ("feasible", "nothing found")
    assert found.bound is None or found.bound <= best <= found.objective


def test_contradicted_declarations_are_refused():
    metrics = falling()
    with pytest.raises(ValueError, match=r"bounds\['latency'\] do not hold"):
        solve(metrics, minimize="latency", bounds={"latency": {"width": "increasing"}})
    with pytest.raises(ValueError, match=r"sums\['latency'\] must be a sum"):
        solve(metrics, minimize="latency", sums={"latency": [("step",), ("channels",)]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give one of minimize and maximize"),
        ({"minimize": ["latency", "cost"]}, "minimize must name one metric"),
        ({"minimize": "lateny"}, "no metric 'lateny'"),
        ({"minimize": "latency", "lines": 0}, "lines must be a whole number >= 1, got 0"),
        ({"minimize": "latency", "gap": 1.0}, "gap must be at least 0 and below 1, got 1.0"),
        ({"minimize": "latency", "groups": [("stp",)]}, "no field 'stp'"),
        ({"minimize": "latency", "bounds": {"latency": {"width": "up"}}}, "must be one of increasing"),
        ({"minimize": "latency", "time_limit": 0}, "time_limit must be > 0"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        solve(falling((2, 2, 2, 2)), **options)


def test_a_space_with_constraints_is_refused():
    space = Space(Chip(), {"step": [0, 1], "width": [0, 1]}, constraints=[lambda point: point["step"] == 0])
    with pytest.raises(ValueError, match="space must have no constraints"):
        exact_design(space, lambda chip: {"cost": chip.width}, minimize="cost", groups=[])


def test_enumeration_agrees_with_itself():
    """The reference of these tests is itself right on a case small enough to write out."""
    metrics = falling((2, 2, 2, 2))
    slow = min(metrics["latency"][c] for c in product(range(2), repeat=4) if metrics["cost"][c] <= 2)
    assert best_of(metrics, "latency", {"cost": (None, 2)}) == slow


@pytest.mark.parametrize("fields", [1, 5, 20])
def test_small_improvements_beside_a_large_value_are_not_denied(fields):
    parts = [np.array([0.0, -0.9e-9, 1.0])] * fields
    tables = SimpleNamespace(groups=[(k,) for k in range(fields)], parts=parts, base=0.0)
    status, _ = Master([3] * fields, (0,)).solve([Sum(tables=tables, limit=-0.899e-9 * fields)], [])
    assert status == "optimal"  # all second choices together are below the limit


@pytest.mark.parametrize("seed", [2, 3, 5, 7])
def test_sums_over_many_decades(seed):
    """What the solver takes for feasible at one level is not lost at the next."""
    rng = np.random.default_rng(seed)
    losses = [10.0 ** rng.uniform(-15, 0 if seed % 2 else 6, 6) for _ in FIELDS]
    costs = [rng.integers(1, 10, 6).astype(float) for _ in FIELDS]
    grids = [np.sum(np.meshgrid(*table, indexing="ij"), axis=0) for table in (losses, costs)]
    metrics = dict(zip(("loss", "cost"), grids, strict=True))
    limit = float(rng.integers(8, 40))
    sums = {name: [(field,) for field in FIELDS] for name in metrics}
    found = solve(metrics, minimize="loss", subject_to={"cost": (None, limit)}, groups=[("step",)], sums=sums,
                  draws=5, time_limit=30)  # fmt: skip
    best = metrics["loss"][metrics["cost"] <= limit].min()
    assert found.status == "optimal" and found.bound <= best == found.objective
