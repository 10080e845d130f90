"""Flits, links and paths of the network-on-chip."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels.noc import Router, Topology
from qmodels.packets import ProcessorNoc


@given(width=st.integers(1, 64), header=st.integers(1, 64), payload=st.integers(0, 256))
def test_flits_hold_the_packet_and_no_more(width, header, payload):
    flits = ProcessorNoc(link_width=width, header_bytes=header).flits(payload)
    assert (flits - 1) * width < header + payload <= flits * width


def test_widths_may_be_an_array():
    assert ProcessorNoc(link_width=np.array([8, 16, 32])).flits(64).tolist() == [9, 5, 3]


@pytest.mark.parametrize("kind", ["spidergon", "ring", "mesh", "torus", "crossbar", "bus"])
def test_channels_sit_behind_the_initiators(kind):
    noc = ProcessorNoc(topology=Topology(kind=kind, nodes=8), initiators=4)
    both = noc.networks(3)
    for initiator in range(4):
        for channel in range(3):
            there = both.requests.path(both.flow[0, initiator, channel])
            back = both.responses.path(both.flow[1, initiator, channel])
            assert (there[0], there[-1]) == (f"inject {initiator}", f"eject {4 + channel}")
            assert (back[0], back[-1]) == (f"inject {4 + channel}", f"eject {initiator}")
    assert len(set(both.link_names)) == len(noc.topology.links) + 2 * 8


def test_what_does_not_change_the_paths_shares_them():
    noc = ProcessorNoc()
    other = replace(noc, link_width=np.array([8, 32]), header_bytes=4, clock_ghz=2.0)
    assert other.networks(4) is noc.networks(4)
    assert replace(noc, router=Router(virtual_channels=4)).networks(4) is not noc.networks(4)
