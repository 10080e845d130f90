import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels import DramSystem, Flow, System, dram, solve
from qmodels.memory import RandomBlocks, StridedBlocks
from qmodels.memory.dram.access_pattern import access_pattern
from qmodels.memory.dram.limits import channel_limits
from qmodels.memory.dram.packet_waits import packet_times
from qmodels.memory.dram.solve import solve_dram
from qmodels.memory.dram.write_queue import LastWrites
from qmodels.steps import Read, Write
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved, bit_fields
from qmodels.systems.memory.dram_system import AddressTrace, Packets
from qmodels.systems.memory.dram_timing import PRESETS, abstract
from qmodels.systems.spec.conditions import plain
from qmodels.traffic import Poisson
from validate import simulate


@st.composite
def systems(draw):
    spec = dram(
        draw(st.sampled_from(sorted(PRESETS))),
        ranks=draw(st.sampled_from([1, 2])),
        page_policy=draw(st.sampled_from(["open", "closed"])),
        scheduler=draw(st.sampled_from(["in-order", "oldest-ready-first", "fr-fcfs"])),
        controller_cycles=draw(st.integers(0, 20)),
    )
    writes = draw(st.sampled_from([0.0, 0.3, 1.0]))
    traffic = draw(
        st.sampled_from(
            [
                RandomBlocks(write_fraction=writes, row_hit_probability=0.4),
                StridedBlocks(stride=5, write_fraction=writes),
                Packets(blocks=7, spacing=1, write_fraction=writes),
                AddressTrace(blocks=(0, 900, 1, 77, 12345), writes=(0, 1, 0, 0, 1)),
            ]
        )
    )
    return replace(spec, traffic=traffic)


@given(systems(), st.floats(0.02, 0.95))
def test_laws(spec, load):
    top = solve_dram(spec).in_cycles()["saturation_rate"]
    rates = np.array([0.5 * load, load, 1.2]) * top
    curve = solve_dram(replace(spec, traffic=replace(spec.traffic, arrival_rate=rates)))
    assert curve.stable.tolist() == [True, True, False]
    t = spec.timing
    # At least the fixed part; more with more load, but for rows that refreshes closed, of which there are
    # fewer then; infinite beyond what the channels serve.
    cycles = curve.in_cycles()
    assert (cycles["read_latency"] * (1 + 1e-12) >= spec.controller_cycles + t.cl + t.burst).all()
    less = curve.read_latency[:2] - curve.latency_parts["row"][:2]
    assert less[0] <= less[1] * (1 + 1e-9)
    assert np.isinf(curve.read_latency[2]) and np.isinf(curve.read_latency_p99[2])
    assert_allclose(sum(curve.latency_parts.values())[:2], curve.read_latency[:2])
    assert (curve.read_latency_p50 <= curve.read_latency_p99).all()
    assert cycles["delivered_rate"][2] <= rates[2] and (np.diff(curve.bandwidth) > 0).all()
    assert (curve.bus_utilization <= 1 + 1e-9).all()
    for name in {"read_conflict_probability", "write_conflict_probability", "row_hit_ratio"} & set(
        curve.metrics
    ):
        assert (curve.metrics[name] >= 0).all() and (curve.metrics[name] <= 1).all()
    assert ("write_latency" in curve.metrics) == (spec.traffic.write_fraction > 0)
    assert ("read_conflict_probability" in curve.metrics) == (spec.traffic.write_fraction < 1)
    assert set(curve.metrics) <= set(spec.metric_names)
    # What fills up first is full at the largest rate, and no resource is busy for longer than always.
    assert_allclose(curve.traffic_intensity[curve.bottleneck], rates / top)
    assert_allclose(curve.bottleneck_load, rates / top)
    assert (curve.utilization["bus"] <= 1 + 1e-9).all()
    # A point alone is the point of the curve.
    alone = solve_dram(replace(spec, traffic=replace(spec.traffic, arrival_rate=float(rates[1]))))
    assert_allclose(alone.read_latency, curve.read_latency[1])
    assert_allclose(alone.read_latency_p99, curve.read_latency_p99[1])
    assert alone.in_cycles()["saturation_rate"] == pytest.approx(top)


@given(st.integers(1, 9), st.integers(1, 9))
def test_the_step_is_nothing_to_one_channel(step, other):
    traffic = Packets(blocks=11, arrival_rate=0.04)
    first, second = (
        solve_dram(dram("DDR4-3200", address_map=Interleaved(step=s), traffic=traffic)) for s in (step, other)
    )
    assert first.metrics == second.metrics


