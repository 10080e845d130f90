"""What a study stars: never a design that its own simulation contradicts; the contradiction comes first."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from cases.study.advice import recommendation
from cases.study.analysis import representatives
from cases.study.check import Runs, half_widths
from cases.study.files import SUMMARY, save_study
from cases.study.findings import part_sections, study_text
from cases.study.packet_processor import DATA, MAXIMIZE, MINIMIZE
from cases.study.page.page import page
from cases.study.parts import Part, Study
from cases.study.plots import error_figure, front_figure
from cases.study.recommendation import FAR, SATURATED, contradictions, largest_error, recommend
from cases.study.run import STORE, explore_case
from cases.study.stream import peak_gbps, trace_section, trace_summary
from qmodels.packet_processor.error_map import measured_errors
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.spec.toml import from_toml

RUNS = Runs(packets=2000, replications=3, seed=2)
FEW = {"interleaving_step": [1, 16], "channels": [2, 4, 8], "alloc_trial_count": [1, 3], "slices": [2, 4]}
PACKETS = 6000
GBPS = {"late": 46, "ten_times_faster": 52}
"""Offered to unsteady traces: the knee does not sustain their busiest twentieth, other designs do."""


def late(times):
    """All packets but one in the last 40 % of the time, as in a capture that was started too early."""
    return np.concatenate([[0.0], 1.5 * times[-1] + times[1:]])


def ten_times_faster(times):
    """A rate that grows by 10 in the middle."""
    half = len(times) // 11
    return np.where(np.arange(len(times)) < half, 10 * times, times + 9 * times[half])


def written(path, change):
    """Write a trace of IMIX packets whose Poisson times were changed and return its processor."""
    rng = np.random.default_rng(4)
    times = change(np.cumsum(rng.exponential(100e-9, size=PACKETS)))
    sizes = rng.choice([64, 594, 1518], size=PACKETS, p=[7 / 12, 4 / 12, 1 / 12])
    rows = [f"{time:.12f},{size}" for time, size in zip(times - times[0], sizes, strict=True)]
    path.write_text("time,bytes\n" + "\n".join(rows) + "\n")
    recorded = {"kind": "recorded", "trace": str(path)}
    spec = from_toml(
        DATA / "small-packets.toml",
        PacketProcessor,
        overrides={"workload.arrivals": recorded, "workload.sizes": "imix", "noc.link_width": 16},
    )
    spec = replace_fields(spec, {"offered_gbps": GBPS.get(change.__name__, 40)})
    return replace_fields(spec, {name: np.array(values) for name, values in FEW.items()})


def explored(folder, change, **options):
    spec = written(folder / "trace.csv", change)
    return explore_case(
        {"capture": spec}, given=["link_width"], runs=RUNS, points=8, store=folder / STORE, **options
    )


@pytest.fixture(scope="module")
def unsteady(tmp_path_factory):
    """A study of a capture whose packets come in its last 40 %, and where it is saved."""
    folder = tmp_path_factory.mktemp("late")
    study = explored(folder, late)
    save_study(study, folder / "out")
    return study, folder / "out"


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    return explored(tmp_path_factory.mktemp("steady"), lambda times: times)


def test_the_knee_that_saturates_in_its_simulation_is_not_starred(unsteady):
    part = unsteady[0].parts[0]
    exploration, check, star = part.analysis.exploration, part.check, part.star
    table, knee = exploration.table, exploration.knee
    assert table["stable"][knee] and table["bottleneck_load"][knee] < 0.6
    assert knee in check.rows and not check.simulated.table["stable"][check.rows == knee][0]
    assert star.against_knee == SATURATED
    assert star.row is not None and star.row != knee and star.by_simulation
    k = np.flatnonzero(check.rows == star.row)[0]
    assert check.simulated.table["stable"][k]
    # Nothing that keeps up in the simulation is better in all that is simulated.
    values = np.where(check.simulated.maximized, -check.simulated.values, check.simulated.values)
    stable = check.simulated.table["stable"]
    assert not (values[stable] < values[k]).all(axis=1).any()


def test_some_of_the_points_sustain_the_busiest_twentieth(unsteady, steady):
    part = unsteady[0].parts[0]
    table, base = part.analysis.exploration.table, part.analysis.exploration.space.base
    peak = peak_gbps(base.workload)
    assert peak == pytest.approx(46 * 2.5, rel=0.15)
    sustained = table["saturation_data_rate"][part.analysis.chosen] >= peak
    plain = representatives(part.analysis.exploration, 8)
    assert sustained.sum() >= max(2, (table["saturation_data_rate"][plain] >= peak).sum())
    assert part.analysis.exploration.knee in part.analysis.chosen
    assert part.analysis.budget.row in part.analysis.chosen
    assert len(part.analysis.chosen) <= 8


def test_the_contradiction_is_the_first_thing_said(unsteady):
    study, out = unsteady
    part = study.parts[0]
    designs = part.analysis.exploration.table["design"]
    knee, star = (designs[row] for row in (part.analysis.exploration.knee, part.star.row))
    title, *lines = study_text(study).splitlines()
    assert title == "The simulation contradicts the model's best design for capture"
    assert lines[0].strip().startswith(f"not starred: design {knee} (")
    assert lines[0].endswith(f": {SATURATED}")
    assert lines[1].strip().startswith(f"starred: design {star} (")
    text = (out / "report.html").read_text(encoding="utf-8")
    shown = title.partition("'")[0]
    assert 0 < text.index(shown) < text.index("Pareto front (analytic)")
    head = text[text.index(shown) - 400 : text.index(shown)]
    assert "Packet processor study" in head, "it stands at the head of the page"


def test_the_count_of_contradictions_is_that_of_the_simulations(unsteady):
    part = unsteady[0].parts[0]
    simulated = part.check.simulated.table
    saturated = simulated["design"][~simulated["stable"]].tolist()
    assert len(saturated) > 1 and set(saturated) <= set(part.star.contradicted)
    text = recommendation(part).text()
    count = len(part.star.contradicted)
    assert f"{count} of {len(part.check.rows)} simulated designs contradict the model:" in text
    only = [design for design in saturated if part.star.contradicted[design] == SATURATED]
    assert f"  {', '.join(map(str, only))}: {SATURATED}" in text
    # One of them simulated as the model says: one less.
    k = int(np.flatnonzero(~simulated["stable"])[0])
    fewer = with_simulated(part, k, like_the_model=True)
    assert set(part.star.contradicted) - set(fewer.star.contradicted) == {saturated[0]}
    said = f"{count - 1} of {len(part.check.rows)} simulated designs contradict the model:"
    assert said in recommendation(fewer).text()


def test_saturated_simulations_count_in_every_summary(unsteady):
    study, out = unsteady
    part = study.parts[0]
    simulated = part.check.simulated.table
    full, every = int((~simulated["stable"]).sum()), len(part.check.rows)
    latency = next(error for error in part.check.errors if error.metric == "packet_latency")
    assert (latency.designs, latency.finite, latency.largest) == (every, every - full, np.inf)
    assert latency.covered <= every - full
    section = next(s for s in part_sections(part) if s.title.startswith("Error of the model"))
    row = next(row for row in section.rows if row[0] == "packet latency")
    assert row[3] == np.inf and row[4] == f"{every - full} of {every}" and row[-1].endswith(f" of {every}")
    saved = json.loads((out / SUMMARY).read_text())["workloads"][0]
    assert saved["star"]["design"] == part.analysis.exploration.table["design"][part.star.row]
    assert set(map(int, saved["star"]["contradicted"])) == set(part.star.contradicted)
    with (out / "designs-capture.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["design"]) for row in rows if row["starred"] == "True"] == [saved["star"]["design"]]
    assert {int(row["design"]): row["contradiction"] for row in rows if row["contradiction"]} == (
        part.star.contradicted
    )


def labels(figure):
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def test_saturated_simulations_are_drawn_at_the_edge(unsteady, steady):
    """A marker of their own for each, in both views of the front and in the errors."""
    study, _ = unsteady
    part = study.parts[0]
    full = ~part.check.simulated.table["stable"]
    figure = front_figure(study)
    name = "simulated: saturated (a latency stands at the edge)"
    for axes in figure.axes:
        (drawn,) = [one for one in axes.collections if one.get_label() == name]
        spots = drawn.get_offsets()
        assert len(spots) == full.sum() and np.isfinite(spots).all()
        if axes.get_ylabel().startswith("packet latency"):
            assert (spots[:, 1] == axes.get_ylim()[1]).all()
            assert np.asarray(spots)[:, 0] == pytest.approx(part.check.simulated.table["cost"][full])
    shown = labels(figure)
    assert {"starred: best simulated", "knee of the model, contradicted: not recommended"} <= shown
    assert not shown & {"starred: knee (analytic)"}
    assert "beyond the axis, or infinite: saturated by one of the two" in labels(error_figure(study))
    written_there = [text.get_text().strip() for text in error_figure(study).axes[0].texts]
    assert any(text.endswith(f"{full.sum()} infinite") for text in written_there)
    plain = labels(front_figure(steady))
    assert name not in plain and "starred: knee (analytic)" in plain


def test_a_steady_trace_of_the_same_packets_keeps_its_knee(steady):
    part = steady.parts[0]
    assert part.star.row == part.analysis.exploration.knee and part.star.against_knee == ""
    assert part.check.simulated.table["stable"].all()
    first, *lines = study_text(steady).splitlines()
    assert first == "Recommended for capture"
    assert lines[0].endswith("knee of the analytic front, which its simulation bears out")
    assert "the busiest twentieth of the trace offers" not in study_text(steady)


@pytest.mark.parametrize("change", [late, ten_times_faster])
def test_without_simulation_the_trace_speaks_against_the_knee(tmp_path, change):
    study = explored(tmp_path, change, simulate=False)
    part = study.parts[0]
    exploration = part.analysis.exploration
    capacity = exploration.table["saturation_data_rate"]
    peak = peak_gbps(exploration.space.base.workload)
    assert capacity[exploration.knee] < peak <= capacity[part.star.row]
    assert part.star.row in exploration.front and not part.star.by_simulation
    text = study_text(study)
    assert text.startswith("The trace contradicts the model's best design for capture\n")
    assert "sustain the busiest twentieth of the trace, not simulated" in text


def test_the_trace_is_described_and_the_description_follows_it(tmp_path):
    """The numbers in the text are those of the trace's statistics, and change with it."""
    texts = {}
    for change in (late, ten_times_faster, lambda times: times):
        workload = written(tmp_path / f"{change.__name__[:4]}.csv", change).workload
        found = workload.arrivals.trace.statistics
        section = trace_section(workload)
        texts[change] = section.text()
        assert " ".join(f"{share:.2f}" for share in found.byte_share) in texts[change]
        assert f"peak to mean {found.peak_to_mean:.2f}: " in texts[change]
        assert [row[1] for row in section.rows] == found.packet_dispersion.tolist()
        assert [row[2] for row in section.rows] == found.byte_dispersion.tolist()
        assert [row[0] for row in section.rows][:3] == [1, 4, 16]
        assert trace_summary(workload)["peak_to_mean"] == found.peak_to_mean
    assert "0.00 0.00 0.00" in texts[late]
    assert trace_section(replace(workload, arrivals=type(PacketProcessor().workload.arrivals)())) is None


