"""Derivatives against exact ones, properties of derivatives, and every kind of system."""

from dataclasses import dataclass
from math import prod
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qmodels as qm
from optimize import get_field, replace_fields, sensitivity
from optimize.analysis.sensitivity import continuous_fields
from qmodels import queues
from qmodels.checks import Numeric
from qmodels.systems.spec.fields import takes_array
from qmodels.systems.spec.kind import KINDS, kind_named

ALLOWED = 1e-8


@dataclass(frozen=True)
class Station:
    arrival_rate: Any = 0.7
    service_rate: Any = 1.0
    servers: int = 1
    scv: Any = 2.5


def erlang_c(rate, capacity, servers):
    """Mean wait of M/M/c by its definition (Erlang 1917), in 40 digits."""
    a = rate / capacity
    last = a**servers / mpmath.factorial(servers) * servers / (servers - a)
    waits = last / (sum(a**k / mpmath.factorial(k) for k in range(servers)) + last)
    return waits / (servers * capacity - rate)


def pollaczek_khinchine(rate, capacity, scv):
    load = rate / capacity
    return load * (1 + scv) / (2 * capacity * (1 - load))


def exact(function, *at):
    """Return the partial derivatives by all arguments, by mpmath in 40 digits."""
    with mpmath.workdps(40):
        at = [mpmath.mpf(value) for value in at]
        return [
            float(mpmath.diff(function, at, n=tuple(int(k == j) for j in range(len(at)))))
            for k in range(len(at))
        ]


def assert_all(entries, expected):
    assert len(entries) == len(expected)
    for entry, slope in zip(entries, expected, strict=True):
        assert entry.kind == "smooth"
        assert abs(entry.derivative - slope) <= max(entry.error, 1e-13 * abs(slope))
        assert entry.error <= ALLOWED * abs(slope)


@given(load=st.floats(0.02, 0.98), rate=st.floats(1e-3, 1e3), servers=st.integers(1, 12))
def test_stations_with_poisson_arrivals(load, rate, servers):
    capacity = rate / load / servers
    station = Station(arrival_rate=rate, service_rate=capacity, servers=servers)

    def solve(one):
        said = {"arrival_rate": one.arrival_rate, "service_rate": one.service_rate}
        many = queues.mmc(servers=one.servers, **said)
        return {"wait": many.mean_waiting_time}

    found = sensitivity(station, solve, ["arrival_rate", "service_rate"], metrics="wait", vectorized=True)
    expected = exact(lambda rate, mu: erlang_c(rate, mu, servers), rate, capacity)
    value = float(erlang_c(mpmath.mpf(rate), mpmath.mpf(capacity), servers))
    for entry, slope in zip(found, expected, strict=True):
        assert entry.kind == "smooth" and entry.value == pytest.approx(value, rel=1e-12)
        assert abs(entry.derivative - slope) <= max(entry.error, ALLOWED * abs(slope))
        assert entry.error <= ALLOWED * abs(slope)
    if servers == 1:  # W = rho / (mu - lambda)
        assert found[0].derivative == pytest.approx(1 / (capacity - rate) ** 2, rel=ALLOWED)


def test_general_service():
    def solve(one):
        return {"wait": pollaczek_khinchine(one.arrival_rate, one.service_rate, one.scv)}

    found = sensitivity(Station(), solve, metrics="wait", vectorized=True)
    assert [one.field for one in found] == ["arrival_rate", "service_rate", "scv"]
    assert_all(found, exact(pollaczek_khinchine, 0.7, 1.0, 2.5))

    def ours(one):
        return {"wait": queues.mg1(arrival_rate=one.arrival_rate, service_rate=one.service_rate,
                               service_scv=one.scv).mean_waiting_time}  # fmt: skip

    assert_all(
        sensitivity(Station(), ours, metrics="wait", vectorized=True),
        exact(pollaczek_khinchine, 0.7, 1.0, 2.5),
    )


def test_a_jackson_network():
    """Jackson 1957: every station is an M/M/c of its own arrival rate; a job visits each once."""
    network = kind_named("queueing-network").starter()
    names = ["classes.job.arrivals.mean", "stations.cpu.service.mean", "stations.disk.service.mean"]
    gap, cpu, disk = (get_field(network, name) for name in names)

    def response(gap, cpu, disk):
        return erlang_c(1 / gap, 1 / cpu, 1) + cpu + erlang_c(1 / gap, 1 / disk, 2) + disk

    found = sensitivity(network, qm.solve, names, metrics="system_response_time", vectorized=True)
    assert_all(found, exact(response, gap, cpu, disk))


