"""Systems whose answers are known: windows that lose, packets sent, copies at nodes, tokens that turn."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from qmodels import CacheLevel, CacheSystem, Flow, Noc, Station, System, Tokens, dram, mesh, queues
from qmodels.composed import solve_system
from qmodels.composed.couplings.closed_mva import AtRegion, Region
from qmodels.composed.fixed_point.pool_subnetworks import scattered
from qmodels.composed.parts.dram import respond_dram
from qmodels.composed.streams import Stream
from qmodels.laws import Deterministic, Erlang, Exponential
from qmodels.networks import mva
from qmodels.noc import rate_matrix, uniform
from qmodels.noc.solve_noc import solve_noc
from qmodels.parts import BankedChannels, FreeList
from qmodels.steps import (
    Acquire,
    Allocate,
    Branch,
    Each,
    Free,
    Hold,
    Lookup,
    Mark,
    Move,
    Read,
    Release,
    Send,
    Visit,
    Write,
)
from qmodels.systems.composed.parts import ONE
from qmodels.traffic import Poisson, Zipf, fixed

NOC = Noc(topology=mesh(2, 2), link_width=16, header_bytes=8, clock_ghz=2.0, traffic=uniform(nodes=4))


def solved(program, rate=0.1, *, place=None, **more):
    """Return the answer of one open flow; parts are the arguments that are no fields of flows."""
    fields = {name: more.pop(name) for name in tuple(more) if name in Flow.__dataclass_fields__}
    flow = Flow(arrivals=Poisson(), rate=rate, program=program, **fields)
    return solve_system(System(parts=more, flows=flow, place=place or {}))


@pytest.mark.parametrize("load", [0.3, 0.9, 1.4])
@pytest.mark.parametrize("window", [1, 4])
def test_a_window_that_loses_is_a_queue_with_as_many_places(load, window):
    station = Station(service=Exponential(mean=2.0))
    answer = solved((Visit("s"),), load / 2, s=station, window=window, when_full="loss")
    exact = queues.mmck(arrival_rate=load / 2, service_rate=0.5, servers=1, capacity=window)
    assert_allclose(answer.blocking_probability, exact.blocking_probability, rtol=1e-6)
    assert_allclose(answer.latency, exact.mean_response_time, rtol=1e-6)
    assert_allclose(answer.flow_throughput, exact.throughput, rtol=1e-6)


@pytest.mark.parametrize("law", [Exponential(mean=5.0), Deterministic(mean=5.0)])
def test_a_window_in_which_nobody_waits_loses_by_erlangs_formula(law):
    answer = solved((Hold(law),), 0.5, window=3, when_full="loss")
    assert_allclose(answer.blocking_probability, queues.erlang_b(servers=3, offered_load=2.5), rtol=1e-6)
    assert_allclose(answer.latency, 5.0, rtol=1e-6)


@pytest.mark.parametrize("tokens", [1, 2])
def test_tokens_in_a_window_that_loses_are_servers_with_few_places(tokens):
    program = (Acquire("p"), Hold(Exponential(mean=4.0)), Release("p"))
    answer = solved(program, 0.4, p=Tokens(count=tokens), window=5, when_full="loss")
    exact = queues.mmck(arrival_rate=0.4, service_rate=0.25, servers=tokens, capacity=5)
    assert_allclose(answer.blocking_probability, exact.blocking_probability, rtol=1e-3)
    assert_allclose(answer.latency, exact.mean_response_time, rtol=1e-3)


def test_jobs_scattered_over_copies_are_as_fast_as_the_busy_ones():
    """Each way to put n alike jobs before single servers is as likely: n of n + c - 1 are at work."""
    number, copies = np.arange(1, 9), 3
    found = scattered(np.array([0.5]), copies, 8)
    assert_allclose(found, 0.5 * copies * number / (number + copies - 1), rtol=1e-9)
    # As many servers as there are jobs: all are at work.
    assert_allclose(scattered(np.arange(1, 9) * 0.5, copies, 8), 0.5 * number, rtol=1e-9)
    assert_allclose(scattered(np.array([1.0, 1.5]), 1, 4), [1.0, 1.5, 1.5, 1.5])
    # Also where so few at so many are too unlikely for their weights.
    number, copies = np.arange(1, 2001), 400
    assert_allclose(scattered(np.array([0.5]), copies, 2000), 200 * number / (number + copies - 1), rtol=1e-6)


def alone(source, target, size):
    """Return the time of a lone packet in the network. [ns]."""
    matrix = np.zeros((4, 4))
    matrix[source, target] = 1.0
    flits = int(NOC.flits(size))
    spec = replace(NOC, traffic=rate_matrix(matrix.tolist()), injection_rate=0.0, flits_per_packet=flits)
    return float(solve_noc(spec).zero_load_latency)


def test_packets_sent_take_their_way_and_visits_go_there_and_back():
    assert NOC.flits(64) > NOC.flits(0)
    far, back = alone(0, 3, 64), alone(3, 0, 8)
    unit = Station(service=Deterministic(mean=7.0))
    send = solved((Send("s", bytes=64), Visit("s")), 1e-9, noc=NOC, s=unit, at=(0,), place={"s": (3,)})
    assert_allclose(send.latency, far + 7, rtol=1e-6)
    home = (Send("s", bytes=64), Mark("there"), Move(), Visit("s", bytes=64, reply_bytes=8))
    both = solved(home, 1e-9, noc=NOC, s=unit, at=(0,), place={"s": (3,)})
    assert_allclose(both.latency, far + far + 7 + back, rtol=1e-6)
    assert_allclose(both.latency_parts["noc"], far + far + back, rtol=1e-6)
    # Who is there already, or asks the copy at the own place, sends nothing.
    here = solved((Send("s"), Visit("s", bytes=64)), 1e-9, noc=NOC, s=unit, at=(3,), place={"s": (3,)})
    assert_allclose(here.latency, 7.0)
    exact = queues.mg1(arrival_rate=0.05, mean_service_time=7.0, service_scv=0.0)
    copies = solved((Visit("s", bytes=64),), 0.1, noc=NOC, s=unit, at=(0, 3), place={"s": (0, 3)})
    assert_allclose(copies.latency, exact.mean_response_time)


def test_a_look_up_goes_to_the_slice_of_its_line():
    caches = CacheSystem(popularity=Zipf(entries=500, exponent=0.9), private=(), shared=CacheLevel(lines=50))
    done = {"hit": (Hold(Deterministic(mean=10.0)),), "miss": (Hold(Deterministic(mean=90.0)),)}
    parts = {"noc": NOC, "llc": caches}
    answer = solved((Lookup("llc", **done, reply_bytes=64),), 1e-9, **parts, at=(0,), place={"llc": (3,)})
    hits = answer["hit_ratio[llc]"]
    assert 0.1 < hits < 0.9
    assert_allclose(answer.latency, alone(0, 3, 0) + 10 * hits + 90 * (1 - hits) + alone(3, 0, 64), rtol=1e-6)


def test_tokens_turn_for_the_other_use():
    """One token, as at a bus: an M/G/1 of holds of 3, turned by 5 as often as the one before was other."""
    use = {kind: (Acquire("bus", use=kind), Hold(Deterministic(mean=3.0)), Release("bus")) for kind in "rw"}
    program = (Branch((use["r"], use["w"]), (0.25, 0.75)),)
    answer = solved(program, 1e-9, bus=Tokens(count=1, turning=5.0))
    turned = 2 * 0.25 * 0.75
    assert_allclose(answer.latency, 3 + 5 * turned, rtol=1e-6)
    busy = solved(program, 0.1, bus=Tokens(count=1, turning=5.0))
    mean, variance = 3 + 5 * turned, 25 * turned * (1 - turned)
    exact = queues.mg1(arrival_rate=0.1, mean_service_time=mean, service_scv=variance / mean**2)
    assert_allclose(busy.latency, exact.mean_response_time, rtol=0.02)
    assert any("tokens that turn" in doubt for doubt in busy.doubts)


def test_segments_of_a_packet_are_so_many():
    memory = dram("DDR4-3200")
    counted, said = (
        solved((Read("m", count), Each((Visit("s"),), count)), 1e-3, m=memory,
               s=Station(service=Deterministic(mean=2.0)), sizes=fixed(bytes=250))
        for count in ("segments", 4)
    )  # fmt: skip
    assert counted.metrics == said.metrics


def test_time_that_is_not_counted_is_spent_but_no_latency():
    program = (
        Acquire("p"),
        Hold(Exponential(mean=4.0), counted=False),
        Hold(Exponential(mean=1.0)),
        Release("p"),
    )
    answer = solved(program, 0.15, p=Tokens(count=1))
    exact = queues.mg1(arrival_rate=0.15, mean_service_time=5.0, service_scv=17 / 25)
    assert_allclose(answer.latency, exact.mean_response_time - 4.0, rtol=1e-3)


def test_flows_that_are_alike_go_round_as_one():
    """Six jobs of three flows, as exact mean value analysis has them."""
    parts = {name: Station(service=Exponential(mean=mean)) for name, mean in (("s", 2.0), ("t", 1.0))}
    program = (Acquire("p"), Visit("s"), Visit("t"), Release("p"))
    flows = [Flow(name=n, population=2, think=Exponential(mean=9.0), program=program) for n in "abc"]
    answer = solve_system(System(parts=parts | {"p": Tokens(count=9)}, flows=flows))
    exact = mva(population=6, mean_service_time=[2.0, 1.0], think_time=9.0)
    found = [answer[f"visit_latency[{name}]"] for name in "st"]
    assert_allclose(found, exact.mean_response_time, rtol=0.06)  # measured: 4.7 %
    assert_allclose(answer.flow_throughput, exact.system_throughput, rtol=2e-3)
    each = [answer[f"latency[{name}]"] for name in "abc"]
    assert_allclose(each, each[0], rtol=1e-6)


@pytest.mark.parametrize("population", [2, 6])
def test_times_at_stations_are_those_that_jobs_leave_each_other(population):
    """Where a pool that never binds keeps a closed network from being solved as one: near its exact times."""
    parts = {name: Station(service=Exponential(mean=mean)) for name, mean in (("s", 2.0), ("t", 1.6))}
    program = (Acquire("p"), Hold(Exponential(mean=1e-3)), Release("p"), Visit("s"), Visit("t"))
    flow = Flow(population=population, think=Exponential(mean=3.0), program=program)
    answer = solve_system(System(parts=parts | {"p": Tokens(count=9)}, flows=flow))
    exact = mva(population=population, mean_service_time=[2.0, 1.6], think_time=3.0)
    found = [answer[f"visit_latency[{name}]"] for name in "st"]
    assert_allclose(answer.latency, exact.mean_response_time.sum(), rtol=1e-3)
    assert_allclose(found, exact.mean_response_time, rtol=0.1)


def test_work_that_ends_takes_as_long_as_its_jobs():
    flow = Flow(population=3, rounds=20, program=(Visit("s"),))
    answer = solve_system(System(parts={"s": Station(service=Exponential(mean=2.0))}, flows=flow))
    assert_allclose(answer.execution_time, 3 * 20 * 2.0)


@pytest.mark.parametrize("service", [Deterministic(mean=2.0), Erlang(mean=2.0, phases=3)])
def test_a_choice_between_stations_thins_the_stream(service):
    """Poisson streams stay so: each station is an M/G/1 of its share."""
    stations = {"one": Station(service=service), "two": Station(service=service)}
    answer = solved((Branch(((Visit("one"),), (Visit("two"),), ()), (0.5, 0.3, 0.2)),), 0.6, **stations)
    times = [
        queues.mg1(
            arrival_rate=0.6 * p, mean_service_time=2.0, service_scv=float(service.scv)
        ).mean_response_time
        for p in (0.5, 0.3)
    ]
    assert_allclose(answer.latency, 0.5 * times[0] + 0.3 * times[1], rtol=1e-6)


def test_banks_with_few_requests_serve_at_once_and_full_ones_at_their_speeds():
    """Of one channel both banks are at work if many wait, as each wants one of the two."""
    part = BankedChannels(service=Exponential(mean=4.0), channels=1, speeds=(1.0,))
    idle = solved((Visit("m"),), 1e-9, m=part)
    assert_allclose(idle.latency, 4.0, rtol=1e-6)
    slow = replace(part, speeds=(1.0, 0.6))
    # Of up to eight that wait: all want the same bank for one time in nine.
    most = [0.1 * solved((Visit("m"),), 0.1, m=banks).saturation_factor for banks in (part, slow)]
    assert_allclose(most[0], (2 / 9 * 1 + 7 / 9 * 2) / 4)
    assert 1 / 4 < most[1] < 1.2 / 4
    for banks in (part, slow):
        assert 4.0 < solved((Visit("m"),), 0.1, m=banks).latency < solved((Visit("m"),), 0.2, m=banks).latency
    assert np.isinf(solved((Visit("m"),), 0.6, m=part).latency)
    many = replace(part, channels=64)
    assert_allclose(solved((Visit("m"),), 1.0, m=many).latency, 4.0, rtol=1e-3)


def test_blocks_are_tried_until_one_is_on_an_idle_bank():
    """One more access to the lists for each block rejected, of banks busy as accesses come by chance."""
    memory = dram("DDR4-3200", t_refi=0, t_rfc=0)
    banks = memory.geometry.channel_banks * memory.geometry.channels
    program = (Allocate("lists"), Write("m", addresses="allocated"), Free("lists"))
    few, more = (
        solved(
            program, 0.05, m=memory, lists=FreeList(segments=4096, alloc_trial_count=trials, clock_ghz=9.0)
        )
        for trials in (1, 8)
    )
    assert few["visit_latency[lists]"] < more["visit_latency[lists]"]
    busy = 1 - np.exp(-0.05 * more["visit_latency[m]"] / banks)
    rejected = (
        busy + 2 * busy**2
    )  # the first costs two accesses, as the next to follow is read: see `free_list`
    assert more["visit_latency[lists]"] - few["visit_latency[lists]"] < 3 * rejected / 9.0


@pytest.mark.parametrize("scv", [0.25, 1.0, 4.0])
def test_what_leaves_an_idle_memory_is_as_variable_as_what_came(scv):
    """At one channel; behind several what is not Poisson has come nearer to it."""
    one, four = (
        respond_dram(dram("DDR4-3200", channels=channels), (
            Stream(flow="f", step=Read("m"), rate=1e-9, batch=ONE, scv=scv, write=False, bytes=64,
                   sources=np.zeros(0)),
        )).responses[0].departure_scv
        for channels in (1, 4)
    )  # fmt: skip
    assert one == pytest.approx(scv, rel=1e-5)
    assert four == pytest.approx(1) if scv == 1 else 0 < (four - 1) / (scv - 1) < 1


@pytest.mark.parametrize("window", [2, 50])
def test_tokens_inside_a_window_are_held_as_littles_law_says(window):
    """Of two tokens the rate times the hold is in use, however jobs are let in."""
    program = (Acquire("p"), Hold(Exponential(mean=4.0)), Release("p"), Visit("s"))
    parts = {"p": Tokens(count=2), "s": Station(service=Exponential(mean=0.5))}
    answer = solved(program, 0.3, window=window, **parts)
    assert answer.stable
    assert_allclose(answer.utilization["p"], 0.3 * 4.0 / 2, rtol=0.01)


@pytest.mark.parametrize("speeds", [(0.5,), (0.5, 0.8)])
def test_a_region_that_jobs_also_come_to_is_one_station_more(speeds):
    """Elsewhere a single server: a birth and death chain of the number here."""
    here = AtRegion(Region(speeds=np.array(speeds)), 6)
    rates, stay = here.joining(np.full(6, 0.7))
    for jobs in range(1, 7):
        down = [speeds[min(k, len(speeds)) - 1] for k in range(1, jobs + 1)]
        law = np.append(1.0, np.cumprod(0.7 / np.array(down)))
        law /= law.sum()
        assert_allclose(rates[jobs - 1], law[1:] @ down, rtol=1e-12)
    assert_allclose(stay, law @ np.arange(7) / rates[-1], rtol=1e-12)


def test_lists_of_small_packets_are_doubted():
    program = (Allocate("lists"), Hold(Exponential(mean=9.0)), Free("lists"))
    plain, small = (
        solved(program, 0.01, lists=FreeList(segments=4096, small_packet_segments=few)) for few in (0, 2)
    )
    assert [any("small packets" in doubt for doubt in one.doubts) for one in (plain, small)] == [False, True]