# The rule itself, on simulated values that are made up.


def with_simulated(part, k, *, like_the_model=False, **values):
    """Return a part in which the k-th simulated design has other values."""
    table = {name: column.copy() for name, column in part.check.simulated.table.items()}
    row = part.check.rows[k]
    if like_the_model:
        model = part.analysis.exploration.table
        names = [*MINIMIZE, *MAXIMIZE, "packet_latency_p99", "overflow_probability"]
        values = {name: model[name][row] for name in names} | {"stable": True}
    for name, value in values.items():
        for column in (name, f"{name}_low", f"{name}_high"):
            if column in table:
                table[column][k] = value
    simulated = replace(part.check.simulated, table=table)
    return Part(analysis=part.analysis, check=replace(part.check, simulated=simulated))


@pytest.fixture
def agreed(steady):
    """A part whose simulation says what the model says."""
    part = steady.parts[0]
    for k in range(len(part.check.rows)):
        part = with_simulated(part, k, like_the_model=True)
    return part


def place_of_knee(part):
    return int(np.flatnonzero(part.check.rows == part.analysis.exploration.knee)[0])


def test_no_contradiction_where_the_two_agree(agreed):
    assert contradictions(agreed.analysis, agreed.check) == {}
    assert agreed.star.row == agreed.analysis.exploration.knee
    assert "contradict" not in recommendation(agreed).text()


