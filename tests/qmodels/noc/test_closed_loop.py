"""Closed loops: exact alone, inside bounds, and as flit-level simulation has them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmodels import Noc, crossbar, mesh, spidergon, torus
from qmodels.noc import Router, transactions, uniform
from qmodels.noc.closed_loop import closed_loop, finite_source_rate
from qmodels.systems.spec.metrics import METRICS
from validate import simulate

quick = settings(max_examples=15)


def loop(engines=4, channels=(12, 13), **options):
    width = options.pop("link_width", 16)
    traffic = transactions(initiators=range(engines), channels=channels, **options)
    return Noc(topology=spidergon(16), traffic=traffic, link_width=width, router=Router(buffer_flits=17))


@quick
@given(
    think=st.integers(0, 200), service=st.integers(1, 30), width=st.sampled_from([8, 16, 32]),
    reads=st.sampled_from([0.0, 1.0]), target=st.integers(1, 15),
)  # fmt: skip
def test_one_transaction_takes_what_its_parts_do(think, service, width, reads, target):
    noc = loop(
        1, (target,), think_cycles=think, service_cycles=service, read_fraction=reads, link_width=width
    )
    routers = len(noc.topology.route(0, target))
    flits = -(-136 // width)
    latency = 2 * (3 * routers + 2) + flits - 1 + service
    answer = closed_loop(noc)
    assert answer.transaction_latency == pytest.approx(latency)
    assert (
        answer.transaction_rate
        == pytest.approx(1 / (max(1, think) + latency))
        == pytest.approx(answer.upper_bound)
    )


@quick
@given(
    engines=st.integers(1, 12), outstanding=st.integers(1, 4), think=st.integers(0, 100),
    buffer=st.integers(1, 12), credit=st.integers(4, 16), width=st.sampled_from([8, 32]),
    service=st.integers(0, 20), law=st.sampled_from(["fixed", "exponential"]),
)  # fmt: skip
def test_nothing_is_busy_for_more_than_all_the_time(
    engines, outstanding, think, buffer, credit, width, service, law
):
    noc = loop(
        engines, range(12, 16), outstanding=outstanding, think_cycles=think, service_cycles=service,
        service_law=law, think_law="exponential", link_width=width,
    )  # fmt: skip
    answer = closed_loop(replace(noc, router=Router(buffer_flits=buffer, credit_cycles=credit)))
    assert max(answer.utilization.values()) == pytest.approx(answer.bottleneck_load)
    assert answer.bottleneck_load <= 1 + 1e-9
    assert answer["max_utilization"] <= 1 + 1e-9
    assert min(map(float, answer.metrics.values())) >= 0


def test_one_initiator_waits_at_no_queue_for_less_than_nothing():
    traffic = transactions(
        initiators=[0], channels=range(1, 6), think_cycles=0, service_cycles=8, latency_cycles=0,
        request_bytes=1000, response_bytes=1000, service_law="exponential",
    )  # fmt: skip
    noc = Noc(topology=torus(3, 3), traffic=traffic, link_width=1, router=Router(buffer_flits=64))
    assert closed_loop(noc).source_queue_delay >= 0


@pytest.mark.parametrize(
    ("jobs", "think", "service", "payload", "router", "width", "rate", "near"),
    [
        (1, 70, 8, 64, (3, 9), 8, 0.1156, 0.04),
        (3, 30, 4, 64, (9, 5), 8, 0.3808, 0.12),
        (2, 70, 8, 16, (1, 8), 32, 0.2854, 0.04),
    ],
    ids=["late credits, long packets", "flits", "late credits, one flit"],
)  # fmt: skip
def test_links_limit_the_rate_as_simulated_with_80000_packets(
    jobs, think, service, payload, router, width, rate, near
):
    traffic = transactions(
        initiators=range(23), channels=range(23, 31), read_fraction=0.3, response_bytes=0,
        latency_cycles=30, think_law="exponential", outstanding=jobs, think_cycles=think,
        service_cycles=service, request_bytes=payload,
    )  # fmt: skip
    buffer, credit = router
    routers = Router(buffer_flits=buffer, credit_cycles=credit)
    answer = closed_loop(Noc(topology=spidergon(32), traffic=traffic, link_width=width, router=routers))
    assert "->" in answer.bottleneck
    assert answer.transaction_rate == pytest.approx(rate, rel=near)


@pytest.mark.in_ci(3)
@pytest.mark.parametrize(
    "noc",
    [
        loop(1, (12,), think_cycles=20, service_cycles=7, latency_cycles=30),
        replace(loop(1, (12,)), topology=replace(mesh(4, 4), delay=3), router=Router(buffer_flits=4)),
        loop(1, (12,), service_cycles=0),
        loop(1, (12,), think_cycles=20.3, service_cycles=7.4, latency_cycles=30.2),
        loop(1, (12,), service_cycles=7.4, cut_through=True),
        loop(1, (12,), service_cycles=70.4, latency_cycles=3, cut_through=True, read_fraction=1.0),
    ],
    ids=[
        "plain",
        "wires longer than the buffers",
        "nothing takes time",
        "parts of cycles",
        "a memory cuts through",
        "a slow one",
    ],
)
def test_one_transaction_is_simulated_alike(noc):
    result = simulate(noc, packets=500, replications=2)
    answer = closed_loop(noc)
    assert result.transaction_latency.best == pytest.approx(answer.transaction_latency)
    assert result.transaction_rate.best == pytest.approx(answer.transaction_rate, rel=0.01)


@settings(quick, max_examples=6)
@given(
    engines=st.integers(1, 10),
    outstanding=st.integers(1, 3),
    think=st.integers(0, 150),
    service=st.integers(1, 20),
)
def test_throughput_is_inside_the_bound_and_grows_with_the_engines(engines, outstanding, think, service):
    options = {"outstanding": outstanding, "think_cycles": think, "service_cycles": service}
    one, more = (closed_loop(loop(n, **options)) for n in (engines, engines + 1))
    for answer in (one, more):
        assert 0 < answer.transaction_rate <= answer.upper_bound * (1 + 1e-9)
        assert max(answer.utilization.values()) <= 1 + 1e-9
        parts = sum(answer.latency_parts.values())
        assert parts == pytest.approx(answer.transaction_latency)
    assert more.transaction_rate >= one.transaction_rate * (1 - 2e-3)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("noc", "largest"),
    [  # largest measured: 3.1 %, the third
        (loop(4, think_cycles=100), 0.02),
        (loop(10, think_cycles=100, link_width=8, read_fraction=0.5), 0.03),
        (loop(10, (12,), think_cycles=50, service_cycles=9, service_law="exponential"), 0.04),
        (
            loop(
                8, (10, 12, 14), think_cycles=60, outstanding=2, service_cycles=12, service_law="exponential"
            ),
            0.04,
        ),
    ],
)
def test_against_simulation(noc, largest):
    # Engines without chance keep their phases for ever: only replications tell what phases do.
    result = simulate(noc, packets=12_000, replications=8)
    answer = closed_loop(noc)
    estimate = result.transaction_rate
    assert (estimate.high - estimate.low) / 2 < 0.02 * estimate.best
    assert answer.transaction_rate == pytest.approx(estimate.best, rel=largest)
    assert answer.bandwidth == pytest.approx(result.bandwidth.best, rel=largest)


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(("width", "service"), [(8, 8), (32, 8), (16, 30)])
@pytest.mark.parametrize("reads", [0.0, 1.0])
def test_a_memory_that_cuts_through_works_while_the_data_pass(width, service, reads):
    """Of service and the flits before the last one only the longer one takes time."""
    noc = loop(1, (12,), service_cycles=service, latency_cycles=30, link_width=width, read_fraction=reads)
    cut = replace(noc, traffic=replace(noc.traffic, cut_through=True))
    latency = closed_loop(cut).transaction_latency
    spared = closed_loop(noc).transaction_latency - latency
    assert spared == pytest.approx(min(service, -(-136 // width) - 1))
    run = simulate(cut, packets=500, replications=2)
    assert run.transaction_latency.best == pytest.approx(latency)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("reads", [0.0, 0.32])
def test_waits_in_a_row_do_not_add_up(reads):
    """A write of 17 flits is served within 8 cycles, and answered by one flit: it waits but once."""
    noc = loop(
        7, (12,), think_cycles=60, think_law="exponential", service_cycles=8, latency_cycles=30,
        link_width=8, read_fraction=reads,
    )  # fmt: skip
    estimate = simulate(noc, packets=20_000, replications=4).transaction_rate
    assert estimate.half_width < 0.015 * estimate.best
    assert closed_loop(noc).transaction_rate == pytest.approx(estimate.best, rel=0.015)


def test_more_channels_help_a_full_memory():
    rates = [
        closed_loop(loop(10, range(10, 10 + n), service_cycles=20, think_cycles=50)).transaction_rate
        for n in (1, 2, 4)
    ]
    assert rates[0] == pytest.approx(1 / 20, rel=0.02)
    assert rates == sorted(rates)


def test_a_faster_clock_changes_no_cycle():
    slow, fast = (closed_loop(replace(loop(4), clock_ghz=clock)) for clock in (1.0, 2.0))
    assert fast.in_cycles()["transaction_latency"] == pytest.approx(slow.transaction_latency)
    assert fast.transaction_rate == pytest.approx(2 * slow.transaction_rate)
    assert fast.bandwidth == pytest.approx(2 * slow.bandwidth)
    assert fast.upper_bound == pytest.approx(2 * slow.upper_bound)
    assert sum(fast.latency_parts.values()) == pytest.approx(fast.transaction_latency)
    units = {name: METRICS[name.partition("[")[0]].unit for name in slow.metrics}
    assert {"ns", "GB/s", "1"} <= set(units.values())
    for name, value in slow.metrics.items():
        factor = {"ns": 0.5, "1": 1.0}.get(units[name], 2.0)  # all others are rates
        assert fast.metrics[name] == pytest.approx(factor * value), name


def test_open_traffic_is_an_error():
    with pytest.raises(ValueError, match="traffic must be Transactions, got Pattern"):
        closed_loop(replace(loop(), topology=mesh(4, 4), traffic=uniform(nodes=16)))


def test_a_loop_says_of_its_packets_what_the_simulation_does():
    dma = transactions(initiators=range(7), channels=[8, 9], think_cycles=60, latency_cycles=30)
    noc = Noc(topology=spidergon(16), traffic=dma)
    loop, run = closed_loop(noc), simulate(noc, packets=4000, replications=2)
    assert set(run.metrics) - set(loop.metrics) == {"packet_latency_p95", "packet_latency_p99"}
    assert set(loop.metrics) <= set(run.metrics)
    # What a transaction spends is its packets' time and the memory's.
    packets = loop["delivered_rate"] / loop["transaction_rate"]
    assert packets == pytest.approx(2)
    assert loop["transaction_latency"] >= packets * loop["packet_latency"] + dma.latency_cycles
    assert loop["packet_latency"] == pytest.approx(loop["source_queue_delay"] + loop["traversal_delay"])
    assert loop["max_utilization"] <= 1
    for name in ("delivered_rate", "max_utilization", "bandwidth"):
        assert loop[name] == pytest.approx(run[name].best, rel=0.1)


def test_slow_memories_fill_up_first():
    assert closed_loop(loop(10, (12,), think_cycles=50, service_cycles=20)).bottleneck == "memory 12"


def twin_rate(customers: int, away: float, values: list[float], weights: list[float]) -> float:
    """Return the throughput of the M/G/1//N queue, served one after the other."""
    rng = np.random.default_rng(3)
    arrivals, free, count = rng.exponential(away, customers), 0.0, 20_000
    for service in rng.choice(values, size=count, p=weights):
        first = int(arrivals.argmin())
        free = max(free, arrivals[first]) + service
        arrivals[first] = free + rng.exponential(away)
    return count / free