def slopes_of_order_12(spec, field, metrics, step):
    """Return derivatives by Lagrange's formula on twelve designs: no extrapolation in it."""
    nodes = [k for k in range(-6, 7) if k]
    value = get_field(spec, field)
    h = step * value
    weights = [
        prod(-j for j in nodes if j != k) * prod(1.0 / (k - j) for j in [*nodes, 0] if j != k) for k in nodes
    ]
    answer = qm.solve(replace_fields(spec, {field: value + h * np.array(nodes)})).to_dict()
    return {metric: float(np.dot(weights, answer[metric])) / h for metric in metrics}


@pytest.mark.parametrize(
    ("kind", "fields", "metrics"),
    [
        ("dram", ["traffic.arrival_rate"], ["read_latency", "bus_utilization", "read_conflict_probability"]),
        (
            "packet-processor",
            ["workload.offered_gbps", "workload.hold_ns", "llc.clock_ghz"],
            ["packet_latency", "read_latency", "write_conflict_probability", "energy_per_packet"],
        ),
    ],
)
def test_models_with_fixed_points(kind, fields, metrics):
    spec = kind_named(kind).starter()
    others = {
        field: [slopes_of_order_12(spec, field, metrics, step) for step in (1e-3, 3e-3)] for field in fields
    }
    for entry in sensitivity(spec, qm.solve, fields, metrics=metrics, vectorized=True):
        scale = abs(entry.derivative) + 1e-4 * abs(entry.value / get_field(spec, entry.field))
        assert entry.kind == "smooth" and entry.error <= ALLOWED * scale
        off = [abs(entry.derivative - slopes[entry.metric]) for slopes in others[entry.field]]
        assert min(off) <= ALLOWED * scale


@given(
    at=st.floats(0.1, 100),
    distance=st.floats(1e-4, 0.03),
    bend=st.floats(0.1, 10),
    side=st.sampled_from([-1, 1]),
)
def test_a_kink_near_by_is_told_or_the_slope_is_right(at, distance, bend, side):
    def bent(one):
        x = np.asarray(one.scv) / at
        return {"bent": x**2 + bend * np.abs(x - 1 - side * distance)}

    (entry,) = sensitivity(Station(scv=at), bent, ["scv"], metrics="bent", vectorized=True)
    right = (2 - side * bend) / at
    assert entry.kind in ("smooth", "rough", "kink")
    assert abs(entry.derivative - right) <= max(10 * entry.error, 1e-7 / at)
    if entry.kind == "kink":
        assert min(abs(slope - right) for slope in entry.slopes) <= 1e-6 * (2 + bend) / at


@pytest.mark.parametrize("side", [-1, 1])
def test_a_step_has_no_derivative(side):
    def steps(one):
        x = np.asarray(one.scv)
        return {"cycles": np.ceil(side * (x - 2.5)) + x, "beside": np.ceil(x) + x}

    cycles, beside = sensitivity(Station(), steps, ["scv"], vectorized=True)
    assert (cycles.kind, cycles.error) == ("step", np.inf) and np.isnan(cycles.derivative)
    assert beside.kind == "smooth" and beside.derivative == pytest.approx(1, abs=ALLOWED)


def test_noise_between_the_steps_is_no_slope():
    """Locally the slope is a hundred times that of any change that somebody would make."""

    def noisy(one):
        x = np.asarray(one.scv)
        return {"answer": 4 * x + 0.01 * np.sin(4e4 * x), "steep": np.tanh((x - 2.5) * 1e4)}

    answer, steep = sensitivity(Station(), noisy, ["scv"], vectorized=True)
    assert answer.kind == "rough" and abs(answer.derivative - 4) <= answer.error < 4
    assert steep.kind == "rough" and 20 <= steep.derivative <= 100


def test_an_answer_on_one_side_alone():
    def edge(one):
        x = np.asarray(one.scv)
        return {"wait": np.where(x > 2.5, np.inf, x**2), "full": np.where(x < 3, np.inf, x)}

    wait, full = sensitivity(Station(), edge, ["scv"], metrics=["wait", "full"], vectorized=True)
    assert wait.kind == "edge" and wait.slopes == (
        pytest.approx(5, rel=1e-7),
        pytest.approx(np.nan, nan_ok=True),
    )
    assert wait.derivative == wait.slopes[0]
    assert (full.kind, full.error) == ("unstable", np.inf) and np.isnan(full.derivative)


@dataclass(frozen=True)
class Half:
    """Its second field must be half the first; arrays are checked design by design."""

    whole: Numeric = 4.0
    half: Numeric = 2.0
    free: float = 3

    def __post_init__(self):
        if np.any(np.asarray(self.whole) != 2 * np.asarray(self.half)):
            raise ValueError(f"half must be half of whole, got {self.half}")


