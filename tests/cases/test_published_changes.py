"""Systems of published papers as files, with fields changed, and conclusions on them."""

import json

import pytest

from cases.published import CASES, paper
from cases.published.conclusions import conclusions_of
from cases.published.paper import changed, designs_of, published_case
from qmodels.systems.spec.text.toml import spec_from_toml

NUMBERS = {
    "dqm": ("table4-trials1-small0-vms1-size4194304", "allocation_failure_probability", 0.0245),
    "srp": ("table62-four-clustered-image-b", "execution_time", 32.09e6),
    "llc3d": ("shared", "waiting_latency", 896.0),
    "ocmpi": ("barrier-16-cores", "execution_time", 12_527),
    "stnoc": ("table2-transfer128-width8-channels1", "bandwidth", 10.71),
}
"""A number of each paper, in our unit."""


@pytest.mark.parametrize("case", CASES)
def test_every_system_is_a_file_that_reads_back(case):
    designs = {one.name: one for one in designs_of(case)}
    assert len(designs) == len(list(published_case(case).designs())) >= 15
    for one in designs.values():
        assert spec_from_toml(one.text()) == one.spec, one.name
    name, metric, value = NUMBERS[case]
    assert designs[name].published[metric] == pytest.approx(value, rel=1e-3)
    assert f"# published {metric}: " in designs[name].text()


@pytest.mark.parametrize("case", ["stnoc", "ocmpi"])
def test_systems_are_those_of_the_tables(case):
    """The model of a system is what the kept table has beside the published number."""
    found = changed(f"{case}/{'table2' if case == 'stnoc' else 'one-way'}", {})
    factor = 1000 if case == "stnoc" else 1
    kept = published_case(case).kept().cells
    table = {one.published: one for one in kept if one["table"] == "table2" or one["unit"] == "cycles"}
    for row in found.rows:
        cell = min(table.values(), key=lambda one: abs((one.published or 0) - factor * row["published"]))
        assert cell.published == pytest.approx(factor * row["published"])
        assert factor * row["model"] == pytest.approx(cell.model, rel=1e-6)
        assert row["changed"] == row["model"]
    assert "Nothing differs" in found.text()


def test_a_change_is_laid_beside_what_was_published(run, tmp_path):
    code, out, err = run("reproduce", "llc3d/slices", "--set", "slices=14")
    assert (code, err) == (0, "")
    assert "Published numbers are of the paper's systems, not of what was changed: slices." in out
    (row, *_) = json.loads(run("reproduce", "llc3d/slices", "--set", "slices=14", "--json")[1])["rows"]
    solved = json.loads(run("solve", "llc3d/slices", "--set", "slices=14", "--json")[1])["analytic"]
    assert row["published"] == 89.8
    assert row["changed"] == solved["metrics"]["data_rate"] < row["model"]
    (tmp_path / "mine.toml").write_text(run("init", "llc3d/slices")[1].replace("slices = 28", "slices = 14"))
    assert run("reproduce", "llc3d/slices", "mine.toml")[1] == out


def test_what_does_not_take_a_change_is_left_out_with_the_reason(monkeypatch):
    some = [*designs_of("srp/table61-optimal-one"), *designs_of("srp/table62-four-stealing-image-c")]
    monkeypatch.setattr(paper, "designs_of", lambda name: some)
    found = changed("srp", {"stealing.most": 5})
    assert [row["system"] for row in found.rows] == ["table62-four-stealing-image-c"]
    left = "Left out: table61-optimal-one-fitted-to-non-optimal and 1 more: NumaMachine has no field"
    assert left in found.text()


def test_a_changed_system_is_simulated_and_says_where_it_saturates():
    found = changed("ocmpi/one-way-1-word", {"link_width": 8}, simulated=True)
    (row,) = found.rows
    assert row["simulated"] == pytest.approx(row["changed"], rel=0.02)
    assert "simulated, changed" in found.text()
    fast = changed("stnoc/table1-in-turn-width16-channels1", {"injection_rate": 0.2})
    assert "Changed, saturated: table1-in-turn-width16-channels1" in fast.text()


def test_conclusions_on_changed_systems(run):
    code, out, err = run("conclusions", "llc3d", "--set", "slices=14", "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert set(found["left_out"]) == {"half", "sixteen", "popular"}
    none = {one["name"]: one for one in found["llc3d"]["conclusions"]}["none"]
    assert none["verdict"] == "depends" and none["simulated"] is None  # three lines a slice confirm it
    none = next(one for one in conclusions_of("llc3d") if one.name == "none")
    assert none.changed({"slices": 28}).solved(20_000.0) == none.solved(20_000.0) > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["reproduce", "llc3d/slice2"],
            "llc3d has no system 'slice2'; did you mean 'slices'?; qmodels describe",
        ),
        (["reproduce", "llc3d", "--set", "slicez=3"], "LlcProcessor has no field 'slicez'"),
        (
            ["reproduce", "stnoc/table1-in", "--set", "injection_rate=[0.1, 0.2]"],
            "injection_rate must be one value here, not several",
        ),
        (["reproduce", "llc3d", "x.toml"], "a file needs one system, got 19 of llc3d"),
        (
            ["reproduce", "llc3d", "--set", "slices=3", "--out", "new"],
            "--trace and --out are of a whole case",
        ),
        (["init", "stnoc/table2"], "stnoc/table2 must name one system, got 12: table2-transfer128"),
        (["solve", "stnoc/table9"], "stnoc has no system 'table9'"),
        (["conclusions", "--set", "slices=3"], "--set needs one CASE"),
        (["conclusions", "llc3d", "--set", "slices=0"], "slices must be"),
    ],
)
def test_bad_changes_are_one_line(run, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert message in err and err.count("\n") == 1
