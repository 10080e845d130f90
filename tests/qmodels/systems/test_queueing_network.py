"""The spec of a queueing network: what it says, and what it refuses."""

import pickle
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from qmodels import JobClass, QueueingNetwork, Station, single_station, tandem
from qmodels.laws import Erlang, Exponential, Geometric
from qmodels.systems.spec.fields import stable_hash
from qmodels.systems.stations.parts import LEAVE, Cyclic, ForkJoin, ShortestQueue, StateDependent

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
