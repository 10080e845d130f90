"""The simulated run queues: conservation, known times, the exact chain, and a run in plain Python."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmodels import WorkQueues
from qmodels.systems.programs.work_queues import (
    Bag,
    Clusters,
    Cube,
    Drawn,
    Growth,
    RunQueues,
    Stealing,
    TaskCosts,
    Uneven,
)
from validate import simulate
from validate import work_queues as c
from validate.campaigns.experiment import Job
from validate.work_queues import cluster_tasks, run_replication

BODY = Growth(grid=(11, 11, 11), block_side=2, body=Uneven(radius=4.5, roughness=0.4, shift=(1.5, 0, 0)))
TWO = Clusters(clusters=2, cores=2, numa_factors=((1.0, 1.4), (1.4, 1.0)))


def once(spec, seed=0):
    return run_replication(Job(spec=spec, seed=seed, replication=0))


@given(
    organisation=st.sampled_from(["central", "distributed", "hierarchical"]),
    placement=st.sampled_from(["home", "next", "own"]),
    local=st.sampled_from([0, 1, 8]),
    minimum=st.sampled_from([0, 3, 10]),
    thieves=st.sampled_from(["none", "shepherd", "every"]),
    victims=st.sampled_from(["nearest", "longest", "random"]),
    protected=st.sampled_from([0, 2, 10]),
    share=st.sampled_from([0.1, 0.5, 1.0]),
    most=st.sampled_from([1, 20]),
    search=st.sampled_from([0.0, 300.0, 30_000.0]),
    data=st.sampled_from(["home", "one", "nearest"]),
    scv=st.sampled_from([0.0, 0.3, 1.0]),
    tasks=st.sampled_from([BODY, Bag(tasks=(90, 3)), Bag(tasks=(0, 1))]),
    seed=st.integers(0, 1000),
)
def test_every_task_runs_once(
    organisation, placement, local, minimum, thieves, victims, protected, share, most, search, data, scv,
    tasks, seed,
):  # fmt: skip
    spec = WorkQueues(
        tasks=tasks,
        machine=TWO,
        costs=TaskCosts(compute_scv=scv),
        queues=RunQueues(
            organisation=organisation, placement=placement, local_length=local, minimum_length=minimum
        ),
        stealing=Stealing(
            thieves=thieves, victims=victims, protected=protected, share=share, most=most, cycles=search
        ),
        data=data,
    )
    run = once(spec, seed)
    # Stealing and placement change who runs a task and when, never which tasks there are.
    assert np.array_equal(run.runs, np.ones(spec.task_count))
    assert run.runner.min() >= 0 and run.runner.max() < spec.cores
    makespan = run.counts[c.MAKESPAN]
    transfers = spec.task_count * spec.costs.transfer_cycles
    assert run.memory_busy.sum() == pytest.approx(transfers)
    assert makespan * spec.cores >= (run.counts[c.COMPUTE] + transfers) * (1 - 1e-12)
    assert makespan >= run.memory_busy.max()
    if scv == 0:
        assert run.counts[c.COMPUTE] == pytest.approx(spec.serial_time - transfers)
    if thieves == "none" or organisation == "central":
        assert run.counts[c.STOLEN] == 0
    if thieves == "none" and placement == "home" and organisation != "central":
        # Without thieves a task stays in the cluster of its data.
        assert np.array_equal(run.runner // TWO.cores, spec.homes)


@pytest.mark.parametrize("thieves", ["none", "every"])
@pytest.mark.parametrize("organisation", ["central", "distributed", "hierarchical"])
def test_a_single_worker_takes_the_serial_time(organisation, thieves):
    spec = WorkQueues(
        tasks=BODY,
        machine=Clusters(clusters=1, cores=1, numa_factors=((1.0,),)),
        queues=RunQueues(organisation=organisation, local_length=0),
        stealing=Stealing(thieves=thieves),
    )
    visits = 2 * spec.task_count - 1  # the seed is there from the beginning
    expected = spec.serial_time + visits * spec.costs.queue_cycles
    assert once(spec).counts[c.MAKESPAN] == pytest.approx(expected, rel=1e-12)


def test_a_picture_timed_by_hand():
    """Three superblocks in a row on two cores: the middle one, then both ends."""
    row = Growth(grid=(3, 1, 1), block_side=1, body=Drawn(layers=(("###",),)))
    spec = WorkQueues(
        tasks=row,
        machine=Clusters(clusters=1, cores=2, numa_factors=((1.0,),)),
        costs=TaskCosts(block_cycles=100, transfer_cycles=10, queue_cycles=1, local_cycles=0),
        queues=RunQueues(organisation="central"),
    )
    run = once(spec)
    # The first core has the middle at 1, its data at 11 and its result at 111; the ends are in the queue
    # at 112 and at 114, since the other core has the lock in between. That core has its data at 123 and
    # ends at 223; the first leaves the queue at 115, waits for the memory until 123, and ends at 233.
    assert np.bincount(run.runner, minlength=2).tolist() == [2, 1]
    assert run.counts[c.MAKESPAN] == 233
    assert run.counts[c.LOCK_WAIT] == 1 and run.counts[c.MEMORY_WAIT] == 8


def test_memory_is_served_one_by_one():
    """Four cores start together at one controller: waits of 0, 1, 2 and 3 transfers."""
    spec = WorkQueues(
        tasks=Bag(tasks=(4,)),
        machine=Clusters(clusters=1, cores=4, numa_factors=((1.0,),)),
        costs=TaskCosts(block_cycles=5, transfer_cycles=100, queue_cycles=0),
    )
    run = once(spec)
    assert run.counts[c.MEMORY_WAIT] == pytest.approx(600)
    assert run.counts[c.MAKESPAN] == pytest.approx(405)


def test_locks_are_held_one_by_one():
    spec = WorkQueues(
        tasks=Bag(tasks=(4,)),
        machine=Clusters(clusters=1, cores=4, numa_factors=((1.0,),)),
        costs=TaskCosts(block_cycles=5, transfer_cycles=0, queue_cycles=100),
    )
    run = once(spec)
    assert run.counts[c.LOCK_WAIT] == pytest.approx(600)
    assert run.counts[c.MAKESPAN] == pytest.approx(405)


def test_distance_counts():
    """One remote cluster reads from memory 0: the factor lengthens the transfer, not its service."""
    spec = WorkQueues(
        tasks=Bag(tasks=(0, 1)),
        machine=Clusters(clusters=2, cores=1, numa_factors=((1.0, 1.5), (1.5, 1.0))),
        costs=TaskCosts(block_cycles=5, transfer_cycles=100, queue_cycles=10),
        data="one",
    )
    run = once(spec)
    assert run.counts[c.MAKESPAN] == pytest.approx(15 + 150 + 5)
    assert run.memory_busy.tolist() == [100, 0]


@pytest.mark.parametrize(
    ("protected", "share", "most", "moved"),
    [(0, 0.5, 20, 9), (0, 1.0, 20, 19), (4, 0.5, 20, 7), (0, 0.5, 3, 3), (18, 0.5, 20, 1), (19, 0.5, 20, 0)],
)
def test_loot(protected, share, most, moved):
    """Of 20 tasks the owner begins one; the thief takes its part of those beyond the protected ones."""
    spec = WorkQueues(
        tasks=Bag(tasks=(20, 0)),
        machine=Clusters(clusters=2, cores=1, numa_factors=((1.0, 1.0), (1.0, 1.0))),
        costs=TaskCosts(block_cycles=1000, transfer_cycles=0, queue_cycles=0),
        stealing=Stealing(
            thieves="every", protected=protected, share=share, most=most, cycles=0, item_cycles=0
        ),
    )
    run = once(spec)
    if moved == 0:
        assert run.counts[c.STOLEN] == 0
    else:
        assert run.counts[c.STOLEN] >= moved
        first = replace(spec, tasks=Bag(tasks=(20, 0)), stealing=replace(spec.stealing, cycles=18_500.0))
        # With a search as long as the rest of the work there is one theft at the very end.
        assert once(first).counts[c.THEFTS] <= 1
    if most == 20 and protected == 0 and share == 0.5:
        assert run.counts[c.THEFTS] >= 1
        assert abs(int((run.runner == 1).sum()) - 10) <= 1


def test_only_the_shepherd_steals():
    spec = WorkQueues(
        tasks=Bag(tasks=(40, 0)),
        machine=TWO,
        costs=TaskCosts(block_cycles=1000, transfer_cycles=0, queue_cycles=0),
        stealing=Stealing(thieves="shepherd", protected=0, most=1, cycles=0, item_cycles=0),
    )
    run = once(spec)
    # One task at a time is for the shepherd alone; core 3 never has any.
    assert (run.runner == 2).any() and not (run.runner == 3).any()
    every = replace(spec, stealing=replace(spec.stealing, thieves="every"))
    assert (once(every).runner == 3).any()


@pytest.mark.in_ci(2)
@pytest.mark.parametrize(
    ("organisation", "thieves", "victims", "protected", "exact"),
    [
        # Means in task times from `tests.qmodels.work_queues.exact.exact_makespan`, which a test of its own
        # checks against linear equations.
        ("hierarchical", "none", "nearest", 0, 6.5223),
        ("hierarchical", "shepherd", "nearest", 0, 5.0290),
        ("hierarchical", "shepherd", "nearest", 3, 5.4204),
        ("hierarchical", "every", "random", 3, 5.1627),
        ("central", "none", "nearest", 0, 4.8333),
    ],
)
def test_the_exact_chain_is_inside_the_interval(organisation, thieves, victims, protected, exact):
    spec = WorkQueues(
        tasks=Bag(tasks=(12, 3)),
        machine=TWO,
        costs=TaskCosts(block_cycles=1.0, compute_scv=1.0, transfer_cycles=0, queue_cycles=0, local_cycles=0),
        queues=RunQueues(organisation=organisation, local_length=0),
        stealing=Stealing(thieves=thieves, victims=victims, protected=protected, cycles=0, item_cycles=0),
    )
    result = simulate(spec, replications=2000, confidence=0.999)
    assert exact in result.execution_time
    assert result.execution_time.relative_half_width < 0.03


def test_stealing_evens_out_the_clusters():
    base = WorkQueues(tasks=Bag(tasks=(500, 100, 100, 100)), costs=TaskCosts(block_cycles=20_000))
    without, with_it = once(base), once(replace(base, stealing=Stealing(thieves="shepherd")))
    assert cluster_tasks(base, without).tolist() == [500, 100, 100, 100]
    assert cluster_tasks(base, with_it).max() < 260
    assert with_it.counts[c.MAKESPAN] < 0.6 * without.counts[c.MAKESPAN]


def test_results():
    spec = WorkQueues(tasks=Growth(grid=(9, 9, 9), block_side=2, body=Cube(side=5)))
    result = simulate(spec, replications=6)
    assert result.cluster_tasks.sum() == pytest.approx(125)
    assert result.stable and result.effort == {"tasks": 125} and result.replications == 6
    assert result.title == "WorkQueues, simulated: 6 replications, 125 tasks, seed 0; 0.95 intervals"
