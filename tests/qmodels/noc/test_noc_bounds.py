from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import Noc, crossbar, mesh
from qmodels.noc import PacketClass, QosRule, Router, Topology, uniform
from qmodels.noc.bounds import latency_bounds
from qmodels.noc.solve_noc import solve_noc
from qmodels.systems.noc.patterns import RateMatrix
from qmodels.systems.noc.topology import LABELLED, positions

CIRCUITS = (QosRule(source=0, target=8, circuit=True), QosRule(source=1, target=8, circuit=True))
NOC = Noc(
    topology=mesh(3, 3), traffic=uniform(nodes=9), flits_per_packet=4, injection_rate=0.05, qos=CIRCUITS
)


def of(noc, bounds, source, target):
    table = noc.flow_table()
    return bounds[(table.source == source) & (table.target == target)][0]


def test_a_circuit_alone_is_as_fast_as_at_zero_load():
    noc = replace(NOC, qos=CIRCUITS[:1])
    bounds = latency_bounds(noc)
    assert of(noc, bounds, 0, 8) == 5 * 3 + 2 + 3
    # A burst of three packets waits for itself.
    assert_allclose(of(noc, latency_bounds(noc, burst_packets=3.0), 0, 8), 20 + 8)


def test_only_circuits_have_bounds_without_priorities():
    bounds = latency_bounds(NOC)
    assert np.isfinite(bounds).sum() == 2
    two = of(NOC, bounds, 0, 8)
    assert two > of(NOC, latency_bounds(replace(NOC, qos=CIRCUITS[:1])), 0, 8)
    # More traffic of others leaves it as it is; more of the circuits does not.
    assert of(NOC, latency_bounds(replace(NOC, flits_per_packet=5)), 0, 8) > two


def test_bounds_are_above_means_and_grow_with_the_load():
    classes = tuple(PacketClass(flits=4, priority=k) for k in range(3))
    noc = replace(NOC, qos=(), mix=classes, router=Router(arbitration="priority"), injection_rate=0.004)
    bounds = latency_bounds(noc)
    assert np.isfinite(bounds).all()
    assert np.all(bounds >= solve_noc(noc).flows["packet_latency"])
    more = latency_bounds(replace(noc, injection_rate=0.006))
    assert np.all(more >= bounds)
    by_class = [bounds[noc.flow_table().packet_class == k].mean() for k in range(3)]
    assert by_class[0] < by_class[1] < by_class[2]
    assert np.isinf(latency_bounds(replace(noc, injection_rate=0.5))).any()


def test_one_output_of_a_crossbar_by_hand():
    rates = ((0, 0, 1), (0, 0, 1), (0, 0, 0))
    rules = (QosRule(source=0, circuit=True), QosRule(source=1, circuit=True))
    noc = Noc(
        topology=crossbar(3),
        traffic=RateMatrix(rates=rates),
        flits_per_packet=4,
        injection_rate=0.1,
        qos=rules,
    )
    rho = 0.4
    bound = latency_bounds(noc)[0]
    # D = D0 - L + b/(1-rho) + (b + rho D)/(1-rho), of both alike.
    assert_allclose(bound, 8 - 4 + 4 / (1 - rho) + (4 + rho * bound) / (1 - rho), rtol=1e-6)


def test_messages():
    with pytest.raises(ValueError, match="burst_packets must be >= 1, got 0.5"):
        latency_bounds(NOC, burst_packets=0.5)
    with pytest.raises(ValueError, match="injection_rate must be one number for bounds, got"):
        latency_bounds(replace(NOC, injection_rate=(0.1, 0.2)))


SHAPES = {
    "spidergon": {"nodes": 16},
    "ring": {"nodes": 5},
    "mesh": {"nodes": 24, "shape": (3, 4), "concentration": 2},
    "torus": {"nodes": 27, "shape": (3, 3, 3)},
    "crossbar": {"nodes": 6},
    "bus": {"nodes": 6},
    "custom": {"nodes": 4, "edges": ((0, 1), (1, 2), (2, 3), (3, 0), (1, 0))},
}


def drawn(topology):
    """Return the texts and the arrows of a topology's picture."""
    (axes,) = topology.plot().axes
    texts = {text.get_text() for text in axes.texts} - {""}
    return texts, [text.arrow_patch for text in axes.texts if getattr(text, "arrow_patch", None)]


@pytest.mark.parametrize("kind", SHAPES)
def test_every_link_and_node_is_drawn_once(kind):
    topology = Topology(kind=kind, **SHAPES[kind])
    places = positions(topology)
    apart = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(len(places))
    assert places.shape == (topology.routers, 2) and apart.min() > 0.2
    (axes,) = topology.plot().axes
    for at, (low, high) in zip(places.T, (axes.get_xlim(), axes.get_ylim()), strict=True):
        assert low < at.min() and at.max() < high, "routers outside the picture"
    texts, arrows = drawn(topology)
    assert len(arrows) == len({tuple(sorted(link)) for link in topology.links})
    nodes = {str(node) for node in range(topology.nodes)}
    assert texts == ({f"{n}-{n + 1}" for n in range(0, 24, 2)} if kind == "mesh" else nodes)


def test_a_link_one_way_is_an_arrow_and_roles_have_colours():
    _, arrows = drawn(Topology(kind="custom", **SHAPES["custom"]))
    heads = [type(arrow.get_arrowstyle()).__name__ for arrow in arrows]
    assert sorted(heads) == ["Curve", "CurveFilledB", "CurveFilledB", "CurveFilledB"]
    figure = Topology(kind="ring", nodes=3, roles=("initiator", "memory", "both")).plot()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["initiator", "memory", "both"]
    assert len({text.get_color() for text in figure.axes[0].texts if text.get_text().isdigit()}) == 3


def test_many_nodes_are_not_numbered_and_a_notebook_shows_it_at_once():
    topology = Topology(kind="mesh", nodes=LABELLED * 2)
    assert drawn(topology)[0] == set()
    assert topology.plot()._repr_png_().startswith(b"\x89PNG")
