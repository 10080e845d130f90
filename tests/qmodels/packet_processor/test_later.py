"""Metrics of a packet processor that are computed when they are read."""

from __future__ import annotations

import pickle

import pytest

import qmodels as qm
from qmodels.packet_processor.following import waits
from qmodels.packet_processor.result import Later
from qmodels.systems.spec.fields import replace_fields


def test_packets_are_followed_only_when_the_tail_is_read(monkeypatch):
    run, runs = waits.run, []
    monkeypatch.setattr(waits, "run", lambda *key: runs.append(key) or run(*key))
    answer = qm.solve(replace_fields(qm.PacketProcessor(), {"load_factor": 0.987}))
    assert answer.packet_latency > 0 and not runs
    assert answer.packet_latency_p99 > answer.packet_latency and runs
    assert pickle.loads(pickle.dumps(answer)).metrics == dict(answer.metrics)
    assert list(answer.metrics) == list(qm.PacketProcessor.metric_names.both)


def test_a_value_is_computed_once_and_an_unknown_one_is_refused():
    asked = []
    squares = Later(("one", "two"), lambda name: asked.append(name) or len(asked) ** 2)
    assert squares["two"] == squares["two"] == 1 and asked == ["two"]
    assert dict(squares) == {"one": 4, "two": 1} == dict(squares) and len(squares) == 2
    with pytest.raises(KeyError, match="three"):
        squares["three"]
