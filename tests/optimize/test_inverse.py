"""Best values of several continuous fields, against what is known of them."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import qmodels as qm
from optimize import sensitivity, size
from qmodels.checks import Numeric
from qmodels.systems.spec.kind import kind_named


@dataclass(frozen=True)
class Path:
    first: Numeric = 10.0
    second: Numeric = 10.0
    third: Numeric = 10.0
    hops: int = 3


def links(*flows):
    """Return the mean delay of packets over M/M/1 links with these flows, and what their capacities cost."""

    def model(path):
        capacities = [np.asarray(one) for one in (path.first, path.second, path.third)[: len(flows)]]
        with np.errstate(divide="ignore"):
            delays = [
                np.where(c > flow, flow / np.where(c > flow, c - flow, np.nan), np.inf)
                for c, flow in zip(capacities, flows, strict=True)
            ]
        return {"delay": sum(delays) / max(flows), "cost": sum(capacities), "whole": sum(capacities) > 0}

    return model


@settings(max_examples=3, phases=(Phase.generate,))
@given(
    flows=st.lists(st.floats(0.5, 20), min_size=2, max_size=3),
    delay=st.floats(0.05, 5),
    dual=st.booleans(),
)
def test_capacities_are_those_of_the_square_root_rule(flows, delay, dual):
    """Kleinrock, Communication Nets (1964): the least cost is flows plus (sum of their roots)^2 by delay."""
    least = sum(flows) + sum(np.sqrt(flows)) ** 2 / (delay * max(flows))
    excess = least - sum(flows)
    expected = [flow + np.sqrt(flow) * excess / sum(np.sqrt(flows)) for flow in flows]
    names = ("first", "second", "third")[: len(flows)]
    within = {name: (flow, 100 * flow + 500 / delay) for name, flow in zip(names, flows, strict=True)}
    goal = {"minimize": "cost", "subject_to": {"delay": (None, delay), "whole": (1.0, None)}}
    if dual:  # the same capacities have the least delay of that cost
        goal = {"minimize": "delay", "subject_to": {"cost": (None, least)}}
    found = size(Path(), links(*flows), within=within, vectorized=True, **goal)
    assert found.status == "met" and found.field == tuple(within)
    assert found.metrics["delay"] <= delay * (1 + 1e-6 * dual) and found.metrics["cost"] <= least * (1 + 1e-7)
    assert list(found.value.values()) == pytest.approx(expected, rel=2e-3)
    assert len(found.binding) == 1 and ("cost" if dual else "delay") in found.binding[0]
    assert [getattr(found.spec, name) for name in within] == list(found.value.values())


@settings(max_examples=4, phases=(Phase.generate,))
@given(a=st.floats(0.1, 10), b=st.floats(0.1, 10), mix=st.floats(-0.9, 0.9), vectorized=st.booleans())
def test_at_an_optimum_inside_all_derivatives_are_0(a, b, mix, vectorized):
    def bowl(path):
        u, v = np.log(path.first / 3), np.log(path.second / 70)
        return {"time": 5 + a * u**2 + b * v**2 + 2 * mix * np.sqrt(a * b) * u * v}

    within = {"first": (0.1, 50.0), "second": (1.0, 1000.0)}
    found = size(Path(), bowl, within=within, minimize="time", vectorized=vectorized)
    assert found.value == pytest.approx({"first": 3, "second": 70}, rel=1e-3)
    assert found.binding == () and found.metrics["time"] == pytest.approx(5, rel=1e-8)
    for one in sensitivity(found.spec, bowl, list(within), metrics="time", vectorized=vectorized):
        assert abs(one.elasticity) < 1e-4 * (a + b)


def test_the_corner_between_two_times_is_found():
    """A maximum of two: the derivative jumps at the best value, the limit does not hold it there."""
    solved = []

    def slower(path):
        solved.append(np.size(path.first))
        return {
            "time": np.maximum(12 / path.first, path.first + path.second),
            "power": path.first * path.second,
        }

    found = size(
        Path(), slower, within={"first": (1.0, 9.0), "second": (1.0, 9.0)}, minimize="time", vectorized=True
    )
    assert found.value == pytest.approx({"first": 3, "second": 1}, rel=1e-4)
    assert found.metrics["time"] == pytest.approx(4, rel=1e-4) and found.binding == ("second = 1",)
    assert found.evaluations == sum(solved) and solved[-1] == 1  # the answer once more, alone


def test_a_field_may_be_the_goal_and_ends_hold_it():
    model = links(1.0, 1.0)
    within = {"first": (0.2, 20.0), "second": (0.2, 20.0)}
    found = size(
        Path(), model, within=within, minimize="first", subject_to={"delay": (None, 1.0)}, vectorized=True
    )
    assert found.value == pytest.approx({"first": 1 + 19 / 18, "second": 20}, rel=1e-6)
    assert found.binding == ("delay <= 1", "second = 20")
    most = size(Path(), model, within=within, maximize="cost", vectorized=True)
    assert most.value == {"first": 20.0, "second": 20.0} and most.binding == ("first = 20", "second = 20")


def test_the_nearest_miss_is_said():
    found = size(
        Path(),
        links(1.0, 1.0),
        within={"first": (0.2, 20.0), "second": (0.2, 20.0)},
        minimize="cost",
        subject_to={"delay": (None, 0.01), "cost": (None, 1000)},
        vectorized=True,
    )
    assert (found.status, found.value, found.binding) == ("unreachable", None, ())
    assert found.best == pytest.approx({"first": 20, "second": 20}, rel=1e-3)
    assert found.message.startswith(
        "no values within the ranges were found that keep the limits; nearest: delay"
    )
    assert found.message.endswith("delay <= 0.01 is 0.105263, off by 0.09526")


def test_what_the_model_says_of_the_answer_alone_is_not_lost():
    def only_arrays(path):
        if np.ndim(path.first) == 0:
            raise ValueError("a rate must be an array")
        return {"time": path.first + path.second}

    with pytest.raises(ValueError, match="a rate must be an array"):
        size(
            Path(),
            only_arrays,
            within={"first": (1.0, 2.0), "second": (1.0, 2.0)},
            minimize="time",
            vectorized=True,
        )


def test_a_small_region_that_no_first_look_meets():
    """Two limits leave a strip of a thousandth of the range."""

    def strip(path):
        return {"sum": path.first + path.second, "product": path.first * path.second, "cost": path.first}

    found = size(
        Path(),
        strip,
        within={"first": (1.0, 9.0), "second": (1.0, 9.0)},
        minimize="cost",
        subject_to={"sum": (9.999, 10), "product": (20.999, 21)},
        vectorized=True,
    )
    assert found.status == "met" and found.value["first"] == pytest.approx(3, abs=1e-2)
    assert 9.999 <= found.metrics["sum"] <= 10 and 20.999 <= found.metrics["product"] <= 21


def test_values_that_the_spec_refuses_are_left_out():
    @dataclass(frozen=True)
    class Picky:
        first: Numeric = 3.0
        second: Numeric = 3.0

        def __post_init__(self):
            if np.any(np.asarray(self.first) + self.second > 8):
                raise ValueError("at most 8 together")

    found = size(
        Picky(),
        lambda path: {"gain": path.first * path.second},
        within={"first": (0.0, 9.0), "second": (0.0, 9.0)},
        maximize="gain",
        vectorized=True,
    )
    assert found.metrics["gain"] == pytest.approx(16, rel=2e-2) and found.metrics["gain"] <= 16


def test_a_network_is_sized_by_its_services():
    """The longest services of a disk: those of the processor are then as short as they may be."""
    network = kind_named("queueing-network").starter()
    within = {"stations.cpu.service.mean": (0.3, 0.9), "stations.disk.service.mean": (0.5, 1.9)}
    found = size(
        network,
        qm.solve,
        within=within,
        maximize="stations.disk.service.mean",
        subject_to={"system_response_time": (None, 4.0)},
        vectorized=True,
    )
    cpu, disk = found.value.values()
    assert cpu == pytest.approx(0.3, rel=1e-6)
    # M/M/1 and M/M/2 (whose response is d / (1 - (d / 2)^2)) at one job a unit of time.
    assert cpu / (1 - cpu) + disk / (1 - disk**2 / 4) == pytest.approx(4, rel=1e-6)


@pytest.mark.slow
def test_a_processor_is_sized_by_its_clocks():
    processor = qm.PacketProcessor()
    within = {"noc.clock_ghz": (0.5, 3.0), "dram.clock_ghz": (0.2, 1.6)}
    found = size(
        processor,
        qm.solve,
        within=within,
        minimize="noc.clock_ghz",
        subject_to={"packet_latency": (None, 280.0)},
        vectorized=True,
    )
    alone = float(qm.solve(found.spec).packet_latency)
    assert found.status == "met" and alone == pytest.approx(280, rel=1e-6) and alone <= 280
    # The latency falls with both clocks: the memory's is at its end, the other as `size` finds it alone.
    spec = qm.PacketProcessor(dram=found.spec.dram)
    alone = size(
        spec,
        qm.solve,
        "noc.clock_ghz",
        subject_to={"packet_latency": (None, 280.0)},
        within=(0.5, 3.0),
        vectorized=True,
    )
    assert found.value["dram.clock_ghz"] == 1.6
    assert found.value["noc.clock_ghz"] == pytest.approx(alone.value, abs=3e-6)


BOX = {"first": (1.0, 2.0), "second": (1.0, 2.0)}
