"""Random systems of all kinds of parts: nothing is lost in any, and Little's law holds in every part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import CacheLevel, CacheSystem, Flow, Noc, Station, System, Tokens, dram, mesh, ring
from qmodels.laws import Deterministic, Exponential
from qmodels.noc import Router, uniform
from qmodels.packets import FreeList
from qmodels.steps import (
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Hold,
    Lookup,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
)
from qmodels.traffic import Poisson, Zipf, bimodal
from validate.composed.kernels import memories_of
from validate.composed.replication import advance
from validate.composed.world import new_machine
from validate.network.state import FREE

PARTS = {
    "noc": Noc(topology=mesh(3, 2), traffic=uniform(nodes=6), clock_ghz=1.25),
    "dram": dram("DDR4-3200", channels=3),
    "slow": dram("gem5-DDR2-800", scheduler="in-order"),
    "llc": CacheSystem(
        popularity=Zipf(entries=50, exponent=0.8), cores=2, private=(CacheLevel(lines=3),),
        shared=CacheLevel(lines=10, slices=2),
    ),
    "list": FreeList(segments=40, alloc_trial_count=2),
    "unit": Station(service=Exponential(mean=5.0), servers=2),
    "small": Station(service=Exponential(mean=9.0), capacity=2),
    "tokens": Tokens(count=5),
}  # fmt: skip
PLACES = st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True).map(tuple)
SIZES = bimodal(small=64, large=192, small_fraction=0.5)
ADDRESSES = st.sampled_from(["random", "sequential", "allocated"])
COUNTS = st.integers(1, 4) | st.just("segments")
BYTES = st.integers(0, 90)
LEAVES = st.one_of(
    st.builds(Visit, st.sampled_from(["unit", "small"]), bytes=BYTES, reply_bytes=BYTES),
    st.builds(Send, st.sampled_from(["dram", "unit"]), bytes=st.integers(0, 200)),
    st.builds(Read, st.sampled_from(["slow", "dram"]), COUNTS),
    st.builds(Read, st.just("dram"), COUNTS, ADDRESSES),
    st.builds(Write, st.just("dram"), COUNTS, ADDRESSES),
    st.builds(Hold, st.just(Exponential(mean=20.0)), counted=st.booleans()),
)  # fmt: skip


def nested(steps):
    some = st.lists(steps, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Repeat, some, st.integers(1, 2)),
        st.builds(Each, some, COUNTS),
        st.lists(some, min_size=2, max_size=3).map(tuple).map(Fork),
        some.map(lambda inner: Branch((inner, ()), (0.6, 0.4))),
        st.builds(Lookup, st.just("llc"), private=some, hit=some, miss=some, reply_bytes=st.just(64)),
    )


PROGRAMS = st.lists(st.recursive(LEAVES, nested, max_leaves=5), min_size=1, max_size=4).map(tuple)
EVERY = (
    Lookup("llc"), Visit("unit"), Visit("small"), Read("slow"), Read("dram"), Acquire("tokens"),
    Release("tokens"),
)  # fmt: skip


@given(
    inner=PROGRAMS, rate=st.floats(1e-4, 1e-2), window=st.none() | st.integers(1, 3),
    population=st.integers(1, 4),
    place=st.fixed_dictionaries({name: PLACES for name in ("dram", "llc", "unit", "tokens")}), at=PLACES,
)  # fmt: skip
def test_nothing_is_lost_in_any_system(inner, rate, window, population, place, at):
    program = (
        Acquire("tokens"), Allocate("list", "segments"), *inner, Free("list"), Release("tokens"), *EVERY,
    )  # fmt: skip
    open_flow = {"arrivals": Poisson(), "rate": rate, "window": window}
    closed = {"population": population, "think": Exponential(mean=10.0)}
    flows = [
        Flow(name=name, sizes=SIZES, at=at, program=program, **fields)
        for name, fields in (("open", open_flow), ("closed", closed))
    ]
    system = System(parts=PARTS, place=place, flows=flows)
    machine, _ = advance(new_machine(system, seed=1, replication=0), ended=60)
    core, kernels, now = machine.core, machine.kernels, machine.world.state["now"][0]
    f, parts = core.flows, dict(zip(PARTS, core.parts, strict=True))
    assert np.array_equal(f["born"], f["ended"] + f["lost"] + f["number"])
    assert np.array_equal(core.holds.sum(axis=0), core.pools["tokens"] - core.pools["free"])
    assert kernels.blocks.lists["length"].sum() + core.strands["blocks"].sum() == 40
    # What has been issued to the memory of the lists and is not done; on the way there, too.
    issued = core.strands["issued"] > 0
    assert kernels.blocks.banks["unfinished"].sum() == issued.sum()
    assert not np.any(machine.world.jobs["phase"][issued] == FREE)
    assert issued.sum() >= parts["dram"]["number"] if memories_of(system, "list") else not issued.any()
    assert parts["noc"]["number"] == kernels.network.packet.size - _free_packets(kernels.network)
    assert core.flow_times.sum() == pytest.approx(f["latency_sum"].sum() + f["uncounted_sum"].sum(), rel=1e-9)
    for name, part in parts.items():
        area = part["number_sum"] + now * part["number"]
        assert area >= part["time_sum"] * (1 - 1e-9), name
        if part["number"] == 0:
            assert area == pytest.approx(part["time_sum"], rel=1e-9, abs=1e-6), name


def _free_packets(network):
    """Return how many packets may be sent: those that were delivered last keep their place for a cycle."""
    from validate.noc.state import DELIVERED, FREE_PACKETS

    return network.clock[FREE_PACKETS] + network.clock[DELIVERED]


def test_a_network_in_a_deadlock_is_seen(simulated):
    # Two hops round a ring each, all at once, with one virtual channel: every packet waits for the next one.
    noc = Noc(
        topology=ring(4), vc_classes="none", link_width=4, traffic=uniform(nodes=4),
        router=Router(virtual_channels=1, buffer_flits=2),
    )  # fmt: skip
    sinks = {f"sink {k}": Station(service=Deterministic(mean=1.0)) for k in range(4)}
    flows = [
        Flow(
            name=f"from {k}",
            population=1,
            at=(k,),
            program=(Send(f"sink {(k + 2) % 4}", bytes=256), Visit(f"sink {k}")),
        )
        for k in range(4)
    ]
    system = System(parts={"noc": noc} | sinks, place={f"sink {k}": k for k in range(4)}, flows=flows)
    result = simulated(system, replications=2, passages=1000)
    assert not result.stable and result.waiting_for == ("noc",)
