"""The analytic answer for message-passing programs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qmodels as qm
from qmodels import MessageProgram, mesh
from qmodels.noc import Router
from qmodels.noc.solve_program import solve_program
from qmodels.systems.programs.collectives import barrier, gather, ping_pong, scatter
from qmodels.systems.programs.messaging import MessageCosts

MESH = mesh(4, 4)
COSTS = MessageCosts(send_cycles=100, receive_cycles=40, send_word_cycles=6, receive_word_cycles=3)
# Three flits a packet, routers of three cycles.
ADJACENT, BACK = 2 + 3 * 2 + 2, 2 + 3 * 2 + 1


def program(*processes: tuple[str, ...], **fields: object) -> MessageProgram:
    return MessageProgram(**{"topology": MESH, "costs": COSTS, "processes": processes, **fields})


def test_a_message_by_hand():
    answer = solve_program(program(("send 1 4",), ("receive 0",)))
    # Five words of header and four of payload, a packet each; the last response is not waited for.
    arrival = 100 + 9 * (6 + ADJACENT) + 8 * BACK
    assert answer["finish_time[0]"] == pytest.approx(arrival + BACK)
    assert answer["finish_time[1]"] == pytest.approx(arrival + 40 + 9 * 3)
    assert answer["blocked_time[1]"] == pytest.approx(arrival)
    assert answer["software_time[0]"] == pytest.approx(100 + 9 * 6)
    assert answer["network_time[0]"] == pytest.approx(9 * (ADJACENT + BACK))
    assert answer["message_latency"] == pytest.approx(arrival - 100)
    assert answer.contention_time == pytest.approx((0, 0))


def test_packets_of_several_words_by_hand():
    costs = replace(COSTS, packet_words=4)
    answer = solve_program(program(("send 1 4",), ("receive 0",), costs=costs))
    # Packets of 4, 4 and 1 words: 6, 6 and 3 flits.
    arrival = 100 + 9 * 6 + 2 * (ADJACENT + 3) + ADJACENT + 2 * BACK
    assert answer["finish_time[1]"] == pytest.approx(arrival + 40 + 27)


def test_a_ping_pong_is_three_ways():
    answer = solve_program(program(*ping_pong(words=4)))
    way = 100 + 9 * (6 + ADJACENT) + 8 * BACK + 40 + 27
    ready = 100 + ADJACENT + 40
    assert answer["execution_time"] == pytest.approx(ready + 2 * way)
    # In later rounds the peer is ready before what it sent is read.
    thrice = solve_program(program(*ping_pong(words=4, rounds=3)))["execution_time"]
    assert 6 * way < thrice < 3 * (ready + 2 * way)


def test_each_slave_adds_one_notification_each_way_to_a_barrier():
    times = [solve_program(program(*barrier(processes=n)))["execution_time"] for n in (2, 3, 4)]
    assert times[1] - times[0] == pytest.approx(100 + 40 + ADJACENT + BACK, abs=15)
    assert times[2] - times[1] == pytest.approx(100 + 40 + ADJACENT + BACK, abs=15)


@given(words=st.integers(0, 40), n=st.integers(2, 16))
def test_the_parts_add_up(words, n):
    answer = solve_program(program(*scatter(processes=n, words=words, shape="tree")))
    for k in range(n):
        parts = sum(answer[f"{part}_time[{k}]"] for part in ("computing", "software", "network", "blocked"))
        assert parts == pytest.approx(answer[f"finish_time[{k}]"])


@given(words=st.integers(1, 24), data=st.data())
def test_priorities_never_change_the_work(words, data):
    levels = tuple(data.draw(st.lists(st.integers(0, 7), min_size=8, max_size=8)))
    spec = program(*gather(processes=8, words=words), router=Router(arbitration="priority"))
    one, two = solve_program(spec), solve_program(replace(spec, priorities=levels))
    for k in range(8):
        for part in ("computing", "software"):
            assert one[f"{part}_time[{k}]"] == pytest.approx(two[f"{part}_time[{k}]"])
        alone = [a[f"network_time[{k}]"] - a.contention_time[k] for a in (one, two)]
        assert alone[0] == pytest.approx(alone[1])


def test_priorities_do_nothing_without_switches_that_know_them():
    spec = program(*gather(processes=16, words=20))
    prioritised = replace(spec, priorities=tuple(k % 8 for k in range(16)))
    assert solve_program(spec).metrics == solve_program(prioritised).metrics


def test_more_words_take_longer():
    times = [solve_program(program(*gather(processes=16, words=w)))["execution_time"] for w in (1, 8, 64)]
    assert times == sorted(times)


def test_a_circuit_does_not_notice_the_others():
    def finish(others: int) -> float:
        steps = [("send 0 30",) if 0 < k <= others else () for k in range(16)]
        steps[15] = ("open 0", "send 0 30", "close 0")
        return solve_program(program(*steps))["finish_time[15]"]

    # The packet that opens it still meets the others.
    assert finish(8) == pytest.approx(finish(0), abs=10)
    alone = solve_program(program(("open 1", "send 1 4", "close 1"), ("receive 0",)))
    assert alone.circuit_latency == {(0, 1): ADJACENT}


def test_circuits_that_meet_are_bounded_by_each_others_packets():
    steps = (("receive 1", "receive 2"), ("open 0", "send 0 9"), ("open 0", "send 0 9"))
    bounds = solve_program(program(*steps)).circuit_latency
    # From 2 over 1 to 0: the link from 1 and the ejection are common.
    assert bounds == {(1, 0): ADJACENT + 2 * 3, (2, 0): ADJACENT + 3 + 2 * 3}


def test_an_answer_says_what_it_is_worth():
    alone = qm.solve(program(("send 1 4",), ("receive 0",)))
    assert alone.validated
    assert alone.crowding < 0.5
    assert alone.notes == ()
    wide = MessageProgram(topology=mesh(5, 5), processes=gather(processes=25, words=8))
    answer = solve_program(wide)
    assert repr(answer).count("\n") < 70 and "63 more" in repr(answer)


def test_packets_of_a_circuit_have_a_bound():
    slow = program(("open 1", "send 1 4", "close 1"), ("compute 10", "receive 0"))
    one, other = solve_program(slow), solve_program(replace(slow, clock_ghz=2.0))
    assert other.circuit_latency[0, 1] == pytest.approx(one.circuit_latency[0, 1] / 2)
    assert "circuit 0 to 1: a packet takes at most" in repr(one)


def test_a_program_without_messages_just_computes():
    answer = solve_program(program(("compute 7.5",), ()))
    assert answer["execution_time"] == 7.5
    assert answer["message_latency"] == 0
