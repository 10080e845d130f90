"""Conditions on metrics in words: units, strict limits, ranges; and what is no condition."""

import math

import pytest

import qmodels as qm
from qmodels.systems.spec.conditions import conditions, quantity, require_metrics, seconds
from qmodels.systems.spec.kind import kind_named

PROCESSOR = qm.PacketProcessor()


@pytest.mark.parametrize(
    ("text", "metric", "low", "high"),
    [
        ("packet_latency_p99 <= 2us", "packet_latency_p99", None, 2000.0),
        ("packet_latency_p99<=2 µs", "packet_latency_p99", None, 2000.0),
        ("packet_latency_p99 <= 0.002 ms", "packet_latency_p99", None, 2000.0),
        ("packet_latency_p99 <= 2e-6 s", "packet_latency_p99", None, 2000.0),
        ("packet_latency_p99 <= 2000", "packet_latency_p99", None, 2000.0),
        ("data_rate >= 40 Gb/s", "data_rate", 40.0, None),
        ("data_rate >= 40000Mb/s", "data_rate", 40.0, None),
        ("data_rate >= 5 GB/s", "data_rate", 40.0, None),
        ("40 <= data_rate", "data_rate", 40.0, None),
        ("cost <= 20mm2", "cost", None, 20.0),
        ("energy_per_packet <= 300000 pJ", "energy_per_packet", None, 300.0),
        ("energy_per_packet <= 0.3uJ", "energy_per_packet", None, 300.0),
        ("overflow_probability <= 0.1%", "overflow_probability", None, 0.001),
        ("overflow_probability <= 1e-3", "overflow_probability", None, 0.001),
        ("1us <= packet_latency <= 2us", "packet_latency", 1000.0, 2000.0),
        ("2us >= packet_latency >= 1us", "packet_latency", 1000.0, 2000.0),
        ("channels <= 4", "channels", None, 4.0),
    ],
)
def test_a_condition_is_a_range_in_the_unit_of_its_metric(text, metric, low, high):
    assert conditions(PROCESSOR, [text]) == {metric: (low, high)}


def test_each_metric_is_read_in_its_own_unit():
    network = kind_named("noc").starter()
    assert conditions(network, ["bandwidth >= 80Gb/s"]) == {"bandwidth": (10.0, None)}
    line = kind_named("queueing-network").starter()
    assert conditions(line, ["system_response_time <= 15"])["system_response_time"] == (None, 15.0)
    with pytest.raises(ValueError, match="system_response_time is in time and takes time, got 'us'"):
        conditions(line, ["system_response_time <= 15us"])


@pytest.mark.parametrize("value", [0.0, 1.0, 2000.0, 1e-6])
def test_a_strict_limit_leaves_out_its_value_and_nothing_else(value):
    ((_, high),) = conditions(PROCESSOR, [f"packet_latency < {value}"]).values()
    ((low, _),) = conditions(PROCESSOR, [f"packet_latency > {value}"]).values()
    assert high < value < low
    assert math.nextafter(high, math.inf) == value == math.nextafter(low, -math.inf)


def test_the_tightest_of_several_limits_counts():
    texts = ["packet_latency <= 3us", "packet_latency <= 2us", "packet_latency <= 4us", "packet_latency >= 1"]
    assert conditions(PROCESSOR, texts) == {"packet_latency": (1.0, 2000.0)}
    assert conditions(PROCESSOR, {"packet_latency": (1.0, None)}) == {"packet_latency": (1.0, None)}
    assert conditions(PROCESSOR, None) == {}


def test_an_objective_nobody_has_is_named_with_the_nearest():
    with pytest.raises(ValueError, match="minimize must name a metric .* got 'cots'; did you mean 'cost'"):
        require_metrics(PROCESSOR, ["packet_latency", "cots"], "minimize")
    with pytest.raises(ValueError, match="got 'cost'"):
        require_metrics(kind_named("noc").starter(), ["cost"], "minimize")


@pytest.mark.parametrize(("value", "said"), [(999.9999999999999, "1 us"), (313.3, "313 ns"), (0.4, "400 ps")])
def test_a_value_is_said_in_the_unit_that_reads_best(value, said):
    assert quantity(PROCESSOR, "packet_latency", value) == said


@pytest.mark.parametrize("text", ["-3s", "20", "soon", "inf", "nan", "1e400s", "", "5 mm2"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(ValueError, match="budget must be a time such as 60s, 2min or 0, got"):
        seconds(text)
