"""What may not change the answer, and what changes it in a known way: units, order, parts by hand."""

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from optimize import get_field, replace_fields
from qmodels import PacketProcessor, traffic
from qmodels.packet_processor.answer import energy_per_packet
from qmodels.packet_processor.design import columns
from qmodels.packet_processor.latency import _slowest
from qmodels.packets import Energy
from qmodels.systems.memory.memory_map import scatter

RICH = replace_fields(
    qm.PacketProcessor(),
    {
        "workload.offered_gbps": 35.0,
        "workload.lookups_per_packet": 2,
        "workload.hold_ns": 3000.0,
        "free_list.alloc_trial_count": 3,
        "dram.interleaving_step": 4,
        "dram.refresh_interval_cycles": 3000,
        "dram.refresh_cycles": 60,
    },
)
BURSTS = replace_fields(RICH, {"workload.arrivals": traffic.OnOff(on_packets=8, peak_to_mean=2.0)})
CLOSED = replace_fields(
    RICH, {"dram.page_policy": "closed", "dram.bank_step": 1, "free_list.alloc_trial_count": 2}
)
FEW = replace_fields(
    RICH,
    {"workload.hold_ns": 20_000.0, "free_list.segments": 300, "free_list.small_packet_segments": 1,
     "free_list.vms1_share": 0.7},
)  # fmt: skip
SPECS = {"open": RICH, "closed": CLOSED, "bursts": BURSTS, "short lists": FEW}
each = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
CLOCKS = tuple(f"{part}.clock_ghz" for part in ("noc", "dram", "llc", "free_list"))
POWERS = tuple(f"energy.{part}_mw" for part in ("channel", "slice", "router"))
RATES = (*CLOCKS, *POWERS, "energy.router_mw_per_byte", "workload.offered_gbps")


@each
def test_all_clocks_twice_as_fast_halve_all_times_and_change_nothing_else(spec: qm.PacketProcessor) -> None:
    fields = {name: 2.0 * get_field(spec, name) for name in RATES}
    fast = replace_fields(spec, fields | {"workload.hold_ns": spec.workload.hold_ns / 2.0})
    slow, fast = qm.solve(spec), qm.solve(fast)
    assert slow.stable
    for name, value in slow.metrics.items():
        power = {"latency": -1, "latency_p99": -1, "data_rate": 1}
        factor = 2.0 ** next((p for end, p in power.items() if name.endswith(end)), 0)
        assert_allclose(fast.metrics[name], factor * value, rtol=2e-6, err_msg=name)
    for name, value in slow.traffic_intensity.items():
        assert_allclose(fast.traffic_intensity[name], value, rtol=1e-6, err_msg=name)


@each
def test_sizes_of_as_many_segments_are_one_size(spec: qm.PacketProcessor) -> None:
    two, three = (
        qm.solve(replace_fields(spec, {"workload.sizes": traffic.SizeLaw(bytes=sizes, probability=law)}))
        for sizes, law in (((62, 594), (0.5, 0.5)), ((60, 64, 594), (0.25, 0.25, 0.5)))
    )
    for name, value in two.metrics.items():
        assert_allclose(three.metrics[name], value, rtol=1e-9, err_msg=name)


def test_slices_and_banks_are_as_full_as_lookups_make_them() -> None:
    """Counted entry by entry, for a table whose lookups miss now and then."""
    spec = RICH
    c = columns(replace_fields(spec, {"dram.channels": np.array([4])}))
    found, packets = qm.solve(spec), spec.workload.packet_rate
    law = np.asarray(spec.workload.popularity.probabilities())
    slices = np.zeros(spec.llc.slices)
    np.add.at(slices, scatter(np.arange(law.size)) % spec.llc.slices, law)
    busiest = packets * 2 * slices.max() * spec.llc.access_cycles / spec.llc.clock_ghz
    assert slices.max() > 1.01 / spec.llc.slices
    assert_allclose(found.utilization["llc slices"], busiest)
    # The bus: every segment twice, and those lookups that miss, unevenly.
    data = 2 * c.mean_segments * spec.dram.burst_cycles / spec.dram.clock_ghz / spec.channels
    misses = 2 * (1 - found.llc_hit_ratio) * spec.dram.burst_cycles / spec.dram.clock_ghz
    lookups = found.utilization["dram buses"] / packets - data
    assert misses / spec.channels < lookups < 1.05 * misses / spec.channels


