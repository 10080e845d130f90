"""What a study stars: never a design that its own simulation contradicts; the contradiction comes first."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from cases.study.check import Runs
from cases.study.files import SUMMARY, save_study
from cases.study.packet_processor import DATA
from cases.study.plots import error_figure, front_figure
from cases.study.recommendation import SATURATED, recommend
from cases.study.run import STORE, explore_case
from cases.study.words.findings import part_sections, trust
from cases.study.words.screen import screen_of, study_text
from cases.study.words.stream import trace_section, trace_summary
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.text.toml import from_toml
from validate.estimates.statistics import exactly
from validate.packet_processor.simulate import LATENCIES

RUNS = Runs(packets=2000, replications=3, seed=2)
FEW = {"interleaving_step": [1, 16], "channels": [2, 4, 6, 8], "alloc_trial_count": [1, 3], "slices": [2, 4]}
PACKETS = 2000


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
    return replace_fields(spec, {name: np.array(values) for name, values in FEW.items()})


class Saturating(Runs):
    """Runs in which designs with fewer than eight channels do not keep up, whatever the model says."""

    def simulate(self, specs, **options):
        return [
            self.full(one) if one.spec.dram.channels < 8 else one
            for one in super().simulate(specs, **options)
        ]

    @staticmethod
    def full(result):
        endless = exactly(np.inf, confidence=0.9)
        return replace(result, stable=False, metrics={**result.metrics, **dict.fromkeys(LATENCIES, endless)})


def explored(folder, change, runs=RUNS, points=8):
    spec = written(folder / "trace.csv", change)
    return explore_case(
        {"capture": spec}, given=["link_width"], runs=runs, points=points, budget_seconds=None,
        store=folder / STORE,
    )  # fmt: skip


@pytest.fixture(scope="module")
def unsteady(tmp_path_factory):
    """A study in which simulations find designs saturated that the model does not, and where it is saved."""
    folder = tmp_path_factory.mktemp("late")
    study = explored(folder, late, Saturating(**vars(RUNS)))
    save_study(study, folder / "out")
    return study, folder / "out"


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    return explored(tmp_path_factory.mktemp("steady"), lambda times: times, points=4)


def test_designs_that_saturate_in_their_simulation_are_not_starred(unsteady):
    part = unsteady[0].parts[0]
    check, star = part.check, part.star
    table, simulated = part.analysis.exploration.table, part.check.simulated.table
    assert set(star.contradicted.values()) == {SATURATED}
    for k, row in enumerate(check.rows):
        saturates = bool(table["stable"][row] and not simulated["stable"][k])
        assert saturates == (int(table["design"][row]) in star.contradicted)
    assert star.by_simulation and simulated["stable"][check.rows == star.row].all()
    # No simulated design that is feasible is better in all objectives.
    decision = part.decision
    costs = np.where(decision.model.maximized, -1, 1) * np.stack(
        [decision.table[name] for name in decision.model.objectives], axis=1
    )
    held = decision.simulated[decision.feasible[decision.simulated]]
    assert not (costs[held] < costs[star.row]).all(axis=1).any()


def test_the_recommendation_is_the_first_thing_said(unsteady):
    study, out = unsteady
    part = study.parts[0]
    designs = part.analysis.exploration.table["design"]
    star = designs[part.star.row]
    section = screen_of(part).section()
    title = section.title
    assert title == "Recommended for capture" and any(f"design {star} (" in line for line in section.lines)
    best = next(line for line in study_text(study, "out").splitlines() if line.startswith("Best "))
    assert best.endswith(f"design {star}")
    text = (out / "report.html").read_text(encoding="utf-8")
    shown = title
    assert 0 < text.index(shown) < text.index("Pareto front")
    head = text[text.index(shown) - 400 : text.index(shown)]
    assert "Packet processor study" in head, "it stands at the head of the page"


def test_the_count_of_contradictions_is_that_of_the_simulations(unsteady):
    part = unsteady[0].parts[0]
    simulated = part.check.simulated.table
    saturated = simulated["design"][~simulated["stable"]].tolist()
    assert set(part.star.contradicted) <= set(saturated)
    (said,) = (line for line in trust(part.decision).lines if line.startswith("feasible by only one of"))
    assert set(map(str, part.star.contradicted)) <= set(said.partition(": ")[2].split(", "))


def test_saturated_simulations_count_in_every_summary(unsteady):
    study, out = unsteady
    part = study.parts[0]
    simulated = part.check.simulated.table
    full, every = int((~simulated["stable"]).sum()), len(part.check.rows)
    latency = next(error for error in part.check.errors if error.metric == "packet_latency")
    assert (latency.designs, latency.finite, latency.largest) == (every, every - full, np.inf)
    assert latency.covered <= every - len(part.star.contradicted)
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
    assert "starred: best simulated" in shown
    assert "beyond the axis, or infinite: saturated by one of the two" in labels(error_figure(study))
    written_there = [text.get_text().strip() for text in error_figure(study).axes[0].texts]
    assert any(text.endswith(f"{len(part.star.contradicted)} infinite") for text in written_there)
    plain = labels(front_figure(steady))
    assert name not in plain


def test_a_steady_trace_of_the_same_packets_contradicts_nothing(steady):
    part = steady.parts[0]
    assert part.star.row in part.decision.results and part.star.against_knee == ""
    assert part.check.simulated.table["stable"].all()
    assert screen_of(part).section().title == "Recommended for capture"


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


def test_blocks_refused_in_the_simulation_contradict(steady):
    decision = steady.parts[0].decision
    table = {name: column.copy() for name, column in decision.table.items()}
    knee = decision.model.knee
    table["overflow_probability"][knee] = 0.02
    feasible = decision.feasible.copy()
    feasible[knee] = False
    star = recommend(replace(decision, table=table, feasible=feasible))
    assert star.against_knee == "overflow probability 0.02 in the simulation"
    assert star.contradicted == {int(table["design"][knee]): star.against_knee}
