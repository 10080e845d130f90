"""The spec of a queueing network: what it says, and what it refuses."""

from __future__ import annotations

import pickle
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from qmodels import JobClass, QueueingNetwork, Station, single_station, tandem
from qmodels.checks import shown
from qmodels.laws import Deterministic, Empirical, Erlang, Exponential, Geometric, Replay
from qmodels.systems.spec.hashing import stable_hash
from qmodels.systems.stations.parts import ForkJoin
from qmodels.systems.stations.routing import LEAVE, Cyclic, Probabilistic, ShortestQueue, StateDependent

ONE = Exponential(mean=1.0)
A, B = (Station(name=name, service=ONE) for name in "ab")
OPEN = JobClass(arrivals=Exponential(mean=2.0))
CLOSED = JobClass(population=3)


def network(stations=(A, B), classes=OPEN, **more):
    return QueueingNetwork(stations=stations, classes=classes, **more)


def test_what_is_not_mentioned_leaves():
    net = network(routing={"a": {"b": 0.5}})
    assert net.nodes == ("a", "b") and net.class_names == ("job",)
    assert np.array_equal(net.routing_matrix[:, 0, :, 0], [[0, 0.5], [0, 0]])
    assert np.array_equal(net.entry_matrix[:, :, 0], [[1, 0]])
    assert net.arrival_rates.tolist() == [0.5]


def test_jobs_may_change_class_on_their_way():
    net = network(
        classes=[OPEN, JobClass(name="reply")],
        routing={"a": {("b", "reply"): 1.0}, ("b", "reply"): {("a", "reply"): 0.25}, ("a", "reply"): LEAVE},
    )
    matrix = net.routing_matrix
    assert matrix[0, 0, 1, 1] == 1 and matrix[1, 1, 0, 1] == 0.25 and matrix.sum() == 1.25
    assert net.visited == {(0, 0), (1, 1), (0, 1)}


def test_batches_count_by_their_jobs():
    net = single_station(arrivals=Exponential(mean=2.0), service=ONE, batch=Geometric(mean=3.0))
    assert net.arrival_rates.tolist() == [1.5]


def test_the_tasks_of_a_fork_visit_its_branches():
    net = network(classes=replace(OPEN, entry="f"), forks=[ForkJoin(name="f", branches=["a", ("a", "b")])])
    assert net.nodes == ("a", "b", "f")
    assert net.visited == {(0, 0), (1, 0), (2, 0)}


def test_rules_that_look_have_no_matrix():
    net = network(routing={"a": ShortestQueue(to=["a", "b"])})
    with pytest.raises(ValueError) as error:
        _ = net.routing_matrix
    assert str(error.value) == "routing out of 'a' must be probabilistic for this, got ShortestQueue"


def test_a_network_is_a_value():
    net = network(routing={"a": Cyclic(to=["b", LEAVE])}, forks=[ForkJoin(name="f", branches=["a"])])
    again = network(routing={"a": Cyclic(to=["b", "leave"])}, forks=ForkJoin(name="f", branches=["a"]))
    assert net == again and stable_hash(net) == stable_hash(again) and hash(net) == hash(again)
    assert pickle.loads(pickle.dumps(net)) == net
    assert replace(net, clocked=False) == net
    other = replace(net, stations=[replace(A, servers=2), B])
    assert other != net and stable_hash(other) != stable_hash(net)


def test_conveniences():
    line = tandem(arrivals=ONE, services=[ONE, Erlang(mean=1.0, phases=2)], capacity=[4, 5], servers=2)
    assert [(s.name, s.capacity, s.servers) for s in line.stations] == [("1", 4, 2), ("2", 5, 2)]
    assert line.routing_matrix[0, 0, 1, 0] == 1
    queue = single_station(arrivals=ONE, service=ONE, servers=inf, name="pool")
    assert queue.stations[0].delay and queue.nodes == ("pool",)


@pytest.mark.parametrize(
    "make",
    [
        lambda: network(routing={"a": {"b": 1.0}, "b": {"a": 0.999}}),
        lambda: network(routing={"a": Cyclic(to=["a", "b"])}),
        lambda: network(routing={"a": ShortestQueue(to=["a", "b"])}),
        lambda: network(routing={"a": StateDependent(station="b", rules=["a", "a", LEAVE])}),
        lambda: network(classes=replace(OPEN, patience=ONE), routing={"a": "b", "b": "a"}),
        lambda: network(stations=[A, replace(B, capacity=3)], routing={"a": "b", "b": "a"}),
        lambda: network(classes=replace(OPEN, entry={"a": 0.5})),
        lambda: network(classes=replace(OPEN, entry={"b": 0.5}), routing={"a": "a"}),
        lambda: network(
            classes=[OPEN, JobClass(name="x")],
            routing={"a": "b", ("b", "job"): ("a", "x"), ("a", "x"): LEAVE},
        ),
    ],
)
def test_open_jobs_that_can_leave_give_up_or_be_lost(make):
    make()