def test_the_pointer_memory_is_as_full_as_its_accesses_make_it() -> None:
    base = replace_fields(
        RICH, {"free_list.alloc_trial_count": 1, "workload.sizes": traffic.fixed(bytes=256)}
    )
    free = base.free_list
    for small in (0, 4):
        found = qm.solve(replace_fields(base, {"free_list.small_packet_segments": small}))
        each = 4 * (1 + free.enqueue_accesses + free.dequeue_accesses) + (3 if small else 0)
        work = free.enqueue_packet_accesses + free.dequeue_packet_accesses + each
        assert_allclose(
            found.utilization["pointer memory"], base.workload.packet_rate * work / free.clock_ghz
        )


@pytest.mark.parametrize("segments", [1, 2, 5])
def test_a_lone_packet_of_several_segments_by_hand(segments: int) -> None:
    """Blocks that follow one another are on as many banks: each access is served as it comes.

    Next to each other, one engine and one channel, closed pages, a flit of a segment in a cycle each.
    """
    base = qm.PacketProcessor()
    spec = replace(
        base,
        workload=replace(
            base.workload, sizes=traffic.fixed(bytes=64 * segments), lookups_per_packet=0, offered_gbps=1e-6
        ),
        noc=replace(base.noc, topology=qm.noc.Topology(kind="ring", nodes=2), initiators=1, link_width=8),
        dram=replace(base.dram, channels=1, page_policy="closed", bank_step=1, banks=16, clock_ghz=4.0),
        free_list=replace(base.free_list, alloc_trial_count=1),
    )
    result = qm.solve(spec)
    way, memory = 0.5 + 2 * 3.0 + 1.0, (4 + 12) / 4.0
    segment = spec.segment_flits / spec.noc.clock_ghz
    pointer = 2.0  # an allocation: the block, and its link
    write = 2 + pointer + way + segment + memory + (segments - 1) * max(pointer, segment)
    # The way back passes on one block after the other.
    read = 3 + 1 + way + spec.request_flits + memory + way + segment + (segments - 1) * segment
    assert segment > spec.request_flits
    assert_allclose([result.write_latency, result.read_latency], [write, read], rtol=1e-4)


@pytest.mark.parametrize("spec", [RICH, CLOSED], ids=["open", "closed"])
@pytest.mark.parametrize(
    "field",
    [
        *(f"dram.{name}_cycles" for name in ("precharge", "burst", "recovery", "access", "refresh")),
        "llc.access_cycles", "llc.bus_cycles", "workload.lookups_per_packet", "noc.header_bytes",
        *(f"free_list.{name}" for name in (
            "enqueue_accesses", "dequeue_accesses", "enqueue_packet_accesses", "dequeue_packet_accesses",
        )),
    ],
)  # fmt: skip
def test_nothing_gets_faster_with_more_to_do(spec: qm.PacketProcessor, field: str) -> None:
    value = get_field(spec, field)
    found = qm.solve(
        replace_fields(
            spec,
            {
                field: value
                + np.array([0, 1, 3]) * (spec.noc.link_width if field == "noc.header_bytes" else 1)
            },
        )
    )
    if spec is CLOSED and field == "dram.precharge_cycles":  # rows are closed beforehand
        assert np.ptp(found.packet_latency) == 0.0
        return
    assert np.all(np.diff(found.packet_latency) > 0.0)
    assert np.all(np.diff(found.saturation_data_rate) <= 1e-5 * found.saturation_data_rate[0])


def largest(k: int, decay: float, probability: float) -> float:
    """Return the mean of the largest of k waits with P(W > x) = p exp(-d x), by quadrature."""
    x, w = np.polynomial.legendre.leggauss(80)
    t = 20.0 / decay * (1 + x)
    return float(20.0 / decay * w @ (1.0 - (1.0 - probability * np.exp(-decay * t)) ** k))


