"""What the page of a study carries: its numbers, an interval only where there is one, and few bytes."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cases.study.check import model_error
from cases.study.packet_processor import CHOICES, LOAD, PART
from cases.study.page.data import metrics_of, page_data, unsettled
from cases.study.page.packing import packed, unpacked
from cases.study.page.page import LIBRARIES, SCRIPTS, page
from cases.study.parts import Study
from cases.study.run import explore_case

CLOSE = 2e-5
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def data(small_study):
    """The page's data after a way through JSON."""
    return json.loads(json.dumps(page_data(small_study[0]), allow_nan=False))


def pairs(data, study):
    """Return each workload's data with its part."""
    return list(zip(data["workloads"], study.parts, strict=True))


def test_columns_are_the_study_s_numbers(data, small_study):
    for work, part in pairs(data, small_study[0]):
        decision = part.decision

        def column(name, work=work):
            return unpacked(work["columns"][name], work["count"])

        for name in metrics_of(decision):
            np.testing.assert_allclose(column(name), decision.table[name], rtol=CLOSE)
            for end in ("low", "high"):
                held = f"{name}_{end}" in work["columns"]
                assert held == (name in decision.corrected)
                if held:
                    np.testing.assert_allclose(
                        column(f"{name}_{end}"), decision.table[f"{name}_{end}"], rtol=CLOSE
                    )
            if name in decision.corrected:
                np.testing.assert_allclose(column(f"model: {name}"), decision.model.table[name], rtol=CLOSE)
        for name in ("design", *CHOICES, "bottleneck", "stable", "validated"):
            assert column(name).tolist() == decision.table[name].tolist()
        assert np.flatnonzero(column("front")).tolist() == decision.front.tolist()
        assert np.flatnonzero(column("open")).tolist() == decision.open.tolist()
        assert np.flatnonzero(column("simulated")).tolist() == sorted(decision.simulated.tolist())
        assert column("feasible").tolist() == decision.feasible.tolist()
        assert work["rows"]["chosen"] == decision.chosen
        shares = np.sum([column(PART + name) for name in work["parts"]], axis=0)
        np.testing.assert_allclose(shares, decision.model.table["packet_latency"], rtol=1e-3)
        busiest = np.max([column(LOAD + name) for name in work["loads"]], axis=0)
        np.testing.assert_allclose(busiest, decision.model.table["max_utilization"], rtol=CLOSE)


def test_the_simulated_columns_are_the_simulation_s(data, small_study):
    for work, part in pairs(data, small_study[0]):
        rows, results = work["rows"]["simulated"], part.decision.results
        found = {name: unpacked(values, len(rows)) for name, values in work["simulation"].items()}
        for k, row in enumerate(rows):
            result, model = results[row], part.decision.model.table
            shares = sum(found[PART + name][k] for name in work["parts"])
            assert shares == pytest.approx(result.metrics["packet_latency"].best, rel=1e-3)
            busiest = max(found[LOAD + name][k] for name in work["loads"])
            assert busiest == pytest.approx(result.metrics["max_utilization"].best, rel=CLOSE)
            for metric in ("packet_latency", "write_conflict_probability"):
                for end, name in (("low", "_low"), ("best", ""), ("high", "_high")):
                    simulated = getattr(result.metrics[metric], end)
                    expected = 100 * float(model_error(metric, model[metric][row], simulated))
                    assert found[f"error: {metric}{name}"][k] == pytest.approx(expected, rel=CLOSE, abs=1e-9)


def test_what_is_not_settled_follows_the_decision(small_study, small_specs):
    part = small_study[0].parts[0]

    def said(**changes):
        changed = SimpleNamespace(decision=replace(part.decision, **changes), check=part.check)
        return " ".join(unsettled(changed).lines)

    open_rows = np.setdiff1d(np.arange(len(part.decision.feasible)), part.decision.simulated)[:3]
    words = said(open=open_rows, settled=False)
    assert "not settled: 3 of" in words and f"{len(part.decision.simulated)} simulated" in words
    assert "is settled" in said(open=open_rows[:0], settled=True)
    assert "interrupted" in said(interrupted=True) and "interrupted" not in said(interrupted=False)
    alone = explore_case({"large-packets": small_specs["large-packets"]}, budget_seconds=0).parts[0]
    assert "No design was simulated" in " ".join(unsettled(alone).lines)


def test_a_page_without_a_front_is_made(overloaded_study):
    (work,) = page_data(overloaded_study)["workloads"]
    assert work["rows"]["chosen"] is None and work["verdict"]["title"].startswith("No design is feasible")
    assert "No design is feasible" in page(overloaded_study)


def test_default_study_stays_below_three_megabytes(small_study, data):
    def columns(count):
        held = (column["data"] for work in data["workloads"] for column in work["columns"].values())
        return sum(len(text) * (count / work["count"] if len(text) > 8 else 1) for text in held)

    work = data["workloads"][0]
    rest = len(page(small_study[0])) - columns(work["count"])
    assert rest + columns(2700) < 2_700_000


@pytest.mark.parametrize(
    "values", [np.array([0.0, -1.5, np.inf, 1e-30, 3e30]), np.full(5, np.inf), np.arange(5) > 2]
)
def test_packing_keeps_values(values):
    np.testing.assert_allclose(unpacked(packed(values), 5), values, rtol=CLOSE)
    assert unpacked(packed(np.arange(400) * 3, words=range(0, 1200, 3)), 400).tolist() == list(
        range(0, 1200, 3)
    )


def test_the_libraries_are_named_with_version_and_licence():
    table = (ROOT / ".github/docs/project/dependencies.md").read_text()
    for name in LIBRARIES:
        (path,) = (ROOT / "cases/study/page/libraries").glob(f"{name}.*js")
        found = re.search(r"// https://d3js.org v(\S+)|plot v(\S+)", path.read_text()[:200])
        version = next(filter(None, found.groups()))
        assert f"{version} (ISC)" in table
        assert "permission notice appear in all copies" in (path.parent / f"LICENSE-{name}").read_text()


def test_every_copy_has_the_licences(small_study):
    assert (
        page(Study(parts=small_study[0].parts[:1], runs=small_study[0].runs)).count("appear in all copies")
        >= 2
    )


def test_no_word_of_a_study_ends_the_script_that_holds_it(small_study):
    study = small_study[0]
    named = replace(study.parts[0], analysis=replace(study.parts[0].analysis, name="</script><b>"))
    text = page(Study(parts=(named,), runs=study.runs))
    assert text.count("</script") == len(LIBRARIES) + len(SCRIPTS) + 1
    assert "\\u003c/script>" in text
