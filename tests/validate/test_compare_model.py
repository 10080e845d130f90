from dataclasses import replace

import numpy as np
import pytest

from qmodels import Answer, PacketProcessor, Workload
from qmodels.queues import mmc
from validate import Estimate, RunSet, compare, simulate
from validate.comparison.metrics import answered, load_of, measured

RATES = [0.2, 0.5, 0.8, 0.9]


@pytest.fixture(scope="module")
def reference():
    return simulate(PacketProcessor(), packets=1000, replications=2, window=32)


def queue(rate):
    """M/M/1 with service rate 1, by hand."""
    wait = 1 / (1 - rate) if rate < 1 else np.inf
    return {"latency": wait, "busy_ratio": rate, "utilization": rate}


def measured_runs(**columns):
    values = {"latency": [1.25, 2.1, 4.5, 10.0], "busy_ratio": [0.2, 0.5, 0.81, 0.9]}
    return RunSet.from_columns(settings={"rate": RATES}, metrics=values | columns)


def test_rows_state_the_error(reference):
    def model(spec):
        return {"packet_latency": 300.0, "overflow_probability": 0.0, "cost": np.inf}

    comparison = compare(PacketProcessor(), model=model, reference=reference)
    row, truth = comparison["packet_latency"], reference.packet_latency
    assert row.error == 300.0 - truth.best
    assert row.relative_error == pytest.approx(300.0 / truth.best - 1)
    assert row.inside == (truth.low <= 300.0 <= truth.high) and row.unit == "ns"
    overflow = comparison["overflow_probability"]
    assert overflow.relative_error == 0 and overflow.inside
    assert comparison["cost"].relative_error == np.inf and not comparison["cost"].inside
    assert set(comparison.to_dict()) == {"packet_latency", "overflow_probability", "cost"}
    assert "* the model lies outside the interval" in comparison.table() == repr(comparison)
    assert set(compare(PacketProcessor(), model=model, reference=reference, metrics="cost").rows) == {"cost"}


def test_a_model_that_is_the_simulation_has_no_error(reference):
    def model(spec):
        return {name: e.best for name, e in reference.metrics.items()}

    for comparison in (
        compare(PacketProcessor(), model=model, reference=reference),
        compare(reference, model=model(None)),
    ):
        assert all(row.error == 0 and row.inside for row in comparison.rows.values())
        assert "outside" not in comparison.table()


def test_a_simulation_is_compared_with_the_model_of_its_spec(reference):
    comparison = compare(reference)
    assert comparison["cost"].error == pytest.approx(0) and comparison.model.spec is reference.spec


def test_simulates_and_solves_on_its_own():
    comparison = compare(PacketProcessor(), packets=1000, replications=2, saturation=False)
    assert comparison.reference.replications == 2
    assert comparison["cost"].error == pytest.approx(0)


def test_a_sweep_of_an_array_field_simulates_each_point():
    spec = PacketProcessor(workload=Workload(load_factor=np.array([0.3, 1.0])))
    sweep = compare(spec, packets=1000, replications=2, saturation=False, metrics=["packet_latency", "cost"])
    assert [one["workload.load_factor"] for one in sweep.settings] == [0.3, 1.0]
    assert sweep.metrics == ("packet_latency", "cost") and sweep.stable.all()
    assert sweep.loads[1] / sweep.loads[0] == pytest.approx(1 / 0.3, rel=1e-6)
    assert all(row.error == 0 for row in sweep["cost"])
    first = compare(
        replace(spec, workload=Workload(load_factor=0.3)), packets=1000, replications=2, saturation=False
    )
    assert first["packet_latency"] == sweep["packet_latency"][0]
    base = sweep.settings[0]
    along = sweep.curve(base, "workload.load_factor", np.array([0.3, 0.5, 1.0]))
    assert along["packet_latency"][[0, 2]] == pytest.approx([row.model for row in sweep["packet_latency"]])


def test_a_campaign_is_compared_with_its_own_specs():
    specs = [PacketProcessor(workload=Workload(load_factor=load)) for load in (0.3, 1.0)]
    campaign = simulate(specs, packets=1000, replications=2, saturation=False)
    own, given = compare(campaign), compare(specs, reference=campaign)
    assert [row.error for row in own["packet_latency"]] == [row.error for row in given["packet_latency"]]
    assert [one["workload.load_factor"] for one in own.settings] == [0.3, 1.0]


def test_settings_of_runs_become_fields_of_the_spec():
    runs = RunSet.from_columns(
        settings={"load_factor": [0.5, 1.0], "link_width": [8, 16]},
        metrics={"packet_latency": [250.0, 300.0]},
    )

    def model(spec):
        return {"packet_latency": spec.workload.load_factor * 100 + spec.noc.link_width}

    sweep = compare(PacketProcessor(), reference=runs, model=model)
    assert [row.model for row in sweep["packet_latency"]] == [58, 116]
    assert all(row.inside is None for row in sweep["packet_latency"])


def test_imported_runs_may_be_compared_with_a_system_as_the_model():
    runs = RunSet.from_columns(
        settings={"offered_gbps": [20.0, 40.0]}, metrics={"packet_latency": [280.0, 315.0]}
    )
    after, before = compare(runs, model=PacketProcessor()), compare(PacketProcessor(), reference=runs)
    assert after["packet_latency"] == before["packet_latency"]
    assert [row.error != 0 for row in after["packet_latency"]] == [True, True]


