"""What a notebook and a shell expect: pictures and bars without magic, names that complete, a version."""

import pickle
import subprocess
import sys
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest

import qmodels as qm
from cases.cli.main import main
from optimize import tornado
from validate.campaigns import run as progress


def test_metrics_complete_as_attributes_and_as_keys():
    answer = qm.solve(qm.Noc(injection_rate=0.02))
    assert {"packet_latency", "saturation_rate"} <= set(dir(answer))
    assert answer._ipython_key_completions_() == list(answer.metrics)


def test_a_metric_of_other_places_is_answered_with_those_that_are_there():
    law = qm.laws.Exponential(mean=1.0)
    one, two = (
        qm.solve(qm.tandem(arrivals=qm.laws.Exponential(mean=2.0), services=[law] * n)) for n in (1, 2)
    )
    with pytest.raises(KeyError, match=r"no metric 'mean_response_time'; there is mean_response_time\["):
        two["mean_response_time"]
    with pytest.raises(KeyError, match=r"no metric 'mean_response_time\[x\]'; there is mean_response_time"):
        one["mean_response_time[x]"]


def test_an_error_that_was_measured_elsewhere_says_so():
    beyond = qm.solve(qm.PacketProcessor(workload=qm.Workload(load_factor=2.35)))
    assert any(line.startswith("not measured: load is 0.98") for line in beyond.remarks())
    assert not any(line.startswith("not measured") for line in qm.solve(qm.PacketProcessor()).remarks())


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("qmodels repr", "reproduce"),
        ("qmodels reproduce st", "stnoc"),
        ("qmodels init llc3d/sl", "llc3d/slices"),
        ("qmodels describe dr", "dram"),
    ],
)
def test_a_shell_completes_commands_and_names(monkeypatch, capsys, words, found):
    monkeypatch.setenv("_QMODELS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    assert found in capsys.readouterr().out.split()


def test_pictures_are_shown_without_magic():
    rng = np.random.default_rng(1)
    trace = qm.traffic.Trace(
        times_ns=np.cumsum(rng.exponential(100, 4000)), bytes=np.full(4000, 64), source="made"
    )
    noc = qm.Noc(injection_rate=0.02)
    bars = tornado(
        noc, lambda one: {"x": qm.solve(one).packet_latency}, {"packet_bytes": (64, 128)}, metric="x"
    )
    for picture in (trace.description.plot(), noc.topology.plot(), qm.solve(noc).plot(), bars.plot()):
        assert picture._repr_png_().startswith(b"\x89PNG")


def test_explorations_spaces_and_sizes_are_tables():
    space = qm.Space(qm.PacketProcessor(), channels=[2, 4], link_width=[8, 16])
    front = qm.explore(space, minimize=["area", "p99"])
    found = qm.size(qm.PacketProcessor(), "channels", "p99 < 2us")
    for one, said in ((front, "packet_latency_p99"), (space, "2, 4"), (found, "Traffic: 40 Gb/s")):
        assert one._repr_html_().startswith("<table>") and said in one._repr_html_()
    assert front._repr_html_().count("<tr>") == 1 + len(front.front)
    assert {"title", "saved_as", "main", "model"}.isdisjoint(front.to_pandas().columns)


def test_metrics_go_by_the_ends_of_their_names():
    noc = qm.Noc(injection_rate=0.02)
    for answer in (qm.solve(noc), qm.simulate(noc, cycles=2000, replications=2)):
        assert answer.metrics["latency"] is answer.metrics["packet_latency"]
        with pytest.raises(KeyError, match="nosuch"):
            answer.metrics["nosuch"]
        assert pickle.loads(pickle.dumps(answer)).metrics["latency"] == answer.metrics["packet_latency"]


def test_a_sweep_is_a_line_with_its_band_and_two_are_a_heat_map():
    processor = qm.PacketProcessor()
    line = qm.solve(processor.replace(load_factor=np.array([0.5, 1.0, 9.0]))).plot().axes[0]
    assert len(line.lines[0].get_xdata()) == 2 and len(line.collections) == 1  # one is overloaded
    load, channels = np.array([[0.5], [9.0]]), np.array([[2, 4, 8]])
    answer = qm.solve(processor.replace(load_factor=load, channels=channels))
    heat, bar = answer.plot().axes
    drawn = heat.images[0].get_array()
    assert np.asarray(drawn)[0] == pytest.approx(answer.packet_latency[0]) and drawn.mask[1].all()
    assert [text.get_text() for text in heat.texts].count("overloaded") == 3
    assert (heat.get_xlabel(), bar.get_ylabel()) == ("dram.channels", "packet latency [ns]")
    # Swept together they are one line.
    both = qm.solve(processor.replace(load_factor=np.array([0.5, 1.0]), channels=np.array([2, 4])))
    assert not both.plot().axes[0].images


@pytest.mark.parametrize("kernel", [True, False])
def test_a_bar_under_the_cell_of_a_notebook(monkeypatch, capsys, kernel):
    shown = []
    place = SimpleNamespace(update=shown.append)
    shell = SimpleNamespace(kernel=3) if kernel else SimpleNamespace()
    screen = SimpleNamespace(HTML=str, display=lambda _, display_id: place)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=screen))
    monkeypatch.setitem(sys.modules, "IPython.display", screen)
    clock = iter([0.0, 0.5, 10.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    with progress.TerminalProgress() as bar:
        bar(0, 8)
        bar(2, 8)
    expected = ["<progress value='2' max='8'></progress> runs 2/8 0.2/s 30 s left", ""]
    assert shown == (expected if kernel else [])
    assert capsys.readouterr().err == ""


def test_python_m_qmodels_is_the_command():
    for command in (["-m", "qmodels"], ["-m", "cases.cli.main"]):
        done = subprocess.run(
            [sys.executable, *command, "--version"], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (
            0,
            f"qmodels {version('qmodels-toolkit')}\n",
            "",
        )