def station(**fields):
    return lambda: Station(**{"name": "a", "service": ONE, **fields})


def job_class(**fields):
    return lambda: JobClass(**fields)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (station(name=""), "station name must be a text other than 'leave' and not empty, got ''"),
        (station(service=1.0), "station 'a': service must be a law such as Exponential(mean=1.0), got 1.0"),
        (
            station(service={"x": 2}),
            "station 'a': service of 'x' must be a law such as Exponential(mean=1.0), got 2",
        ),
        (station(capacity=1, servers=2), "station 'a': capacity must be >= servers (2), got 1"),
        (station(vacation=ONE, servers=2), "station 'a': servers must be 1 with vacation, got 2"),
        (
            station(vacation=Deterministic(mean=0)),
            "station 'a': vacation must have a mean > 0, got 0.0",
        ),
        (
            station(vacation=ONE, setup=ONE),
            "station 'a': at most one of setup and vacation must be given, got both",
        ),
        (station(setup_threshold=2), "station 'a': setup_threshold must come with a setup, got 2 without"),
        (
            station(discipline="lifo-preemptive", servers=2),
            "station 'a': servers must be 1 with lifo-preemptive, got 2",
        ),
        (
            station(rate_multiplier=[1, 2], servers=2),
            "station 'a': servers must be 1 with rate_multiplier, got 2",
        ),
        (
            station(rate_multiplier=[1, 2], discipline="priority-preemptive"),
            "station 'a': discipline must not be preemptive with rate_multiplier, got 'priority-preemptive'",
        ),
        (
            station(rate_multiplier=[1, 2], discipline="sharing", servers=inf),
            "station 'a': servers must be finite with rate_multiplier, got inf",
        ),
        (station(rate_multiplier=[1, 0]), "station 'a': rate_multiplier must be finite and > 0, got 0.0"),
        (
            station(rate_multiplier=2.0),
            "station 'a': rate_multiplier must list speeds for 1, 2, ... jobs, got 2.0",
        ),
        (
            job_class(arrivals=ONE, population=2),
            "class 'job': at most one of arrivals and population must be given, got both",
        ),
        (
            job_class(arrivals=ONE, batch=ONE),
            "class 'job': batch must be a law of whole numbers, got Exponential",
        ),
        (
            job_class(arrivals=ONE, batch=Empirical(values=[0, 2])),
            "class 'job': batch must have whole values >= 1, got 0.0",
        ),
        (
            job_class(batch=Deterministic(mean=2)),
            "class 'job': arrivals must be given with batch or entry, got None",
        ),
        (
            job_class(arrivals=Deterministic(mean=0)),
            "class 'job': arrivals must have a mean > 0, got 0.0",
        ),
        (job_class(reference="a"), "class 'job': population must be >= 1 with a reference, got 0"),
        (
            job_class(population=1, patience=ONE),
            "class 'job': patience must be left out in a closed class, got Exponential(mean=1.0)",
        ),
        (lambda: ForkJoin(name="f", branches="ab"), "fork 'f': branches must be a list, got 'ab'"),
        (lambda: ForkJoin(name="f", branches=[()]), "fork 'f': branches must each have a station, got ((),)"),
        (
            lambda: Probabilistic(to={"a": 0.7, "b": 0.4}),
            "to must have probabilities that sum to at most 1, got 1.1",
        ),
        (lambda: Probabilistic(to={"a": -1}), "to['a'] must be in [0, 1], got -1.0"),
        (lambda: Cyclic(to="a"), "to must be a list of destinations, got 'a'"),
        (lambda: Cyclic(to=[]), "to must be a list of at least one destination, got none"),
        (lambda: Cyclic(to=[3]), "to must hold names of nodes or (node, class), got 3"),
        (
            lambda: StateDependent(station="a", rules="b"),
            "rules must be a list of at least one rule, got 'b'",
        ),
        (
            lambda: network(routing={"a": 3}),
            "routing['a'] must be a destination, a mapping or a routing rule, got 3",
        ),
        (lambda: network(stations=[]), "stations must have at least one member, got none"),
        (lambda: network(stations="a"), "stations must be a list of Station, got 'a'"),
        (lambda: network(classes=[A]), f"classes must hold JobClass only, got {shown(A)}"),
        (lambda: network(stations=[A, A]), "names of stations and forks must be unique, got 'a' twice"),
        (lambda: network(classes=[OPEN, OPEN]), "names of classes must be unique, got 'job' twice"),
        (
            lambda: network(classes=JobClass()),
            "classes must have arrivals or a population, got neither in any class",
        ),
        (lambda: network(routing={"A": "b"}), "routing must name nodes of the network, got 'A'"),
        (
            lambda: network(routing={("a", "jop"): "b"}),
            "routing must name classes of the network, got 'jop'; did you mean 'job'?",
        ),
        (lambda: network(routing={"a": "c"}), "routing out of 'a' must name nodes of the network, got 'c'"),
        (
            lambda: network(routing={"a": ShortestQueue(to=["b", LEAVE])}),
            "routing out of 'a' must look at stations, got 'leave'",
        ),
        (
            lambda: network(routing={"a": StateDependent(station="x", rules=["b"])}),
            "routing out of 'a' must look at stations, got 'x'",
        ),
        (
            lambda: network(classes=JobClass(population=1, reference="c")),
            "class 'job': reference must be a station, got 'c'",
        ),
        (
            lambda: network(stations=Station(name="a", service={"x": ONE})),
            "station 'a': service must have a law for class 'job', which visits it, got none",
        ),
        (
            lambda: network(classes=CLOSED, routing={"a": {"b": 0.9}, "b": "a"}),
            "routing out of 'a' must keep the jobs of closed class 'job', got probabilities below 1",
        ),
        (
            lambda: network(classes=[CLOSED, replace(OPEN, name="x")], routing={"a": ("a", "x")}),
            "routing of closed class 'job' must not turn jobs into open ones, got 'x'",
        ),
        (
            lambda: network(routing=[("a", "b")]),
            "routing must map nodes, or (node, class), to where jobs go, got [('a', 'b')]",
        ),
        (
            lambda: network(routing={("a", "job", "b"): LEAVE}),
            "routing must map nodes, or (node, class), to where jobs go, got {('a', 'job', 'b'): 'leave'}",
        ),
        (
            lambda: network(routing={"a": "b", "b": "a"}),
            "routing must let every job of open class 'job' leave the network, got no way out of 'a'",
        ),
        (
            lambda: network(routing={"a": {"b": 0.1}, "b": Cyclic(to=["b"])}),
            "routing must let every job of open class 'job' leave the network, got no way out of 'b'",
        ),
        (
            lambda: network(
                classes=[OPEN, replace(CLOSED, name="x", reference="b")],
                routing={"a": {("b", "x"): 0.5}, ("b", "x"): "b"},
            ),
            "routing must let every job of open class 'job' leave the network, got no way out of 'b'",
        ),
        (
            lambda: network(
                stations=[A, replace(B, capacity=2)], classes=CLOSED, routing={"a": "b", "b": "a"}
            ),
            "station 'b': when_full must be blocking, or capacity hold all jobs, for closed class 'job', "
            "got 'loss'",
        ),
        (
            lambda: network(
                stations=[replace(A, capacity=2, when_full="after-service"), B],
                classes=CLOSED,
                routing={"a": "b", "b": "a"},
            ),
            "station 'a': capacity must hold the closed classes that begin there (3 jobs), got 2",
        ),
        (
            lambda: network(
                stations=[
                    replace(A, discipline="sharing"),
                    replace(B, capacity=2, when_full="after-service"),
                ],
                routing={"a": "b"},
            ),
            "station 'a': discipline must be fifo, lifo or priority with finitely many servers of constant "
            "rate where a later station blocks it, got 'sharing' with servers 1",
        ),
        (
            lambda: network(stations=replace(A, discipline="sharing"), classes=replace(OPEN, patience=ONE)),
            "class 'job': patience must be left out at sharing 'a'",
        ),
        (
            lambda: network(forks=[ForkJoin(name="f", branches=["c"])]),
            "fork 'f': branches must name stations, got 'c'",
        ),
        (
            lambda: network(stations=replace(A, capacity=2), forks=[ForkJoin(name="f", branches=["a"])]),
            "fork 'f': branches must have stations of infinite capacity, got 'a'",
        ),
        (
            lambda: network(
                classes=replace(OPEN, entry="f", patience=ONE), forks=[ForkJoin(name="f", branches=["a"])]
            ),
            "class 'job': patience must be left out where it forks",
        ),
        (
            lambda: network(
                stations=[A, replace(B, capacity=2, when_full="after-service")],
                classes=replace(OPEN, entry="f"),
                forks=[ForkJoin(name="f", branches=["a"])],
                routing={"f": "b"},
            ),
            "station 'b': when_full must be loss after a fork, got blocking",
        ),
        (
            lambda: single_station(arrivals=Geometric(mean=2), service=ONE, clocked=True),
            "station 'queue': service must be a law of whole numbers, got Exponential",
        ),
        (
            lambda: single_station(arrivals=Replay(values=[1, 2.5]), service=Geometric(mean=2), clocked=True),
            "class 'job': arrivals must have whole values >= 0, got 2.5",
        ),
        (
            lambda: single_station(
                arrivals=Geometric(mean=2), service=Geometric(mean=2), discipline="sharing", clocked=True
            ),
            "station 'queue': discipline must serve whole ticks where time is clocked, got 'sharing'",
        ),
        (
            lambda: tandem(arrivals=ONE, services=[ONE, ONE], capacity=[1]),
            "capacity must have one value for each of 2 services, got 1",
        ),
    ],
)
def test_errors_name_part_field_and_value(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message
