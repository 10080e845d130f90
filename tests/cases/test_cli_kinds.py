"""The command line on systems of every kind: their files, answers, simulations, explorations and sizes."""

import csv
import io
import json
import re

import numpy as np
import pytest

import qmodels as qm
from cases.study.files import load_study
from cases.study.goals import default_processor, with_values
from optimize import replace_fields
from qmodels import solve
from qmodels.systems.spec.kind import KINDS
from qmodels.systems.spec.text.toml import spec_from_toml


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
    listed, described = run("describe")[1], run("describe", kind)[1]
    fields = json.loads(run("describe", kind, "--json")[1])["fields"]
    assert kind in listed and max(listed.count("\n"), described.count("\n")) <= 60
    assert max(map(len, described.splitlines())) <= 110
    outer = [field["name"] for field in fields if "." not in field["name"]]
    assert outer and all(name in described for name in outer)
    for name in outer[:3]:
        assert f"{name} = " in run("describe", kind, name)[1]
    assert json.loads(run("schema", kind)[1])["title"] == kind


def test_presets_and_kinds_of_parts_are_described_by_name(run):
    for listed in (run("describe")[1], run("describe", "dram")[1], run("describe", "packet-processor")[1]):
        assert all(name in listed for name in ("DDR4-3200", "HBM3"))
    assert "t_rcd 46" in run("describe", "DDR5-6400")[1]
    assert "parts.*.count = required" in run("describe", "system", "tokens")[1]
    for words, said in (
        (["packet-processor", "chanels"], "has no part or field 'chanels'; did you mean 'channels'?"),
        (["stnoc", "channels"], "describe takes a NAME behind a kind of system, got stnoc channels"),
    ):
        code, _, err = run("describe", *words)
        assert code == 2 and said in err


def test_a_network_on_chip_is_compared_and_swept(run, file):
    path = file("noc")
    code, out, _ = run("compare", path, "--option", "cycles=2000", "--replications", "2", "--json")
    answer = json.loads(out)
    assert code == 0 and {"comparison", "analytic", "simulated", "units"} <= set(answer)
    assert answer["comparison"]["packet_latency"]["model"] == answer["analytic"]["metrics"]["packet_latency"]
    words = ("compare", path, "--option", "cycles=2000", "--replications", "2", "--plot", "parts.svg")
    text = run(*words, "--full")[1]
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


