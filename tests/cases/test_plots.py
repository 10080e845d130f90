"""Pictures: made whole or not at all, the same for the same study."""

from __future__ import annotations

import numpy as np
import pytest

from cases.plots import label, new_figure, parts_figure, require_format, save
from cases.study.plots import error_figure, front_figure

PARTS = {
    "lookup": 40.0,
    "write: pointer memory wait": 10.0,
    "write: allocation": 15.0,
    "write: network and dram": 90.0,
    "read: pointer memory wait": 10.0,
    "read: dequeue": 9.0,
    "read: network and dram": 120.0,
}
STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def words(figure):
    """Return every text of a figure."""
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))]


@pytest.mark.parametrize("suffix", STARTS)
def test_same_figure_same_file(tmp_path, suffix):
    paths = [tmp_path / f"{k}{suffix}" for k in (1, 2)]
    for path in paths:
        save(parts_figure({"analytic": PARTS}, "time"), path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes().startswith(STARTS[suffix])
    assert len(list(tmp_path.iterdir())) == 2


def test_failing_picture_leaves_no_file(tmp_path):
    figure, axes = new_figure(2, 2)
    axes[0, 0].set_title("$\\unknown$")
    with pytest.raises(ValueError, match="unknown"):
        save(figure, tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_format_is_refused_before_any_work(tmp_path):
    require_format(tmp_path / "A.PNG")
    with pytest.raises(ValueError, match=r"plot must be a file that ends in .png, .svg, .pdf, got 'a.txt'"):
        require_format(type(tmp_path)("a.txt"))


def test_bars_add_up_and_say_when_saturated():
    shown = words(parts_figure({"analytic": PARTS, "simulated": dict.fromkeys(PARTS, np.inf)}, "time"))
    assert " 294 ns" in shown
    assert " saturated: no steady state" in shown
    assert "mean packet latency [ns]" in shown
    assert {"analytic", "simulated", *PARTS} <= set(shown)


def test_front_shows_units_and_marks_the_simulated(small_study):
    study, _ = small_study
    shown = words(front_figure(study))
    assert {
        label("cost"),
        label("packet_latency_p99"),
        "cost [mm2]",
        "packet latency (99th percentile) [ns]",
    } <= set(shown)
    for start in (
        "design (analytic)",
        "Pareto front",
        "starred: ",
        "simulated with 90 % interval",
    ):
        assert any(word.startswith(start) for word in shown), start


def test_errors_show_one_mark_per_design_and_metric(small_study):
    study, _ = small_study
    figure = error_figure(study)
    for axes, part in zip(figure.axes, study.parts, strict=True):
        marks = sum(len(points.get_offsets()) for points in axes.collections)
        assert marks == len(axes.get_yticks()) * len(part.check.rows)
