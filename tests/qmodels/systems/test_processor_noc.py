"""Flits, links and paths of the network-on-chip."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmodels.systems.processor_noc import ProcessorNoc, link_names, link_path
from qmodels.systems.topology import Topology

quick = settings(max_examples=40, deadline=None, derandomize=True)


# 128-byte packets with 8-byte headers on links of 8, 16 and 32 bytes; 64-byte segments; bare requests.
@pytest.mark.parametrize(
    ("width", "payload", "flits"),
    [(8, 128, 17), (16, 128, 9), (32, 128, 5), (8, 64, 9), (16, 64, 5), (32, 64, 3), (8, 0, 1), (32, 0, 1)],
)
def test_flits_by_hand(width, payload, flits):
    assert ProcessorNoc(link_width=width).flits(payload) == flits


@quick
@given(width=st.integers(1, 64), header=st.integers(1, 64), payload=st.integers(0, 256))
def test_flits_hold_the_packet_and_no_more(width, header, payload):
    flits = ProcessorNoc(link_width=width, header_bytes=header).flits(payload)
    assert (flits - 1) * width < header + payload <= flits * width


def test_widths_may_be_an_array():
    assert ProcessorNoc(link_width=np.array([8, 16, 32])).flits(64).tolist() == [9, 5, 3]


@quick
@given(
    nodes=st.sampled_from([8, 16, 32]), kind=st.sampled_from(["spidergon", "ring", "mesh"]), data=st.data()
)
def test_link_paths_follow_the_route(nodes, kind, data):
    topology = Topology(kind=kind, nodes=nodes)
    names = link_names(topology)
    source, target = data.draw(st.integers(0, nodes - 1)), data.draw(st.integers(0, nodes - 1))
    route = topology.route(source, target)
    expected = [
        f"inject {source}",
        *(f"{u}->{v}" for u, v in zip(route, route[1:], strict=False)),
        f"eject {target}",
    ]
    assert [names[k] for k in link_path(topology, source, target)] == expected
    assert len(set(names)) == len(names) == len(topology.links) + 2 * nodes


def test_channels_sit_behind_the_initiators():
    noc = ProcessorNoc(topology=Topology(kind="ring", nodes=8), initiators=4)
    assert noc.path(0, 0) == (0, 1, 2, 3, 4)
    assert noc.path(1, 3)[-1] == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"link_width": 0}, "noc.link_width must be a whole number >= 1, got 0"),
        ({"link_width": 1.5}, "noc.link_width must be a whole number >= 1, got 1.5"),
        ({"header_bytes": 0}, "noc.header_bytes must be a whole number >= 1, got 0"),
        (
            {"payload_bytes": "large"},
            "noc.payload_bytes must be a number or an array of numbers, got 'large'",
        ),
        ({"initiators": 16}, "noc.initiators must be a whole number from 1 to 15, got 16"),
        ({"router_cycles": -1}, "noc.router_cycles must be finite and >= 0, got -1"),
        ({"clock_ghz": 0}, "noc.clock_ghz must be finite and > 0, got 0"),
        ({"clock_ghz": float("nan")}, "noc.clock_ghz must be finite and > 0, got nan"),
        ({"router_cycles": True}, "noc.router_cycles must be a number, not a truth value, got True"),
    ],
)
def test_messages(arguments, message):
    with pytest.raises(ValueError, match=message):
        ProcessorNoc(**arguments)
