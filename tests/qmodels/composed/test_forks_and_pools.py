"""Copies that ask a part after a choice, and what leaves pools in the long run."""

import pytest
from numpy.testing import assert_allclose

from qmodels import Flow, Station, System, Tokens, dram, queues
from qmodels.composed import solve_system
from qmodels.composed.couplings.closed_mva import closed_mva
from qmodels.composed.couplings.pools import leaving_scv
from qmodels.composed.couplings.rate_profile import profile_of
from qmodels.laws import Deterministic, Erlang, Exponential
from qmodels.steps import Acquire, Branch, Each, Fork, Hold, Read, Release, Visit
from qmodels.traffic import OnOff, Poisson


def open_system(program, rate, *, arrivals=None, window=None, **parts):
    flow = Flow(arrivals=arrivals or Poisson(), rate=rate, window=window, program=program)
    return solve_system(System(parts=parts, flows=flow))


@pytest.mark.parametrize("law", [Exponential(mean=10.0), Deterministic(mean=10.0)])
@pytest.mark.parametrize("servers", [1, 2, 3])
def test_two_copies_that_may_ask_an_idle_station(law, servers):
    """The last of two is done after both services, or after the longer of them."""
    share, after = 0.355, 5.0
    one = Branch(((Visit("s"), Hold(Deterministic(mean=after))), ()), (share, 1 - share))
    answer = open_system((Each((one,), 2),), 1e-7, s=Station(service=law, servers=servers))
    both = 20.0 if servers == 1 else 10.0 * (1.5 if isinstance(law, Exponential) else 1.0)
    exact = 2 * share * (1 - share) * (10 + after) + share**2 * (both + after)
    assert_allclose(answer.latency, exact, rtol=2e-3)


def test_copies_that_may_ask_one_server_wait_for_others_together():
    """Jobs with work are M/G/1; the last copy of each ends with its work."""
    share, copies, load = 0.6, 3, 0.9
    some = 1 - (1 - share) ** copies
    mean = copies * share / some
    square = (copies * share + (copies * share) ** 2 + copies * share * (1 - share)) / some
    rate = load / (copies * share)
    one = Branch(((Visit("s"),), ()), (share, 1 - share))
    answer = open_system((Each((one,), copies),), rate, s=Station(service=Exponential(mean=1.0)))
    exact = some * (rate * some * square / 2 / (1 - load) + mean)
    assert_allclose(answer.latency, exact, rtol=0.02)


def test_jobs_go_round_the_parts_of_a_fork():
    """In the simulation 0.04104 (0.04094 to 0.04115) jobs/ns."""
    program = (Each((Visit("s"), Hold(Deterministic(mean=200.0))), 2),)
    parts = {"s": Station(service=Exponential(mean=10.0))}
    answer = solve_system(System(parts=parts, flows=Flow(program=program, population=10)))
    assert_allclose(answer.flow_throughput, 0.04104, rtol=0.02)


def servers(*services):
    def times_at(rate):
        return {str(k): s / (1 - rate * s) for k, s in enumerate(services)}

    return profile_of(times_at, limit=1 / max(services), most=1.0, servers={})


def test_one_that_goes_round_is_a_renewal_process_and_a_full_server_leaves_as_it_serves():
    profile, noise = servers(1.0, 3.0), {"0": 4.0, "1": 0.5}
    one = leaving_scv(profile, closed_mva(profile, 1).found, noise)
    assert_allclose(one, (4.0 * 1.0 + 0.5 * 9.0) / 16, rtol=1e-9)
    many = leaving_scv(profile, closed_mva(profile, 60).found, noise)
    assert_allclose(many, 0.5, rtol=0.01)


@pytest.mark.in_ci(1)
@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_a_pool_of_tokens_held_for_a_time_is_that_many_servers(tokens):
    """Waits of Erlang holds: those of M/E4/c, which `qmodels.networks` knows by simulation to 3 %."""
    law, load = Erlang(mean=10.0, phases=4), 0.85
    rate = load * tokens / 10.0
    program = (Acquire("p"), Hold(law), Release("p"))
    pool = open_system(program, rate, p=Tokens(count=tokens))
    station = open_system((Visit("s"),), rate, s=Station(service=law, servers=tokens))
    assert_allclose(pool.latency, station.latency, rtol=0.05)


def test_tokens_before_a_shared_server_let_the_others_wait_in_their_order():
    """With one token it is M/D/1, however the server is shared."""
    server = Station(service=Deterministic(mean=1.0), discipline="sharing")
    program = (Acquire("p"), Visit("s"), Release("p"))
    one, few, many = (
        open_system(program, 0.8, s=server, p=Tokens(count=count)).latency for count in (1, 3, 10**6)
    )
    assert_allclose([one, many], [3.0, 5.0], rtol=1e-3)
    assert one <= few < 0.8 * many


def test_a_token_is_held_for_different_times_by_choice():
    """One of them is a server whose services are the longer or the shorter ones."""
    either = Branch(((Hold(Deterministic(mean=2.0)),), (Hold(Deterministic(mean=18.0)),)), (0.5, 0.5))
    answer = open_system((Acquire("p"), either, Release("p")), 0.06, p=Tokens(count=1))
    exact = queues.mg1(arrival_rate=0.06, mean_service_time=10.0, service_scv=0.64)
    assert_allclose(answer.latency, exact.mean_response_time, rtol=1e-3)


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize(
    ("step", "parts"),
    [(Visit("s"), {"s": Station(service=Exponential(mean=1.0))}), (Read("m"), {"m": dram("DDR4-3200")})],
    ids=["bursts", "refreshes"],
)
def test_a_fork_ends_with_its_long_branch(step, parts, swapped):
    """Also in its tail, where bursts and refreshes are: the other branch is as good as none."""
    short = (Hold(Deterministic(mean=1e-6)),)
    branches = (short, (step,)) if swapped else ((step,), short)
    arrivals = OnOff(on_packets=10, peak_to_mean=4.0) if "s" in parts else None
    rate = 0.6 if "s" in parts else 0.01
    alone, fork = (
        open_system(program, rate, arrivals=arrivals, **parts) for program in ((step,), (Fork(branches),))
    )
    for name in ("latency", "latency_p99"):
        assert_allclose(fork[name], alone[name], rtol=1e-3, err_msg=name)
