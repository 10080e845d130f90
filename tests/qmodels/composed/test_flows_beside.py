"""Open flows beside closed ones and windows that lose jobs: services of any variability, pools of both."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import Flow, Station, System, Tokens
from qmodels.composed import solve_system
from qmodels.laws import Deterministic, Erlang, Exponential, HyperExponential
from qmodels.steps import Acquire, Hold, Release, Repeat, Visit
from qmodels.traffic import Poisson

UNEVEN = HyperExponential.balanced(mean=1.0, scv=3.0)
HELD = (Acquire("p"), Visit("s"), Release("p"))
OPEN = Flow(name="open", arrivals=Poisson(), rate=0.3, program=(Visit("s"),))
LOSSY = replace(OPEN, name="lossy", window=4, when_full="loss")
CLOSED = Flow(name="closed", population=4, think=Exponential(mean=8.0), program=(Visit("s"),))


def solved(*flows, law=UNEVEN, **parts):
    return solve_system(System(parts={"s": Station(service=law)} | parts, flows=flows))


def of_chain(law, rate, places):
    """Loss and mean number in M/H2/1/K, from its chain: 0, and each number with each kind of service."""
    size, ends = 1 + 2 * places, 1 / np.array(law.means)
    moves, begins = np.zeros((size, size)), np.array(law.probabilities)
    for n in range(places):
        for k in (0, 1):
            here = 1 + 2 * n + k
            if n + 1 < places:
                moves[here, here + 2] += rate
            for to in (0, 1) if n else ():
                moves[here, here - 2 - k + to] += ends[k] * begins[to]
    moves[0, 1:3] = rate * begins
    moves[1, 0], moves[2, 0] = ends
    balance = moves - np.diag(moves.sum(axis=1))
    balance[:, 0] = 1.0
    law_of = np.linalg.solve(balance.T, np.eye(size)[0])
    number = np.append(0, np.repeat(np.arange(1, places + 1), 2))
    return law_of[-2:].sum(), law_of @ number


@pytest.mark.parametrize("load", [0.4, 0.75, 1.3])
@pytest.mark.parametrize("window", [2, 4, 16])
def test_a_window_that_loses_before_uneven_services(load, window):
    """Jobs that go round met services at random and windows served exponential ones: latency +16 %."""
    answer = solved(replace(LOSSY, rate=load, window=window))
    lost, number = of_chain(UNEVEN, load, window)
    assert_allclose(answer.blocking_probability, lost, atol=0.01)
    assert_allclose(answer.latency, number / load / (1 - lost), rtol=0.04)


@pytest.mark.parametrize("law", [Deterministic(mean=1.0), Erlang(mean=1.0, phases=3), UNEVEN])
@pytest.mark.parametrize("when_full", ["loss", "wait"])
def test_a_window_that_is_never_full_is_none(law, when_full):
    """Up to 60 % too long where all that is inside left as from an exponential server."""
    wide = replace(LOSSY, rate=0.45, window=200, when_full=when_full)
    answer = solved(OPEN, wide, law=law)
    alone = 1 + 0.75 / 0.25 * (1 + law.scv) / 2
    assert_allclose([answer["latency[open]"], answer["latency[lossy]"]], alone, rtol=0.01)


def test_a_narrow_window_that_waits_before_one_server_is_none():
    """Its tokens were said to let through less than the server: 14.3 instead of 7."""
    answer = solved(replace(LOSSY, rate=0.75, when_full="wait"))
    assert_allclose(answer.latency, 7.0, rtol=0.02)


@pytest.mark.parametrize("population", [1, 2, 6])
def test_closed_jobs_that_never_leave_a_station_take_what_others_leave(population):
    """Whatever the services: it is never idle, and a job that is back at once meets one that has begun."""
    answer = solved(OPEN, replace(CLOSED, population=population, think=None))
    assert_allclose(answer["flow_throughput[closed]"], 0.7, rtol=0.02)
    assert_allclose(answer["latency[closed]"], population / 0.7, rtol=0.02)


@pytest.mark.parametrize("other", [CLOSED, replace(CLOSED, population=12), LOSSY, replace(LOSSY, rate=0.9)])
def test_one_token_that_all_take_is_the_queue_before_a_server(other):
    """Open flows waited 25 to 50 % too short at pools in windows of others, closed ones as if in a stream."""
    pool = {"p": Tokens(count=1)}
    queue = solved(OPEN, other, law=Exponential(mean=1.0))
    found = solved(
        replace(OPEN, program=HELD), replace(other, program=HELD), law=Exponential(mean=1.0), **pool
    )
    for metric in ("latency", "flow_throughput"):
        for flow in ("open", other.name):
            assert_allclose(found[f"{metric}[{flow}]"], queue[f"{metric}[{flow}]"], rtol=0.01)


def test_tokens_that_flows_hold_for_unlike_times():
    """1.67 and 8.81 where only what each flow's times vary counted."""
    short = Flow(name="short", arrivals=Poisson(), rate=0.3, program=HELD)
    long = Flow(
        name="long",
        arrivals=Poisson(),
        rate=0.1,
        program=(Acquire("p"), Hold(Erlang(mean=8.0, phases=2)), Release("p")),
    )
    answer = solved(short, long, law=Deterministic(mean=0.8), p=Tokens(count=2))
    # 2.59 +- 0.04 and 9.72 +- 0.10 in the simulation (4 x 400,000 jobs).
    assert_allclose(answer["latency[short]"], 2.59, rtol=0.1)
    assert_allclose(answer["latency[long]"], 9.72, rtol=0.04)


def test_closed_jobs_that_fill_a_station_leave_room_for_a_pool():
    """Others of a fixed number yield to those inside a pool: unstable where they came at a fixed rate."""
    full = Flow(
        name="full",
        population=16,
        think=Erlang(mean=164.4, phases=2),
        program=(Repeat((Visit("s"),), 3),),
    )
    station = Station(service=Deterministic(mean=35.9), servers=2)
    answer = solve_system(
        System(
            parts={"s": station, "p": Tokens(count=4)},
            flows=(replace(OPEN, rate=0.00998, program=HELD), full),
        )
    )
    assert answer.stable and answer.saturation_factor > 1


@pytest.mark.parametrize("tokens", [1, 4])
def test_an_open_flow_that_fills_a_station_leaves_a_window_nothing(tokens):
    """Dividing by the speed of its pool, which is 0, was an error."""
    answer = solved(replace(OPEN, rate=1.5), replace(LOSSY, program=HELD), p=Tokens(count=tokens))
    assert not answer.stable and np.isinf(answer["latency[open]"]) and np.isinf(answer["latency[lossy]"])
