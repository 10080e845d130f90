from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optimize import tornado


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