def test_of_many_designs_the_front_is_kept_and_holes_are_told(run, file, tmp_path, monkeypatch):
    """Every width of 24 is refused, and nothing else is lost; both ways say the same front."""
    import qmodels
    from cases.study import study as studies

    def raising(spec):
        if np.any(np.equal(spec.link_width, 24)):
            raise ZeroDivisionError("no flits")
        return solve(spec)

    monkeypatch.setattr(qmodels, "solve", raising)
    words = ("explore", file("noc"), "--vary", "link_width=24,8,16,32", "--vary", "injection_rate=0.01,0.02")
    goals = ("--minimize", "packet_latency", "--maximize", "bandwidth", "--json")
    (whole,) = json.loads(run(*words, *goals, "--out", "whole", "--budget", "0")[1])["workloads"]
    monkeypatch.setattr(studies, "MANY", 4)
    code, out, err = run(*words, *goals, "--out", "front", "--budget", "2s")
    assert (code, err) == (0, "")
    (kept,) = json.loads(out)["workloads"]
    assert kept["holes"] == whole["holes"]
    assert kept["holes"] == [{"error": "ZeroDivisionError", "designs": 2, "first": 0, "line": "no flits"}]
    assert (kept["designs"], kept["distinct"], kept["ties"]) == (6, whole["distinct"], whole["ties"])
    front = [one["design"] for one in kept["front"]]
    assert front == [one["design"] for one in whole["front"]]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "front" / "designs-noc.csv").read_text())))
    assert [int(row["design"]) for row in rows] == front
    text = run(*words, *goals[:-1], "--out", "front", "--budget", "0", "--full")[1]
    assert kept["screen"]["best"] and not kept["screen"]["changes"]  # of designs not kept
    assert "6 designs solved, 1 not feasible" in text
    assert "no answer at 2 designs, as design 0 (link_width=24, injection_rate=0.01): ZeroDiv" in text
    assert f"of so many designs {len(rows)} of the model's front were looked at" in text
    assert f"{kept['distinct']} distinct points and {kept['ties']} ties" in text
    code, out, err = run("show", "front", "--design", rows[0]["design"], "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert shown["link_width"] == int(rows[0]["link_width [bytes]"])
    goals = (*goals, "--subject-to", "packet_latency < 1ns")
    code, out, err = run(*words, *goals, "--out", "none", "--budget", "0")
    assert (code, err) == (0, "")
    screen = json.loads(out)["workloads"][0]["screen"]
    assert screen["best"] is None and screen["nearest"]["missed"].keys() == {"packet_latency <= 1"}
    assert screen["excluded"][-1]["constraint"] == "packet_latency <= 1"


def test_an_exploration_of_any_kind_is_kept_and_shown(run, file, tmp_path):
    words = ("explore", file("noc"), "--vary", "link_width=8,16,32", "--vary", "injection_rate=0.01,0.02")
    goals = (
        "--minimize",
        "packet_latency",
        "--maximize",
        "bandwidth",
        "--subject-to",
        "packet_latency<0.04us",
    )
    code, out, err = run(*words, *goals, "--out", "kept", "--json", "--budget", "0")
    assert (code, err) == (0, "")
    (found,) = json.loads(out)["workloads"]
    front = {name: [one[name] for one in found["front"]] for name in found["front"][0]}
    assert front["link_width"] == [32, 32] and front["injection_rate"] == [0.01, 0.02]
    assert found["screen"]["best"]["design"] in front["design"]
    assert found["designs"] == 6 and max(front["packet_latency"]) < 40
    rows = list(csv.DictReader(io.StringIO((tmp_path / "kept" / "designs-noc.csv").read_text())))
    assert [int(row["design"]) for row in rows if row["front"] == "True"] == front["design"]
    assert (tmp_path / "kept" / "report.html").stat().st_size < 100_000
    # Once more it is read from what was kept, and drawn.
    store = (tmp_path / "kept" / "solved.sqlite").stat().st_mtime_ns
    code, again, _ = run(*words, *goals, "--out", "kept", "--plot", "kept/front.svg", "--budget", "2s")
    assert code == 0 and again.startswith("noc ") and "6 designs, " in again
    assert "Sure?  Simulated; " in again
    assert (tmp_path / "kept" / "solved.sqlite").stat().st_mtime_ns == store
    assert (tmp_path / "kept" / "front.svg").stat().st_size > 1000
    shown = json.loads(run("show", "kept", "--design", front["design"][0], "--json")[1])
    assert (shown["link_width"], shown["injection_rate"]) == (32, 0.01)
    assert shown["analytic"]["metrics"]["packet_latency"] == pytest.approx(front["packet_latency"][0])
    assert run("show", "kept", "--design", "99")[2].startswith(
        "qmodels: error: design must be a number from 0 to 5"
    )


@pytest.mark.parametrize(("options", "which"), [((), "smallest"), (("--largest",), "largest")])
def test_the_size_of_a_field_meets_its_condition_and_says_why_not_another(run, file, options, which):
    path = file("noc")
    field, metric, limit, until, within = (
        ("link_width", "packet_latency", 30.0, "packet_latency <= 0.03us", ())
        if which == "smallest"
        else ("injection_rate", "max_utilization", 0.3, "max_utilization <= 30%", ("--within", "0.001,0.2"))
    )
    words = ("size", path, field, "--until", until, *within, *options)
    code, out, _ = run(*words, "--json")
    found = json.loads(out)
    assert code == 0 and found["status"] == "met" and found["metrics"][metric] <= limit
    spec = spec_from_toml(path)
    for value, met in ((found["value"], True), (found["misses"], False)):
        assert bool(solve(replace_fields(spec, {field: value}))[metric] <= limit) is met
    text = run(*words)[1]
    assert f"{found['value']:.6g} is the {which} that meets {metric.replace('_', ' ')} at most " in text
    assert f"\nWith {found['misses']:.6g}: " in text and "beyond the limit" in text
    assert text.splitlines() == found["answer"]


def test_a_size_that_nothing_meets_names_the_nearest_and_the_end(run, file):
    out = run("size", file("noc"), "link_width", "--until", "packet_latency < 1ns", "--within", "1,8")[1]
    assert out.startswith(
        "No link width meets packet latency at most 1 ns; the nearest is 8.\nTraffic: injection rate "
    )
    assert "\nWith 8: packet latency inf" in out


def test_the_question_of_the_channels_has_its_answer_in_a_few_lines(run, toml):
    out = run("size", toml, "channels", "--until", "packet_latency_p99 < 1.2us")[1]
    first, traffic, there, short, *trust = out.splitlines()
    assert traffic.startswith("Traffic: 30 Gb/s of packets of ")
    assert out == f"{qm.size(spec_from_toml(toml), 'channels', 'p99 < 1.2us')}\n"
    channels = int(first.split()[1])
    assert first == f"Channels {channels} is the smallest that meets packet latency p99 at most 1.2 us."
    spec = spec_from_toml(toml)
    for line, count in ((there, channels), (short, channels - 1)):
        answer = solve(replace_fields(spec, {"channels": count}))
        assert line.startswith(f"With {count}: packet latency p99 ")
        assert f"bottleneck: {answer.bottleneck} at {100 * answer.bottleneck_load:.0f} %" in line
        assert bool(answer.stable and answer.packet_latency_p99 < 1200) is (count == channels)
    assert "The model is off by" in trust[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("simulate", "--option", "cycle=9"), "has no option 'cycle' for a Noc; did you mean 'cycles'"),
        (
            ("simulate", "--option", "accesses=9"),
            "has no option 'accesses' for a Noc; .* its options are packets, cycles",
        ),
        (("solve", "--trace", "a.csv"), "--trace needs a packet processor, got a Noc"),
        (("explore",), "--vary must name a field and its choices"),
        (("explore", "--vary", "link_width"), "--vary must be field=value, got 'link_width'"),
        (
            ("explore", "--vary", "link_width=8", "--minimize", "cost"),
            "minimize must name a metric or field of a Noc, got 'cost'",
        ),
        (
            ("explore", "--vary", "link_width=8,16"),
            "--minimize or --maximize must name a metric",
        ),
        (
            ("explore", "--vary", "link_width=8", "--minimize", "packet_latancy"),
            "minimize must .* got 'packet_latancy'; did you mean 'packet_latency'",
        ),
        (("explore", "--vary", "link_width=8,16", "--vary", "links=3"), "Noc has no field 'links'"),
        (("size", "link_width"), "--until must state a condition"),
        (("size", "link_width", "more", "--until", "packet_latency<3"), "size takes .SPEC.toml. FIELD, got"),
        (("size", "link_wdth", "--until", "packet_latency<3"), "did you mean 'link_width'"),
        (("size", "link_width", "--until", "packet_latency=3"), "a condition must be"),
        (("size", "link_width", "--until", "packet_latency<3", "--within", "7"), "--within must be LOW,HIGH"),
        (
            ("size", "topology", "--until", "packet_latency<3"),
            "topology must be a number > 0 to be sized without --within",
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


def test_two_systems_are_compared_under_common_random_numbers(run, file):
    path = file("noc")
    words = ("diff", path, "--b", "link_width=32", "--pairs", "3", "--packets", "500")
    code, out, err = run(*words)
    assert (code, err) == (0, "") and len(out.splitlines()) <= 15
    found = json.loads(run(*words, "--json")[1])
    one = found["metrics"]["packet_latency"]
    assert one["better"] == "second" and one["difference"]["high"] < 0
    assert one["difference"]["best"] == pytest.approx(one["second"] - one["first"])
    assert "Verdict: B is better in packet latency" in out
    assert "A and B must differ" in run("diff", path)[2]
    assert "must be of one kind" in run("diff", path, file("dram"))[2]


def test_of_two_traces_it_is_said_which_is_worse_in_what_they_differ_and_how_they_are_rescaled(
    run, trace, tmp_path
):
    bursty = ["time,bytes"] + [f"{(k // 30) * 3e-6 + (k % 30) * 1e-8:.9f},640" for k in range(1200)]
    (tmp_path / "bursty.csv").write_text("\n".join(bursty) + "\n")
    words = ("diff", "--trace", trace, "--trace", "bursty.csv", "--pairs", "2", "--packets", "1000")
    code, out, err = run(*words)
    assert (code, err) == (0, "") and len(out.splitlines()) <= 15, out
    first, second = out.splitlines()[:2]
    assert "capture.csv (recorded at 43.4" in first and "bursty.csv (recorded at 52." in second
    assert all(line.endswith("replayed at 40 Gb/s)") for line in (first, second))
    assert "Verdict: A is better in packet latency" in out and "cost" not in out
    said = " ".join(out.split())
    assert "Traces: longest-scale dispersion" in said and "bytes of a packet 542.7 in A, 640 in B." in said


def test_a_memory_technology_is_a_word_and_keeps_the_channels(run, tmp_path):
    found = {}
    for name in ("DDR5-6400", "HBM3"):
        answer = json.loads(run("solve", "--set", f"dram={name}", "--json")[1])
        found[name] = answer["analytic"]["metrics"]["packet_latency"]
    spec = with_values(default_processor(), {"dram": "HBM3"})
    assert int(spec.channels) == 4 and spec.dram.geometry.block_bytes == 64 and spec.dram.preset == "HBM3"
    assert found["HBM3"] == pytest.approx(solve(spec).packet_latency)
    assert found["DDR5-6400"] != found["HBM3"]
    refused = run("solve", "--set", "dram=DDR9")[2]
    assert "dram must be one of" in refused and "LPDDR5-6400" in refused
    few = ("--vary", "dram=DDR4-3200,HBM3", "--set", "link_width=16", "--budget", "0", "--out", "memory")
    code, out, err = run("explore", *few)
    assert (code, err) == (0, "") and "do not follow the technology" not in out
    assert load_study(tmp_path / "memory")[0].space.spec(1) == with_values(
        default_processor(), {"dram": "HBM3"}
    )
    own = (
        "--set",
        "dram=gem5-DDR2-800",
        "--set",
        "alloc_trial_count=1",
        "--vary",
        "link_width=8,16",
        "--budget",
        "0",
    )
    said = " ".join(run("explore", *own)[1].split())
    assert "area and energy of the DRAM interface do not follow the technology" in said