def test_error_map_by_region_of_load():
    sweep = compare(measured_runs(), model=queue)
    latency = {(e.load_above, e.load_to): e for e in sweep.error_map()["latency"]}
    assert latency[0.0, 0.3].mean == pytest.approx(0, abs=1e-12)
    assert latency[0.3, 0.5].largest == pytest.approx(100 * 0.1 / 2.1)
    last = latency[0.8, 1.0]
    assert (last.points, last.largest) == (1, pytest.approx(0, abs=1e-9))
    # A share is compared in points: 0.80 beside 0.81.
    share = {e.load_to: e for e in sweep.error_map()["busy_ratio"]}
    assert share[0.8].mean == pytest.approx(1.0)
    assert "points" in sweep.table() and "%" in sweep.table() == repr(sweep)


def test_loads_may_be_given_by_name_or_number():
    runs = measured_runs()
    by_setting = compare(runs, model=queue, load="rate")
    by_metric = compare(runs, model=queue, load="busy_ratio")
    by_number = compare(runs, model=queue, load=RATES, regions=[(0.0, 0.6), (0.6, 1.0)])
    for sweep in (by_setting, by_metric, by_number):
        np.testing.assert_array_equal(sweep.loads, RATES)
    assert [e.points for e in by_number.error_map()["latency"]] == [2, 2]


def test_without_loads_there_is_one_region():
    sweep = compare(measured_runs(), model=lambda rate: {"latency": 1 / (1 - rate)})
    assert sweep.loads is None
    assert [e.points for e in sweep.error_map()["latency"]] == [4] and "all points" in sweep.table()


def test_saturated_points_are_counted_apart():
    runs = measured_runs(latency=[1.25, 2.0, np.inf, np.inf])
    saturated = replace(
        runs, runs=tuple(replace(run, stable=bool(np.isfinite(run.metrics["latency"].best))) for run in runs)
    )
    sweep = compare(saturated, model=queue)
    assert sweep.disputed == (2, 3) and list(sweep.stable) == [True, True, False, False]
    assert sum(e.points for e in sweep.error_map()["latency"]) == 2
    assert "only one of the two is saturated at 2 points" in sweep.table()


def test_tidy_columns_frame_and_csv(tmp_path):
    sweep = compare(measured_runs(), model=queue)
    columns = sweep.to_dict()
    assert len(columns["metric"]) == 8 and columns["rate"][:2] == [0.2, 0.2]
    assert columns["low"] == [None] * 8 and columns["inside"] == [None] * 8
    sweep.to_csv(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert len(lines) == 9 and lines[0].startswith("point,rate,load,stable,metric,unit,model,reference")
    assert list(tmp_path.iterdir()) == [tmp_path / "a.csv"]
    assert list(sweep.to_pandas()["model"]) == columns["model"]


def test_metrics_of_results_runs_and_mappings():
    estimate = Estimate(low=1, best=2, high=3, confidence=0.9)
    answer = Answer(model="x", spec=None, metrics={"cost": np.float64(2.0), "throughput[cpu]": np.nan})
    assert answered(answer) == {"cost": 2.0} == answered({"latency": np.nan, "cost": 2, "stable": True})
    queue = mmc(arrival_rate=0.5, service_rate=1.0, servers=1)
    assert answered(queue)["mean_response_time"] == 2.0 and load_of(queue) == 0.5
    assert measured({"throughput": estimate})["throughput"] is estimate
    found = measured(measured_runs().runs[0])["latency"]
    assert (found.best, found.confidence) == (1.25, 0.0)
    assert load_of({"utilization": 0.5}) == 0.5 and load_of({"x": 1}) is None and load_of(answer) is None
    assert load_of(replace(answer, utilization={"a": 1.0}, traffic_intensity={"a": 0.2, "b": 1.4})) == 1.4
    with pytest.raises(TypeError, match="model must return a result or a mapping, got int"):
        answered(3)


def test_units_must_agree():
    runs = RunSet.from_columns(
        settings={"load_factor": [0.5]},
        metrics={"packet_latency": [250.0]},
        units={"packet_latency": "cycle"},
    )

    def model(spec):
        return Answer(model="by hand", spec=spec, metrics={"packet_latency": 125.0})

    with pytest.raises(ValueError, match="packet_latency must have one unit, got ns in the model and cycle"):
        compare(PacketProcessor(), reference=runs, model=model)
    good = compare(
        PacketProcessor(), reference=runs.convert("packet_latency", factor=0.5, unit="ns"), model=model
    )
    assert good["packet_latency"][0].error == 0


def test_against_zero_the_difference_itself_is_shown():
    runs = RunSet.from_columns(settings={"rate": [0.5]}, metrics={"latency": [0.0]})
    text = compare(runs, model=lambda rate: {"latency": 1e-15}).points[0].table()
    assert "+1e-15" in text and "inf" not in text


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

    from qmodels.systems.spec.estimate import Estimate
    from validate.comparison.result import Comparison, row

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
