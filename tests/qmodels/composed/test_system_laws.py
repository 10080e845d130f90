"""What every answer of a system must obey: limits, bounds, Little's law, sweeps."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import Flow, Noc, Station, System, Tokens, dram, mesh
from qmodels.composed import solve_system
from qmodels.laws import Deterministic, Erlang, Exponential
from qmodels.noc import uniform
from qmodels.steps import Acquire, Branch, Each, Fork, Hold, Read, Release, Repeat, Visit
from qmodels.traffic import OnOff, Poisson

STATIONS = {
    "a": Station(service=Exponential(mean=4.0)),
    "b": Station(service=Deterministic(mean=6.0), servers=2),
    "c": Station(service=Erlang(mean=3.0, phases=2), discipline="sharing"),
}
HELD = (Visit("a"), Acquire("pool"), Fork(((Visit("b"),), (Visit("c"),))), Release("pool"))


def with_pool(program, tokens=4, **flow):
    used = {name: part for name, part in STATIONS.items() if f"'{name}'" in repr(program)}
    pool = {"pool": Tokens(count=tokens)} if "pool" in repr(program) else {}
    return System(parts=used | pool, flows=Flow(program=program, **flow))


def open_system(rate, program=HELD, **changes):
    return with_pool(program, arrivals=Poisson(), rate=rate, **changes)


def test_without_load_times_are_those_of_idle_parts():
    program = (
        Visit("a"),
        Branch(((Visit("c"),), ()), (0.3, 0.7)),
        Repeat(Visit("b"), 3),
        Hold(Exponential(mean=2.0)),
    )
    assert_allclose(solve_system(open_system(1e-9, program)).latency, 4 + 0.3 * 3 + 18 + 2, rtol=1e-6)
    # Of a constant and an Erlang time the last: E[max(6, X)].
    alone = solve_system(open_system(1e-9))
    assert 6 < alone.latency - 4 < 6.5


def test_copies_that_begin_at_one_server_end_one_after_the_other():
    program = (Each((Visit("a"),), 3),)
    assert_allclose(solve_system(open_system(1e-9, program)).latency, 12.0, rtol=1e-6)


@pytest.mark.parametrize("window", [None, 5])
def test_latency_grows_with_the_rate(window):
    latencies = [solve_system(open_system(rate, window=window)).latency for rate in (0.01, 0.1, 0.2)]
    assert np.all(np.diff(latencies) > 0)


def test_the_parts_of_the_latency_sum_up_to_it():
    for system in (open_system(0.1), open_system(0.1, window=3), with_pool(HELD, population=6)):
        answer = solve_system(system)
        assert_allclose(sum(answer.latency_parts.values()), answer.latency, rtol=1e-9)


@pytest.mark.parametrize("population", [1, 2, 7, 40])
def test_closed_flows_obey_littles_law_and_the_bottleneck(population):
    answer = solve_system(with_pool(HELD, population=population, think=Exponential(mean=10.0)))
    assert_allclose(answer.flow_throughput * (10 + answer.latency), population, rtol=1e-4)
    assert answer.flow_throughput <= 0.25 * (1 + 1e-9)
    assert answer.saturation_factor == np.inf


def test_one_closed_job_meets_nobody():
    answer = solve_system(with_pool(HELD, population=1, think=Exponential(mean=10.0)))
    alone = solve_system(open_system(1e-9))
    assert_allclose(answer.latency, alone.latency, rtol=1e-4)


def test_a_pool_for_everyone_is_no_pool():
    plain = tuple(step for step in HELD if not isinstance(step, Acquire | Release))
    with_one, without = (solve_system(open_system(0.15, program, tokens=200)) for program in (HELD, plain))
    assert_allclose(with_one.latency, without.latency, rtol=0.02)
    assert with_one.latency_parts["pool"] < 1e-6


def test_a_window_of_one_is_a_single_server():
    program = (Visit("a"), Hold(Deterministic(mean=1.0)))
    answer = solve_system(open_system(0.1, program, window=1))
    assert_allclose(answer.saturation_factor, 1 / (0.1 * 5.0), rtol=1e-6)
    # M/G/1 whose service is all of the program: scv 16 / 25.
    assert_allclose(answer.latency, 5 + 0.5 / 0.5 * 5 * (1 + 16 / 25) / 2, rtol=1e-3)


def test_tokens_before_as_many_exponential_servers_are_their_queue():
    parts = {"b": Station(service=Exponential(mean=2.0), servers=2), "pool": Tokens(count=2)}
    flow = Flow(arrivals=Poisson(), rate=0.7, program=(Acquire("pool"), Visit("b"), Release("pool")))
    answer = solve_system(System(parts=parts, flows=flow))
    queue = solve_system(System(parts={"b": parts["b"]}, flows=replace(flow, program=(Visit("b"),))))
    assert_allclose(answer.latency, queue.latency, rtol=0.02)
    assert_allclose(answer.saturation_factor, queue.saturation_factor, rtol=1e-6)


def test_overload_is_an_answer():
    answer = solve_system(open_system(0.3))
    assert answer.latency == np.inf and not answer.stable and answer.bottleneck == "a"
    assert answer.traffic_intensity["a"] == pytest.approx(1.2) and answer.utilization["a"] == 1
    assert_allclose(answer.flow_throughput, 0.25, rtol=1e-6)
    assert_allclose(answer.saturation_factor, 1 / 1.2, rtol=1e-6)
    window = solve_system(open_system(0.3, window=2))
    assert window.latency == np.inf and window.saturation_factor < 1 / 1.2


def test_an_overloaded_flow_leaves_others_alone():
    flows = [
        Flow(name="full", arrivals=Poisson(), rate=1.0, program=(Visit("a"),)),
        Flow(name="free", arrivals=Poisson(), rate=0.1, program=(Fork(((Visit("b"),), (Visit("c"),))),)),
    ]
    answer = solve_system(System(parts=STATIONS, flows=flows))
    assert answer["latency[full]"] == np.inf and np.isfinite(answer["latency[free]"])


def test_a_sweep_is_its_points():
    rates = np.array([[0.05], [0.3]])
    sweep = solve_system(open_system(rates))
    for index, rate in np.ndenumerate(rates):
        point = solve_system(open_system(float(rate)))
        for name, value in point.metrics.items():
            assert_allclose(sweep.metrics[name][index], value)
        assert sweep.stable[index] == point.stable and sweep.bottleneck[index] == point.bottleneck
    assert sweep.shape == (2, 1)


def test_reads_through_a_network_take_the_way_and_the_memory():
    noc = Noc(topology=mesh(2, 2), link_width=16, traffic=uniform(nodes=4), injection_rate=0.0)
    flow = Flow(arrivals=Poisson(), rate=1e-7, at=(0,), program=(Read("mem"),))
    parts = {"noc": noc, "mem": dram("DDR4-3200")}
    far, near = (solve_system(System(parts=parts, flows=flow, place={"mem": (node,)})) for node in (3, 0))
    assert near.latency_parts.get("noc", 0.0) == 0
    assert_allclose(far.latency, near.latency + far.latency_parts["noc"], rtol=1e-6)
    # There and back, two hops each.
    assert_allclose(far.latency_parts["noc"], 2 * far["visit_latency[noc]"], rtol=0.3)


programs = st.recursive(
    st.sampled_from([Visit("a"), Visit("b"), Visit("c"), Hold(Exponential(mean=2.0))]).map(
        lambda step: (step,)
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda two: two[0] + two[1]),
        inner.map(lambda some: (Branch((some, ()), (0.4, 0.6)),)),
        inner.map(lambda some: (Repeat(some, 2),)),
        inner.map(lambda some: (Each(some, 2),)),
        st.tuples(inner, inner).map(lambda two: (Fork(two),)),
    ),
    max_leaves=6,
)


@settings(max_examples=settings.default.max_examples // 2)
@given(program=programs, load=st.floats(0.05, 0.8), bursty=st.booleans(), window=st.sampled_from([None, 4]))
@example(program=(Each((Each((Visit("a"), Visit("a")), 2),), 2),), load=0.25, bursty=True, window=None)
def test_random_programs(program, load, bursty, window):
    program = (*program, Visit("a"))
    arrivals = OnOff(on_packets=3, peak_to_mean=2.0) if bursty else Poisson()
    unloaded = solve_system(with_pool(program, arrivals=arrivals, rate=1e-6, window=window))
    rate = 1e-6 * unloaded.saturation_factor * load
    answer = solve_system(with_pool(program, arrivals=arrivals, rate=rate, window=window))
    assert answer.stable and np.isfinite(answer.latency)
    assert answer.latency >= unloaded.latency * (1 - 1e-3)
    assert answer.latency_p99 >= answer.latency * (1 - 1e-9)
    assert_allclose(sum(answer.latency_parts.values()), answer.latency, rtol=1e-9)
    assert_allclose(answer.flow_throughput, rate)
    assert all(0 <= share <= 1 for share in answer.utilization.values())
    assert_allclose(answer.saturation_factor, 1 / load, rtol=0.05)


@pytest.mark.parametrize(("blocks", "width"), [(8, 16), (64, 16), (64, 4)])
def test_blocks_of_a_wide_read_pass_the_readers_place_in_a_row(blocks, width):
    noc = Noc(topology=mesh(3, 1), link_width=width, header_bytes=8, clock_ghz=1.0)
    memory = dram("DDR4-3200", channels=2, t_refi=0, t_rfc=0)
    program = (Read("dram", blocks),)
    read = Flow(population=1, think=Deterministic(mean=1e4), at=(0,), program=program)
    answer = solve_system(System(parts={"noc": noc, "dram": memory}, place={"dram": (1, 2)}, flows=(read,)))
    # The first of them comes from a closed row, and all others pass behind it.
    t = memory.timing
    first = (t.t_rcd + t.cl + t.burst) / t.clock_ghz
    assert answer.latency >= first + blocks * noc.flits(64) / noc.clock_ghz
