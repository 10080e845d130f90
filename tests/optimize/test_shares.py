from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from optimize import sobol, tornado


@dataclass(frozen=True)
class Chip:
    width: Any = 16
    load: Any = 0.5
    banks: Any = 8
    policy: str = "open"


def model(chip):
    return {
        "latency": 128 / chip.width / (1 - chip.load) + (0 if chip.policy == "open" else 5),
        "wide": chip.width > 8,
        "word": chip.policy,
    }


@dataclass(frozen=True)
class Inputs:
    a: Any = 0.0
    b: Any = 0.0
    c: Any = 0.0


def ishigami(x):
    return {"y": np.sin(x.a) + 7 * np.sin(x.b) ** 2 + 0.1 * x.c**4 * np.sin(x.a)}


PI = {name: (-np.pi, np.pi) for name in "abc"}


def ishigami_indices():
    """The closed form of the function's variance (T. Homma, A. Saltelli, 1996)."""
    alone = [(1 + 0.1 * np.pi**4 / 5) ** 2 / 2, 49 / 8, 0.0]
    together = 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = sum(alone) + together
    total = [alone[0] + together, alone[1], together]
    return np.array(alone) / variance, np.array(total) / variance, variance


def test_indices_equal_the_closed_form():
    first, total, variance = ishigami_indices()
    result = sobol(Inputs(), ishigami, PI, metric="y", samples=4096, vectorized=True)
    # Measured: 0.004 at 4096 samples.
    np.testing.assert_allclose(result.first, first, atol=0.02)
    np.testing.assert_allclose(result.total, total, atol=0.02)
    assert result.variance == pytest.approx(variance, rel=0.02) and result.mean == pytest.approx(
        3.5, rel=0.01
    )
    assert result.evaluations == 5 * 4096
    for estimate, interval, exact in (
        (result.first, result.first_interval, first),
        (result.total, result.total_interval, total),
    ):
        assert ((interval[:, 0] <= exact) & (exact <= interval[:, 1])).all()
        assert ((interval[:, 0] <= estimate) & (estimate <= interval[:, 1])).all()
        assert (np.diff(interval) < 0.15).all()


def test_the_same_seed_gives_the_same_numbers_with_and_without_arrays():
    one = sobol(Inputs(), ishigami, PI, metric="y", samples=64, vectorized=True, seed=3)
    two = sobol(Inputs(), ishigami, PI, metric="y", samples=64, seed=3)
    other = sobol(Inputs(), ishigami, PI, metric="y", samples=64, vectorized=True, seed=4)
    np.testing.assert_allclose(one.first, two.first, rtol=1e-9)
    np.testing.assert_allclose(one.first_interval, two.first_interval, rtol=1e-9)
    assert not np.allclose(one.first, other.first, rtol=1e-6)
    assert str(one).splitlines()[0].startswith("y: mean ")


def test_choices_of_numbers_and_words():
    widths, delay = np.array([8, 16, 32]), np.array([0.0, 5.0])
    result = sobol(
        Chip(load=0.5),
        model,
        {"width": widths.tolist(), "policy": ["open", "closed"]},
        metric="latency",
        samples=1024,
    )
    parts = np.array([np.var(256 / widths), np.var(delay)])
    np.testing.assert_allclose(result.first, parts / parts.sum(), atol=0.02)  # additive: no interactions
    np.testing.assert_allclose(result.total, parts / parts.sum(), atol=0.02)


def test_bars_are_sorted_by_their_swing():
    result = tornado(
        Chip(),
        model,
        {"load": (0.4, 0.6), "width": (8, 32), "banks": (4, 16), "policy": ("open", "closed")},
        metric="latency",
    )
    assert result.base == 16
    assert [bar.field for bar in result.bars] == ["width", "load", "policy", "banks"]
    assert [(bar.at_low, bar.at_high) for bar in result.bars][2:] == [(16, 21), (16, 16)]
    assert result.bars[0].swing == 24 and result.bars[3].swing == 0
    assert str(result).splitlines()[0] == "latency = 16"


def test_an_infinite_end_comes_first():
    def saturating(chip):
        return {"wait": 1 / (1 - chip.load) if chip.load < 1 else np.inf}

    result = tornado(Chip(), saturating, {"width": (8, 32), "load": (0.2, 1.2)}, metric="wait")
    assert result.bars[0].field == "load" and result.bars[0].swing == np.inf


def test_a_tornado_is_drawn():
    import matplotlib

    matplotlib.use("Agg")
    result = tornado(Chip(), model, {"load": (0.4, 0.6), "width": (8, 32)}, metric="latency")
    axes = result.plot()
    assert [label.get_text() for label in axes.get_yticklabels()] == ["load", "width"]  # largest on top
    ends = {(round(patch.get_x(), 6), round(patch.get_width(), 6)) for patch in axes.patches}
    assert ends == {(16, 16), (16, -8), (16, round(128 / 16 / 0.6 - 16, 6)), (16, 4)}
    assert "latency" in axes.get_xlabel()
    infinite = tornado(
        Chip(), lambda chip: {"wait": np.inf if chip.load > 0.5 else 2.0}, {"load": (0.2, 1.2)}, metric="wait"
    )
    figure = infinite.plot().figure
    figure.canvas.draw()
    assert "1.2: infinite" in [text.get_text() for text in figure.axes[0].texts]
    import matplotlib.pyplot as plt

    plt.close("all")
