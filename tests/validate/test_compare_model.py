from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from qmodels import Answer, PacketProcessor, Workload
from qmodels.queues import mmc
from validate import Estimate, compare, simulate
from validate.comparison.metrics import answered, load_of, measured
from validate.readers import RunSet

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


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (
            lambda: compare(PacketProcessor(), reference=measured_runs(), packets=1000),
            ValueError,
            "simulate options must be left out when a reference is given, got ['packets']",
        ),
        (lambda: compare(measured_runs()), ValueError, "model must be given when results without specs"),
        (
            lambda: compare(measured_runs(), model=queue, reference=measured_runs()),
            ValueError,
            "reference must be left out when results are compared, got both",
        ),
        (
            lambda: compare(PacketProcessor(), reference=measured_runs()),
            ValueError,
            "PacketProcessor has no field 'rate'",
        ),
        (
            lambda: compare(measured_runs(), model=lambda rate: {"x": 1.0}),
            ValueError,
            "model and reference must have a metric in common, got x and latency, busy_ratio",
        ),
        (
            lambda: compare(measured_runs(), model=queue, metrics=["latenci"]),
            ValueError,
            "metrics must be in model and reference, got 'latenci'; did you mean 'latency'?",
        ),
        (
            lambda: compare(measured_runs(), model=queue, load="rat"),
            ValueError,
            "load must be a setting or a metric, got 'rat'",
        ),
        (
            lambda: compare(measured_runs(), model=queue, load=[0.5]),
            ValueError,
            "load must be one number for each of 4 points, got 1",
        ),
        (
            lambda: compare(measured_runs(), model=[{"latency": 1.0}]),
            ValueError,
            "model must have an answer for each of 4 points, got 1",
        ),
        (
            lambda: compare(measured_runs(), model=queue, regions=[(0.5, 0.5)]).table(),
            ValueError,
            "regions must be pairs of ascending loads, got (0.5, 0.5)",
        ),
        (
            lambda: compare([PacketProcessor()] * 2, reference=[measured_runs().runs[0]], model=queue),
            ValueError,
            "reference must have a result for each of 2 specs, got 1",
        ),
        (lambda: compare(7), TypeError, "compare needs a spec, specs or results, got 7"),
        (
            lambda: compare(
                PacketProcessor(workload=Workload(load_factor=np.array([1.0, 2.0, 3.0]))),
                reference=measured_runs().rename({"rate": "offered_gbps"}),
            ),
            ValueError,
            "runs must have the setting workload.load_factor, or be as many as the 3 points of the spec, "
            "got 4 without it",
        ),
        (
            lambda: compare(
                PacketProcessor(workload=Workload(load_factor=np.array([1.0, 2.0]))),
                reference=measured_runs().rename({"rate": "load_factor"}),
            ),
            ValueError,
            "runs must be made at the points of the arrays in the spec, got one at load_factor = ",
        ),
    ],
)
def test_says_what_is_wrong(act, error, message):
    with pytest.raises(error, match=re.escape(message)):
        act()


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
