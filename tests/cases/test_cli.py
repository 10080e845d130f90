"""The command line on one system: answers in every format, errors in one line, broken installations."""

import csv
import io
import json
import shlex

import numpy as np
import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import qmodels as qm
from cases.cli.answers import swept_answer
from cases.cli.main import app
from cases.published import CASES
from cases.study.goals import along_axes, default_processor
from optimize import replace_fields
from qmodels import PacketProcessor, solve
from qmodels.systems.spec.conditions import plain, quantity
from qmodels.systems.spec.fields import array_fields
from qmodels.systems.spec.metrics import METRICS, is_relative

NAMES = PacketProcessor.metric_names.both

COMMANDS = [
    "explore", "solve", "simulate", "compare", "size", "describe", "init", "schema", "show", "reproduce",
]  # fmt: skip

BRIEF = ["--packets", "1000", "--replications", "2"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_no_arguments_show_the_help(run, arguments):
    code, out, err = run(*arguments)
    assert code == 0
    assert all(command in out for command in COMMANDS)
    assert err == ""


def test_solve_prints_every_metric_with_its_unit(run):
    code, out, err = run("solve")
    assert (code, err) == (0, "")
    for name in NAMES:
        line = next(line for line in out.splitlines() if line.strip().startswith(name))
        assert METRICS[name].unit == "1" or f" {METRICS[name].unit}" in line
    assert out.startswith("packet processor, analytic\n")
    assert "\n  stable; bottleneck: dram buses\n" in out
    assert "Where the time goes" in out


LOADS = {0.4: True, 2.6: False}
"""Load factors of the default case: 17 % of the busiest resource, and more than it can."""


@pytest.mark.parametrize("load", LOADS)
def test_solve_states_the_error_that_applies_in_every_format(run, load):
    """The numbers are those of the answer, and change with the load."""
    result = solve(replace_fields(default_processor(), {"load_factor": load}))
    assert bool(result.validated) is LOADS[load]
    errors = {name: error.mean for name, error in result.error.items()}
    words = ("solve", "--set", f"load_factor={load}")
    text = run(*words)[1]
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(run(*words, "--csv")[1]))}
    answer = json.loads(run(*words, "--json")[1])
    assert answer["analytic"]["measured_error"] == pytest.approx(errors, nan_ok=True)
    assert answer["analytic"]["validated"] is LOADS[load]
    assert set(answer["error_units"]) == set(errors)
    for name in NAMES:
        line = next(line for line in text.splitlines() if line.strip().startswith(name + " "))
        assert rows[name]["validated"] == str(LOADS[load])
        if name not in errors:
            assert rows[name]["error"] == rows[name]["error_unit"] == ""
            continue
        unit = "%" if is_relative(name) else "points"
        assert (rows[name]["error_unit"], answer["error_units"][name]) == (unit, unit)
        assert float(rows[name]["error"]) == pytest.approx(errors[name])
        low, high = result.interval(name)
        assert (float(rows[name]["low"]), float(rows[name]["high"])) == pytest.approx((low, high))
        assert line.endswith(
            f"simulated {plain(low)} to {plain(high)} (90 %)" if low < high else "simulated alike"
        )
    assert ("not measured: load is" in text) is not LOADS[load]


def test_a_sweep_states_the_error_of_every_point(run):
    words = ("solve", "--set", "load_factor=[0.4, 1.8, 9]")
    result = solve(replace_fields(default_processor(), {"load_factor": np.array([0.4, 1.8, 9])}))
    rows = list(csv.DictReader(io.StringIO(run(*words, "--csv")[1])))
    answer = json.loads(run(*words, "--json")[1])
    for name, error in result.error.items():
        errors = np.nan_to_num(error.mean, nan=np.inf)
        unit = "%" if is_relative(name) else "points"
        assert [float(row[f"error: {name} [{unit}]"]) for row in rows] == pytest.approx(errors)
        assert answer["analytic"][f"error: {name}"][:2] == pytest.approx(errors[:2])
        assert answer["units"][f"error: {name}"] == unit
    assert [row["validated"] for row in rows] == ["True", "True", "False"]
    lines = run(*words)[1].splitlines()[2:5]
    for k, line in enumerate(lines[:2]):
        assert f" ± {result.error['packet_latency'].mean[k]:.1f} %" in line
    assert "inf " in lines[2]
    assert [line.split()[-1] for line in lines] == ["buses", "buses", "overloaded"]


