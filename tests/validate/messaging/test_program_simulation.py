"""Message-passing programs simulated: by hand, against the model, and what must always hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmodels import MessageProgram, mesh, solve
from qmodels.noc import Router
from qmodels.systems.programs import collectives
from qmodels.systems.programs.messaging import MessageCosts, join
from validate import simulate
from validate.messaging import ProgramExperiment, ProgramJob, run_replication

quick = settings(max_examples=20)
MESH = mesh(4, 4)
COSTS = MessageCosts(send_cycles=100, receive_cycles=40, send_word_cycles=6, receive_word_cycles=3)
PRIORITY = Router(arbitration="priority", virtual_channels=1)
# Three flits a packet, routers of three cycles.
ADJACENT, BACK = 2 + 3 * 2 + 2, 2 + 3 * 2 + 1


def program(*processes: tuple[str, ...], **fields: object) -> MessageProgram:
    return MessageProgram(**{"topology": MESH, "costs": COSTS, "processes": processes, **fields})


def run(spec, replication=0):
    return run_replication(ProgramJob(spec=spec, seed=0, replication=replication, longest=10**7))


def test_nobody_sends_anything():
    found = simulate(program(("compute 100",), ("compute 50",)), replications=2)
    assert [found[f"finish_time[{k}]"].best for k in (0, 1)] == [100, 50]
    assert (
        found["execution_time"].best
        == solve(program(("compute 100",), ("compute 50",))).metrics["execution_time"]
    )


def test_a_message_by_hand():
    found = run(program(("send 1 4",), ("receive 0",)))
    arrival = 100 + 9 * (6 + ADJACENT) + 8 * BACK
    assert found.finish.tolist() == [arrival + BACK, arrival + 40 + 27]
    assert found.parts.tolist() == [[0, 154, 9 * (ADJACENT + BACK), 0], [0, 67, 0, arrival]]
    assert found.latency == arrival - 100
    assert found.service.tolist() == [[9, 9 * ADJACENT, ADJACENT]]


def test_parts_of_cycles_are_not_lost():
    """Copying of 6.3 cycles a word: each packet leaves with a whole cycle, the clock runs on."""
    costs = replace(COSTS, send_word_cycles=6.3)
    found = run(program(("send 1 40",), ("receive 0",), costs=costs))
    assert found.finish[0] == pytest.approx(100 + 45 * (6.3 + ADJACENT + BACK), abs=1e-9)


lonely = st.builds(
    lambda shape, words, packet_words, wide: MessageProgram(
        topology=MESH,
        costs=replace(COSTS, packet_words=packet_words, send_word_cycles=5.25),
        link_width=wide,
        processes=collectives.scan(processes=16, words=words, cycles_per_word=1.5, shape=shape),
    ),
    st.just("flat"),
    st.integers(0, 30),
    st.integers(1, 8),
    st.sampled_from([2, 4, 16]),
)


@quick
@given(spec=lonely)
def test_where_no_messages_meet_the_model_is_exact(spec):
    answer, found = solve(spec), run(spec)
    model = [answer[f"finish_time[{k}]"] for k in range(16)]
    # A packet of the simulation leaves with a whole cycle, up to one later.
    assert found.finish == pytest.approx(model, abs=16)


def test_under_contention_the_model_is_near():
    """The bar is 8 % on average."""
    first_row_last = tuple(7 * (k % 4 == 0) for k in range(16))
    errors = [
        finish_error(words, levels, overhead)
        for words in (4, 32)
        for levels in ((), first_row_last)
        for overhead in (8, 12)
    ]
    assert np.mean(errors) < 0.06
    assert max(errors) < 0.1


def finish_error(words, levels, overhead):
    """Return the mean error of the finish times of a gather."""
    costs = replace(COSTS, packet_overhead_bytes=overhead)
    spec = program(
        *collectives.gather(processes=16, words=words), costs=costs, router=PRIORITY, priorities=levels
    )
    answer, found = solve(spec), run(spec)
    model = np.array([answer[f"finish_time[{k}]"] for k in range(16)])
    return float(np.mean(np.abs(model / found.finish - 1)))


@quick
@given(words=st.integers(1, 30), levels=st.lists(st.integers(0, 7), min_size=16, max_size=16))
def test_priorities_never_change_the_work(words, levels):
    spec = program(*collectives.gather(processes=16, words=words), router=PRIORITY)
    one, two = run(spec), run(replace(spec, priorities=tuple(levels)))
    assert one.service[:, 0].sum() == two.service[:, 0].sum() == 15 * (5 + words)
    assert one.parts[:, :2] == pytest.approx(two.parts[:, :2])


@quick
@given(others=st.lists(st.integers(0, 40), min_size=14, max_size=14), level=st.integers(0, 7))
def test_a_circuits_latency_does_not_depend_on_the_others(others, level):
    steps = [
        (),
        *((f"send 0 {words}",) if words else () for words in others),
        ("open 0", "send 0 20", "close 0"),
    ]
    spec = program(*steps, router=PRIORITY, priorities=(level,) * 15 + (7,))
    result = simulate(spec, replications=2)
    bound = solve(spec).circuit_latency[15, 0]
    circuit = next(k for k, service in enumerate(result.services) if service.circuit)
    assert result.mean_packet_latency[circuit] == result.max_packet_latency[circuit] == bound


def test_circuits_that_meet_keep_their_bound():
    steps = [("receive 1", "receive 2", "receive 3"), *(("open 0", "send 0 60", "close 0"),) * 3]
    spec = program(*steps)
    result, bounds = simulate(spec, replications=2), solve(spec).circuit_latency
    for service, longest in zip(result.services, result.max_packet_latency, strict=True):
        if service.circuit:
            assert longest <= bounds[service.source, service.target]


@quick
@given(words=st.integers(0, 20), shape=st.sampled_from(collectives.SHAPES), n=st.integers(2, 16))
def test_the_parts_add_up_to_the_finish(words, shape, n):
    steps = join(
        collectives.broadcast(processes=n, words=words, shape=shape),
        collectives.gather(processes=n, words=words, shape=shape),
        collectives.barrier(processes=n, shape=shape),
    )
    found = run(program(*steps))
    assert found.parts.sum(axis=1) == pytest.approx(found.finish)
    packets = 2 * (n - 1)
    if shape == "flat":
        packets += 2 * (n - 1) * (5 + words)
        assert found.service[:, 0].sum() == packets


def test_a_seed_gives_a_course_and_replications_differ():
    steps = join((("compute 1000",),) * 16, collectives.gather(processes=16, words=8))
    spec = program(*steps, compute_jitter=0.5)
    assert run(spec).finish.tolist() == run(spec).finish.tolist()
    assert run(spec).finish.tolist() != run(spec, 1).finish.tolist()
    computing = np.array([run(spec, k).parts[:, 0] for k in range(40)])
    assert computing.min() >= 500
    assert computing.max() <= 1500
    # 640 uniform draws: their mean is within 4 standard errors.
    assert computing.mean() == pytest.approx(1000, abs=4 * 1000 / np.sqrt(12 * 640))


def test_priorities_meet_the_same_random_numbers():
    steps = join((("compute 1000",),) * 16, collectives.gather(processes=16, words=8))
    spec = program(*steps, compute_jitter=0.5, router=PRIORITY)
    other = replace(spec, priorities=tuple(k % 8 for k in range(16)))
    assert run(spec).parts[:, 0].tolist() == run(other).parts[:, 0].tolist()


def test_a_result_has_the_models_metrics():
    spec = program(*collectives.gather(processes=16, words=8))
    result, answer = simulate(spec, replications=3, seed=1), solve(spec)
    assert set(result.metrics) == set(answer.metrics)
    assert result["execution_time"].low == pytest.approx(result["execution_time"].high)
    assert result.execution_time.best == pytest.approx(result.finish[:, 0].max())
    assert result.effort["cycles"] > 0
    assert set(result.latency_parts) == set(answer.latency_parts)
    fast = simulate(replace(spec, clock_ghz=2.0), replications=3, seed=1)
    assert fast.finish == pytest.approx(result.finish / 2)
    wide = MessageProgram(topology=mesh(5, 5), processes=collectives.barrier(processes=25))
    assert "63 more" in repr(simulate(wide, replications=2))


def test_a_campaign_resumes_from_its_store(tmp_path):
    spec = program(*collectives.gather(processes=4, words=8))
    first = simulate([spec], replications=2, store=tmp_path / "runs.sqlite")
    again = simulate([spec], replications=2, store=tmp_path / "runs.sqlite")
    assert again[0].finish.tolist() == first[0].finish.tolist()


def test_a_program_that_takes_too_long_is_given_up():
    spec = program(("send 1 400",), ("receive 0",))
    with pytest.raises(RuntimeError, match="the program did not end: .* more than longest = 500 cycles"):
        simulate(spec, replications=2, longest=500)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seed": -1}, "seed must be a whole number >= 0, got -1"),
        ({"longest": 0}, "longest must be a whole number >= 1, got 0"),
        ({"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0"),
    ],
)
def test_bad_arguments_are_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        ProgramExperiment(**{"spec": program(()), **fields})
