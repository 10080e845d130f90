"""The result of a network: shapes, totals, tables, graphs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels.networks import jackson, mva, qna


@pytest.fixture
def two_classes():
    return mva(
        population={"read": 3, "write": 2},
        mean_service_time={"port": 1.0, "bank": 2.0},
        visits=[[1, 0.5], [1, 1]],
        think_time=1.0,
    )


def test_shapes_and_totals(two_classes):
    r = two_classes
    assert r.stations == ("port", "bank") and r.classes == ("read", "write")
    for name in (
        "throughput",
        "utilization",
        "residence_time",
        "mean_response_time",
        "mean_number_in_system",
    ):
        assert getattr(r, name).shape == (2, 2)
    assert r.system_throughput.shape == r.system_response_time.shape == (2,)
    assert_allclose(r.residence_time, r.visits * r.mean_response_time)
    assert_allclose(r.mean_number_in_system, r.throughput * r.mean_response_time)
    assert r.bottleneck == "bank"
    one = mva(population=3, mean_service_time=[1.0, 2.0])
    assert one.throughput.shape == (2,) and np.ndim(one.system_throughput) == 0
    assert np.ndim(one.mean_number_in_network) == 0 and one.stations == (0, 1) and one.classes == ()


def test_to_dict_and_pandas(two_classes):
    data = two_classes.to_dict()
    for s, station in enumerate(two_classes.stations):
        for c, job_class in enumerate(two_classes.classes):
            assert data[f"throughput[{station}, {job_class}]"] == two_classes.throughput[s, c]
    assert not any(name.startswith("arrival_scv") for name in data)
    assert [name for name in data if name.startswith("system_throughput")] == [
        f"system_throughput[{one}]" for one in two_classes.classes
    ]
    frame = two_classes.to_pandas()
    assert list(frame.columns) == ["metric", "unit", "value"] and list(frame["metric"]) == list(data)[:-1]
    flat = jackson(arrival_rate=[0.5], service_rate=[1], routing=[[0]])
    assert flat["system_throughput"] == 0.5 and flat.stable.all()
    assert "arrival_scv[0]" in qna(arrival_rate=[0.5], service_rate=[1], routing=[[0]]).metrics


def test_tables(two_classes):
    lines = repr(two_classes).splitlines()
    assert lines[0] == "MVA (exact)"
    assert len(lines) == 1 + len(two_classes.metrics) + 1
    assert lines[-1].strip() == "stable; bottleneck: bank"
    html = two_classes._repr_html_()
    assert html.count("<tr>") == len(two_classes.metrics) and "<td>jobs/time</td>" in html


def test_graph_of_a_closed_network_with_classes():
    routing = np.array([[[0, 1.0], [1, 0]], [[0.5, 0.5], [1, 0]]])
    r = mva(population=[2, 1], mean_service_time=[1.0, 2.0], routing=routing)
    graph = r.to_networkx()
    flow = r.throughput[0] @ [1.0, 0.5]
    assert_allclose(graph.edges[0, 1]["flow"], flow)
    assert_allclose(graph.edges[0, 1]["probability"], flow / r.throughput[0].sum())
    assert_allclose(graph.nodes[1]["throughput"], r.throughput[1].sum())
    # What enters a station leaves it.
    for node in graph:
        inflow = sum(data["flow"] for _, _, data in graph.in_edges(node, data=True))
        assert_allclose(inflow, graph.nodes[node]["throughput"])


def test_graph_needs_a_routing(two_classes):
    with pytest.raises(ValueError, match="routing must be given to draw the network, got visits only"):
        two_classes.to_networkx()
