"""A design changed by hand, without a browser: every field of every kind, the same numbers as solve."""

import json
import sys
import time
from dataclasses import replace

import pytest

import qmodels as qm
from cases.systems import system_files
from cases.what_if import session as sessions
from cases.what_if.controls import changed, controls
from cases.what_if.session import Session, plain
from qmodels.systems.spec.fields import is_branch, walk
from qmodels.systems.spec.kind import kinds
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml

KINDS = tuple(kinds())


@pytest.fixture(scope="module")
def starters():
    return {name: kind.starter() for name, kind in kinds().items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_a_control_that_says_what_it_is(starters, kind):
    """A field without one may only be in a part that is written as one text."""
    spec = starters[kind]
    known = controls(spec)
    texts = tuple(f"{path}." for path, one in known.items() if one.type == "text")
    for path, value, _ in walk(spec):
        assert is_branch(value) or {path, f"{path}.kind"} & set(known) or path.startswith(texts), path
    # Fields of classes are explained; members of lists are not fields.
    assert all(one.meaning for path, one in known.items() if "." not in path)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_control_shows_is_what_the_field_is(starters, kind):
    spec = starters[kind]
    for path, one in controls(spec).items():
        assert changed(spec, {path: one.value}) == spec, path
        json.dumps(one.data(), allow_nan=False)


@pytest.mark.in_ci(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_change_gives_the_numbers_of_solve(starters, kind):
    """Of fields all over the spec, against the design that a file with the field set describes."""
    spec = starters[kind]
    session = Session(spec)
    able = [one for one in controls(spec).values() if one.neighbours()]
    taken = 0
    for one in able[:: max(1, len(able) // 5)]:
        text = one.neighbours()[-1]
        state = session.change({one.path: text})
        if "error" in state:
            with pytest.raises(ValueError, match="must|needs|not"):
                qm.solve(spec_from_toml(to_toml(spec, kind=True), {one.path: _value(one, text)}))
            session.change({one.path: one.value})
            continue
        other = spec_from_toml(to_toml(spec, kind=True), {one.path: _value(one, text)})
        assert session.spec == other, one.path
        answer = qm.solve(other)
        assert {name: m["value"] for name, m in state["answer"]["metrics"].items()} == {
            name: plain(value) for name, value in answer.metrics.items()
        }
        assert state["answer"]["stable"] == bool(answer.stable)
        session.undo()
        assert session.spec == spec
        taken += 1
    assert taken >= 2


def _value(one, text):
    return text if one.type == "choice" else json.loads(text)


def test_a_top_level_field_is_dataclasses_replace(starters):
    session = Session(starters["noc"])
    session.change({"link_width": "32"})
    assert session.spec == replace(starters["noc"], link_width=32)


@pytest.mark.parametrize("name", [*KINDS, *system_files()])
def test_python_and_toml_make_the_design_again(starters, name):
    files = system_files()
    spec = spec_from_toml(files[name]) if name in files else starters[name]
    session = object.__new__(Session)
    session._history, session._at = [spec], 0
    found: dict[str, object] = {}
    exec(session.export()["python"].replace("answer = qm.solve(spec)", ""), found)
    assert found["spec"] == spec == spec_from_toml(session.export()["toml"])


@pytest.mark.parametrize(
    ("kind", "path", "text", "words"),
    [
        ("noc", "link_width", "0", "link_width must be a whole number >= 1, got 0.0"),
        ("noc", "link_width", "wide", "link_width must be a whole number, got 'wide'"),
        ("noc", "injection_rate", "[0.01, 0.02]", "injection_rate must be one number here, got [0.01, 0.02]"),
        ("noc", "routing", "?", "routing must be one of"),
        ("noc", "process.kind", "?", "process.kind must be one of"),
        ("noc", "linkwidth", "8", "Noc has no field 'linkwidth'"),
        ("queueing-network", "classes.job.arrivals.kind", "none", "classes must have arrivals or a"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_the_last_good_answer_stays(starters, kind, path, text, words):
    session = Session(starters[kind])
    good = session.state()
    state = session.change({path: text})
    assert state["error"].startswith(words) and "\n" not in state["error"]
    assert state["refused"][path] == {"text": text, "error": state["error"]}
    assert state["answer"] == good["answer"] and state["version"] == good["version"]
    assert session.spec == starters[kind]


def test_two_fields_that_only_fit_together_are_set_one_by_one(starters):
    session = Session(starters["noc"])
    assert "traffic must be for the topology's 32 nodes" in session.change({"topology.nodes": "32"})["error"]
    state = session.change({"traffic.nodes": "32"})
    assert "error" not in state and state["refused"] == {}
    assert (session.spec.topology.nodes, session.spec.traffic.nodes) == (32, 32)
    # What is refused for good does not stand in the way of others.
    session.change({"link_width": "none"})
    assert session.change({"packet_bytes": "64"})["refused"].keys() == {"link_width"}
    assert session.spec.packet_bytes == 64
    withdrawn = session.undo()
    assert withdrawn["refused"] == {} and session.spec.packet_bytes == 64
    session.undo()
    assert session.spec.packet_bytes == 128


def test_history_and_the_pinned_design(starters):
    session = Session(starters["noc"])
    for text, together in (("17", False), ("18", True), ("19", True), ("32", False)):
        session.change({"link_width": text}, together)
    assert session.undo()["undo"] and session.spec.link_width == 19
    assert not session.undo()["undo"] and session.spec.link_width == 16
    assert session.redo()["redo"] and session.spec.link_width == 19
    session.change({"link_width": "32"})
    assert not session.state()["redo"]
    compared = session.state()["comparison"]
    before, now = (qm.solve(replace(starters["noc"], link_width=width)).packet_latency for width in (16, 32))
    assert compared["fields"] == ["link width: 16 → 32"]
    words = f"packet latency falls by {100 * (1 - now / before):.3g} % (better)"
    assert compared["metrics"][0] == {"name": "packet_latency", "words": words}
    assert session.pin()["comparison"] == {"fields": [], "metrics": [], "same": True}
    overloaded = session.change({"injection_rate": "0.9"})["comparison"]["metrics"]
    assert overloaded[0]["words"] == "packet latency rises without end (worse)"
    assert session.unchange()["comparison"]["same"] and session.spec.injection_rate == 0.02
    assert session.call("load", {"text": 'kind = "dram"\npreset = "HBM2"\n'})["kind"] == "dram"
    assert session.call("load", {"text": "kind = 1"})["error"]


def test_neighbours_come_in_slices_and_end_when_the_design_changes(starters, monkeypatch):
    monkeypatch.setattr(sessions, "SLICE_SECONDS", 0.0)
    session = Session(starters["noc"])
    found, start, calls = [], 0, 0
    while start is not None:
        part = session.neighbours(start, 0)
        found += part["found"]
        start, calls = part["next"], calls + 1
    assert calls == len(found) == part["total"] > 20
    for one in found:
        if "error" not in one:
            expected = qm.solve(changed(session.spec, one["values"]))
            assert one["metrics"]["packet_latency"] == plain(expected.packet_latency)
    assert any("must" in one.get("error", "") for one in found)
    near = session.neighbours(0, 0, "router.buffer_flits")["found"][0]["values"]
    assert near == {"router.buffer_flits": "4"}
    session.change({"link_width": "32"})
    stale = session.neighbours(3, 0)
    assert stale["found"] == [] and stale["next"] is None and stale["version"] == 1


def test_a_sweep_marks_its_front(starters):
    session = Session(starters["noc"])
    metrics, found, start = ["packet_latency", "delivered_rate"], [], 0
    while start is not None:
        part = session.sweep(start, 0, ["link_width", "injection_rate"], metrics)
        found += part["found"]
        start = part["next"]
    assert len(found) == part["total"] == 49
    rows = [[one["metrics"][name] for name in metrics] if one["stable"] else None for one in found]
    front = [
        k
        for k, row in enumerate(rows)
        if row
        and not any(o and o[0] <= row[0] and o[1] >= row[1] and o != row for o in rows)
    ]  # fmt: skip
    assert set(part["front"]) <= set(front)
    assert {tuple(rows[k]) for k in part["front"]} == {tuple(rows[k]) for k in front}


def test_a_simulation_runs_beside_and_can_be_stopped(starters):
    from validate import simulate

    session = Session(starters["queueing-network"])
    assert session.call("simulation", {}) == {"state": "idle"}
    assert session.call("simulate", {})["state"] == "running"
    assert "under way" in session.call("simulate", {})["error"]
    assert _ended(session)["state"] == "done"
    found = session.state()["simulated"]["metrics"]["system_response_time"]
    expected = simulate(starters["queueing-network"]).metrics["system_response_time"]
    assert (found["value"], found["low"], found["high"]) == (expected.best, expected.low, expected.high)
    session.change({"classes.job.arrivals.mean": "1.1"})
    assert session.state()["simulated"] is None
    session.call("simulate", {})
    assert session.call("cancel", {})["state"] in ("stopping", "done")
    assert _ended(session)["state"] in ("cancelled", "done")


def _ended(session):
    for _ in range(12_000):  # a first simulation compiles
        if not session.simulating:
            return session.call("simulation", {})
        time.sleep(0.05)
    raise TimeoutError


def test_only_designs_of_a_kind_and_no_sweeps(starters):
    with pytest.raises(ValueError, match=r"what_if needs one design, got injection_rate = \[0.01, 0.02\]"):
        Session(replace(starters["noc"], injection_rate=[0.01, 0.02]))
    with pytest.raises(TypeError, match="a system spec must be of a kind"):
        Session(3)
    session = Session(starters["noc"])
    assert session.call("spec", {}) == {"error": "there is no call 'spec'"}
    assert session.call("_go", {"spec": 3}) == {"error": "there is no call '_go'"}
    assert "unexpected keyword" in session.call("undo", {"far": 3})["error"]


def test_without_anywidget_what_if_says_what_to_install(starters, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r"needs anywidget: pip install 'qmodels-toolkit\[notebook\]'"):
        qm.what_if(starters["noc"])


def test_the_widget_answers_messages(starters, monkeypatch):
    pytest.importorskip("anywidget")
    widget = qm.what_if(starters["noc"])
    assert "application/vnd.jupyter.widget-view+json" in widget._repr_mimebundle_()[0]
    sent = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._handle_custom_msg({"id": 7, "name": "change", "arguments": {"values": {"link_width": "32"}}}, [])
    assert sent[0]["id"] == 7 and sent[0]["answer"]["version"] == 1
    assert widget.session.spec.link_width == 32