@given(
    loads=st.lists(st.sampled_from([0.1, 0.5, 1.0, 1.5, 9.0]), min_size=2, max_size=4, unique=True),
    channels=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=2, max_size=3, unique=True),
    full=st.booleans(),
)
@settings(max_examples=10, deadline=None)
def test_the_text_of_a_sweep_is_a_screen_wide_and_with_full_has_every_metric(loads, channels, full):
    swept = {"load_factor": np.array(loads), "dram.channels": np.array(channels)}
    result = solve(along_axes(replace_fields(default_processor(), swept)))
    text = swept_answer(array_fields(result.spec), result, full=full).text()
    tables = text.split("\n\nTrace ")[0].split("\n\nDoubts ")[0]
    assert max(map(len, tables.splitlines())) <= 100
    assert all(name.replace("_", " ") in tables for name in NAMES) if full else "--full, --csv" in tables
    assert full or "latency p99" in tables


def test_what_speaks_against_a_sweep_is_said_with_its_systems(run):
    words = ("solve", "--set", "load_factor=[0.4, 2.35]")
    (outside,) = solve(replace_fields(default_processor(), {"load_factor": 2.35})).notes
    assert outside.startswith("not measured: load is ")
    text = " ".join(run(*words)[1].split())
    assert f"{outside} (1 of 2 systems)" in text
    said = json.loads(run(*words, "--json")[1])["analytic"]["doubts"]
    assert said == ["", outside]
    assert [row["doubts"] for row in csv.DictReader(io.StringIO(run(*words, "--csv")[1]))] == said
    one = ("solve", "--set", "load_factor=2.35")
    assert json.loads(run(*one, "--json")[1])["analytic"]["doubts"] == [outside]
    assert next(csv.DictReader(io.StringIO(run(*one, "--csv")[1])))["doubts"] == outside


def test_a_part_of_what_a_trace_brings_cannot_be_set(run):
    code, _, err = run("solve", "--set", "workload.sizes.bytes=64")
    assert (code, err.count("\n")) == (2, 1)
    assert "workload.sizes.bytes cannot be set: workload.sizes follows from the rest" in err