@pytest.mark.parametrize("metric", [*MINIMIZE, *MAXIMIZE])
@pytest.mark.parametrize("side", [-1, 1])
def test_the_largest_measured_error_is_the_limit(agreed, metric, side):
    k, knee = place_of_knee(agreed), agreed.analysis.exploration.knee
    table = agreed.analysis.exploration.table
    most = largest_error(metric, table["bottleneck_load"][knee])
    if metric == "cost":
        assert most is None
        return
    for share, held in ((0.9, True), (1.1, False)):
        # The simulated value from which the model's is off by this share of the limit.
        error = side * share * most / 100
        value = table[metric][knee] / (1 + error) if is_relative(metric) else table[metric][knee] - error
        part = with_simulated(agreed, k, **{metric: value})
        assert (part.star.row == knee) is held, (metric, share)
        if not held:
            unit = "%" if is_relative(metric) else "points"
            assert part.star.against_knee == (
                f"{FAR}: {metric.replace('_', ' ')} {1.1 * most:.1f} {unit} ({most:.1f})"
            )
            assert part.star.row is not None and int(part.star.row) not in (knee,)


def test_a_wide_interval_contradicts_nothing(agreed):
    k, knee = place_of_knee(agreed), agreed.analysis.exploration.knee
    latency = agreed.analysis.exploration.table["packet_latency"][knee]
    part = with_simulated(agreed, k, packet_latency=2 * latency)
    assert part.star.row != knee
    part.check.simulated.table["packet_latency_low"][k] = latency
    part.check.simulated.table["packet_latency_high"][k] = 3 * latency
    assert half_widths(part.check.simulated.table, "packet_latency")[k] == pytest.approx(latency)
    assert recommend(part.analysis, part.check).row == knee


def test_blocks_refused_in_the_simulation_contradict(agreed):
    part = with_simulated(agreed, place_of_knee(agreed), overflow_probability=0.02)
    assert part.star.against_knee == "overflow probability 0.02 in the simulation"
    assert part.star.row not in (None, part.analysis.exploration.knee)


def test_nothing_is_starred_where_nothing_keeps_up(agreed):
    part = agreed
    for k in range(len(agreed.check.rows)):
        part = with_simulated(part, k, stable=False, packet_latency=np.inf)
    assert part.star.row is None
    text = recommendation(part).text()
    assert "no design is starred: " in text and "\n  starred: " not in text
    assert "starred: best simulated" not in labels(front_figure(Study(parts=(part,), runs=RUNS)))
    assert "no design is starred" in page(Study(parts=(part,), runs=RUNS))


def test_largest_errors_are_those_of_the_map():
    for load in (0.05, 0.4, 0.6, 0.79, 0.95):
        one = np.ones(1)
        for metric, error in measured_errors(load=load * one, dispersion=one, step=one).items():
            assert largest_error(metric, load) >= error.largest[0] >= error.mean[0] >= 0
    assert largest_error("packet_latency", 1.2) is None
