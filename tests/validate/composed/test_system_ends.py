"""Work that ends, tokens that turn from use to use, and visits that take the same time again."""

from dataclasses import dataclass

import pytest

import qmodels as qm
from qmodels.composed.couplings.correlated_visits import visit_laws
from qmodels.laws import Deterministic, Exponential
from qmodels.parts import ServingPart
from qmodels.steps import Acquire, Fork, Hold, Read, Release, Repeat, Visit, parse, program_text
from qmodels.systems.composed.lower import lower
from validate import simulate


def fixed(time):
    """Return a step that takes a time."""
    return Hold(Deterministic(mean=time))


def test_work_that_ends_is_followed_to_its_end():
    """Two jobs of three rounds at one server, by hand: 6 services of 5 ns, the last job leaves at 31."""
    program = (Visit("server"), fixed(1.0))
    for discipline in ("fifo", "priority"):  # the second is the same here, but no end is known before
        server = qm.Station(service=Deterministic(mean=5.0), discipline=discipline)
        system = qm.System(parts={"server": server}, flows=qm.Flow(population=2, rounds=3, program=program))
        found = simulate(system, replications=2)
        assert float(found.execution_time) == 31.0
        assert float(found.utilization["server"]) == pytest.approx(30 / 31)
        # Rounds of 6 and 11 first, then each waits for the other's service but 1 ns.
        assert float(found.latency) == pytest.approx((6 + 11 + 4 * 10) / 6)
        assert float(found.visit_rates["server"]) == pytest.approx(6 / 31)
        assert found.stable and not found.short
        assert 6 <= float(found.latency_p99) <= 12


@pytest.mark.parametrize("memory", [False, True])
def test_known_ends_change_nothing(memory):
    """Stations that know the end of a visit give the times, shares and numbers of those that do not.

    With a memory the system runs in another loop.
    """
    step = (Visit("a"), fixed(2.0))
    program = (Fork(((Repeat(step, 7), Visit("b")), (Visit("b"), Repeat(step, 3)))), Visit("a", same=True))
    program += (Read("dram"),) if memory else ()
    flows = [qm.Flow(name=name, population=3, rounds=4, program=program) for name in ("one", "two")]
    results = []
    for discipline in ("fifo", "priority"):
        parts = {
            name: qm.Station(service=Exponential(mean=mean), discipline=discipline)
            for name, mean in (("a", 3.0), ("b", 4.0))
        }
        parts |= {"dram": qm.dram("DDR4-3200")} if memory else {}
        results.append(simulate(qm.System(parts=parts, flows=flows), replications=3, seed=5))
    for table in ("metrics", "utilization", "latency_parts", "numbers", "visit_rates"):
        known, plain = (
            {name: float(value) for name, value in getattr(result, table).items()} for result in results
        )
        assert known == pytest.approx(plain, rel=1e-9)
    assert results[0].effort["events"] < results[1].effort["events"]


def test_jobs_that_wait_for_each_other_for_ever_are_no_end():
    """Work that is stuck before it has ended is told."""
    pools = {"x": qm.Tokens(count=1), "y": qm.Tokens(count=1)}
    flows = [
        qm.Flow(
            name=f"{one}{two}", population=1, rounds=1,
            program=(Acquire(one), fixed(1.0), Acquire(two), Release(two), Release(one)),
        )
        for one, two in ("xy", "yx")
    ]  # fmt: skip
    found = simulate(qm.System(parts=pools, flows=flows), replications=2)
    assert not found.stable and found.waiting_for == ("x", "y")


def turning(uses, count=1, rounds=None, **time):
    """Return flows that take a token for 10 ns in turn, each for its use."""
    program = [(Acquire("engine", use=use), fixed(10.0), Release("engine"), fixed(30.0)) for use in uses]
    return qm.System(
        parts={"engine": qm.Tokens(count=count, turning=4.0)},
        flows=[
            qm.Flow(name=f"flow-{k}", population=1, rounds=rounds, program=steps)
            for k, steps in enumerate(program)
        ],
    )


def test_tokens_turn_where_their_use_changes():
    """By hand: two uses of one token turn it each time but the first, of two tokens never; one use never."""
    found = simulate(turning("ab", rounds=5), replications=2)
    # a takes it at 0; b at 10, turned at 14, done at 24; a comes at 40: rounds of 24 + ... ns.
    assert float(found.metrics["switch_ratio[engine]"]) == 9 / 10
    assert float(found.execution_time) == 24 + 30 + 4 * 44
    assert float(simulate(turning("aa", rounds=5), replications=2).metrics["switch_ratio[engine]"]) == 0
    both = simulate(turning("ab", count=2, rounds=5), replications=2)
    assert float(both.metrics["switch_ratio[engine]"]) == 0
    assert float(both.execution_time) == 5 * 40


