"""Closed loops: cycles that can be counted by hand, Little's law, and the limits of a busy memory."""

from dataclasses import replace

import pytest
from pandas import DataFrame

from qmodels import Noc, mesh, spidergon
from qmodels.noc import transactions
from validate import simulate

SMALL = {"packets": 2000, "cycles": 2000, "replications": 2}


def one_engine(**options):
    return Noc(
        topology=mesh(1, 2),
        link_width=16,
        traffic=transactions(initiators=[0], channels=[1], **options),
    )


@pytest.mark.parametrize("think", [0.0, 10.0, 1000.0])
def test_one_engine_alone_takes_the_sum_of_its_parts(think):
    # 9 flits there (8 + 128 bytes), 1 back; two routers each way; the answer leaves when served, and
    # the next request a cycle after the answer at the earliest.
    r = simulate(one_engine(think_cycles=think, service_cycles=7, latency_cycles=4), **SMALL)
    there, back = 3 * 2 + 2 + 8, 3 * 2 + 2
    assert r.transaction_latency.best == there + 7 + 4 + back
    assert 1 / r.transaction_rate.best == pytest.approx(there + 11 + back + max(1, think), rel=0.01)
    assert r.bandwidth.best == pytest.approx(128 * r.transaction_rate.best, rel=0.01)


def test_a_read_is_short_there_and_long_back():
    r = simulate(one_engine(read_fraction=1.0, service_cycles=5), **SMALL)
    flows = DataFrame(r.flows).set_index("source")["packet_latency"]
    assert (flows[0], flows[1]) == (8, 16)


def test_littles_law_holds_for_the_loop():
    # Outstanding = rate x (time of a transaction + thinking).
    spec = Noc(
        topology=spidergon(12),
        traffic=transactions(
            initiators=range(8),
            channels=range(8, 12),
            outstanding=3,
            think_cycles=60,
            think_law="exponential",
        ),
    )
    r = simulate(spec, packets=20_000, replications=4)
    # A request waits for the next whole cycle after the thinking, half a cycle on average.
    inside = r.transaction_rate.best * (r.transaction_latency.best + 60.5)
    assert inside == pytest.approx(8 * 3, rel=0.01)
    assert r.verdict == "stable"


@pytest.mark.parametrize("seed", range(4))
def test_no_engine_is_ever_lost(seed):
    # Answers in the same cycle let several send in the next one, before the places of these are free.
    traffic = transactions(initiators=[0, 1], channels=[8, 9])
    r = simulate(Noc(topology=spidergon(16), traffic=traffic), seed=seed, **SMALL)
    assert r.transaction_rate.best * (r.transaction_latency.best + 1) == pytest.approx(2, rel=0.005)


def test_a_slow_memory_is_the_limit():
    spec = Noc(
        topology=spidergon(8),
        traffic=transactions(initiators=range(4), channels=[4], outstanding=8, service_cycles=50),
    )
    r = simulate(spec, **SMALL)
    assert r.transaction_rate.best == pytest.approx(1 / 50, rel=0.01)
    spread = replace(spec, traffic=replace(spec.traffic, channels=(4, 5, 6, 7)))
    assert simulate(spread, **SMALL).transaction_rate.best > 3.5 / 50


def test_more_outstanding_never_lowers_the_rate_much_and_few_do_not_fill_the_memory():
    rates = []
    for outstanding in (1, 2, 4, 8):
        traffic = transactions(
            initiators=range(4), channels=[4, 5], outstanding=outstanding, service_cycles=20
        )
        rates.append(simulate(Noc(topology=spidergon(8), traffic=traffic), **SMALL).transaction_rate.best)
    assert rates[0] < rates[1] < rates[2] <= rates[3] * 1.01 < 2 / 20 * 1.02


def test_exponential_service_waits_longer_than_fixed():
    fixed, random = (
        simulate(
            Noc(
                topology=spidergon(8),
                traffic=transactions(
                    initiators=range(4), channels=[4], think_cycles=150, service_cycles=40, service_law=law
                ),
            ),
            packets=10_000,
            replications=4,
        ).transaction_latency
        for law in ("fixed", "exponential")
    )
    assert random.low > fixed.high