def test_two_swept_fields_are_solved_in_all_combinations(run):
    words = ("solve", "--set", "channels=[1, 2, 4]", "--set", "load_factor=[0.5, 1.0]")
    code, out, err = run(*words, "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert (code, err) == (0, "")
    assert sorted((int(row["channels"]), float(row["load_factor"])) for row in rows) == [
        (channels, load) for channels in (1, 2, 4) for load in (0.5, 1.0)
    ]
    for row in rows:
        one = {"channels": int(row["channels"]), "load_factor": float(row["load_factor"])}
        alone = solve(replace_fields(default_processor(), one))
        assert float(row["saturation_data_rate [Gb/s]"]) == pytest.approx(alone.saturation_data_rate, 1e-4)
    # Of one length they are not paired: the answer does not depend on how many values there are.
    equal = run("solve", "--set", "channels=[1, 2]", "--set", "load_factor=[0.5, 1.0]", "--csv")[1]
    assert len(list(csv.DictReader(io.StringIO(equal)))) == 4
    both = run("solve", "--set", "noc.clock_ghz=[1, 2]", "--set", "llc.clock_ghz=[1, 2]", "--csv")[1]
    assert both.startswith("noc.clock_ghz,llc.clock_ghz,packet_latency [ns],")


def test_solve_json(run):
    code, out, _ = run("solve", "--json")
    answer = json.loads(out)
    assert code == 0
    assert set(answer["analytic"]["metrics"]) == set(answer["units"]) == set(NAMES)
    assert answer["analytic"]["stable"] is True
    parts = answer["analytic"]["latency_parts"]
    assert sum(parts.values()) == pytest.approx(answer["analytic"]["metrics"]["packet_latency"])


def test_solve_csv(run):
    _, out, _ = run("solve", "--csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["metric"] for row in rows] == list(NAMES)
    assert [row["unit"] for row in rows] == [METRICS[name].unit for name in NAMES]


def test_two_swept_fields_that_a_spec_compares_are_solved_in_all_combinations(run):
    words = ("solve", "--set", "dram.refresh_interval_cycles=[6240, 3120]", "--csv")
    code, out, _ = run(*words, "--set", "dram.refresh_cycles=[100, 200, 300]")
    assert code == 0 and len(out.splitlines()) == 7
    code, _, error = run(*words, "--set", "dram.refresh_cycles=[100, 200, 2000]")
    assert code == 2 and "dram.refresh_interval_cycles must be at least twice" in error


def test_overload_is_an_answer(run):
    code, out, err = run("solve", "--set", "load_factor=4")
    assert (code, err) == (0, "")
    assert "\n  overloaded; bottleneck: " in out
    fullest = out[out.index("Resources by load") :].splitlines()[2]
    assert float(fullest.rstrip(" %").split()[-1]) > 100
    assert "inf" in out
    answer = json.loads(run("solve", "--set", "load_factor=4", "--json")[1])["analytic"]
    assert answer["stable"] is False
    assert answer["metrics"]["packet_latency"] is None
    assert answer["traffic_intensity"][answer["bottleneck"]] > 1 >= max(answer["utilization"].values())


def test_settings_take_a_leaf_or_a_path(run):
    leaf = run("solve", "--json", "--set", "link_width=32")[1]
    assert leaf == run("solve", "--json", "--set", "noc.link_width=32")[1]
    assert leaf != run("solve", "--json")[1]


def test_a_sweep_is_a_table(run):
    code, out, _ = run("solve", "--csv", "--set", "load_factor=[0.5, 1.0, 9]", "--plot", "sweep.png")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == 0
    assert [float(row["load_factor"]) for row in rows] == [0.5, 1.0, 9.0]
    assert [row["stable"] for row in rows] == ["True", "True", "False"]
    assert rows[2]["packet_latency [ns]"] == "inf"
    text = run("solve", "--set", "load_factor=[0.5, 1.0, 9]")[1]
    assert [line.split()[0] for line in text.splitlines()[2:5]] == ["0.5", "1", "9"]
    answer = json.loads(run("solve", "--json", "--set", "load_factor=[0.5, 9]")[1])["analytic"]
    assert answer["packet_latency"][1] is None
    assert answer["stable"] == [True, False]


def test_spec_file_and_trace_are_used(run, toml, trace):
    plain = json.loads(run("solve", toml, "--json")[1])["analytic"]["metrics"]
    assert plain["data_rate"] == pytest.approx(30)
    recorded = json.loads(run("solve", toml, "--trace", trace, "--json")[1])["analytic"]["metrics"]
    assert recorded["data_rate"] == pytest.approx(30)
    assert recorded["packet_latency"] != plain["packet_latency"]


def test_simulate(run, toml):
    code, out, _ = run("simulate", toml, *BRIEF, "--json")
    answer = json.loads(out)["simulated"]
    assert code == 0
    assert (answer["effort"]["packets per replication"], answer["replications"], answer["stable"]) == (
        1000,
        2,
        True,
    )
    for estimate in answer["metrics"].values():
        assert estimate["low"] <= estimate["best"] <= estimate["high"]
    assert (
        run("simulate", toml, *BRIEF, "--workers", "1", "--csv")[1]
        == run("simulate", toml, *BRIEF, "--csv")[1]
    )
    text = run("simulate", toml, *BRIEF)[1]
    assert "PacketProcessor, simulated: 2 replications, 1000 packets per replication" in text
    assert "0.95 intervals" in text and "\n  stable; bottleneck: " in text


def test_runs_made_elsewhere_are_laid_beside_the_model(run, toml, tmp_path):
    head = "channels,link_width,packet_latency [ns],packet_latency_low,packet_latency_high"
    rows = ["2,16,1e9,1,1e10", "4,16,1e-9,1e-10,2e-9"]
    (tmp_path / "runs.csv").write_text("\n".join([head, *rows]))
    words = ["compare", str(toml), "--reference", str(tmp_path / "runs.csv")]
    code, out, _ = run(*words)
    assert code == 0 and "model beside reference at 2 points" in out and "1/2" in out
    (first, second) = (line.split() for line in out.splitlines()[1:3])
    assert first[0] == "2" and first[-1] == "-100.0%" and second[0] == "4"
    model = json.loads(run("solve", str(toml), "--set", "channels=4", "--set", "link_width=16", "--json")[1])
    assert float(second[1]) == pytest.approx(model["analytic"]["metrics"]["packet_latency"], rel=1e-3)
    code, _, err = run(*words, "--set", "dram.channels=2")
    assert code == 2 and "dram.channels is set by --set and is a column of runs.csv" in err
    (tmp_path / "runs.csv").write_text(head.replace("link_width", "width") + "\n" + "\n".join(rows))
    assert run(*words)[0] == 2


@pytest.mark.parametrize(
    ("column", "factor"),
    [
        ("packet_latency", 1.0),
        ("packet_latency [ns]", 1.0),
        ("packet_latency_us", 1e-3),
        ("packet_latency [us]", 1e-3),
        ("packet_latency_ms", 1e-6),
    ],
)
def test_the_units_of_runs_made_elsewhere_are_converted(run, toml, tmp_path, column, factor):
    head = f"dram.channels,noc.link_width [bytes],workload.offered_gbps [Mb/s],{column}"
    (tmp_path / "runs.csv").write_text(f"{head}\n2,16,20e3,{400 * factor}\n4,16,30e3,{300 * factor}\n")
    code, out, err = run("compare", toml, "--reference", "runs.csv", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["reference"] == pytest.approx([400, 300])
    one = run("solve", toml, "--set", "channels=4", "--set", "offered_gbps=30", "--json")[1]
    model = json.loads(one)["analytic"]["metrics"]["packet_latency"]
    assert found["model"][1] == pytest.approx(model)


@pytest.mark.parametrize(
    ("columns", "word"),
    [
        ("packet_latency [furlongs]", "got ns in the model and furlongs in the reference"),
        ("packet_latency [mm2]", "got ns in the model and mm2 in the reference"),
        ("packet_latency,packet_latency_us", "columns must name packet_latency once"),
        (
            "packet_latency_us,packet_latency_low [ns],packet_latency_high_us",
            "'packet_latency_low [ns]' must be in the unit of 'packet_latency_us'",
        ),
        ("link_width [us],packet_latency", "noc.link_width is in bytes and takes bytes, got 'us'"),
    ],
)
def test_a_unit_of_runs_made_elsewhere_that_does_not_fit_is_named(run, toml, tmp_path, columns, word):
    values = ",".join("16" for _ in columns.split(","))
    (tmp_path / "runs.csv").write_text(f"channels,{columns}\n2,{values}\n4,{values}\n")
    code, out, err = run("compare", toml, "--reference", "runs.csv")
    assert (code, out, err.count("\n")) == (2, "", 1) and word in err


def test_compare(run, toml):
    code, out, _ = run("compare", toml, *BRIEF, "--json", "--plot", "parts.svg")
    answer = json.loads(out)
    assert code == 0
    row = answer["comparison"]["packet_latency"]
    assert row["error"] == pytest.approx(row["model"] - row["reference"]["best"])
    assert row["model"] == answer["analytic"]["metrics"]["packet_latency"]
    rows = list(csv.DictReader(io.StringIO(run("compare", toml, *BRIEF, "--csv")[1])))
    assert float(rows[0]["simulated"]) == row["reference"]["best"]
    text = run("compare", toml, *BRIEF, "--full")[1]
    for words in (
        "analytic",
        "simulated",
        "interval",
        "Resources by load",
        "Where the time goes",
        "stated error",
    ):
        assert words in text


@pytest.mark.parametrize("spec", ["bundled", "noc", "dram", "queueing-network"])
def test_a_comparison_fits_on_a_screen_and_says_what_its_json_says(run, tmp_path, spec):
    words = [] if spec == "bundled" else [tmp_path / "spec.toml"]
    for path in words:
        path.write_text(run("init", spec)[1])
    brief = [*words, "--packets", "2000", "--replications", "2"]
    code, text, err = run("compare", *brief)
    lines = text.splitlines()
    assert (code, err) == (0, "")
    assert len(lines) <= 25 and max(map(len, lines)) <= 80
    rows = json.loads(run("compare", *brief, "--json")[1])["comparison"]
    name = next(iter(rows))
    design = qm.read(words[0]) if words else default_processor()
    shown = quantity(design, name, rows[name]["model"])
    assert shown in text and "interval" in text and "--full" in lines[-1]


def test_simulated_trace(run, trace):
    code, out, err = run("simulate", "--trace", trace, *BRIEF, "--csv")
    assert (code, err) == (0, "")
    assert out.startswith("metric,unit,simulated,low,high\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["solve", "--set", "link_width=0"], "noc.link_width must be a whole number >= 1, got 0"),
        (["solve", "--set", "load_factor=-1"], "workload.load_factor must be finite and > 0, got -1"),
        (["solve", "--set", "load_factor=nan"], "workload.load_factor must be finite and > 0, got nan"),
        (["solve", "--set", "channels=17"], "dram.channels must be a whole number from 1 to 16, got 17"),
        (["solve", "--set", "initiators=8", "--set", "channels=9"], "dram.channels must leave a node"),
        (["solve", "--set", "interleaving_step=0"], "dram.interleaving_step must be a whole number from 1"),
        (["solve", "--set", "chanels=4"], "has no field 'chanels'; did you mean 'dram.channels' or "),
        (["solve", "--set", "trials=3"], "did you mean 'cost.trial' or 'free_list.alloc_trial_count'?"),
        (["solve", "--set", "clock_ghz=1"], "field 'clock_ghz' is ambiguous: it may be "),
        (["solve", "--set", "channels"], "--set must be field=value, got 'channels'"),
        (["solve", "--set", "=4"], "--set must be field=value, got '=4'"),
        (["solve", "--set", "channels=many"], "dram.channels must be a number or a list of numbers"),
        (["solve", "missing.toml"], "missing.toml: cannot be read: No such file or directory"),
        (["solve", "--trace", "missing.pcap"], "missing.pcap: cannot be read: No such file or directory"),
        (["solve", "--json", "--csv"], "--json and --csv exclude each other"),
        (["solve", "--plot", "answer.gif"], "plot must be a file that ends in .png, .svg, .pdf, got"),
        (["solve", "--plot", "no/where.png"], "no/.where.png.part: No such file or directory"),
        (
            [*"solve --set channels=[1,2] --set banks=[4,8] --set slices=[1,2] --plot a.png".split()],
            "--plot needs one design, or one or two swept fields, got dram.channels, dram.banks, llc.slices",
        ),
        (["simulate", "--packets", "10"], "packets must be a whole number >= 1000, got 10"),
        (["simulate", "--set", "channels=[1, 2]"], "dram.channels must be one number here, got [1, 2]"),
        (["simulate", "--replications", "1"], "replications must be a whole number >= 2, got 1"),
        (["simulate", "--packets", "many"], "Invalid value for '--packets'"),
        (["explore", "--workers", "0"], "workers must be a whole number >= 1, got 0"),
        (["explore", "--packets", "10"], "packets must be a whole number >= 1000, got 10"),
        (["explore", "--set", "link_width=0"], "noc.link_width must be a whole number >= 1, got 0"),
        (["explore", "--set", "load_factor=[1, 2]"], "load_factor must be one number in an exploration"),
        (["explore", "--budget", "nan"], "--budget must be a time such as 60s, 2min or 0, got 'nan'"),
        (["explore", "--budget", "-3s"], "--budget must be a time such as 60s, 2min or 0, got '-3s'"),
        (["explore", "--budget", "20"], "got '20'; a limit of the cost is --subject-to 'cost <= 20mm2'"),
        (["explore", "--minimize", "cots"], "got 'cots'; did you mean 'cost'?"),
        (["explore", "--minimize", "cost", "--maximize", "cost"], "must be minimised or maximised, not both"),
        (["explore", "--subject-to", "cost < 2us"], "cost is in mm2 and takes um2, mm2, cm2, got 'us'"),
        (
            ["explore", "--subject-to", "cost < 1", "--subject-to", "cost > 2"],
            "the conditions on cost contradict each other: at least 2 mm2 and at most 1 mm2",
        ),
        (["explore", "--vary", "chanels=2"], "has no field 'chanels'; did you mean 'dram.channels' or "),
        (
            ["explore", "--vary", "channels=2,4", "--vary", "dram.channels=8"],
            "--vary must name a field once, got 'dram.channels' twice",
        ),
        (["reproduce", "stnoc2"], f"case must be one of {', '.join(CASES)}, got 'stnoc2'"),
        (["reproduce", "dmq"], ", got 'dmq'; did you mean 'dqm'?"),
        (["reproduce"], "Missing argument"),
        (["reproduce", "dqm", "--json", "--csv"], "--json and --csv exclude each other"),
        (["reproduce", "dqm", "--trace", "missing.pcap", "--out", "new"], "missing.pcap: cannot be read: "),
        (["show", ".", "--design", "1"], "holds no study: study.json cannot be read: No such file"),
        (["show", "."], "Missing option '--design'"),
        (["solve", "--bogus"], "No such option: --bogus"),
        (["slove"], "No such command 'slove'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_no_file(run, tmp_path, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("qmodels: error: ")
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[dram]\nchanels = 4\n", "unknown key dram.chanels; did you mean 'channels'?"),
        ("[dram]\nchannels = '4'\n", "dram.channels must be a number or a list of numbers, got '4'"),
        ("[dram\n", "router.toml: not valid TOML: "),
        ("[workload]\nsizes = 'mix'\n", "workload.sizes.law must be one of"),
    ],
)
def test_bad_spec_files(run, tmp_path, content, message):
    (tmp_path / "router.toml").write_text(content)
    code, out, err = run("explore", "router.toml")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["router.toml"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (
            b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(12) + b"\x01\x00\x00\x00" + bytes(20),
            "1 packets read: cut off",
        ),
        (
            b"time,bytes\n0.0,64\nnow,64\n",
            "line 3",
        ),
    ],
)
def test_bad_traces(run, tmp_path, content, message):
    (tmp_path / "capture").write_bytes(content)
    code, out, err = run("explore", "--trace", "capture")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "capture: " in err
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["capture"]


def single_options():
    """Every command with each of its options that take one value."""
    commands = typer.main.get_command(app).commands
    for name, command in commands.items():
        for option in command.params:
            if not (getattr(option, "multiple", True) or getattr(option, "is_flag", True)):
                yield name, option.opts[0]


@pytest.mark.parametrize(("command", "option"), list(single_options()))
def test_an_option_that_takes_one_value_is_not_given_twice_in_silence(run, command, option):
    code, out, err = run(command, option, "1", f"{option}=2")
    assert (code, out) == (2, "") and f"{option} must be given once to {command}, got it 2 times" in err


SILENT = {
    "solve --trace A --set sizes=imix": "workload.sizes cannot be set: it is the trace's own; leave out",
    "solve --trace A --set arrivals=poisson": "workload.arrivals cannot be set: it is the trace's own",
    "explore --trace A --trace B --set workload.sizes=imix": "workload.sizes cannot be set",
    "solve --set sizes=imix": "it is the trace's own; set workload.arrivals too, such as poisson",
    "solve --interface 1": "--interface and --columns need a --trace",
    "solve --trace A --interface 1": "interface must be left out but for pcapng and erf files",
    "solve --set channels=2 --set channels=4": "--set must name a field once, got 'channels' twice",
    "solve --set channels=2 --set dram.channels=4": "--set must name a field once, got 'dram.channels' twice",
    "solve --set offered_gbps=3us": "workload.offered_gbps is in Gb/s and takes kb/s, Mb/s, Gb/s, Tb/s, kB/s",
    "simulate --packets 1000 --option packets=2000": "--option must name a field once, got 'packets' twice",
    "compare --option saturation=1 --option saturation=2": "--option must name a field once",
    "compare --reference runs.csv --seed 3": "--seed must be left out with --reference",
    "compare --reference runs.csv --seed 0": "--seed must be left out with --reference",
    "compare --reference runs.csv --replications 8": "--replications must be left out with --reference",
    "compare --workers 1 --packets 2000 --reference runs.csv": "--packets, --workers must be left out",
    "compare --option seed=1": "simulate has no option 'seed' for a PacketProcessor",
    "explore --budget 0 --seed 1": "--seed must be left out with --budget 0, which allows no simulation",
    "explore --budget 0 --seed 0": "--seed must be left out with --budget 0",
    "explore --budget 0s --packets 5000": "--packets must be left out with --budget 0",
    "explore --budget 0 --replications 4": "--replications must be left out with --budget 0",
    "explore --budget 0 --workers 2": "--workers must be left out with --budget 0",
    "solve --full": "--full is of the text of a sweep: the answer for one system is shown whole",
    "solve --full --csv --set load_factor=[1,2]": "--full is of the text: leave it out",
    "explore --full --json": "--full is of the text: leave it out with --json and --csv",
    "explore --set channels=2 --vary channels=2,4": "channels must be set or varied, got both",
    "explore --set link_width=[8,16] --vary channels=2,4": "noc.link_width must be one number beside --vary",
    "explore --minimize cost --minimize area": "minimize must name a metric once, got 'cost' twice",
    "size channels --until p99<2us --set load_factor=[1,2]": "workload.load_factor must be one number here",
    "size channels --until p99<2us --trace A": "No such option: --trace",
    "serve --no-browser --set load_factor=[1,2]": "workload.load_factor must be one number here",
    "diff --b load_factor=[1,2]": "workload.load_factor must be one number here, got [1, 2]; `solve` takes",
    "diff --a channels=4,channels=2": "dram.channels must be a number or a list of numbers",
    "diff --a 'channels=4 channels=2'": "--set must name a field once, got 'channels' twice",
    "diff --set channels=2 --a channels=4": "--set must name a field once, got 'channels' twice",
    "trace A A": "trace must be given each file once, got A, A",
    "reproduce stnoc --trace A": "trace must be left out, as this case has no packets",
    "reproduce llc3d/slices --set slices=2 --set slices=4": "--set must name a field once",
    "conclusions llc3d --set slices=2 --set slices=4": "--set must name a field once",
    "conclusions --set slices=2": "--set needs one CASE",
    "show . --design 1 --budget 0": "No such option: --budget",
}
"""Options that would have no effect, and the word on each."""


@pytest.mark.parametrize("words", SILENT)
def test_nothing_is_ignored_in_silence(run, trace, tmp_path, words):
    for name in "AB":
        (tmp_path / name).write_bytes(trace.read_bytes())
    before = set(tmp_path.iterdir())
    code, out, err = run(*shlex.split(words))
    assert (code, out, err.count("\n")) == (2, "", 1) and SILENT[words] in err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("offered_gbps=2GB/s", "offered_gbps=16"),
        ("hold_ns=1us", "hold_ns=1000"),
        ("load_factor=50%", "load_factor=0.5"),
    ],
)
def test_a_quantity_is_set_in_the_unit_of_its_field(run, said, meant):
    assert run("solve", "--csv", "--set", said) == run("solve", "--csv", "--set", meant)


def test_a_replication_of_a_trace_says_that_it_plays_all_of_it(run, trace):
    assert "each replication plays whole rotations of it" in run("simulate", "--trace", trace, *BRIEF)[1]


def test_two_traces_of_one_design_are_refused_with_who_takes_them(run, tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("1,64\n2,64\n")
    code, _, err = run("solve", "--trace", "a.csv", "--trace", "b.csv")
    assert code == 2 and "`explore` and `diff` take several" in err
