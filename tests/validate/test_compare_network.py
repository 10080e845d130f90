"""Solved networks beside their simulation: one set of names, and intervals that hold the exact values."""

import numpy as np
import pytest

from qmodels import JobClass, QueueingNetwork, Station, single_station
from qmodels.laws import Erlang, Exponential, Geometric, HyperExponential, LogNormal
from qmodels.systems.stations.parts import ForkJoin
from validate import compare

INF = float("inf")
POISSON, UNIT = Exponential(mean=1.6), Exponential(mean=1.0)
LONG = Erlang(mean=2.0, phases=2)


def two_classes(discipline):
    return QueueingNetwork(
        stations=[Station(name="q", service={"a": Exponential(mean=0.5), "b": LONG}, discipline=discipline)],
        classes=[
            JobClass(name="a", arrivals=Exponential(mean=2.0)),
            JobClass(name="b", arrivals=Exponential(mean=6.0), priority=1),
        ],
    )


def a_network(classes, **station):
    return QueueingNetwork(
        stations=[
            Station(name="cpu", service=Exponential(mean=0.2)),
            Station(name="disk", service=Exponential(mean=0.4), **station),
        ],
        classes=classes,
        routing={"cpu": {"disk": 0.5}, "disk": "cpu"},
    )


EXACT = {
    "M/M/2": single_station(arrivals=Exponential(mean=0.8), service=UNIT, servers=2),
    "M/E2/1": single_station(arrivals=POISSON, service=Erlang(mean=1.0, phases=2)),
    "M/G/1-PS": single_station(arrivals=POISSON, service=LogNormal(mean=1.0, scv=2.0), discipline="sharing"),
    "M/M/1/4": single_station(arrivals=POISSON, service=UNIT, capacity=4),
    "M/M/1+M": single_station(arrivals=POISSON, service=UNIT, patience=Exponential(mean=3.0)),
    "vacations": single_station(arrivals=POISSON, service=UNIT, vacation=LONG),
    "vacation, one": single_station(arrivals=POISSON, service=UNIT, vacation=LONG, multiple_vacations=False),
    "set-up": single_station(arrivals=POISSON, service=UNIT, setup=LONG),
    "set-up for three": single_station(arrivals=POISSON, service=UNIT, setup=LONG, setup_threshold=3),
    "batches": single_station(arrivals=Exponential(mean=3.2), service=UNIT, batch=Geometric(mean=2.0)),
    "rates": single_station(arrivals=Exponential(mean=0.5), service=UNIT, rate_multiplier=[1, 2, 3]),
    "delay": single_station(arrivals=POISSON, service=LogNormal(mean=1.0, scv=4.0), servers=INF),
    "LIFO, hyperexponential": single_station(
        arrivals=POISSON,
        service=HyperExponential(probabilities=[0.9, 0.1], means=[0.5, 5.5]),
        discipline="lifo-preemptive",
    ),
    "Geo/Geo/1": single_station(arrivals=Geometric(mean=5.0), service=Geometric(mean=3.0), clocked=True),
    "priorities": two_classes("priority"),
    "preemption": two_classes("priority-preemptive"),
    "BCMP": two_classes("lifo-preemptive"),
    "Jackson": a_network(JobClass(arrivals=Exponential(mean=1.0)), servers=2),
    "mixed": QueueingNetwork(
        stations=[
            Station(name="a", service=LONG, discipline="sharing"),
            Station(name="b", service=Exponential(mean=1.6)),
        ],
        classes=[
            JobClass(name="open", arrivals=Exponential(mean=6.0)),
            JobClass(name="closed", population=3),
        ],
        routing={("a", "open"): "b", ("a", "closed"): "b", ("b", "closed"): "a"},
    ),
    "two classes in turn": QueueingNetwork(
        stations=Station(name="s", service=UNIT, discipline="sharing"),
        classes=[JobClass(name="ask", arrivals=Exponential(mean=3.0)), JobClass(name="reply")],
        routing={("s", "ask"): ("s", "reply")},
    ),
    "fork": QueueingNetwork(
        stations=[Station(name="a", service=UNIT), Station(name="b", service=UNIT)],
        classes=JobClass(arrivals=Exponential(mean=2.0), entry="f"),
        forks=[ForkJoin(name="f", branches=["a", "b"])],
    ),
    "closed": QueueingNetwork(
        stations=[
            Station(name="think", service=LONG, servers=INF),
            Station(name="cpu", service=UNIT),
            Station(name="disk", service=Exponential(mean=2.0), servers=2),
        ],
        classes=[JobClass(name="a", population=3), JobClass(name="b", population=2, reference="cpu")],
        routing={
            "think": "cpu",
            ("cpu", "a"): {"disk": 0.4, "think": 0.6},
            ("cpu", "b"): "disk",
            "disk": "cpu",
        },
    ),
}


@pytest.mark.in_ci(5)
@pytest.mark.parametrize("name", EXACT)
def test_exact_answers_lie_inside_their_intervals(name):
    comparison = compare(EXACT[name], passages=40_000, replications=16, seed=5, confidence=0.999)
    assert comparison.model.kind == "exact" and comparison.reference.stable
    assert {"throughput", "mean_response_time"} <= {metric.partition("[")[0] for metric in comparison.rows}
    outside = [row for row in comparison.rows.values() if not row.inside]
    # At most one of about 20 correlated metrics, and that one by little.
    assert len(outside) <= 1, outside
    for row in outside:
        assert abs(row.error) <= 1.5 * row.reference.half_width, row
    for metric, row in comparison.rows.items():
        if metric.startswith(("mean_response_time", "throughput")):
            assert row.reference.relative_half_width < 0.05, row


def test_a_sweep_of_networks_with_its_curve():
    loads = [0.2, 0.5, 0.8]
    specs = [single_station(arrivals=Exponential(mean=1 / load), service=UNIT) for load in loads]
    sweep = compare(specs, passages=20_000, replications=4, seed=1)
    np.testing.assert_allclose(sweep.loads, loads)
    assert [one.points for one in sweep.error_map()["mean_response_time"]] == [1, 1, 1]
    assert max(one.mean for one in sweep.error_map()["mean_response_time"]) < 10
    assert [one["classes.job.arrivals.mean"] for one in sweep.settings] == [5.0, 2.0, 1.25]
    axes = sweep.plot("mean_response_time").axes[0]
    curve = np.array(axes.get_lines()[0].get_xydata())
    np.testing.assert_allclose(curve[:, 1], 1 / (1 - 1 / curve[:, 0]))
    assert axes.get_xlabel() == "classes.job.arrivals.mean"
    by_load = sweep.plot("mean_response_time", x="load").axes[0]
    assert by_load.get_xlabel() == "load"


def test_an_overloaded_network_is_so_in_both():
    comparison = compare(
        single_station(arrivals=Exponential(mean=0.5), service=UNIT), passages=20_000, replications=8
    )
    row = comparison["mean_response_time"]
    assert row.model == row.reference.best == INF and row.error == 0 and row.inside