def test_an_idle_system_takes_the_sum_of_its_steps():
    for policy, expected in (("closed", 22 + 22 + 4), ("open", 22 + 22 + 22 + 4)):
        spec = dram(
            "DDR4-3200", page_policy=policy, t_refi=0, t_rfc=0, traffic=RandomBlocks(arrival_rate=0.0)
        )
        answer = solve_dram(spec)
        assert answer.read_latency == expected / 1.6 and answer.quantile(0.9) == expected / 1.6
    # With refresh rows are found closed again.
    assert (
        solve_dram(dram("DDR4-3200", traffic=RandomBlocks(arrival_rate=0.0))).latency_parts["row"] < 23 / 1.6
    )


def test_what_limits_a_channel():
    def limited(**changes):
        return solve_dram(dram("DDR4-3200", t_refi=0, t_rfc=0, **changes))

    hits = RandomBlocks(row_hit_probability=1.0)
    assert limited().bottleneck == "activation"
    assert limited().in_cycles()["saturation_rate"] == pytest.approx(4 / 34)
    assert limited(traffic=hits).bottleneck == "bus"
    assert limited(traffic=hits).bandwidth == pytest.approx(0.05 * 64 * 1.6)
    assert limited(traffic=hits).in_cycles()["saturation_rate"] == pytest.approx(1 / 4)
    assert limited(traffic=hits, ranks=2).in_cycles()["saturation_rate"] == pytest.approx(1 / 5)
    assert limited(banks=1, groups=4, t_faw=0, t_rrd_s=0).bottleneck == "bank"
    assert limited(traffic=StridedBlocks(stride=4)).bottleneck == "group"
    assert limited(traffic=StridedBlocks(stride=4)).in_cycles()["saturation_rate"] == pytest.approx(1 / 8)
    assert limited(traffic=replace(hits, write_fraction=0.5)).bottleneck == "turnaround"
    assert limited(scheduler="in-order").bottleneck == "order"
    with_refresh = solve_dram(dram("DDR4-3200"))
    assert 4 / 34 * (1 - 634 / 12480) < with_refresh.limits["refresh"] < 4 / 34
    # Per ns, as what is delivered beyond it.
    assert with_refresh.saturation_rate == pytest.approx(1.6 * with_refresh.limits["refresh"])
    assert limited(traffic=RandomBlocks(arrival_rate=1.0)).delivered_rate == limited().saturation_rate


def test_batches_of_writes_turn_the_bus_less_often():
    hits = RandomBlocks(row_hit_probability=1.0, write_fraction=0.5)
    rates = [
        solve_dram(dram("DDR4-3200", traffic=hits, write_high=high, write_low=0)).limits["turnaround"]
        for high in (1, 8, 64)
    ]
    # 1 / (1 - 4 w) writes with those that come meanwhile are forced out, turning round takes 28 cycles:
    # 8 w + 28 w (1 - 4 w) = 1 for as many reads.
    assert rates[0] == pytest.approx(2 * (36 - np.sqrt(848)) / 224) and rates[0] < rates[1] < rates[2] < 0.25


def test_patterns_of_streams_and_packets():
    four = {"channels": 4}
    stream = access_pattern(dram("DDR4-3200", traffic=StridedBlocks(), **four))
    assert_allclose(stream.channel_share, 0.25)
    assert stream.row_hit_ratio == pytest.approx(127 / 128, abs=0.01)
    one = access_pattern(dram("DDR4-3200", traffic=StridedBlocks(stride=4), **four))
    assert one.channel_share.tolist() == [1, 0, 0, 0]
    spec = dram("DDR4-3200", traffic=Packets(blocks=24), **four)
    assert_allclose(access_pattern(spec).channel_share, 0.25)
    packets = packet_times(spec)
    assert packets.size == 6 and packets.bus == (6.0, 36.0) and packets.banks == 6
    rows = Interleaved(bank_step=128)
    spec = dram("DDR4-3200", traffic=Packets(blocks=24), address_map=rows, **four)
    # One row of a bank in a channel, or two where it ends.
    assert 1 < packet_times(spec).banks < 1.1 and access_pattern(spec).row_hit_ratio > 0.8
    trace = AddressTrace(blocks=(0, 0, 0, 1))
    assert access_pattern(dram("DDR4-3200", traffic=trace, **four)).channel_share.tolist() == [
        0.75,
        0.25,
        0,
        0,
    ]
    # The same blocks by bit fields: columns low, then channels.
    plan = bit_fields("row:9 bank:2 group:2 channel:2 column:7")
    low = access_pattern(dram("DDR4-3200", traffic=StridedBlocks(), address_map=plan, **four))
    assert low.row_hit_ratio == pytest.approx(127 / 128, abs=0.01)


def test_an_abstract_system_is_its_banks():
    spec = DramSystem(
        timing=abstract(burst=4, bank_busy=8),
        geometry=DramGeometry(groups=1, banks=8),
        page_policy="closed",
        scheduler="in-order",
        traffic=RandomBlocks(arrival_rate=0.1),
    )
    # E[G] = 4 + 4 / 8, E[G^2] = 16 + 48 / 8.
    assert solve_dram(spec).read_latency == pytest.approx(4 + 0.1 * 22 / (2 * (1 - 0.45)))
    assert solve_dram(spec).in_cycles()["saturation_rate"] == pytest.approx(1 / 4.5)


