"""Pools acquired in a circle: refused where jobs may wait for each other for ever, and only there."""

import pytest

import qmodels as qm
from qmodels import Flow, System, Tokens
from qmodels.composed.couplings.deadlock_cycles import deadlock_doubts
from qmodels.laws import Exponential
from qmodels.steps import Acquire, Fork, Hold, Release
from qmodels.systems.composed.lower import lower

WORK = Hold(Exponential(mean=1.0))


def taking(one, other):
    return (Acquire(one), WORK, Acquire(other), WORK, Release(other), Release(one))


def doubts(flows, **tokens):
    system = System(parts={name: Tokens(count=count) for name, count in tokens.items()}, flows=flows)
    return deadlock_doubts(system, lower(system, {}))


def two(first, second, jobs=2):
    return (
        Flow(name="reads", population=jobs, program=first),
        Flow(name="writes", population=jobs, program=second),
    )


@pytest.mark.parametrize(
    ("flows", "count"),
    [
        (two(taking("a", "b"), taking("b", "a")), 2),
        # Branches of one job may wait for each other.
        ((Flow(population=1, program=(Fork((taking("a", "b"), taking("b", "a"))),)),), 1),
    ],
)
def test_pools_in_opposite_orders_are_refused(flows, count):
    system = System(parts={"a": Tokens(count=count), "b": Tokens(count=count)}, flows=flows)
    with pytest.raises(ValueError, match="in a circle, got a and b: jobs may come to wait"):
        qm.solve(system)


@pytest.mark.parametrize(
    ("flows", "tokens"),
    [
        (two(taking("a", "b"), taking("a", "b")), {"a": 3, "b": 2}),
        # Tokens of one of them for all who may want one.
        (two(taking("a", "b"), taking("b", "a")), {"a": 4, "b": 2}),
        (two(taking("a", "b"), (Acquire("b"), Release("b"), *taking("a", "b"))), {"a": 3, "b": 2}),
    ],
)
def test_an_order_without_a_circle_is_not(flows, tokens):
    assert not doubts(flows, **tokens)


def test_tokens_taken_one_after_the_other_from_one_pool_are_doubted():
    program = (Acquire("a"), WORK, Acquire("a"), WORK, Release("a", tokens=2))
    assert "tokens of a are acquired by jobs" in doubts((Flow(population=2, program=program),), a=2)[0]
    assert not doubts((Flow(population=1, program=program),), a=2)
    system = System(parts={"a": Tokens(count=2)}, flows=(Flow(population=2, program=program),))
    assert any("for ever" in doubt for doubt in qm.solve(system).doubts)


def test_a_job_that_alone_wants_more_than_there_is_is_refused():
    program = (Acquire("a"), Acquire("a"), WORK, Release("a", tokens=2))
    with pytest.raises(ValueError, match="a"):
        System(parts={"a": Tokens(count=1)}, flows=(Flow(population=1, program=program),))
