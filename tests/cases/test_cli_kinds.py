"""The command line on systems of every kind: their files, answers, simulations, explorations and sizes."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from qmodels import solve
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.kind import KINDS
from qmodels.systems.spec.toml import spec_from_toml


@pytest.fixture
def file(run, tmp_path):
    """Return the file that ``init`` writes of a kind."""

    def write(kind):
        path = tmp_path / f"{kind}.toml"
        code, out, err = run("init", kind)
        assert (code, err) == (0, "")
        path.write_text(out)
        return path

    return write


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_described_and_what_init_writes_is_solved(run, file, kind):
    path = file(kind)
    expected = solve(spec_from_toml(path)).to_dict()
    code, out, err = run("solve", path, "--json")
    answer = json.loads(out)
    assert (code, err) == (0, "") and answer["analytic"]["stable"] == expected.pop("stable")
    assert set(answer["analytic"]["metrics"]) == set(expected) == set(answer["units"])
    rows = list(csv.DictReader(io.StringIO(run("solve", path, "--csv")[1])))
    assert [row["metric"] for row in rows] == list(expected)
    assert next(iter(expected)).replace("_", " ") in run("solve", path)[1].replace("_", " ")
    listed = run("describe")[1]
    fields = json.loads(run("describe", kind, "--json")[1])["fields"]
    assert kind in listed and all(field["name"] in run("describe", kind)[1] for field in fields)
    assert json.loads(run("schema", kind)[1])["title"] == kind


def test_a_network_on_chip_is_compared_and_swept(run, file):
    path = file("noc")
    code, out, _ = run("compare", path, "--option", "cycles=2000", "--replications", "2", "--json")
    answer = json.loads(out)
    assert code == 0 and {"comparison", "analytic", "simulated", "units"} <= set(answer)
    assert answer["comparison"]["packet_latency"]["model"] == answer["analytic"]["metrics"]["packet_latency"]
    words = ("compare", path, "--option", "cycles=2000", "--replications", "2", "--plot", "parts.svg")
    text = run(*words)[1]
    assert "packet_latency" in text and "model:" in text
    assert "Where the time goes" in text and (path.parent / "parts.svg").exists()
    simulated = run("simulate", path, "--option", "cycles=2000", "--replications", "2", "--csv")[1]
    assert simulated.startswith("metric,unit,simulated,low,high\npacket_latency,ns,")
    rows = list(
        csv.DictReader(io.StringIO(run("solve", path, "--set", "injection_rate=[0.01, 0.03]", "--csv")[1]))
    )
    assert [row["injection_rate"] for row in rows] == ["0.01", "0.03"]
    busy = solve(replace_fields(spec_from_toml(path), {"injection_rate": 0.03}))
    assert float(rows[1]["packet_latency [ns]"]) == pytest.approx(busy.packet_latency)


def test_an_exploration_of_any_kind_is_kept_and_shown(run, file, tmp_path):
    words = ("explore", file("noc"), "--vary", "link_width=8,16,32", "--vary", "injection_rate=0.01,0.02")
    goals = ("--minimize", "packet_latency", "--maximize", "bandwidth", "--subject-to", "packet_latency<=40")
    code, out, err = run(*words, *goals, "--out", "kept", "--json")
    assert (code, err) == (0, "")
    front = json.loads(out)["front"]
    assert front["link_width"] == [32, 32] and front["injection_rate"] == [0.01, 0.02]
    assert json.loads(out)["designs"] == 6 and max(front["packet_latency"]) < 40
    rows = list(csv.DictReader(io.StringIO((tmp_path / "kept" / "designs.csv").read_text())))
    assert [int(row["design"]) for row in rows if row["front"] == "True"] == front["design"]
    # Once more it is read from what was kept, and drawn.
    code, again, _ = run(*words, *goals, "--out", "kept", "--plot", "kept/front.svg")
    assert code == 0 and "knee: " in again and "(0 evaluated, 6 restored)" in again
    drawn = (tmp_path / "kept" / "front.svg").read_text()
    assert "packet_latency (least is best)" in drawn and "bandwidth (most is best)" in drawn
    shown = json.loads(run("show", "kept", "--design", front["design"][0], "--json")[1])
    assert (shown["link_width"], shown["injection_rate"]) == (32, 0.01)
    assert shown["analytic"]["metrics"]["packet_latency"] == pytest.approx(front["packet_latency"][0])
    assert run("show", "kept", "--design", "99")[2].startswith("qmodels: error: --design must be one of 6")


@pytest.mark.parametrize(("options", "which"), [((), "smallest"), (("--largest",), "largest")])
def test_the_size_of_a_field_meets_its_target(run, file, options, which):
    path, limit = file("noc"), 30.0 if which == "smallest" else 0.9
    target = f"packet_latency<={limit}" if which == "smallest" else f"max_utilization<={limit}"
    field, within = ("link_width", "1,64") if which == "smallest" else ("injection_rate", "0.001,0.2")
    words = ("size", path, "--field", field, "--within", within, "--subject-to", target, *options)
    code, out, _ = run(*words, "--json")
    found, metric = json.loads(out), target.partition("<=")[0]
    assert code == 0 and found["status"] == "met" and found["metrics"][metric] <= limit
    spec = spec_from_toml(path)
    for value, met in ((found["value"], True), (found["misses"], False)):
        assert bool(solve(replace_fields(spec, {field: value}))[metric] <= limit) is met
    assert f"is the {which} that meets the targets" in run(*words)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "--option", "cycle=9"), "must be one of .*, got 'cycle'; did you mean 'cycles'"),
        (
            ("simulate", "--option", "accesses=9"),
            "of the simulator of a Noc must be one of .*, got 'accesses'",
        ),
        (("solve", "--trace", "a.csv"), "--trace needs a packet processor, got a Noc"),
        (("explore",), "--vary must name a field and its choices"),
        (("explore", "--vary", "link_width"), "--vary must be field=value, got 'link_width'"),
        (("explore", "--vary", "link_width=8", "--minimize", "cost"), "no metric 'cost'|must be a metric"),
        (("size", "--field", "link_width"), "size needs --field NAME and --within LOW,HIGH"),
        (
            ("size", "--field", "link_width", "--within", "1,8", "--subject-to", "packet_latency=3"),
            '--subject-to must be "metric<=x" or "metric>=x"',
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, file, words, message):
    command, *options = words
    code, out, err = run(command, file("noc"), *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(message, err)


def test_unknown_kinds_are_refused_with_the_nearest(run, tmp_path):
    assert "did you mean 'noc'" in run("init", "nocs")[2]
    (tmp_path / "bad.toml").write_text('kind = "drams"\n')
    assert "did you mean 'dram'" in run("solve", tmp_path / "bad.toml")[2]
    assert "need --vary" in run("explore", "--minimize", "cost")[2]
