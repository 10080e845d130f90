"""Even traffic over a network, counted path by path."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.noc import Router, Topology
from qmodels.packet_processor.networks.blocking import FRACTIONS, blocking_factors, blocking_nodes
from qmodels.packet_processor.networks.link_shares import link_shares
from qmodels.packets import ProcessorNoc

KINDS = ["spidergon", "ring", "mesh", "torus"]


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_those_of_the_paths(kind):
    noc = ProcessorNoc(topology=Topology(kind=kind, nodes=16), initiators=5)
    both = noc.networks(3)
    for shares, table in zip(link_shares(noc.structure, 3), (both.requests, both.responses), strict=True):
        paths = [table.path(k) for k in range(15)]
        for name, share, contention in zip(shares.names, shares.share, shares.contention, strict=True):
            through = [path for path in paths if name in path]
            assert_allclose(share, len(through) / 15)
            before = [path[path.index(name) - 1] if path[0] != name else "" for path in through]
            alike = sum((before.count(one) / len(before)) ** 2 for one in set(before)) if before else 1.0
            assert_allclose(contention, 1.0 - alike, atol=1e-12)
        assert_allclose(shares.mean_links, np.mean([len(path) for path in paths]))
        inputs = {(path[-2], path[-1]) for path in paths}
        assert_allclose(shares.end_inputs, len(inputs) / len({path[-1] for path in paths}))


def test_two_sources_for_one_target():
    noc = ProcessorNoc(topology=Topology(kind="ring", nodes=8), initiators=2)
    shares, _ = link_shares(noc.structure, 1)
    number = shares.names.index("1->2")
    assert shares.share[number] == 1.0
    # Half come from the link before, half from the node's own interface.
    assert shares.contention[number] == 0.5
    assert shares.same_target[number] == 1.0
    assert shares.same_source[shares.names.index("inject 0")] == 1.0


def factors(noc, intensity, *, responses=False, short=0.5):
    values = np.atleast_1d(np.asarray(intensity, dtype=float))
    rows, which, weight = blocking_nodes(
        noc.structure,
        [(4, 5, 1)],
        np.zeros(1, dtype=int),
        responses=responses,
        short_share=np.array([short]),
    )
    found = [[blocking_factors(rows[k], value) for k in which[:, 0]] for value in values]
    return np.einsum("dnf,n->fd", np.array(found), weight[:, 0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("responses", [False, True])
def test_blocking_grows_with_load(kind, responses):
    noc = ProcessorNoc(topology=Topology(kind=kind, nodes=16))
    loads = np.linspace(0.0, 0.9, 10)
    used, between, at_end = factors(noc, loads, responses=responses)
    assert np.all(used >= loads)
    assert_allclose(used / np.maximum(loads, 1e-9), used[-1] / loads[-1] * (loads > 0))
    assert np.all(between >= 1.0) and np.all(np.diff(between) >= 0.0)
    assert np.all(at_end >= 1.0) and np.all(np.diff(at_end) >= 0.0)


def test_less_room_saturates_earlier():
    roomy, narrow = (
        ProcessorNoc(router=Router(virtual_channels=vcs, buffer_flits=flits))
        for vcs, flits in ((4, 32), (2, 4))
    )
    assert factors(narrow, 0.5)[0] > factors(roomy, 0.5)[0]


def test_shares_between_the_nodes_are_interpolated():
    noc = ProcessorNoc()
    low, middle, high = (np.array(factors(noc, 0.4, short=short)) for short in (0.5, 0.55, 0.6))
    assert_allclose(middle, (low + high) / 2)
    assert FRACTIONS[-1] < 1.0


def test_a_buffer_of_one_flit_carries_a_flit_per_credit_loop():
    """Two virtual channels of one flit and a loop of five cycles: two flits in five cycles at most."""
    noc = ProcessorNoc(router=Router(virtual_channels=2, buffer_flits=1))
    assert factors(noc, 0.4)[0] >= 1.0 - 1e-3