def test_the_answer_shows_itself():
    spec = dram("DDR4-3200", page_policy="closed")
    answer = qm.solve(spec)
    assert answer.bottleneck == "activation" and answer.validated
    low, high = answer.interval("read_latency")
    assert low < answer.read_latency < high
    assert f"simulated {plain(low)} to {plain(high)} (90 %)" in repr(answer)
    rates = np.array([[0.02, 0.05], [0.08, 0.5]])
    curve = qm.solve(replace(spec, traffic=RandomBlocks(arrival_rate=rates)))
    assert curve.read_latency.shape == (2, 2) and curve.validated.tolist() == [[True, True], [True, False]]
    assert curve.to_pandas()["traffic.arrival_rate"].unique().tolist() == [0.02, 0.05, 0.08, 0.5]
    assert "3 of 4 stable" in repr(curve)
    with pytest.raises(ValueError, match="probability must be below 1, got 1"):
        answer.quantile(1)


def test_limits_do_not_depend_on_the_load():
    spec = dram("DDR4-3200", ranks=2)
    heavy = replace(spec, traffic=RandomBlocks(arrival_rate=9.0))
    pattern = access_pattern(spec)
    assert channel_limits(spec, pattern) == channel_limits(heavy, access_pattern(heavy))


@pytest.mark.in_ci(3)
@pytest.mark.parametrize("writes", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("hits", [0.0, 0.5, 0.9])
def test_writes_and_row_hits_up_to_the_largest_rate(writes, hits):
    """No wait runs away before the channel is full: read latency times the slack stays bounded.

    Where nearly all write it does, also simulated: drains last as long as writes come.
    """
    traffic = RandomBlocks(arrival_rate=0.0, write_fraction=writes, row_hit_probability=hits)
    spec = dram("DDR4-3200", traffic=traffic)
    top = solve_dram(spec).in_cycles()["saturation_rate"]
    loads = np.array([0.8, 0.9, 0.99])
    curve = solve_dram(replace(spec, traffic=replace(traffic, arrival_rate=loads * top)))
    assert curve.stable.all() and (curve.read_latency * (1 - loads) < 100 / 1.6).all()


@pytest.mark.parametrize("scheduler", ["in-order", "oldest-ready-first", "fr-fcfs"])
@pytest.mark.parametrize("page_policy", ["open", "closed"])
def test_all_banks_are_busy_beyond_the_largest_rate(scheduler, page_policy):
    traffic = RandomBlocks(arrival_rate=1.0, write_fraction=0.3)
    answer = solve_dram(dram("DDR4-3200", scheduler=scheduler, page_policy=page_policy, traffic=traffic))
    if scheduler == "in-order":
        # Accesses reach their banks one by one. Simulated, without writes: 0.98 and 0.25.
        assert_allclose(
            answer.read_conflict_probability, {"open": 0.98, "closed": 0.25}[page_policy], atol=0.05
        )
    else:
        assert answer.read_conflict_probability == answer.write_conflict_probability == 1


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("preset", ["DDR4-3200", "DDR5-6400", "HBM3", "LPDDR5-6400"])
@pytest.mark.parametrize("page_policy", ["open", "closed"])
def test_reads_among_forced_writes_are_simulated(preset, page_policy):
    """Half of the accesses write: drains are as long as their banks need, and the channel fills up then."""
    traffic = RandomBlocks(arrival_rate=1e-3, write_fraction=0.5)
    spec = dram(preset, channels=1, page_policy=page_policy, traffic=traffic)
    top = solve_dram(spec).in_cycles()["saturation_rate"]

    def both(share):
        here = replace(spec, traffic=replace(traffic, arrival_rate=share * top))
        return solve_dram(here), simulate(here, replications=2)

    model, runs = both(0.7)
    assert model.read_latency == pytest.approx(runs.read_latency.best, rel=0.17)
    assert model.write_latency == pytest.approx(runs.write_latency.best, rel=0.13)
    # Too low by 37 % where drains were taken for independent of refreshes, and reads behind them for few.
    assert model.read_latency_p99 == pytest.approx(runs.read_latency_p99.best, rel=0.25)
    assert both(0.9)[1].stable and not both(1.1)[1].stable


def test_the_last_of_writes_that_go_one_by_one():
    """Each waits an exponential time of its own: the last one that of the largest of so many."""
    none = np.zeros(26)
    chain = LastWrites(
        law=np.ones(1),
        arrivals=0.0,
        batch=1,
        pace=np.arange(26) / 100,
        begins=none,
        drain=none,
        low=6,
        each=1.0,
        idle=0.0,
        idle_pace=none,
    )
    parts = 1 / np.arange(1, 9)
    assert chain.of(8, 8.0) == pytest.approx((100 * (parts.sum() - 1), 1e4 * (parts**2).sum()))
    # All in one row go together.
    assert chain.of(8, 1.0)[0] == pytest.approx(0.0)


@pytest.mark.in_ci(1)
# Largest errors measured: 3.5 points where pages stay open, 0.4 where they are closed.
@pytest.mark.parametrize(("page_policy", "points"), [("open", 0.04), ("closed", 0.006)])
@pytest.mark.parametrize("hits", [0.0, 0.5])
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_conflicts_of_random_accesses_are_simulated(page_policy, points, hits, load):
    spec = dram("DDR4-3200", page_policy=page_policy, scheduler="fr-fcfs")
    spec = replace(spec, traffic=RandomBlocks(row_hit_probability=hits))
    rate = load * solve_dram(spec).in_cycles()["saturation_rate"]
    spec = replace(spec, traffic=replace(spec.traffic, arrival_rate=rate))
    found, known = solve_dram(spec), simulate(spec, accesses=60_000, replications=2)
    assert_allclose(found.read_conflict_probability, known.read_conflict_probability.best, atol=points)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("page_policy", ["open", "closed"])
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_packets_that_read_and_write_are_simulated(page_policy, load):
    """Largest errors measured: reads 9 %, writes 4 %, conflicts 4 points."""
    traffic = Packets(blocks=4, write_fraction=0.5, arrival_rate=1e-3)
    spec = dram("DDR4-3200", channels=1, page_policy=page_policy, traffic=traffic)
    rate = load * solve_dram(spec).in_cycles()["saturation_rate"]
    spec = replace(spec, traffic=replace(traffic, arrival_rate=rate))
    found, known = solve_dram(spec), simulate(spec, replications=2)
    assert found.read_latency == pytest.approx(known.read_latency.best, rel=0.11)
    assert found.write_latency == pytest.approx(known.write_latency.best, rel=0.06)
    assert_allclose(found.read_conflict_probability, known.read_conflict_probability.best, atol=0.05)


@pytest.mark.parametrize(("blocks", "high"), [(8, 1), (1024, 16)])
def test_a_row_of_writes_may_be_longer_than_their_queue(blocks, high):
    parts = {"dram": dram("DDR4-3200", write_high=high, write_low=0)}
    program = (Write("dram", blocks), Read("dram", blocks))
    answer = solve(System(parts=parts, flows=Flow(arrivals=Poisson(), rate=1e-6, program=program)))
    # At the pace of the bus at least, and no more than three times as long.
    alone = 2 * blocks * parts["dram"].timing.burst / parts["dram"].clock_ghz
    assert answer.stable and alone < answer.latency < 3 * alone + 200


def test_the_last_of_writes_that_come_together_is_that_of_a_chain_tried_out():
    """One after the other; all but ``low`` of them where reads leave room, and where the queue is full."""
    draw, high = random.Random(1), 12
    number = np.arange(high)
    pace = 0.03 * (number > 0) + 0.004 * number
    chain = LastWrites(
        law=np.array([0.3, 0.0, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5]),
        arrivals=0.02,
        batch=3,
        pace=pace,
        begins=0.01 * (number > 3),
        drain=7.0 * number,
        low=3,
        each=5.0,
        idle=0.0,
        idle_pace=pace,
    )

    pace = pace.tolist()

    def wait(place, waiting):
        time = 0.0
        if waiting >= high:
            took = chain.drain[-1] + (waiting - high) * chain.each
            if place <= waiting - chain.low:
                return took * place / (waiting - chain.low)
            time, place, waiting = took, place - (waiting - chain.low), chain.low
        while place > 0:
            goes, begins = pace[waiting], 0.01 * (waiting > chain.low)
            time += draw.expovariate(goes + begins + chain.arrivals)
            what = draw.random() * (goes + begins + chain.arrivals)
            if what < goes:
                place, waiting = place - 1, waiting - 1
                continue
            waiting += chain.batch if what >= goes + begins else 0
            if what < goes + begins or waiting >= high:
                out, took = waiting - chain.low, chain.drain[min(waiting, high - 1)]
                time, place, waiting = time + took * min(place / out, 1.0), place - out, chain.low
        return time

    for coming in (4, 8):
        before = draw.choices(range(chain.law.size), chain.law, k=6_000)
        last = np.array([wait(b + coming, b + coming) for b in before])
        each = np.array([wait(b + draw.randint(1, coming), b + coming) for b in before])
        longer, variance = chain.of(coming, float(coming))
        assert longer == pytest.approx(last.mean() - each.mean(), rel=0.08)
        assert variance == pytest.approx(last.var(), rel=0.08)
