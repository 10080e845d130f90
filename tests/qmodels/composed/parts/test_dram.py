"""DRAM as a part: as its own model where that can say the accesses, and mixtures of several kinds."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import qmodels.composed.parts.dram as dram_part
from qmodels.composed.parts.dram import batch_groups, respond_dram
from qmodels.composed.streams import Stream
from qmodels.memory.dram.mixture import Kind, mixed_waits
from qmodels.memory.dram.solve import solve_dram
from qmodels.systems.composed.steps import Read, Write
from qmodels.systems.memory.dram_system import SPAN, Packets, RandomBlocks, StridedBlocks, dram
from validate.dram import state
from validate.dram.kernel import run_channel

OPEN = dram("DDR4-3200", channels=2)
CLOSED = dram("DDR4-3200", channels=4, page_policy="closed")
SYSTEMS = {"open": OPEN, "closed": CLOSED, "in order": replace(OPEN, scheduler="in-order")}


def asked(rate, blocks=1, *, write=False, addresses="random", scv=1.0, law=None):
    """Return a stream of accesses, ``rate`` of them in a cycle of OPEN."""
    batch = np.eye(blocks + 1)[blocks] if law is None else np.asarray(law)
    step = (Write if write else Read)("dram", blocks=blocks, addresses=addresses)
    issues = rate * OPEN.clock_ghz / float(batch @ np.arange(batch.size))
    return Stream(
        flow="jobs", step=step, rate=issues, batch=batch, scv=scv, write=write, bytes=64,
        sources=np.zeros(0), run=np.inf if addresses == "sequential" else 0.0,
    )  # fmt: skip


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize(
    ("streams", "traffic"),
    [
        ([asked(0.08)], RandomBlocks(arrival_rate=0.08)),
        ([asked(0.03), asked(0.05)], RandomBlocks(arrival_rate=0.08)),
        ([asked(0.05), asked(0.02, write=True)], RandomBlocks(arrival_rate=0.07, write_fraction=2 / 7)),
        ([asked(0.08, 6)], Packets(arrival_rate=0.08, blocks=6)),
        ([asked(0.06, addresses="sequential")], StridedBlocks(arrival_rate=0.06)),
    ],
)
def test_accesses_of_one_kind_are_answered_as_by_the_dram_alone(name, streams, traffic):
    spec = SYSTEMS[name]
    answer, alone = respond_dram(spec, tuple(streams)), solve_dram(replace(spec, traffic=traffic))
    for stream, response in zip(streams, answer.responses, strict=True):
        expected = alone.metrics["write_latency" if stream.write else "read_latency"]
        assert_allclose(response.mean, expected, rtol=1e-9)
    top = alone.in_cycles()["saturation_rate"]
    assert_allclose(answer.intensity[""], traffic.arrival_rate / top, rtol=1e-9)
    if len(streams) == 1:
        law, cell = alone.laws(0)
        times, law = np.arange(law.size) * cell / spec.clock_ghz, law / law.sum()
        variance = law @ times**2 - (law @ times) ** 2
        assert_allclose(answer.responses[0].variance, variance, rtol=0.05)


def test_a_mixture_of_alike_kinds_is_one_kind():
    both = [Kind(blocks=8, write=False, rate=0.04), Kind(blocks=8, write=False, rate=0.02)]
    one = mixed_waits(OPEN, [Kind(blocks=8, write=False, rate=0.06)])
    two = mixed_waits(OPEN, both)
    assert two.load == pytest.approx(one.load, rel=1e-9)
    for waits in two.waits:
        # Pairs of two kinds are drawn apart from those of one.
        assert _total(waits) == pytest.approx(_total(one.waits[0]), rel=0.03)


def _total(waits):
    return waits.bank + waits.activation + waits.bus + waits.refresh


def test_load_grows_with_the_rate_and_waits_with_the_load():
    mix = [(0.02, 1, False), (0.03, 8, False), (0.02, 4, True)]
    answers = []
    for factor in (0.5, 1.0, 1.5):
        streams = tuple(asked(factor * rate, blocks, write=write) for rate, blocks, write in mix)
        answers.append(respond_dram(OPEN, streams))
    for name, value in answers[0].intensity.items():
        assert_allclose([a.intensity[name] for a in answers[1:]], [2 * value, 3 * value], rtol=1e-9)
    means = np.array([[r.mean for r in a.responses] for a in answers])
    assert (np.diff(means, axis=0) > 0).all()
    full = tuple(asked(10 * rate, blocks, write=write) for rate, blocks, write in mix)
    over = respond_dram(OPEN, full)
    assert over.intensity[""] > 1 and all(np.isinf(r.mean) for r in over.responses)


def test_an_idle_dram_takes_what_its_timing_says():
    t = CLOSED.timing
    (response,) = respond_dram(replace(CLOSED, timing=replace(t, t_refi=0, t_rfc=0)), (asked(0.0),)).responses
    assert response.mean == pytest.approx((t.t_rcd + t.cl + t.burst) / CLOSED.clock_ghz, rel=1e-6)
    assert response.variance == pytest.approx(0.0, abs=1e-3)


def test_the_last_of_a_batch_comes_after_the_mean_and_before_the_sum():
    (single,) = respond_dram(OPEN, (asked(0.06),)).responses
    assert single.last_mean == single.mean and single.last_variance == single.variance
    last = [respond_dram(OPEN, (asked(0.06, n),)).responses[0] for n in (2, 8, 24)]
    assert all(r.mean < r.last_mean < 4 * r.mean for r in last)
    assert (np.diff([r.last_mean for r in last]) > 0).all()


@pytest.mark.parametrize("scv", [0.25, 4.0])
def test_burstier_accesses_wait_longer(scv):
    plain, other = (respond_dram(OPEN, (asked(0.1, scv=s),)).responses[0].mean for s in (1.0, scv))
    assert (other > plain) == (scv > 1)


def test_batches_of_many_sizes_keep_their_accesses():
    law = np.arange(20.0) / np.arange(20.0).sum()
    stream = asked(0.05, 19, law=law)
    groups = batch_groups(stream)
    assert len(groups) == 3
    assert sum(accesses for _, accesses, _ in groups) == pytest.approx(stream.request_rate)
    assert sum(share for _, _, share in groups) == pytest.approx(1.0)


MIXTURES = {
    "random and batches": ([(1, False), (8, False)], 0.05),
    "batches": ([(2, False), (16, False)], 0.05),
    "reads and writes in batches": ([(8, False), (8, True)], 0.30),
    "random reads and writes": ([(1, False), (1, True)], 0.35),
}


@pytest.mark.in_ci(2)
@pytest.mark.parametrize("load", [0.3, 0.6])
@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures_are_near_simulation(name, load):
    """Reads of mixtures of reads within 5 %; with as many writes both within the bars they were found in."""
    kinds, bar = MIXTURES[name]
    light = [Kind(blocks=b, write=w, rate=1e-4) for b, w in kinds]
    rate = 1e-4 * load / mixed_waits(CLOSED, light).load
    streams = tuple(asked(rate, b, write=w) for b, w in kinds)
    answer = respond_dram(CLOSED, streams)
    found = simulated(CLOSED, [(b, w, rate) for b, w in kinds])
    for direction in (False, True):
        mine = [r.mean for r, s in zip(answer.responses, streams, strict=True) if s.write == direction]
        if mine:
            assert_allclose(np.mean(mine), found[int(direction)], rtol=bar)


def simulated(spec, kinds, accesses=160_000):
    """Return the mean latency of reads and writes of packets that come as Poisson processes. [ns]."""
    rng = np.random.default_rng(7)
    horizon = accesses / sum(rate for _, _, rate in kinds)
    arrival, block, write = [], [], []
    for blocks, writes, rate in kinds:
        count = int(rate * horizon / blocks)
        begin = (rng.random(count) * horizon).astype(np.int64)
        arrival.append(np.repeat(begin, blocks))
        block.append((rng.integers(SPAN, size=count)[:, None] + np.arange(blocks)).ravel())
        write.append(np.full(count * blocks, int(writes)))
    arrival, block, write = (np.concatenate(x) for x in (arrival, block, write))
    order = np.argsort(arrival, kind="stable")
    arrival, write = arrival[order], write[order]
    place = spec.address_map.locate(block[order], spec.geometry)
    sums = np.zeros((2, 2))
    for channel in range(spec.geometry.channels):
        here = place.channel == channel
        bank, row = (np.ascontiguousarray(x[here], dtype=np.int64) for x in (place.bank, place.row))
        one = state.new_channel(
            spec, arrival=arrival[here], bank=bank, row=row, write=write[here], start=rng.random()
        )
        run_channel(one)
        sums += one.sums[:, 1:].sum(axis=1)[:, [state.LATENCY, state.COUNT]]
    return sums[:, 0] / np.maximum(sums[:, 1], 1) / spec.clock_ghz


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(("blocks", "rate"), [(8, 0.001), (24, 0.001), (8, 0.2), (24, 0.2)])
def test_the_last_of_a_batch_is_near_simulation(blocks, rate):
    """Within 5 %, idle and at a load of 0.3."""
    from qmodels.systems.composed.flow import Flow
    from qmodels.systems.composed.system import System
    from qmodels.systems.traffic.arrivals import Poisson
    from validate.composed.experiment import SystemExperiment

    flow = Flow(arrivals=Poisson(), rate=rate / blocks, program=Read("dram", blocks=blocks))
    experiment = SystemExperiment(spec=System(parts={"dram": CLOSED}, flows=flow), passages=10_000)
    runs = [(job, experiment.run_replication(job)) for job in experiment.jobs(0, 4)]
    found = experiment.summarize(runs, replications=4, seconds=0.0)
    (response,) = respond_dram(CLOSED, (asked(rate / OPEN.clock_ghz, blocks),)).responses
    assert_allclose(response.last_mean, found.latency.best, rtol=0.05)


def test_what_a_stream_meets_is_found_when_it_is_read(monkeypatch):
    asked_for, found = [], dram_part.last_times
    monkeypatch.setattr(
        dram_part, "last_times", lambda kind, *a, **b: asked_for.append(kind) or found(kind, *a, **b)
    )
    answer = respond_dram(OPEN, (asked(0.02, 4), asked(0.02, 7), asked(0.01)))
    assert answer.intensity[""] > 0 and not asked_for
    assert answer.responses[1].mean > 0 and answer.responses[1].last_mean > 0
    assert [kind.blocks for kind in asked_for] == [7]


def test_streams_of_one_flow_keep_their_distance():
    """Those of two flows drift apart, slow ones are told apart too, and batches of several sizes are one."""
    along = {"addresses": "sequential"}
    one, other = asked(0.02, **along), asked(0.02, write=True, **along)
    sizes = asked(0.02, law=[0, 0.5, 0, 0, 0.125], **along)
    slow = asked(1e-9, **along), asked(3e-9, **along)
    found = [(one, other), (one, replace(other, flow="others")), (sizes,), (one, asked(0.01, **along)), slow]
    doubted = [any("keep their distance" in d for d in respond_dram(OPEN, each).doubts) for each in found]
    assert doubted == [True, False, False, False, False]
