"""Metrics of a packet processor that are computed when they are read."""

from __future__ import annotations

import pickle

import pytest
from qmodels.packet_processor.result import Later

import qmodels as qm
from qmodels.packet_processor import latency


def test_quantiles_are_looked_for_only_when_they_are_read(monkeypatch):
    quantile, asked = latency.wait_quantile, []
    monkeypatch.setattr(latency, "wait_quantile", lambda **given: asked.append(given) or quantile(**given))
    answer = qm.solve(qm.PacketProcessor())
    assert answer.packet_latency > 0 and not asked
    assert answer.packet_latency_p99 > answer.packet_latency and asked
    assert pickle.loads(pickle.dumps(answer)).metrics == dict(answer.metrics)
    assert list(answer.metrics) == list(qm.PacketProcessor.metric_names.both)


def test_a_value_is_computed_once_and_an_unknown_one_is_refused():
    asked = []
    squares = Later(("one", "two"), lambda name: asked.append(name) or len(asked) ** 2)
    assert squares["two"] == squares["two"] == 1 and asked == ["two"]
    assert dict(squares) == {"one": 4, "two": 1} == dict(squares) and len(squares) == 2
    with pytest.raises(KeyError, match="three"):
        squares["three"]
