"""Bursts along paths: as they began, paid once, and no others than those of the sources."""

from dataclasses import replace
from itertools import pairwise

import pytest
from numpy.testing import assert_allclose

from qmodels import Flow, Noc, Station, System, Tokens, mesh
from qmodels.composed import solve_system
from qmodels.composed.variability import passed_on
from qmodels.laws import Deterministic, Exponential
from qmodels.steps import Acquire, Branch, Fork, Hold, Release, Repeat, Visit
from qmodels.traffic import OnOff, Poisson

PROGRAMS = {
    "tandem": (Visit("a"), Visit("b")),
    "twice": (Visit("a"), Repeat((Visit("b"),), 2)),
    "fork": (Visit("a"), Fork(((Visit("b"),), (Visit("c"),)))),
    "choice": (Branch(((Visit("b"),), (Visit("c"),)), (0.3, 0.7)), Visit("a")),
    "pool": (Acquire("p"), Visit("a"), Visit("b"), Release("p")),
}


def system(program, arrivals, load, *, others=False):
    """Four stations of which the fullest has a load, and tokens."""
    parts = {
        "a": Station(service=Exponential(mean=0.5)),
        "b": Station(service=Deterministic(mean=1.0)),
        "c": Station(service=Exponential(mean=1.2), servers=2),
        "p": Tokens(count=3),
    }
    jobs = Flow(name="jobs", arrivals=arrivals, rate=load / 2, program=program)
    flows = [jobs]
    if others:
        flows.append(Flow(name="others", arrivals=Poisson(), rate=0.1, program=(Visit("a"), Visit("b"))))
    used = str(program) + "ab" * others
    asked = {
        name: part for name, part in parts.items() if f"part='{name}'" in used or (others and name in "ab")
    }
    return System(parts=asked, flows=tuple(flows))


@pytest.mark.in_ci(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_longer_bursts_wait_longer_and_short_ones_as_poisson_jobs(name):
    def latency(arrivals):
        answer = solve_system(system(PROGRAMS[name], arrivals, 0.6, others=True))
        return [answer["latency[jobs]"], answer["latency[others]"], answer["latency_p99[jobs]"]]

    poisson = latency(Poisson())
    rows = [latency(OnOff(on_packets=size, peak_to_mean=4.0)) for size in (1.0, 10.0, 60.0)]
    for before, after in pairwise([poisson, *rows]):
        assert after[0] >= before[0] * (1 - 1e-6) and after[1] >= before[1] * (1 - 1e-6)
    assert rows[-1][2] > poisson[2]
    assert_allclose(latency(OnOff(on_packets=1.0, peak_to_mean=1.0 + 1e-4)), poisson, rtol=1e-3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_bursts_change_no_load(name):
    bursts = OnOff(on_packets=20.0, peak_to_mean=4.0)
    for load in (0.9, 1.1):
        found, plain = (solve_system(system(PROGRAMS[name], one, load)) for one in (bursts, Poisson()))
        assert bool(found.stable) is bool(plain.stable)
        assert_allclose(found.saturation_factor, plain.saturation_factor, rtol=1e-3)


@pytest.mark.parametrize(("load", "latency", "p99"), [(0.2, 10.0, 43.7), (0.5, 46.3, 212), (0.8, 135.0, 621)])
@pytest.mark.parametrize("others", [(), (0.6,), (0.9, 0.3)])
def test_constant_services_in_a_row_wait_once(load, latency, p99, others):
    """As at the slowest of them alone, in any order (Friedman 1965), by Lindley's recursion."""
    for means in {(1.0, *others), (*others, 1.0)}:
        names = [f"s{k}" for k in range(len(means))]
        flow = Flow(
            arrivals=OnOff(on_packets=40, peak_to_mean=6), rate=load,
            program=(*(Visit(name) for name in names), Hold(Deterministic(mean=1.0))),
        )  # fmt: skip
        parts = {n: Station(service=Deterministic(mean=m)) for n, m in zip(names, means, strict=True)}
        found = solve_system(System(parts=parts, flows=flow))
        assert_allclose(found.latency - 1 - sum(others), latency, rtol=0.03)
        assert_allclose(found["latency_p99"] - 1 - sum(others), p99, rtol=0.03)


def test_bursts_of_one_flow_delay_the_others_less_than_itself():
    """And behind a station where they have waited already they wait little at one that is as fast."""
    flows = [
        Flow(name=name, arrivals=arrivals, rate=0.3, program=program)
        for name, arrivals, program in (
            ("bursts", OnOff(on_packets=20, peak_to_mean=5), (Visit("own"), Visit("both"))),
            ("calm", Poisson(), (Visit("both"),)),
        )
    ]
    alone = replace(flows[0], program=(Visit("both"),))
    parts = {name: Station(service=Deterministic(mean=1.0)) for name in ("own", "both")}
    behind = solve_system(System(parts=parts, flows=tuple(flows)))
    first = solve_system(System(parts={"both": parts["both"]}, flows=(alone, flows[1])))
    plain = 1 + 0.6 / (2 * 0.4)
    assert plain < first["latency[calm]"] < first["latency[bursts]"]
    assert plain < behind["latency[calm]"] < first["latency[calm]"]
    assert behind["latency[bursts]"] == pytest.approx(first["latency[bursts]"] + 1, rel=0.01)


SIMULATED = [
    # Of 3 simulations of 150,000 jobs: rate, mean and 99 % of latency [ns].
    (0.02, 24.4, 46.8),
    (0.08, 135.6, 717.0),
    (0.15, 327.6, 1850.0),
]


@pytest.mark.parametrize(("rate", "mean", "p99"), SIMULATED)
def test_bursts_through_a_mesh(rate, mean, p99):
    flow = Flow(
        arrivals=OnOff(on_packets=40, peak_to_mean=6), rate=rate, at=tuple(range(9)),
        program=(Visit("sink", bytes=64),),
    )  # fmt: skip
    parts = {
        "sink": Station(service=Deterministic(mean=1.0)),
        "noc": Noc(topology=mesh(3, 3), link_width=16),
    }
    found = solve_system(System(parts=parts, place={"sink": 4}, flows=flow))
    assert_allclose(found.latency, mean, rtol=0.05)
    assert_allclose(found["latency_p99"], p99, rtol=0.25)


def test_departures_forget_for_as_long_as_the_queue_remembers():
    shares = [passed_on(10.0**k) for k in range(-9, 10)]
    assert shares == sorted(shares)
    assert_allclose([shares[0], shares[-1]], [0.0, 1.0], atol=1e-6)
