"""The declarations of metrics: one unit for a name."""

from __future__ import annotations

import pytest

from qmodels.systems.spec.kind import KINDS, kind_named
from qmodels.systems.spec.metrics import METRICS, metric


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_declares_its_metrics(kind):
    declared = kind_named(kind).spec().metric_names
    names = list(declared)
    assert names and len(names) == len(set(names)) and set(names) <= set(METRICS)
    assert set(declared.sometimes) <= set(declared.both)


def test_every_metric_belongs_to_something():
    used = {name for kind in KINDS for name in kind_named(kind).spec().metric_names}
    formulas = {  # of single queues and of the closed forms of networks
        "arrival_rate", "mean_service_time", "waiting_time_variance", "response_time_variance",
        "residence_time", "arrival_scv", "departure_scv",
    }  # fmt: skip
    assert set(METRICS) == used | formulas


def test_times_of_hardware_are_in_ns_and_of_stations_in_their_time():
    for name, one in METRICS.items():
        assert one.better in ("up", "down", "") and one.meaning
        if name.endswith(("_latency", "_delay")) or name in ("execution_time", "finish_time"):
            assert one.unit == "ns"
        if name.startswith("mean_") and name.endswith("_time"):
            assert one.unit == "time"
    assert metric("hit_ratio[l1]") is METRICS["hit_ratio"]
