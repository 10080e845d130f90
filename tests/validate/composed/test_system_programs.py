"""Steps of programs that hold something: tokens, windows, branches; and what must hold in every system."""

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from qmodels import Flow, Station, System, Tokens, queues
from qmodels.laws import Deterministic, Erlang, Exponential
from qmodels.steps import Acquire, Branch, Each, Fork, Hold, Release, Repeat, Visit
from qmodels.traffic import Poisson, bimodal
from validate.composed.replication import advance
from validate.composed.state import THINKING
from validate.composed.world import new_machine

ONE, TWO = Deterministic(mean=1.0), Deterministic(mean=2.0)


def lone(*program, **fields):
    """Return a flow whose job goes round alone, a rare visitor of an idle system."""
    return Flow(population=1, think=Deterministic(mean=100.0), program=program, **fields)


@pytest.mark.parametrize(
    ("program", "ns"),
    [
        ((Visit("s"), Hold(TWO)), 3.0),
        ((Repeat((Visit("s"), Hold(TWO)), 3),), 9.0),
        ((Fork((Visit("s"), (Hold(TWO), Hold(TWO)))),), 4.0),
        ((Each((Visit("s"), Hold(TWO)), 4),), 6.0),
        ((Hold(Deterministic(mean=7.0), counted=False), Visit("s")), 1.0),
        ((Fork((Hold(Deterministic(mean=7.0), counted=False), Visit("s"))), Visit("s")), 1.0),
        ((Branch(((Hold(TWO),), ()), (1.0, 0.0)),), 2.0),
        ((Repeat(Each(Repeat(Visit("s"), 2), 2), 3),), 12.0),
        ((Each((Acquire("t", 2), Hold(TWO), Release("t", 2)), 3),), 6.0),
        ((Acquire("t", 3), Fork((Visit("s"), Hold(TWO))), Release("t"), Release("t", 2)), 2.0),
    ],
)
def test_the_time_of_a_job_alone_is_that_of_its_steps(simulated, program, ns):
    parts = {"s": Station(service=ONE), "t": Tokens(count=3)}
    both = (*program, Visit("s"), Acquire("t"), Release("t"))
    result = simulated(System(parts=parts, flows=lone(*both)), replications=2, passages=1000)
    assert result.latency.best == pytest.approx(ns + 1.0, rel=1e-12)
    assert sum(p.best for p in result.latency_parts.values()) == pytest.approx(ns + 1.0, rel=1e-12)


def test_what_is_done_for_each_segment_takes_as_long_as_there_are(simulated):
    flow = lone(
        Repeat(Visit("s"), "segments"), sizes=bimodal(small=64, large=256, small_fraction=0.25)
    )  # fmt: skip
    result = simulated(System(parts={"s": Station(service=ONE)}, flows=flow))
    assert 0.25 + 0.75 * 4 in result.latency and result.latency.half_width < 0.02


def test_a_pool_is_a_queue_of_as_many_servers_as_tokens(simulated):
    parts = {"t": Tokens(count=3)}
    program = (Acquire("t"), Hold(Exponential(mean=1.0)), Release("t"))
    flow = Flow(arrivals=Poisson(), rate=2.1, program=program)
    result = simulated(System(parts=parts, flows=flow))
    exact = queues.mmc(arrival_rate=2.1, service_rate=1.0, servers=3)
    assert exact.mean_waiting_time in result["visit_latency[t]"]
    assert exact.mean_response_time in result.latency
    assert 0.7 in result.utilization["t"] and result.utilization["t"].half_width < 0.01
    assert result["visit_latency[t]"].half_width < 0.07 * exact.mean_waiting_time


def test_a_window_is_a_queue_too_and_its_wait_counts(simulated):
    program = (Hold(Exponential(mean=1.0)), Visit("s"))
    parts = {"s": Station(service=Exponential(mean=0.2))}
    windowed = Flow(arrivals=Poisson(), rate=1.2, window=3, program=program)
    pool = Flow(arrivals=Poisson(), rate=1.2, program=(Acquire("t"), *program, Release("t")))
    outside = simulated(System(parts=parts, flows=windowed))
    waiting = simulated(System(parts=parts | {"t": Tokens(count=3)}, flows=pool))
    assert outside.latency.best == pytest.approx(waiting.latency.best, rel=1e-9)
    own, other = outside.latency_parts["window"], waiting.latency_parts["t"]
    assert own.best == pytest.approx(other.best, rel=1e-9) and own.best > 0.1


def test_jobs_that_all_wait_for_each_other_are_stuck(simulated):
    step = Hold(Exponential(mean=1.0))
    parts = {"a": Tokens(count=1), "b": Tokens(count=1)}
    there = (Acquire("a"), step, Acquire("b"), Release("b"), Release("a"))
    back = (Acquire("b"), step, Acquire("a"), Release("a"), Release("b"))
    flows = [Flow(name="there", population=1, program=there), Flow(name="back", population=1, program=back)]
    result = simulated(System(parts=parts, flows=flows), replications=2, passages=1000)
    assert not result.stable and np.isinf(result.latency.best)
    assert result.waiting_for == ("a", "b")
    assert "stuck: every job waits for another, at a, b" in result.notes


