"""Several workloads in one study: the robust design, its regrets and their picture."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cases.study.goals import default_processor
from cases.study.study import Runs, explore_case, several, several_summary
from optimize import replace_fields

FEW = {"channels": [2, 4], "alloc_trial_count": [1, 3], "link_width": [8, 16], "interleaving_step": [4]}


def specs(**changes):
    made = {
        name: replace_fields(default_processor(name), {one: np.array(v) for one, v in FEW.items()})
        for name in ("small-packets", "large-packets")
    }
    return {name: replace_fields(spec, changes) if changes else spec for name, spec in made.items()}


@pytest.fixture(scope="module")
def study():
    return explore_case(specs(), budget_seconds=0)


@pytest.fixture(scope="module")
def side(study):
    return several(study)


def changed(study, name, **columns):
    """The same with other columns under one workload, and the choice made again."""
    from optimize.decisions.decision import robust_choice

    decisions = {part.name: part.decision for part in study.parts}
    decisions[name] = replace(decisions[name], **columns)
    return robust_choice(
        {key: value.table for key, value in decisions.items()},
        {key: value.feasible for key, value in decisions.items()},
        minimize=study.parts[0].model.minimize,
        maximize=study.parts[0].model.maximize,
    )


def test_best_designs_are_the_knees_and_all_regrets_stand_in_the_table(study, side):
    knees = [part.design(part.model.knee) for part in study.parts]
    assert list(side.best) == knees
    summary = several_summary(study)
    assert summary["robust"] == side.chosen and list(summary["best"].values()) == knees
    named = dict.fromkeys([side.chosen, *knees, *(part.design(part.decision.chosen) for part in study.parts)])
    assert summary["regret"] == {str(design): side.regret_of(design) for design in named}


def test_nothing_may_be_feasible_under_all(study):
    count = len(study.parts[1].decision.feasible)
    nothing = changed(study, "large-packets", feasible=np.full(count, False))
    assert nothing.chosen is None and nothing.best[1] is None


def test_the_robust_design_is_simulated_under_each_workload(monkeypatch, tmp_path):
    """The model stands for the simulation."""
    from qmodels import solve

    asked = []

    def simulated(self, specs, **_):
        asked.extend(specs)
        return [solve(spec) for spec in specs]

    monkeypatch.setattr(Runs, "simulate", simulated)
    study = explore_case(specs(), budget_seconds=1e-9, out=tmp_path)
    chosen = several(study).chosen
    assert all(part.row(chosen) in part.decision.results for part in study.parts)
    assert len(asked) == sum(len(part.decision.simulated) for part in study.parts)


def test_one_workload_or_different_spaces_are_not_compared(study):
    alone = replace(study, parts=study.parts[:1])
    assert several(alone) is several_summary(alone) is None
    other = explore_case({"wide": next(iter(specs(link_width=np.array([32])).values()))}, budget_seconds=0)
    assert several(replace(study, parts=(study.parts[0], other.parts[0]))) is None


def test_each_trace_is_a_workload_of_the_study(run, tmp_path):
    rng = np.random.default_rng(1)
    for name, shares in (("web", (0.2, 0.2, 0.6)), ("voice", (0.9, 0.08, 0.02))):
        times = np.cumsum(rng.exponential(1e-7, 2000))
        sizes = rng.choice([64, 576, 1518], 2000, p=shares)
        rows = [f"{time:.9f},{size}" for time, size in zip(times, sizes, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["time,bytes", *rows]))
    settings = [word for name, values in FEW.items() for word in ("--set", f"{name}={values}")]
    code, text, errors = run(
        "explore", "--budget", "0", "--trace", "web.csv", "--trace", "voice.csv", *settings
    )
    assert (code, errors) == (0, "")
    assert "for all of them" in text and "voice" in text
    said = json.loads((tmp_path / "study" / "study.json").read_text())
    assert [one["name"] for one in said["workloads"]] == ["web", "voice"]
    assert set(said["together"]["best"]) == {"web", "voice"}


def test_traces_of_one_stem_have_names_of_their_own(tmp_path):
    from cases.cli.inputs import read_specs

    for folder, ending in (("a", "csv"), ("a", "log"), ("b", "csv")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / f"x.{ending}").write_text("0 64\n1e-6 65\n2e-6 66\n")
    read = lambda *names: list(read_specs(None, [tmp_path / name for name in names], [])[0])  # noqa: E731
    assert read("a/x.csv") == ["x"]
    assert read("a/x.csv", "a/x.log") == ["x.csv", "x.log"]
    assert read("a/x.csv", "b/x.csv") == ["trace-1", "trace-2"]