def test_turning_in_the_model():
    """Uses at random: throughput and busy share as simulated; the answer says what it does not know."""
    program = tuple(
        (Acquire("engine", use=use), Visit("work"), Release("engine"), Hold(Exponential(mean=100.0)))
        for use in "ab"
    )
    flows = [qm.Flow(name=f"flow-{k}", population=2, program=steps) for k, steps in enumerate(program)]
    times = {}
    for time in (0.0, 20.0):
        parts = {
            "engine": qm.Tokens(count=1, turning=time),
            "work": qm.Station(service=Exponential(mean=10.0)),
        }
        system = qm.System(parts=parts, flows=flows)
        answer, found = qm.solve(system), simulate(system, replications=4, passages=5000)
        assert answer.latency == pytest.approx(float(found.latency), rel=0.03)
        assert any("turn" in doubt for doubt in answer.doubts)
        times[time] = answer.latency
    assert times[20.0] > times[0.0] + 5


def test_the_model_of_work_that_ends():
    """All rounds at the rate of the steady state; near the simulation where there are many."""
    flow = qm.Flow(population=3, rounds=2000, program=(Visit("server"), Hold(Exponential(mean=5.0))))
    system = qm.System(parts={"server": qm.Station(service=Exponential(mean=2.0))}, flows=flow)
    answer = qm.solve(system)
    assert answer.execution_time == pytest.approx(3 * 2000 / answer.flow_throughput)
    assert answer.execution_time == pytest.approx(
        float(simulate(system, replications=4).execution_time), rel=0.04
    )
    assert any("work that ends" in doubt for doubt in answer.doubts)


def test_many_rounds_are_counted_as_the_most():
    """A loop of more rounds than are told apart has a law of visits, and a system with it an answer."""
    program = (Acquire("pool"), Repeat((Visit("server"), fixed(1.0)), 200), Release("pool"))
    system = qm.System(
        parts={"server": qm.Station(service=Exponential(mean=2.0)), "pool": qm.Tokens(count=2)},
        flows=qm.Flow(population=2, program=program),
    )
    form = lower(system)
    law = visit_laws(form, form.roots["jobs"])["server"]
    assert law.sum() == pytest.approx(1.0) and law[-1] == pytest.approx(1.0)
    found = simulate(system, replications=4, passages=1000)
    assert qm.solve(system).latency == pytest.approx(float(found.latency), rel=0.1)


@pytest.mark.parametrize("discipline", ["fifo", "priority"])
def test_the_same_time_again(discipline):
    """A visit of the same time takes what the one before took; others draw their own."""

    def time(*program):
        server = qm.Station(service=Exponential(mean=2.0), discipline=discipline)
        other = qm.Station(service=Deterministic(mean=1.0))
        flow = qm.Flow(population=1, rounds=1, program=program)
        parts = {"server": server} | ({"other": other} if Visit("other") in program else {})
        return float(simulate(qm.System(parts=parts, flows=flow), replications=2, seed=3).execution_time)

    once, again, own = Visit("server"), Visit("server", same=True), Visit("server")
    assert time(once, Visit("other"), again, again) == pytest.approx(3 * time(once) + 1, rel=1e-12)
    assert time(again) == time(once)
    assert time(once, own) != pytest.approx(2 * time(once), rel=1e-6)


def test_as_text():
    """Uses and the same time stand in files."""
    program = (Acquire("pool", use="m-1"), Visit("server", same=True), Release("pool"))
    assert program_text(program).splitlines()[0] == "acquire pool use=m-1"
    assert parse(program_text(program)) == program


def one(**flow):
    """Return a system of one station."""
    return qm.System(
        parts={"server": qm.Station(service=Exponential(mean=1.0))},
        flows=[qm.Flow(name="jobs", program=(Visit("server"),), **flow)],
    )


def test_parts_of_others_have_no_same_time():
    """They say themselves how long a visit takes."""

    @dataclass(frozen=True, kw_only=True)
    class Wire(ServingPart):
        def served(self, offered):
            raise NotImplementedError

        def service(self):
            raise NotImplementedError

    flow = qm.Flow(name="jobs", population=1, program=(Visit("wire", same=True),))
    with pytest.raises(ValueError) as error:
        qm.System(parts={"wire": Wire()}, flows=flow)
    assert (
        str(error.value) == "flow 'jobs': 'visit wire' must be at a Station to take the same time, got Wire"
    )
