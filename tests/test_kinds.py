"""Every registered kind of system in every verb: what a user learns for one holds for all."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import qmodels as qm
from optimize import Space, explore, replace_fields
from qmodels import Answer
from qmodels.evidence.intervals import MeasuredError
from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.metrics import DETAILS, METRICS
from validate import Estimate, compare, simulate
from validate.campaigns.simulate import own_options

SMALL = {
    "packet-processor": {"packets": 2000},
    "queueing-network": {"packets": 2000},
    "data-queueing": {"packets": 2000},
    "noc": {"packets": 2000},
    "message-program": {},
    "dram": {"packets": 5000},
    "cache": {"packets": 20_000},
    "llc-processor": {"packets": 5000},
    "numa": {},
    "work-queues": {},
    "system": {"packets": 2000},
}
"""Options for a quick simulation: one name for the length, of those that have one."""

SWEPT = {
    "packet-processor": ("workload.load_factor", [0.3, 0.6]),
    "data-queueing": ("traffic.load_factor", [0.5, 0.7]),
    "noc": ("injection_rate", [0.01, 0.02]),
    "dram": ("traffic.arrival_rate", [0.01, 0.02]),
    "system": ("flows.lookups.rate", [0.01, 0.02]),
}
"""A field that may be an array, of the kinds that have one."""

VARIED = {
    "packet-processor": ("dram.channels", [2, 4]),
    "queueing-network": ("stations.disk.servers", [2, 3]),
    "data-queueing": ("allocation.alloc_trial_count", [1, 2]),
    "noc": ("link_width", [8, 16]),
    "message-program": ("costs.send_cycles", [350.0, 400.0]),
    "dram": ("geometry.channels", [1, 2]),
    "cache": ("shared.lines", [2048, 4096]),
    "llc-processor": ("cores", [20, 28]),
    "numa": ("clock_ghz", [1.0, 2.0]),
    "work-queues": ("clock_ghz", [1.0, 2.0]),
    "system": ("dram.channels", [1, 2]),
}
"""A decision of each kind, and two choices."""


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def spec(kind):
    return kind_named(kind).starter()


@pytest.fixture(scope="module")
def answer(spec):
    return qm.solve(spec)


@pytest.fixture(scope="module")
def estimate(kind, spec):
    return simulate(spec, replications=2, **SMALL[kind])


def test_answer_and_estimate_have_what_is_declared(spec, answer, estimate):
    declared = type(spec).metric_names
    assert set(declared) <= set(METRICS)
    stems = {name.partition("[")[0] for name in answer.metrics}
    simulated = {name.partition("[")[0] for name in estimate.metrics}
    assert stems <= {*declared.both, *declared.model}
    assert simulated <= {*declared.both, *declared.simulation}
    always = set(declared.both) - set(declared.sometimes)
    assert stems & always == simulated & always
    assert next(iter(answer.metrics)).partition("[")[0] in declared.both


def test_one_answer(spec, answer):
    assert isinstance(answer, Answer) and not answer.run and answer.spec == spec and answer.stable
    check_result(answer)
    assert all(isinstance(error, MeasuredError) for error in answer.error.values())
    assert set(answer.error) <= set(answer.metrics)
    for values in (answer.utilization.values(), answer.traffic_intensity.values()):
        assert all(np.asarray(value).min() >= 0 for value in values)


def test_one_estimate(spec, estimate):
    assert isinstance(estimate, Answer) and estimate.run and estimate.spec == spec and estimate.stable
    check_result(estimate)
    assert all(isinstance(value, Estimate) for value in estimate.metrics.values())
    assert estimate.effort and estimate.replications == 2


def check_result(result):
    name = next(iter(result.metrics))
    assert result[name] == result.metrics[name] == getattr(result, name, result[name])
    plain = (one for one in result.metrics if one.isidentifier() and not hasattr(type(result), one))
    stem = next(plain, name)
    assert stem in dir(result)
    with pytest.raises(KeyError, match="no metric 'packet_latensy'"):
        result["packet_latensy"]
    with pytest.raises(AttributeError, match="^Answer has no metric 'packet_latensy'$"):
        result.packet_latensy  # noqa: B018
    assert set(result.details) <= set(DETAILS) and set(result.details) <= set(dir(result))
    assert all(getattr(result, name) is value for name, value in result.details.items())
    assert set(result.units) == set(result.metrics)
    largest = [float(value) for value in result.utilization.values()]
    assert all(0 <= value <= 1 + 1e-12 for value in largest)
    assert result.bottleneck == "" or isinstance(result.bottleneck, str)
    if result.latency_parts:
        total = sum(float(part) for part in result.latency_parts.values())
        assert total == pytest.approx(float(result[result.main]))
        assert all(float(part) >= 0 for part in result.latency_parts.values())
    frame = result.to_pandas()
    assert list(frame.columns)[:3] == ["metric", "unit", "value"]
    interval, error = {"low", "high"}, {"error", "bias", "error_unit"}
    rest = set(frame.columns[3:])
    assert rest == {*interval, "interval_valid"} if result.run else rest - interval in (set(), error)
    assert list(frame["metric"]) == list(result.metrics)
    text, html = repr(result), result._repr_html_()
    assert all(one in text and one in html for one in result.metrics)
    assert html.startswith("<table>")
    assert result.plot().axes


@pytest.mark.parametrize("which", ["answer", "estimate"])
def test_results_come_back_from_their_files(which, spec, tmp_path, request):
    result = request.getfixturevalue(which)
    path = result.save(tmp_path / "result.json")
    again = Answer.load(path)
    assert again.spec == spec and again.stable == result.stable
    assert set(again.metrics) == set(result.metrics)
    for name, value in result.metrics.items():
        assert again.metrics[name] == value or np.isnan(float(value))
    assert again.bottleneck == result.bottleneck and again.units == result.units
    assert again.title == result.title and again.notes == result.notes and again.run == result.run
    assert set(again.details) == {name for name in result.details if DETAILS[name].kept}
    with pytest.raises(ValueError, match="quantile needs an answer that knows the law of its times"):
        again.quantile(0.5)
    document = json.loads(path.read_text())
    del document["metrics"]
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="metrics is missing"):
        Answer.load(path)
    path.write_text(path.read_text()[:100])
    with pytest.raises(ValueError, match="not a saved result"):
        Answer.load(path)


@pytest.mark.parametrize("which", ["answer", "estimate"])
def test_results_go_to_other_processes(which, spec, request):
    result = request.getfixturevalue(which)
    again = pickle.loads(pickle.dumps(result))
    assert dict(again.metrics) == dict(result.metrics) and list(again.details) == list(result.details)
    assert repr(again) == repr(result)


def test_a_seed_gives_the_same_numbers_wherever_it_runs(kind, spec, estimate):
    with ThreadPoolExecutor(2) as two:
        assert simulate(spec, replications=2, executor=two, **SMALL[kind]).metrics == estimate.metrics
    other = simulate(spec, replications=2, seed=1, **SMALL[kind])
    # Without jitter or random computing times these take one course.
    assert (other.metrics == estimate.metrics) == (kind in ("message-program", "numa"))


@pytest.mark.parametrize("verb", ["solve", "simulate"])
def test_a_faster_clock_leaves_the_cycles(kind, spec, verb, request):
    if "clock_ghz" not in spec.__dataclass_fields__:
        pytest.skip("this kind has no single clock")
    slow = request.getfixturevalue("answer" if verb == "solve" else "estimate")
    twice = replace(spec, clock_ghz=2 * spec.clock_ghz)
    fast = qm.solve(twice) if verb == "solve" else simulate(twice, replications=2, **SMALL[kind])
    cycles = fast.in_cycles()
    for name, value in slow.in_cycles().items():
        factor = 2 if slow.units[name] == "GB/s" else 1
        assert float(cycles[name]) == pytest.approx(factor * float(value), nan_ok=True), name


def test_the_length_of_a_simulation_has_one_name(kind, spec):
    own = own_options(spec, SMALL[kind])
    (unit,) = own or {"": 0}
    if not own:
        with pytest.raises(TypeError, match="has no option 'packets' for a .* ends when all of it"):
            simulate(spec, packets=2000)
    elif unit != "packets":
        with pytest.raises(TypeError, match=f"^simulate takes packets or {unit} for a .*, got both$"):
            simulate(spec, **own, **SMALL[kind])


def test_compare(spec, answer, estimate):
    comparison = compare(spec, reference=estimate)
    assert set(comparison.rows) == set(answer.metrics) & set(estimate.metrics)
    for name, row in comparison.rows.items():
        assert row.unit == answer.units[name] == estimate.units[name]
        assert row.model == pytest.approx(float(answer[name])) and row.reference is estimate[name]


def test_a_sweep_of_one_field_is_one_call(kind, spec):
    if kind not in SWEPT:
        pytest.skip("no field of this kind may be an array")
    name, values = SWEPT[kind]
    sweep = qm.solve(replace_fields(spec, {name: np.array(values)}))
    main = next(iter(sweep.metrics))
    single = [float(qm.solve(replace_fields(spec, {name: value}))[main]) for value in values]
    assert np.ravel(sweep[main]).tolist() == pytest.approx(single, rel=1e-9)
    frame = sweep.to_pandas()
    assert len(frame) == len(values) * len(sweep.metrics)
    assert frame[frame["metric"] == main][name].tolist() == values
    assert sweep.plot().axes


def test_explore(kind, spec):
    name, choices = VARIED[kind]
    front = explore(Space(spec, **{name: choices}), qm.solve, minimize=[type(spec).metric_names.both[0]])
    main = type(spec).metric_names.both[0]
    each = [float(qm.solve(replace_fields(spec, {name: choice}))[main]) for choice in choices]
    assert sorted(front.table[main].tolist()) == pytest.approx(sorted(each), rel=1e-9)


def test_what_is_of_no_kind_is_refused():
    for verb in (qm.solve, simulate):
        with pytest.raises(TypeError, match="a system spec must be of a kind .*noc.*, got a int"):
            verb(3)
    with pytest.raises(ValueError, match="kind must be one of .*did you mean 'noc'"):
        kind_named("nocc")