def test_a_packet_waits_for_the_slowest_of_its_channels() -> None:
    """All of them where they are asked at once, only the last one where the others have long been done."""
    c: Any = columns(
        replace_fields(RICH, {"dram.channels": np.array([1, 2, 4]), "dram.interleaving_step": 1})
    )
    decay, probability = np.array([0.02, 0.05, 0.1]), np.array([0.3, 0.6, 0.9])
    together = _slowest(c, decay, probability, np.zeros(3))
    apart = _slowest(c, decay, probability, np.full(3, 1e4))
    touched = np.minimum(c.segments, np.array([[1], [2], [4]]))
    exact = [
        [largest(int(k), d, p) for k in row] for row, d, p in zip(touched, decay, probability, strict=True)
    ]
    assert_allclose(together, exact, rtol=1e-6)
    assert_allclose(apart, np.broadcast_to((probability / decay)[:, None], apart.shape), rtol=1e-6)
    between = _slowest(c, decay, probability, np.full(3, 20.0))
    assert np.all((between >= apart - 1e-9) & (between <= together + 1e-9)) and np.any(between < together)


BASE = PacketProcessor()
SPEC = replace(
    BASE,
    noc=replace(BASE.noc, initiators=8, link_width=8),
    dram=replace(BASE.dram, channels=3),
    llc=replace(BASE.llc, slices=2, slice_lines=1024),
)
EVENTS = {
    "activations": 2.0,
    "bursts": 10.0,
    "flit_hops": 500.0,
    "pointer_accesses": 20.0,
    "lookups": 4.0,
    "packet_rate": 0.01,
}

PER_PACKET = {
    "activation_nj": 2,
    "burst_nj": 10,
    "hop_pj_per_byte": 500 * 8 / 1000,
    "pointer_nj": 20,
    "lookup_nj": 4,
    # A milliwatt during the 100 ns between packets is 0.1 nJ.
    "channel_mw": 3 * 0.1,
    "slice_mw": 2 * 0.1,
    "router_mw": 16 * 0.1,
    "router_mw_per_byte": 16 * 8 * 0.1,
}


def test_every_price_has_its_events():
    assert set(PER_PACKET) == {item.name for item in fields(Energy)}


@pytest.mark.parametrize(("price", "parts"), PER_PACKET.items())
def test_energy_counts_the_events(price, parts):
    nothing = Energy(**dict.fromkeys(PER_PACKET, 0))
    assert energy_per_packet(replace(SPEC, energy=nothing), **EVENTS) == 0
    assert energy_per_packet(replace(SPEC, energy=replace(nothing, **{price: 1})), **EVENTS) == pytest.approx(
        parts, rel=1e-12
    )


def test_lookups_without_slices_cost_no_slice_energy():
    without = replace(SPEC, llc=replace(SPEC.llc, slices=0))
    only_lookups = Energy(**dict.fromkeys(PER_PACKET, 0) | {"lookup_nj": 1})
    assert energy_per_packet(replace(without, energy=only_lookups), **EVENTS) == 0


SYSTEM_SPECS = {
    "default": qm.PacketProcessor(),
    "controllers": qm.PacketProcessor(dram=qm.dram("DDR5-6400", channels=8)),
    "no slices": qm.PacketProcessor(llc=replace(qm.PacketProcessor().llc, slices=0)),
    "no lookups": qm.PacketProcessor(workload=qm.Workload(lookups_per_packet=0)),
}


def test_slices_are_beside_the_network():
    system = qm.PacketProcessor().system()
    nodes = system.network.topology.nodes
    assert system.place["slice"] == tuple(range(nodes, nodes + 4)) and system.places == nodes + 4
    assert (
        "slice" not in SYSTEM_SPECS["no slices"].system().parts
        and "llc" not in SYSTEM_SPECS["no lookups"].system().parts
    )


@pytest.mark.parametrize("name", SYSTEM_SPECS)
def test_what_has_no_model_is_refused_in_a_line(name):
    with pytest.raises(ValueError, match="^system must have a model for all it has, got none for .*replies"):
        qm.solve(SYSTEM_SPECS[name].system())