def test_fields_that_others_determine_are_refused_in_a_word():
    found = sensitivity(Half(), lambda one: {"sum": one.whole + one.half + 2.0 * one.free}, vectorized=True)
    assert [one.kind for one in found] == ["refused", "refused", "smooth"]
    assert found[2].derivative == pytest.approx(2, rel=1e-12)  # 3 of a float field is continuous


def test_one_call_of_a_smooth_model_and_two_near_a_kink():
    calls = []

    def counted(one):
        calls.append(np.size(one.arrival_rate))
        x = one.arrival_rate
        return {"smooth": x * one.scv / one.service_rate, "bent": np.abs(x - 0.7) * one.scv}

    sensitivity(Station(), counted, metrics="smooth", vectorized=True)
    assert calls == [1 + 3 * 8]
    calls.clear()

    def near(one):
        return counted(one) | {"near": np.abs(one.arrival_rate - 0.7)}

    sensitivity(Station(arrival_rate=0.7001), near, metrics="near", vectorized=True)
    assert calls == [1 + 3 * 8, 8]


@given(load=st.floats(0.05, 0.95), unit=st.floats(1e-6, 1e6), scv=st.floats(0.01, 20))
def test_units_change_derivatives_by_the_chain_rule_and_no_elasticity(load, unit, scv):
    def wait(one):
        return {"wait": pollaczek_khinchine(one.arrival_rate, one.service_rate, one.scv)}

    names = ["arrival_rate", "service_rate", "scv"]
    one = sensitivity(Station(arrival_rate=load, scv=scv), wait, names, vectorized=True)
    other = sensitivity(
        Station(arrival_rate=load * unit, service_rate=unit, scv=scv), wait, names, vectorized=True
    )
    for a, b in zip(one, other, strict=True):
        assert b.elasticity == pytest.approx(a.elasticity, rel=1e-9, abs=1e-12)
    for a, b in zip(one[:2], other[:2], strict=True):  # a time by a rate
        assert b.derivative == pytest.approx(a.derivative / unit**2, rel=1e-9)
    # Euler: the wait is a time, homogeneous of degree -1 in the rates.
    assert one[0].elasticity + one[1].elasticity == pytest.approx(
        -1, abs=1e-8 * abs(one[0].elasticity) + 1e-10
    )


def test_clocks_scale_all_times_of_a_design():
    """Elasticities of a homogeneous model sum to its degree: with all rates doubled, times halve."""
    clocks = {
        "noc.clock_ghz": 1.07,
        "dram.clock_ghz": 0.41,
        "llc.clock_ghz": 1.2,
        "free_list.clock_ghz": 0.93,
    }
    spec = replace_fields(kind_named("packet-processor").starter(), clocks)  # no two equal: no kink
    found = sensitivity(
        spec,
        qm.solve,
        [*clocks, "workload.offered_gbps", "workload.hold_ns"],
        metrics=["packet_latency", "row_hit_ratio"],
        vectorized=True,
    )
    for metric, degree in (("packet_latency", -1), ("row_hit_ratio", 0)):
        parts = [
            -one.elasticity if one.field == "workload.hold_ns" else one.elasticity
            for one in found
            if one.metric == metric
        ]
        assert sum(parts) == pytest.approx(degree, abs=1e-8)
    assert {one.kind for one in found} == {"smooth"}


QUICK = {
    "message-program": ["costs.send_cycles", "clock_ghz"],
    "cache": ["popularity.exponent"],
    "llc-processor": ["load", "time_unit_ns"],
    "numa": ["clock_ghz"],
    "work-queues": ["clock_ghz"],
    "system": ["flows.lookups.rate"],
}
"""Some fields of the kinds whose fields are no arrays or whose solves are slow; of the others all."""


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind):
    spec = kind_named(kind).starter()
    names = continuous_fields(spec)
    assert names and set(QUICK.get(kind, names)) <= set(names)
    arrays = tuple(name for name in names if takes_array(spec, name))
    found = sensitivity(spec, qm.solve, QUICK.get(kind, arrays or names), vectorized=True)
    assert found
    for one in found:
        assert one.kind in ("smooth", "kink", "step", "rough", "edge", "unstable")
        assert np.isfinite(one.derivative) == (one.kind not in ("step", "unstable"))
    known = [one for one in found if one.kind == "smooth" and abs(one.elasticity) > 1e-2]
    assert known
    good = sum(one.error <= ALLOWED * abs(one.derivative) for one in known)
    assert good >= 0.9 * len(known)
