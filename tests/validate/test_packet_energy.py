"""The simulator counts what it spends itself: by hand where chance plays no part, and against the model."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels as qm
from qmodels.packets import Energy
from validate import simulate
from validate.packet_processor.counts import energy_per_packet
from validate.packet_processor.run import Job, run_replication

NOTHING = dict.fromkeys((item.name for item in fields(Energy)), 0.0)
SEGMENTS, CHANNELS, WIDTH, GBPS = 3, 2, 16, 8.0
BASE = qm.PacketProcessor()
# Closed pages, whole packets of three segments, two lookups that always go to a slice.
SPEC = replace(
    BASE,
    workload=qm.Workload(
        sizes=qm.traffic.fixed(bytes=64 * SEGMENTS), offered_gbps=GBPS, lookups_per_packet=2, hold_ns=200.0
    ),
    dram=replace(BASE.dram, channels=CHANNELS, page_policy="closed"),
    llc=replace(BASE.llc, slices=4, slice_lines=8192),
    free_list=replace(BASE.free_list, alloc_trial_count=1, segments=2**16),
    noc=replace(BASE.noc, link_width=WIDTH),
)


@pytest.fixture(scope="module")
def run() -> Any:
    return run_replication(Job(spec=SPEC, seed=1, replication=0, packets=4000))


def misses(run: Any) -> float:
    from validate.packet_processor import counts as c

    return float(run.counts[c.LOOKUPS] - run.counts[c.LOOKUP_HITS]) / float(run.counts[c.LEFT_PACKETS])


def per_packet(run: Any, price: str) -> float:
    return energy_per_packet(replace(SPEC, energy=Energy(**NOTHING | {price: 1.0})), run)


def test_events_of_a_packet_by_hand(run: Any) -> None:
    """Two walks of three segments, two lookups; a missed one opens a row. To 1 %: packets cut at the ends."""
    accesses = 2 * SEGMENTS + misses(run)
    assert_allclose(per_packet(run, "burst_nj"), accesses, rtol=0.01)
    assert_allclose(per_packet(run, "activation_nj"), accesses, rtol=0.01)
    assert_allclose(per_packet(run, "lookup_nj"), 2.0, rtol=0.01)
    # Enqueue: 2 of the packet, 1 + 1 a segment; dequeue: 3 of the packet, 1 a segment.
    assert_allclose(per_packet(run, "pointer_nj"), 2 + SEGMENTS * 2 + 3 + SEGMENTS, rtol=0.01)


def test_flits_are_counted_on_every_link(run: Any) -> None:
    """The links of a path, ends included, averaged over engines and channels of each network."""
    both = SPEC.noc.networks(CHANNELS)
    links = [np.diff(table.path_start).mean() for table in (both.requests, both.responses)]
    data, request, reads = int(SPEC.segment_flits), int(SPEC.request_flits), SEGMENTS + misses(run)
    flits = (SEGMENTS * data + reads * request) * links[0] + reads * data * links[1]
    assert_allclose(per_packet(run, "hop_pj_per_byte"), flits * WIDTH / 1000, rtol=0.02)


@pytest.mark.parametrize(
    ("price", "parts"),
    [("channel_mw", CHANNELS), ("slice_mw", 4), ("router_mw", 16), ("router_mw_per_byte", 16 * WIDTH)],
)
def test_parts_that_are_on(run: Any, price: str, parts: int) -> None:
    """A milliwatt is shared by the packets of its time: 192 ns apart at 8 Gb/s."""
    assert_allclose(per_packet(run, price), parts * (64 * SEGMENTS * 8 / GBPS) / 1000, rtol=0.05)


def test_an_error_in_the_models_energy_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    import qmodels.packet_processor.answer as answer

    run = simulate(SPEC, packets=2000, replications=3, seed=1)
    assert abs(qm.solve(SPEC).energy_per_packet / run.energy_per_packet.best - 1) < 0.02
    right = answer.energy_per_packet
    monkeypatch.setattr(
        answer, "energy_per_packet", lambda spec, **events: right(spec, **events | {"bursts": 0.0})
    )
    again = simulate(SPEC, packets=2000, replications=3, seed=1)
    assert again.energy_per_packet.best == run.energy_per_packet.best
    assert abs(qm.solve(SPEC).energy_per_packet / run.energy_per_packet.best - 1) > 0.1
