from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimize import sensitivity
from optimize.spaces.evaluation import Model
from qmodels.checks import Numeric


@dataclass(frozen=True)
class Memory:
    banks: int = 8
    rate: float = 0.5

    def __post_init__(self):
        if np.any(np.asarray(self.banks) < 1):
            raise ValueError(f"banks must be >= 1, got {self.banks!r}")


@dataclass(frozen=True)
class Chip:
    memory: Memory = Memory()
    load: float = 0.3
    name: str = "chip"


def model(chip):
    return {
        "wait": chip.load / (1 - chip.load) / chip.memory.rate,
        "cost": 2.0 * chip.memory.banks,
        "kind": "fast",
        "spread": chip.memory.banks**2.0,
    }


def only(entries):
    (entry,) = entries
    return entry


@given(x=st.floats(0.05, 0.95), power=st.floats(-3, 3))
def test_derivatives_equal_the_formula_and_errors_cover_the_difference(x, power):
    def f(chip):
        load = chip.load
        return {"power": load**power, "queue": load / (1 - load), "wave": np.sin(3 * load)}

    exact = {"power": power * x ** (power - 1), "queue": (1 - x) ** -2, "wave": 3 * np.cos(3 * x)}
    for entry in sensitivity(Chip(load=x), f, ["load"], metrics=["power", "queue", "wave"]):
        scale = abs(entry.derivative) + abs(entry.value)
        assert abs(entry.derivative - exact[entry.metric]) <= entry.error <= 1e-8 * scale
        assert entry.kind == "smooth"


@pytest.mark.parametrize("constant", [1e6, 1e9, 1e12])
def test_errors_cover_what_rounding_leaves_of_small_changes_of_a_large_value(constant):
    """And no more than some tens of roundings over the widest step, 2 % of the field."""
    for x in np.linspace(0.1, 0.9, 9).tolist():
        model = lambda chip: {"wave": constant + np.sin(3 * chip.load)}  # noqa: E731
        wave = only(sensitivity(Chip(load=x), model, ["load"], metrics="wave"))
        rounding = np.spacing(constant) / (0.02 * x)
        assert abs(wave.derivative - 3 * np.cos(3 * x)) <= wave.error <= 64 * rounding


@pytest.mark.parametrize("at", [0.3, 1e-3, 700.0, 0.0])
def test_a_kink_has_both_slopes(at):
    def f(chip):
        over = chip.load - at
        return {
            "max": 2 + max(over, 0.0),
            "bent": np.exp(over / (at or 1)) + 3 * abs(over) / (at or 1),
            "smooth": np.exp(over / (at or 1)),
            "slight": over + 1e-4 * abs(over),
        }

    entries = sensitivity(Chip(load=at), f, ["load"], metrics=["max", "bent", "smooth", "slight"])
    size = at or 1
    expected = {"max": (0, 1), "bent": (-2 / size, 4 / size), "slight": (1 - 1e-4, 1 + 1e-4)}
    for entry in entries:
        if entry.metric == "smooth":
            assert (entry.kind, entry.slopes) == ("smooth", None)
            continue
        below, above = expected[entry.metric]
        assert entry.kind == "kink"
        assert entry.slopes == pytest.approx((below, above), abs=1e-7 / size)
        assert entry.derivative == pytest.approx((below + above) / 2, abs=1e-7 / size)
        assert entry.error == pytest.approx((above - below) / 2, abs=1e-7 / size)


def test_elasticity_is_the_exponent_of_a_power():
    def f(chip):
        return {"power": 7 * chip.memory.rate**-1.5}

    for rate in (1e-6, 0.5, 3e8):
        entry = only(sensitivity(Chip(Memory(rate=rate)), f, ["rate"], metrics="power"))
        assert entry.elasticity == pytest.approx(-1.5, abs=1e-8)


def test_steps_that_leave_the_domain_are_left_out():
    entry = only(sensitivity(Chip(load=0.999), saturating, ["load"], metrics="wait"))
    assert entry.derivative == pytest.approx(1e6, rel=1e-6)


