from __future__ import annotations

import numpy as np
import pytest

from validate import compare
from validate.readers import RunSet


def runs(**settings):
    settings = settings or {"rate": [0.2, 0.5, 0.8], "seed": [1, 1, 2]}
    return RunSet.from_columns(
        settings=settings,
        metrics={"latency": [1.2, 2.1, np.inf], "share_ratio": [0.2, 0.5, 0.8], "hops": [3.0, 3.0, 3.0]},
        units={"latency": "cycle"},
    )


def model(rate, **_):
    return {"latency": 1 / (1 - rate), "share_ratio": rate, "hops": 3.0, "utilization": rate}


def lines(axes):
    return {line.get_label(): np.array(line.get_xydata()) for line in axes.get_lines()}


def test_the_model_is_a_curve_through_the_points_of_the_reference():
    sweep = compare(runs(rate=[0.2, 0.5, 0.8]), model=model)
    latency, share = sweep.plot().axes
    curve = lines(latency)["model"]
    assert len(curve) > 50 and np.allclose(curve[:, 1], 1 / (1 - curve[:, 0]))
    marks = np.array(latency.containers[0].lines[0].get_xydata())
    np.testing.assert_array_equal(marks, [[0.2, 1.2], [0.5, 2.1]])
    assert latency.get_ylabel() == "latency [cycle]" and share.get_ylabel() == "share ratio"
    assert latency.get_xlabel() == "rate"


def test_metrics_and_axis_may_be_chosen():
    sweep = compare(runs(rate=[0.2, 0.5, 0.8]), model=model)
    (axes,) = sweep.plot("hops", x="load").axes
    assert axes.get_xlabel() == "load" and len(lines(axes)["model"]) == 3


def test_other_settings_that_vary_make_series():
    sweep = compare(runs(rate=[0.2, 0.5, 0.8], kind=["a", "a", "b"]), model=model)
    (axes,) = sweep.plot("hops").axes
    assert {"model, kind a", "model, kind b"} <= set(lines(axes))


def test_without_a_number_that_varies_model_is_drawn_against_reference():
    sweep = compare(runs(kind=["a", "b", "c"]), model=lambda kind: {"latency": 2.0})
    (axes,) = sweep.plot().axes
    assert axes.get_xlabel() == "reference" and "model = reference" in lines(axes)


def test_whole_numbers_are_joined_without_values_between():
    sweep = compare(
        runs(channels=[1, 2, 4]), model=lambda channels: {"latency": 8.0 / channels, "share_ratio": 0.5}
    )
    assert len(lines(sweep.plot("latency").axes[0])["model"]) == 3


def test_one_comparison_shows_its_errors_with_the_intervals_and_where_time_goes():
    from types import SimpleNamespace

    from validate.comparison.result import Comparison, row
    from validate.estimates.statistics import Estimate

    def reference(low, best, high):
        return Estimate(low=low, best=best, high=high, confidence=0.95)

    rows = [
        row("packet_latency", "ns", 110.0, reference(95.0, 100.0, 125.0)),
        row("row_hit_ratio", "1", 0.5, reference(0.38, 0.4, 0.45)),
        row("read_latency", "ns", np.inf, reference(10.0, 11.0, 12.0)),
    ]
    shares = SimpleNamespace(latency_parts={"lookup": 10.0, "read": 20.0})
    both = Comparison(rows={one.metric: one for one in rows}, model=shares, reference=shares)
    figure = both.plot()
    errors, times = figure.axes
    bars = [line.get_xdata() for line in errors.get_lines() if line.get_linewidth() == 2]
    np.testing.assert_allclose(sorted(map(sorted, bars)), [[-12.0, 100 * 15 / 95], [5.0, 12.0]])
    points = [float(x) for line in errors.get_lines() if line.get_marker() == "o" for x in line.get_xdata()]
    assert points == pytest.approx([10.0, 10.0])
    assert [text.get_text().strip() for text in errors.texts] == ["no finite error"]
    assert [bar.get_width() for bar in times.patches] == [10.0, 10.0, 20.0, 20.0]
    assert figure._repr_png_().startswith(b"\x89PNG")
    alone = Comparison(rows=both.rows, model=SimpleNamespace(), reference=shares)
    assert len(alone.plot().axes) == 1