def test_open_jobs_that_all_wait_for_each_other_pile_up(simulated):
    step = Hold(Exponential(mean=1.0))
    parts = {"a": Tokens(count=1), "b": Tokens(count=1)}
    there = (Acquire("a"), step, Acquire("b"), Release("b"), Release("a"))
    back = (Acquire("b"), step, Acquire("a"), Release("a"), Release("b"))
    flows = [
        Flow(name=n, arrivals=Poisson(), rate=0.2, program=p) for n, p in (("there", there), ("back", back))
    ]
    result = simulated(System(parts=parts, flows=flows), replications=4, passages=1000)
    assert not result.stable and set(result.overloaded) == {"there", "back"}


def test_a_lost_job_gives_back_what_it_holds(simulated):
    parts = {"s": Station(service=Exponential(mean=1.0), capacity=1), "t": Tokens(count=2)}
    inside = Fork(((Acquire("t"), Visit("s"), Release("t")), Hold(ONE)))
    flow = Flow(arrivals=Poisson(), rate=3.0, program=(inside, Acquire("t"), Visit("s"), Release("t")))
    result = simulated(System(parts=parts, flows=flow), replications=4)
    assert result.stable
    assert 0.4 < result.blocking_probability.best < 0.95
    system = System(parts=parts, flows=flow)
    start = new_machine(system, seed=1, replication=0)
    core = advance(start, ended=5000)[0].core
    (flow,) = core.flows
    assert flow["born"] == flow["ended"] + flow["lost"] + flow["number"]
    assert core.holds.sum() == 2 - core.pools["free"][0]


LAWS = st.sampled_from([Exponential(mean=1.0), Deterministic(mean=0.5), Erlang(mean=2.0, phases=2)])
VISITS = st.sampled_from([Visit("one"), Visit("shared"), Visit("small")])
LEAVES = VISITS | st.builds(Hold, LAWS, counted=st.booleans())


def _holding(inner, tokens):
    return Repeat((Acquire("t", tokens), *inner, Release("t", tokens)), 1)


def _nested(steps):
    some = st.lists(steps, min_size=1, max_size=3).map(tuple)
    return (
        st.builds(Repeat, some, st.integers(1, 3))
        | st.builds(Each, some, st.integers(1, 3) | st.just("segments"))
        | st.lists(some, min_size=2, max_size=3).map(tuple).map(Fork)
        | some.map(lambda inner: Branch((inner, ()), (0.7, 0.3)))
        | st.builds(_holding, some, st.integers(1, 2))
    )


PROGRAMS = st.lists(st.recursive(LEAVES, _nested, max_leaves=6), min_size=1, max_size=4).map(tuple)
PARTS = {
    "one": Station(service=Exponential(mean=1.0)),
    "shared": Station(service=Erlang(mean=1.0, phases=2), servers=2, discipline="sharing"),
    "small": Station(service=Exponential(mean=1.0), capacity=3),
    "t": Tokens(count=4),
}
EVERY = (Visit("one"), Visit("shared"), Visit("small"), Acquire("t"), Release("t"))
SIZES = bimodal(small=64, large=192, small_fraction=0.5)


@given(
    first=PROGRAMS,
    second=PROGRAMS,
    window=st.none() | st.integers(1, 3),
    population=st.integers(1, 4),
    rate=st.floats(0.01, 0.5),
)
def test_nothing_is_lost_in_any_program(first, second, window, population, rate):
    flows = [
        Flow(name="open", arrivals=Poisson(), rate=rate, window=window, sizes=SIZES, program=first + EVERY),
        Flow(name="closed", population=population, think=Exponential(mean=1.0), sizes=SIZES, program=second),
    ]  # fmt: skip
    try:
        system = System(parts=PARTS, flows=flows)
    except ValueError as error:
        assert "must leave a job at most the 4 tokens of the pool" in str(error)
        reject()
    machine, _ = advance(new_machine(system, seed=1, replication=0), ended=400)
    world, core = machine.world, machine.core
    now = world.state["now"][0]
    f = core.flows
    assert np.array_equal(f["born"], f["ended"] + f["lost"] + f["number"])
    assert f["number"][1] <= population
    held = core.holds.sum(axis=0)
    assert np.array_equal(held, core.pools["tokens"] - core.pools["free"])
    # Every station has as many visits under way as there are jobs at it.
    numbers = dict(zip(PARTS, core.parts["number"], strict=True))
    assert [numbers[name] for name in ("one", "shared", "small")] == world.nodes["number"].tolist()
    # Little's law, exactly: the area under the number is the time of the visits, those under way included.
    ended = f["latency_sum"].sum() + f["uncounted_sum"].sum()
    under_way = (now - world.jobs["entered"][_roots(world)]).sum()
    area = (f["number_sum"] + now * f["number"]).sum()
    assert area >= (ended + under_way) * (1 - 1e-9)
    if not f["lost"].any():
        assert area == pytest.approx(ended + under_way, rel=1e-9)
    assert core.flow_times.sum() == pytest.approx(ended, rel=1e-9)


def _roots(world):
    """Return the numbers of the jobs in the system: strands in use that are their own root."""
    free, j = set(), int(world.state["free"][0])
    while j >= 0:
        free.add(j)
        j = int(world.jobs["next"][j])
    used = [j for j in range(world.jobs.size) if j not in free]
    return [j for j in used if world.jobs["parent"][j] < 0 and world.jobs["phase"][j] != THINKING]