def saturating(chip):
    return {"wait": chip.load / (1 - chip.load) if chip.load < 1 else np.inf}


def test_whole_numbers_are_compared_with_their_neighbours():
    entries = sensitivity(Chip(), model, ["memory.banks"], metrics=["cost", "spread"])
    cost, spread = entries
    assert (cost.derivative, cost.error, cost.elasticity, cost.kind) == (2.0, 0.0, 1.0, "whole")
    assert (spread.derivative, spread.error, spread.slopes) == (16.0, 1.0, (15.0, 17.0))  # 49, 64, 81
    one = only(sensitivity(Chip(Memory(banks=1)), model, ["banks"], metrics="cost"))
    assert (one.derivative, one.error, one.kind) == (2.0, np.inf, "whole")
    other = only(sensitivity(Chip(), model, ["banks"], metrics="spread", neighbours={"banks": (4, 16)}))
    # A parabola through 4, 8 and 16: exact, as weights follow the distances.
    assert other.derivative == 16.0


def test_a_whole_number_with_an_answer_on_one_side_alone():
    """As one that is already the largest of its steps, or next to what does not keep up."""

    def full(chip):
        banks = chip.memory.banks
        return {"wait": 8.0 - banks if banks < 9 else np.inf, "over": 1.0 if banks == 8 else np.inf}

    for around, slopes in (((4, 8), (12.0, np.nan)), ((8, 16), (np.nan, 24.0))):
        entry = only(sensitivity(Chip(), model, ["banks"], metrics="spread", neighbours={"banks": around}))
        assert entry.slopes == pytest.approx(slopes, nan_ok=True)
        assert (entry.derivative, entry.error, entry.kind) == (np.nanmax(slopes), np.inf, "whole")
    wait, over = sensitivity(Chip(), full, ["banks"], metrics=["wait", "over"])
    assert (wait.derivative, wait.error, wait.kind) == (-1.0, np.inf, "whole")
    assert (over.kind, over.error) == ("refused", np.inf) and np.isnan(over.derivative)
    wait = only(sensitivity(Chip(Memory(banks=9)), full, ["banks"], metrics="wait"))
    assert (wait.kind, wait.error) == ("unstable", np.inf) and np.isnan(wait.derivative)


@dataclass(frozen=True)
class Grid:
    """Two fields that take arrays and a whole number that does not; one sum is refused."""

    load: Numeric = 0.5
    rate: Numeric = 1.0
    ports: int = 2

    def __post_init__(self):
        if np.any(np.asarray(self.load) + self.rate > 1.9):
            raise ValueError("at most 1.9 together")


@given(
    points=st.lists(
        st.tuples(st.floats(0.0, 1.0), st.floats(0.5, 1.5), st.integers(1, 3)), min_size=1, max_size=12
    )
)
def test_points_solved_together_are_those_solved_alone(points):
    """What the spec or the model refuses is left out, whatever stands beside it."""
    solved = []

    def solve(grid):
        solved.append(np.size(grid.load))
        if np.any(np.asarray(grid.load) > 0.9):
            raise ValueError("full")
        return {"time": grid.rate / (1 - grid.load) + grid.ports, "name": "x"}

    columns = dict(zip(("load", "rate", "ports"), zip(*points, strict=True), strict=True))
    many = Model(Grid(), solve, ["time"], vectorized=True)
    together = many(columns, forgiving=True)[:, 0]
    assert many.evaluations == sum(solved)
    for found, (load, rate, ports) in zip(together.tolist(), points, strict=True):
        refused = load + rate > 1.9 or load > 0.9
        assert np.isnan(found) if refused else found == pytest.approx(rate / (1 - load) + ports)
    if not np.isnan(together).any():
        solved.clear()
        assert (many(columns)[:, 0] == together).all()
        assert len(solved) == len({ports for _, _, ports in points})


def test_at_zero_the_elasticity_of_zero_is_undefined():
    entry = only(sensitivity(Chip(load=0.0), lambda chip: {"x": 3 * chip.load}, ["load"], metrics="x"))
    assert entry.derivative == pytest.approx(3) and np.isnan(entry.elasticity)
