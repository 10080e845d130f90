"""The model of a DRAM system over schedulers, streams and steps: against simulation, and within bounds."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels import DramSystem, dram
from qmodels.memory import RandomBlocks, StridedBlocks
from qmodels.memory.dram.order_waits import in_order_banks, ready_first_banks
from qmodels.memory.dram.solve import solve_dram
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved
from qmodels.systems.memory.dram_system import AddressTrace, Packets
from qmodels.systems.memory.dram_timing import PRESETS, abstract
from validate import simulate


def banks(*, busy=12, channels=1, **changes):
    """Return eight banks with bursts of 4 cycles and nothing else."""
    return DramSystem(
        timing=abstract(burst=4, bank_busy=busy),
        geometry=DramGeometry(channels=channels, groups=1, banks=8),
        **({"page_policy": "closed"} | changes),
    )


def at(spec, load):
    """Return a system at a share of what the model says it can serve."""
    rate = load * solve_dram(spec).in_cycles()["saturation_rate"]
    return replace(spec, traffic=replace(spec.traffic, arrival_rate=rate))


def quiet(**changes):
    return dram("DDR4-3200", t_refi=0, t_rfc=0, **changes)


STEP, FOUR = Interleaved(step=2), Interleaved(bank_step=4)
ROWS = Interleaved(step=8, bank_step=4)
ANYWHERE = tuple(int(k) for k in np.random.default_rng(3).integers(1 << 20, size=2000))
MET = [
    banks(scheduler="in-order", traffic=Packets(blocks=8), address_map=Interleaved(bank_step=2)),
    banks(scheduler="in-order", channels=2, traffic=Packets(blocks=3), address_map=STEP),
    banks(scheduler="in-order", page_policy="open", traffic=RandomBlocks(row_hit_probability=0.6)),
    banks(busy=20, scheduler="in-order", traffic=AddressTrace(blocks=ANYWHERE)),
    quiet(scheduler="in-order", page_policy="closed", traffic=Packets(blocks=3), address_map=ROWS),
    quiet(scheduler="in-order", traffic=RandomBlocks(row_hit_probability=0.6)),
    banks(traffic=RandomBlocks()),
    banks(traffic=Packets(blocks=8), channels=2, address_map=Interleaved(step=4, bank_step=2)),
    banks(scheduler="in-order", channels=2, traffic=StridedBlocks(stride=3), address_map=FOUR),
    quiet(scheduler="oldest-ready-first", page_policy="closed", traffic=Packets(blocks=8), address_map=ROWS),
    quiet(traffic=Packets(blocks=3), channels=2, address_map=STEP),
]  # fmt: skip


@pytest.mark.in_ci(2)
@pytest.mark.parametrize("load", [0.4, 0.8])
@pytest.mark.parametrize("spec", MET, ids=range(len(MET)))
def test_waits_and_conflicts_are_simulated(spec, load):
    spec = at(spec, load)
    model, own = solve_dram(spec), simulate(spec, accesses=60_000, replications=20)
    assert model.stable and own.stable
    fixed = float(model.latency_parts["fixed"]) + own.latency_parts["row"].best
    wait = own.read_latency.best - fixed
    noise = own.read_latency.half_width
    # Within 5 % of the wait, of which the simulation must know enough to tell.
    assert noise < 0.05 * wait + 0.02 * fixed
    assert abs(model.read_latency - own.read_latency.best) < 0.05 * wait + noise
    assert_allclose(model.read_conflict_probability, own.read_conflict_probability.best, atol=0.02)


@pytest.mark.in_ci(3)
@pytest.mark.parametrize("spec", MET, ids=range(len(MET)))
def test_the_largest_rate_is_simulated(spec):
    below, above = (simulate(at(spec, load), accesses=40_000, replications=2) for load in (0.95, 1.05))
    assert below.stable is not False and above.stable is not True


def test_the_step_decides_conflicts_in_order():
    """Conflicts of 24-block packets in closed pages at load 0.3 over four channels, by the step."""
    found = []
    for step in (1, 2, 4, 8):
        traffic = Packets(blocks=24, arrival_rate=0.3)
        spec = banks(
            scheduler="in-order",
            channels=4,
            traffic=traffic,
            address_map=Interleaved(step=step, bank_step=step),
        )
        found.append(solve_dram(spec).read_conflict_probability)
    # Reference simulations of issue 14: from .02 to .85.
    assert found[0] < 0.05 and found[-1] > 0.8 and np.all(np.diff(found) > 0.1)


def test_ready_first_is_that_of_its_banks():
    """Only bus and banks: the system is the formula, at any load."""
    for busy in (8, 12, 20):
        rate = np.array([0.05, 0.15, 0.24 if busy < 20 else 0.22])
        known = ready_first_banks(arrival_rate=rate, burst=4, bank_busy=busy, banks=8)
        spec = banks(busy=busy, scheduler="oldest-ready-first", traffic=RandomBlocks(arrival_rate=rate))
        assert_allclose(solve_dram(spec).read_latency, 4 + known.mean_waiting_time)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("policy", "hits", "rate"), [("closed", 0.0, 0.03), ("open", 0.6, 0.2)])
def test_conflicts_of_three_bursts_in_order(policy, hits, rate):
    """Issue 14: .0624 against .036 simulated; with open rows, whose closing takes no time, .457 and .0875."""
    traffic = RandomBlocks(arrival_rate=rate, row_hit_probability=hits)
    spec = banks(scheduler="in-order", page_policy=policy, traffic=traffic)
    own = simulate(spec, accesses=100_000, replications=8).read_conflict_probability
    known = in_order_banks(
        arrival_rate=rate, burst=4, bank_busy=12, banks=8, row_hit_probability=hits
    ).conflict_probability
    assert known == solve_dram(spec).read_conflict_probability
    assert_allclose(known, own.best, atol=0.004)


@st.composite
def any_system(draw):
    traffic = draw(
        st.one_of(
            st.builds(
                RandomBlocks,
                write_fraction=st.sampled_from([0.0, 0.3, 1.0]),
                row_hit_probability=st.sampled_from([0.0, 0.7, 1.0]),
            ),
            st.builds(StridedBlocks, stride=st.integers(1, 300), write_fraction=st.sampled_from([0.0, 0.4])),
            st.builds(Packets, blocks=st.integers(1, 64), spacing=st.sampled_from([0, 1, 9])),
            st.lists(st.integers(0, 1 << 22), min_size=1, max_size=40).map(
                lambda blocks: AddressTrace(blocks=tuple(blocks))
            ),
        )
    )
    return dram(
        draw(st.sampled_from(sorted(PRESETS))),
        channels=draw(st.sampled_from([1, 3, 4])),
        ranks=draw(st.sampled_from([1, 2])),
        page_policy=draw(st.sampled_from(["open", "closed"])),
        scheduler=draw(st.sampled_from(["in-order", "oldest-ready-first", "fr-fcfs"])),
        address_map=Interleaved(
            step=draw(st.sampled_from([1, 2, 8, 100])), bank_step=draw(st.sampled_from([1, 4, 128, 5000]))
        ),
        traffic=traffic,
    )


@pytest.fixture(scope="module")
def compiled():
    """Compile before memory is watched."""
    for scheduler in ("in-order", "fr-fcfs"):
        for traffic in (Packets(blocks=2), StridedBlocks()):
            solve_dram(quiet(scheduler=scheduler, traffic=traffic))


@settings(max_examples=12)
@given(spec=any_system(), load=st.sampled_from([0.0, 0.3, 0.9, 1 - 1e-9]))
def test_time_and_memory_are_bounded(compiled, spec, load):
    """Whatever the system and the load; a wait that filled its resource asked for 512 GiB."""
    tracemalloc.start()
    try:
        began = time.process_time()
        answer = solve_dram(at(spec, load))
        assert time.process_time() - began < 10
        assert tracemalloc.get_traced_memory()[1] < 300e6
    finally:
        tracemalloc.stop()
    assert answer.stable and np.isfinite(answer.read_latency) and np.isfinite(answer.read_latency_p99)
    # Below capacity no resource is full for good, where one took 1e9 cycles.
    assert load > 0.9 or answer.in_cycles()["read_latency"] < 1e6


def test_a_stream_that_stays_in_a_group_is_solved():
    spec = dram("DDR4-3200", traffic=StridedBlocks(arrival_rate=0.15), address_map=Interleaved(bank_step=128))
    answer = solve_dram(spec)
    # Each group is full for as long as the stream stays: simulated, 179 cycles.
    assert answer.stable and 150 < answer.in_cycles()["read_latency"] < 210


@pytest.mark.parametrize("device", ["DDR5-6400", "DDR4-3200"])
def test_accesses_in_order_wait_for_the_refreshes_of_all_ranks(device):
    """Of one rank, the model was stable at 1.04 of what the simulation carries, and 20 % too fast at half."""
    spec = dram(device, ranks=2, scheduler="in-order", traffic=RandomBlocks())
    found = {load: at(spec, load) for load in (0.5, 1.05)}
    runs = {load: simulate(each, replications=2) for load, each in found.items()}
    assert solve_dram(found[0.5]).read_latency == pytest.approx(runs[0.5].read_latency.best, rel=0.08)
    assert runs[0.5].stable and runs[1.05].stable is False
    slower = at(spec, 0.93)
    assert simulate(slower, replications=2).stable is not False and solve_dram(slower).stable


@pytest.mark.parametrize("traffic", [Packets(blocks=16, write_fraction=0.3), RandomBlocks()])
def test_ranks_that_are_refreshed_most_of_the_time_leave_something(traffic):
    """Of four ranks each is refreshed for a quarter of it: there was less than nothing left."""
    spec = dram("DDR5-6400", ranks=4, scheduler="in-order", t_rfc=2769, t_refi=10619, traffic=traffic)
    assert 0 < solve_dram(spec).in_cycles()["saturation_rate"] < 0.1
