"""Pictures: made whole or not at all, the same for the same study."""

import numpy as np
import pytest

from cases.study.files import View, front_figure
from cases.study.goals import goals_of
from cases.study.study import Part, Runs, Study, decided, solved
from cases.tables import new_figure, require_format, save
from optimize import Space
from qmodels import Noc

PARTS = {
    "lookup": 40.0,
    "write: network and dram": 90.0,
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
        figure, axes = new_figure(4, 3)
        axes[0, 0].barh(list(PARTS), list(PARTS.values()))
        save(figure, path)
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


def test_the_front_is_a_line_with_the_star_and_what_was_simulated(small_study):
    study, _ = small_study
    figure = front_figure(study)
    shown = words(figure)
    assert {"area [mm2]", "latency p99 [ns]", "channels 2", "front", "simulated, 90 % interval"} <= set(shown)
    for axes, part in zip(figure.axes, study.parts, strict=True):
        view, decision = View.of(part), part.decision
        assert (view.x, view.y, view.colour) == ("cost", "packet_latency_p99", "channels")
        assert f"best: design {part.design(decision.chosen)}" in shown
        line = next(one for one in axes.lines if one.get_label() == "front").get_ydata()
        assert len(line) and (np.diff(line) < 0).all() and set(view.line(part)) <= set(decision.front)


def test_of_one_objective_the_field_is_the_axis_and_nothing_feasible_is_said(overloaded_study):
    space = Space(Noc(injection_rate=0.01), {"link_width": [8, 16, 32], "routing": ["shortest"]})
    model = solved(space, goals_of(space.base, {"minimize": "packet_latency"}))
    part = Part(name="noc", decision=decided(model)[0])
    assert (View.of(part).x, View.of(part).y) == ("link_width", "packet_latency")
    assert "link bytes" in words(front_figure(Study(parts=(part,), runs=Runs())))
    assert "large-packets: no design is feasible" in words(front_figure(overloaded_study))