@pytest.mark.parametrize(("customers", "away"), [(2, 10.0), (5, 40.0), (23, 120.0)])
def test_finite_sources_are_those_of_a_queue_tried_out(customers, away):
    for values, weights in (([8.0], [1.0]), ([17.0, 1.0], [0.6, 0.4])):
        times = (np.array(values), np.array(weights))
        found = finite_source_rate(customers=customers, away=away, times=times)
        assert found == pytest.approx(twin_rate(customers, away, values, weights), rel=0.02)


@quick
@given(st.floats(1, 300), st.floats(1, 1e4), st.floats(0.5, 50))
def test_finite_sources_are_inside_the_bounds_and_more_carry_more(customers, away, service):
    times = (np.array([service]), np.ones(1))
    one, more = (finite_source_rate(customers=n, away=away, times=times) for n in (customers, customers + 1))
    assert one <= more * (1 + 1e-9) and more <= min((customers + 1) / (away + service), 1 / service) * (
        1 + 1e-9
    )
    assert finite_source_rate(customers=1, away=away, times=times) == pytest.approx(1 / (away + service))


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("width", "channels"), [(8, (24, 28)), (16, (24,)), (32, (24,))])
def test_memories_that_are_nearly_full_idle_as_simulated(width, channels):
    """Waits at the memory nodes alone: within 0.7 %, where Linearizer was up to 1.2 % too high."""
    options = {"think_law": "exponential", "service_cycles": 8.0, "latency_cycles": 30.0, "cut_through": True}
    traffic = transactions(
        initiators=range(23), channels=channels, think_cycles=104.0, read_fraction=1 / 3, **options
    )
    noc = replace(loop(link_width=width), topology=crossbar(32), traffic=traffic)
    rate = simulate(noc, packets=20_000, replications=4)["bandwidth"]
    assert rate.half_width < 0.01 * rate.best
    assert closed_loop(noc).bandwidth == pytest.approx(rate.best, rel=0.007)
