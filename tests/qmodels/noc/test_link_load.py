from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from qmodels.noc import link_load
from qmodels.systems.topology import Topology

checks = settings(derandomize=True, deadline=None, max_examples=30)
topologies = st.one_of(
    st.builds(Topology, kind=st.just("spidergon"), nodes=st.sampled_from([4, 6, 8, 16])),
    st.builds(Topology, kind=st.sampled_from(["ring", "mesh"]), nodes=st.integers(2, 16)),
)


@checks
@given(topologies, st.data())
def test_flow_is_conserved_at_every_node(topology: Topology, data: st.DataObject) -> None:
    nodes = st.integers(0, topology.nodes - 1)
    sources = data.draw(st.lists(nodes, min_size=1, max_size=4, unique=True))
    targets = data.draw(
        st.lists(nodes.filter(lambda n: n not in sources), min_size=1, max_size=4, unique=True)
    )
    load = link_load(topology, tuple(sources), tuple(targets))
    share = dict(zip(load.names, load.share, strict=True))
    for node in range(topology.nodes):
        into = share[f"inject {node}"] + sum(v for k, v in share.items() if k.endswith(f">{node}"))
        out = share[f"eject {node}"] + sum(v for k, v in share.items() if k.startswith(f"{node}-"))
        assert_allclose(into, out, atol=1e-12)
    assert_allclose([share[f"inject {s}"] for s in sources], 1 / len(sources))
    assert_allclose([share[f"eject {t}"] for t in targets], 1 / len(targets))
    assert_allclose(load.mean_links, load.share.sum())
    assert np.all((load.contention >= 0) & (load.contention < 1))


def test_packets_of_one_link_do_not_meet_again() -> None:
    """A chain of links behind one injection link: no contention anywhere but where two sources join."""
    topology = Topology(kind="ring", nodes=5)
    alone = link_load(topology, (0,), (2,))
    assert_allclose(alone.contention, 0)
    joined = link_load(topology, (0, 1), (2,))
    by_name = dict(zip(joined.names, joined.contention, strict=True))
    assert by_name["1->2"] == 0.5
    assert by_name["eject 2"] == 0


def test_uniform_spidergon_matches_its_closed_form() -> None:
    """N = 4m nodes, every node to every other: m^2/(N-1) per ring link, (2m-1)/(N-1) per cross link."""
    nodes, m = 16, 4
    topology = Topology(kind="spidergon", nodes=nodes)
    ring = cross = 0.0
    for source in range(nodes):
        for target in range(nodes):
            if source != target:
                load = link_load(topology, (source,), (target,))
                share = dict(zip(load.names, load.share, strict=True))
                ring += share["0->1"] / (nodes - 1)
                cross += share["0->8"] / (nodes - 1)
    assert_allclose(ring, m**2 / (nodes - 1))
    assert_allclose(cross, (2 * m - 1) / (nodes - 1))
