"""Message-passing programs: their steps, collective operations and task graphs."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import MessageProgram, mesh
from qmodels.noc import Router
from qmodels.systems.programs import collectives
from qmodels.systems.programs.messaging import (
    MessageCosts,
    compute,
    join,
    read_steps,
    service_table,
    services,
)

MESH = mesh(4, 4)
shapes = st.sampled_from(collectives.SHAPES)
counts = st.integers(1, 16)


def program(*processes: tuple[str, ...], **fields: object) -> MessageProgram:
    return MessageProgram(topology=MESH, processes=processes, **fields)  # type: ignore[arg-type]


def received(processes: collectives.Processes) -> list[Counter[tuple[int, int]]]:
    """Return for each process the words it holds at the end, by the process they come from.

    An interpreter of its own: a message of w words a process carries what its sender holds.
    """
    held = [Counter({k: 1}) for k in range(len(processes))]
    queues: dict[tuple[int, int], list[Counter[int]]] = {}
    at = [0] * len(processes)
    while any(at[k] < len(steps) for k, steps in enumerate(processes)):
        before = list(at)
        for k, steps in enumerate(processes):
            while at[k] < len(steps):
                action, *numbers = steps[at[k]].split()
                if action in ("send", "signal"):
                    queues.setdefault((k, int(numbers[0])), []).append(Counter(held[k]))
                elif action in ("receive", "wait"):
                    queue = queues.get((int(numbers[0]), k), [])
                    if not queue:
                        break
                    held[k] += queue.pop(0)
                at[k] += 1
        assert at != before, "nobody moves"
    assert not any(queues.values())
    return held


@given(n=counts, shape=shapes, data=st.data())
def test_everybody_hears_of_everybody_in_a_barrier(n, shape, data):
    root = data.draw(st.integers(0, n - 1))
    for held in received(collectives.barrier(processes=n, root=root, shape=shape)):
        assert set(held) == set(range(n))


@given(n=counts, shape=shapes, data=st.data())
def test_collectives_move_what_they_say(n, shape, data):
    root = data.draw(st.integers(0, n - 1))
    for held in received(collectives.broadcast(processes=n, words=3, root=root, shape=shape)):
        assert held[root] >= 1
    for made in (
        collectives.gather(processes=n, words=3, root=root, shape=shape),
        collectives.reduce(processes=n, words=3, root=root, shape=shape),
    ):
        assert received(made)[root] == Counter(range(n))
    for k, held in enumerate(received(collectives.scan(processes=n, words=3, shape=shape))):
        assert held == Counter(range(k + 1))


@given(n=st.integers(2, 16), words=st.integers(1, 50), shape=shapes)
def test_the_root_of_a_gather_gets_the_words_of_all(n, words, shape):
    def through_root(processes, verb):
        return sum(int(step.split()[2]) for k, steps in enumerate(processes) for step in steps
                   if step.startswith("send") and (k == 0) == (verb == "out")
                   and (verb == "out" or step.split()[1] == "0"))  # fmt: skip

    made = {"processes": n, "words": words, "shape": shape}
    assert through_root(collectives.gather(**made), "in") == words * (n - 1)
    assert through_root(collectives.scatter(**made), "out") == words * (n - 1)


def test_trees_are_shallower_and_flat_ones_direct():
    flat, tree = (collectives.gather(processes=16, words=1, shape=s) for s in collectives.SHAPES)
    assert len(flat[0]) == 15
    assert len(tree[0]) == 4


def test_services_follow_priorities_and_circuits():
    steps = ("send 1 1", "priority 2", "send 1 1", "open 1", "signal 1", "close 1", "send 1 1")
    spec = program(steps, (), router=Router(arbitration="priority"), priorities=(5, 0))
    numbers, known = services(spec)
    sent = [(known[n].priority, known[n].circuit) for n in numbers if n >= 0]
    assert sent == [(5, False), (2, False), (2, False), (2, True), (2, True), (2, False)]
    plain = replace(spec, router=Router())
    assert {service.priority for service in services(plain)[1]} == {7}


def test_the_table_has_the_paths_of_the_services():
    spec = program(("send 1 1",), (), placement=(5, 0))
    table = service_table(spec)
    assert (table.source.tolist(), table.target.tolist()) == ([5], [0])
    # Injection, two links, ejection.
    assert table.paths.start.tolist() == [0, 4]
    assert table.channel_kind[table.paths.channel].tolist() == [0, 1, 1, 2]


def test_packets_of_a_message():
    costs = MessageCosts(packet_words=4)
    assert costs.message_words(3) == 8
    assert costs.packets(3) == (2, 4)
    assert costs.packets(4) == (3, 1)
    assert costs.packet_flits(4, 8) == 3
    assert MessageCosts(header_bytes=0).packets(0) == (1, 0)


def test_computing_keeps_every_digit():
    assert read_steps([compute(1 / 3)], process=0, processes=1)[0].cycles == 1 / 3


def test_bad_collectives_are_refused():
    with pytest.raises(ValueError, match="shape must be one of flat, tree, got 'ring'"):
        collectives.gather(processes=4, words=1, shape="ring")
    with pytest.raises(ValueError, match="root must be a whole number from 0 to 3, got 4"):
        collectives.gather(processes=4, words=1, root=4)
    with pytest.raises(ValueError, match=r"joined programs must have equally many processes, got \[1, 2\]"):
        join([[]], [[], []])
