"""Answers of a process aside: the same as here, and it may be ended without the page."""

from __future__ import annotations

import threading
import time

import pytest

import qmodels as qm
from cases.what_if import session as sessions
from cases.what_if.session import Session
from cases.what_if.solving import Aside, solved
from qmodels.systems.spec.text.toml import to_toml

NOC = qm.Noc(injection_rate=0.02)
SLOW = qm.Noc(topology=qm.noc.ring(300), injection_rate=1e-5)
"""Some seconds of work."""


@pytest.fixture(scope="module")
def aside():
    with Aside() as started:
        yield started


def test_an_answer_of_a_process_aside_is_that_of_this_one(aside):
    for spec in (NOC, qm.dram("DDR4-3200")):
        found, here = aside(spec), solved(spec)
        assert {**found, "milliseconds": 0} == {**here, "milliseconds": 0}


def test_what_a_process_aside_refuses_is_refused_here(aside):
    with pytest.raises(ValueError, match=r"^topology must ask for at most 4e\+09 bytes, got 1500 "):
        aside(qm.Noc(topology=qm.noc.ring(1500), injection_rate=1e-5))
    assert aside(NOC)["stable"]


def test_an_answer_that_takes_too_long_ends_and_the_next_one_comes():
    with Aside(seconds=60.0) as aside:
        aside(NOC)
        aside.seconds = 0.05
        with pytest.raises(ValueError, match=r"^the answer must take at most 0.05 s, got more$"):
            aside(SLOW)
        aside.seconds = 60.0
        assert aside(NOC)["stable"]


@pytest.mark.skipif("sys.platform != 'linux'", reason="needs a limit of addresses")
def test_an_answer_that_takes_too_much_memory_ends(monkeypatch):
    monkeypatch.setenv("QMODELS_LIMIT", "0.05")  # 200 MB beside the code
    with (
        Aside(seconds=60.0) as aside,
        pytest.raises(ValueError, match=r"must (take|ask for) at most .*bytes"),
    ):
        aside(SLOW)


def test_a_new_question_ends_the_one_under_way(monkeypatch):
    monkeypatch.setattr(sessions, "PATIENCE", 0.05)
    with Aside() as aside:
        session = Session(NOC, aside)
        said = []
        text = {"text": to_toml(SLOW, kind=True)}
        slow = threading.Thread(target=lambda: said.append(session.call("load", text)))
        slow.start()
        while session._lock.acquire(blocking=False):
            session._lock.release()
            time.sleep(0.001)
        answer = session.call("undo", {})
        slow.join()
        assert answer["answer"]["stable"] and session.spec == NOC
        assert said == [{"error": "not answered: something else was asked meanwhile"}]
        assert aside(NOC)["stable"]
