"""Laws of the work-queue model, its parts against known cases, and the exact chain."""

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
    Growth,
    RunQueues,
    Stealing,
    TaskCosts,
    Uneven,
)
from qmodels.systems.spec.metrics import METRICS
from qmodels.work_queues.growth import (
    LAW,
    expected_maximum,
    layers_of,
    ring_block_imbalance,
    ring_surplus,
    run_rounds,
    visit_time,
)
from qmodels.work_queues.solve import solve_work_queues
from tests.qmodels.work_queues.exact import exact_makespan

SMALL = Growth(grid=(9, 9, 9), block_side=2, body=Uneven(radius=3.5, roughness=0.3))
ONE = Clusters(clusters=1, cores=1, numa_factors=((1.0,),))
QUEUES = [
    RunQueues(organisation="central"),
    RunQueues(organisation="distributed", placement="next"),
    RunQueues(organisation="distributed", placement="home"),
    RunQueues(organisation="hierarchical", local_length=0),
    RunQueues(organisation="hierarchical", local_length=4, minimum_length=2),
    RunQueues(organisation="hierarchical", placement="next", local_length=0),
]


@pytest.mark.parametrize(
    "queues", [q for q in QUEUES if q.local_length == 0 or q.organisation != "hierarchical"]
)
@pytest.mark.parametrize("tasks", [SMALL, Bag(tasks=(40,))])
def test_a_single_worker_takes_the_serial_time(queues, tasks):
    spec = WorkQueues(tasks=tasks, machine=ONE, queues=queues)
    put = spec.task_count - 1 if isinstance(tasks, Growth) else 0
    expected = spec.serial_time + (spec.task_count + put) * spec.costs.queue_cycles
    assert solve_work_queues(spec).execution_time == pytest.approx(expected, rel=1e-9)
    free = replace(spec, costs=replace(spec.costs, queue_cycles=0.0, local_cycles=0.0))
    assert solve_work_queues(free).speedup == pytest.approx(1.0, rel=1e-9)


@given(
    queues=st.sampled_from(QUEUES),
    thieves=st.sampled_from(["none", "shepherd", "every"]),
    victims=st.sampled_from(["nearest", "longest", "random"]),
    data=st.sampled_from(["home", "one", "nearest"]),
    unit=st.sampled_from([0.01, 1.0, 1000.0]),
    transfer=st.floats(0, 3000),
    scv=st.floats(0, 1),
)
def test_laws(queues, thieves, victims, data, unit, transfer, scv):
    def spec(unit):
        return WorkQueues(
            tasks=SMALL,
            machine=Clusters(clusters=2, cores=2, numa_factors=((1.0, 1.4), (1.4, 1.0))),
            costs=TaskCosts(
                block_cycles=300 * unit,
                transfer_cycles=transfer * unit,
                queue_cycles=100 * unit,
                local_cycles=20 * unit,
                compute_scv=scv,
            ),
            queues=queues,
            stealing=Stealing(
                thieves=thieves, victims=victims, protected=3, cycles=50 * unit, item_cycles=unit
            ),
            data=data,
        )

    answer = solve_work_queues(spec(1.0))
    # Nothing is lost: the clusters together run every task once, also while stealing.
    assert answer.cluster_tasks.sum() == pytest.approx(spec(1.0).task_count, rel=1e-9)
    assert answer.execution_time >= max(answer.lower_bounds.values()) * (1 - 1e-9)
    assert all(np.isfinite(value) and value >= -1e-9 for value in answer.metrics.values())
    for share in ("parallel_efficiency", "controller_utilization", "local_share"):
        assert answer.metrics[share] <= 1 + 1e-9
    # Changing the unit of time rescales every time and nothing else.
    other = solve_work_queues(spec(unit))
    for name, value in answer.metrics.items():
        scale = unit if METRICS[name].unit == "ns" else 1.0
        assert other.metrics[name] == pytest.approx(scale * value, rel=1e-6, abs=1e-9)


def test_layers_are_the_region():
    spec = WorkQueues(tasks=SMALL)
    layers = layers_of(spec)
    assert layers.tasks.sum() == spec.task_count
    assert (layers.tasks * layers.blocks).sum() == pytest.approx(spec.blocks.sum())
    # Each task but the seed is found once.
    assert (layers.tasks[:, :, None] * layers.children).sum() == pytest.approx(spec.task_count - 1)
    found = (layers.tasks[:-1, :, None] * layers.children[:-1]).sum(axis=1)
    assert np.allclose(found, layers.tasks[1:])


def test_equal_tasks_on_one_queue_take_whole_rounds():
    costs = TaskCosts(block_cycles=100, transfer_cycles=0, queue_cycles=0, local_cycles=0)
    spec = WorkQueues(
        tasks=Bag(tasks=(10, 0, 0, 0)),
        machine=Clusters(cores=1),
        costs=costs,
        queues=RunQueues(organisation="central"),
    )
    assert run_rounds(spec).makespan == pytest.approx(300)
    # A line of superblocks leaves no choice: one after the other.
    line = replace(spec, tasks=Growth(grid=(12, 1, 1), block_side=1, body=Cube(side=12)))
    assert run_rounds(line).makespan == pytest.approx(700)


def test_stealing_helps_where_the_clusters_are_uneven_and_costs_nothing_where_they_are_not():
    base = WorkQueues(tasks=Bag(tasks=(600, 100, 100, 100)), costs=TaskCosts(block_cycles=20_000))
    stealing = replace(base, stealing=Stealing(thieves="shepherd"))
    without, with_it = solve_work_queues(base), solve_work_queues(stealing)
    assert without.imbalance == pytest.approx(600 / 225 - 1)
    assert with_it.execution_time < 0.5 * without.execution_time
    assert with_it.imbalance < 0.2 and with_it.stolen_share > 0.3
    even = replace(base, tasks=Bag(tasks=(225,) * 4))
    idle = replace(even, stealing=Stealing(thieves="shepherd"))
    assert solve_work_queues(idle).execution_time == pytest.approx(
        solve_work_queues(even).execution_time, rel=1e-9
    )


@pytest.mark.parametrize(
    ("tasks", "cores", "thieves", "bound"),
    [
        ((8, 8), 2, "none", 0.07),
        ((30, 12), 2, "none", 0.02),
        ((60, 20), 2, "every", 0.06),
        ((50, 0), 3, "every", 0.12),
    ],
)
def test_against_the_exact_chain(tasks, cores, thieves, bound):
    spec = WorkQueues(
        tasks=Bag(tasks=tasks),
        machine=Clusters(clusters=2, cores=cores, numa_factors=((1.0, 1.2), (1.2, 1.0))),
        costs=TaskCosts(compute_scv=1.0, transfer_cycles=0, queue_cycles=0, local_cycles=0),
        queues=RunQueues(local_length=0),
        stealing=Stealing(thieves=thieves, protected=0, cycles=0, item_cycles=0),
    )
    assert solve_work_queues(spec).execution_time == pytest.approx(exact_makespan(spec), rel=bound)


@given(n=st.floats(1, 64), s=st.floats(0.001, 1e4), z=st.floats(0, 1e5))
def test_laws_of_a_visit(n, s, z):
    time = visit_time(customers=n, service_time=s, away_time=z)
    assert s * (1 - 1e-9) <= time <= n * s * (1 + 1e-9)
    assert n / (z + time) <= (1 + 1e-9) / s  # one server
    assert visit_time(customers=1, service_time=s, away_time=z) == pytest.approx(s)
    assert visit_time(customers=n + 1, service_time=s, away_time=z) >= time * (1 - 1e-9)


def test_the_largest_of_normal_numbers():
    # The largest of two, of three, and of one that is far ahead.
    assert expected_maximum(means=[0, 0], deviations=[1, 1]) == pytest.approx(1 / np.sqrt(np.pi), abs=1e-5)
    assert expected_maximum(means=[2] * 3, deviations=[2] * 3) == pytest.approx(
        2 + 3 / np.sqrt(np.pi), abs=1e-4
    )
    assert expected_maximum(means=[100, 0], deviations=[1, 1]) == pytest.approx(100, abs=1e-6)
    assert expected_maximum(means=[3, 5], deviations=[0, 0]) == 5
    assert expected_maximum(means=[0, 0], deviations=[0, 1]) == pytest.approx(
        1 / np.sqrt(2 * np.pi), abs=1e-2
    )


def test_the_ring_is_a_closed_random_walk():
    rng = np.random.default_rng(1)
    queues, tasks = 32, 32_000
    steps = rng.normal(size=(20_000, queues)) * np.sqrt(tasks / queues)
    walk = np.cumsum(steps - steps.mean(axis=1, keepdims=True), axis=1)
    walk -= walk.mean(axis=1, keepdims=True)
    # The step's deviation is measured in regions, so it is taken out of the comparison.
    scale = ring_surplus(tasks=tasks, queues=queues) / LAW.deviation
    assert scale == pytest.approx(walk.max(axis=1).mean(), rel=0.02)
    # Sections of independent queues: the largest of one section per queue is the surplus itself.
    mean = tasks / queues
    assert ring_block_imbalance(tasks=tasks, queues=queues, blocks=queues) == pytest.approx(
        ring_surplus(tasks=tasks, queues=queues) / mean
    )
    normal = rng.normal(size=(20_000, 4, 8))
    part = normal.mean(axis=2).max(axis=1).mean() / normal.reshape(-1, 32).max(axis=1).mean()
    assert ring_block_imbalance(tasks=tasks, queues=queues, blocks=4) == pytest.approx(
        part * ring_surplus(tasks=tasks, queues=queues) / mean, rel=0.02
    )
    assert (
        ring_surplus(tasks=tasks, queues=1) == 0
        and ring_block_imbalance(tasks=tasks, queues=4, blocks=1) == 0
    )


def test_too_many_rounds(monkeypatch):
    monkeypatch.setattr("qmodels.work_queues.growth.MOST_ROUNDS", 3)
    with pytest.raises(
        RuntimeError, match="^tasks are left after 3 rounds: .*; give fewer or shorter tasks$"
    ):
        run_rounds(WorkQueues(tasks=SMALL))


def bag(tasks, *, cores=1, numa=None, **stealing):
    count = len(tasks)
    numa = numa or tuple(tuple(1.0 + 0.1 * ((i - j) % count) for j in range(count)) for i in range(count))
    return WorkQueues(
        tasks=Bag(tasks=tasks),
        machine=Clusters(clusters=count, cores=cores, numa_factors=numa),
        costs=TaskCosts(block_cycles=1.0, compute_scv=1.0, transfer_cycles=0, queue_cycles=0, local_cycles=0),
        queues=RunQueues(local_length=0),
        stealing=Stealing(**({"cycles": 0, "item_cycles": 0} | stealing)),
    )


def harmonic(n):
    return sum(1 / k for k in range(1, n + 1))


@pytest.mark.parametrize(("tasks", "cores"), [(1, 1), (7, 1), (7, 3), (2, 4), (12, 5)])
def test_one_queue_is_a_pure_death_process(tasks, cores):
    expected = max(tasks - cores, 0) / cores + harmonic(min(tasks, cores))
    assert exact_makespan(bag((tasks,), cores=cores)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("victims", ["nearest", "longest", "random"])
@pytest.mark.parametrize("thieves", ["shepherd", "every"])
def test_single_cores_that_protect_nothing_share_everything(thieves, victims):
    spec = bag((9, 1, 5, 0), thieves=thieves, victims=victims, protected=0)
    assert exact_makespan(spec) == pytest.approx(11 / 4 + harmonic(4), rel=1e-12)


def test_queues_without_stealing_are_the_larger_of_two_gamma_times():
    x = np.linspace(0, 80, 400_001)
    tails = []
    for shape in (6, 4):
        term, total = np.exp(-x), np.exp(-x)
        for k in range(1, shape):
            term = term * x / k
            total = total + term
        tails.append(total)
    expected = np.trapezoid(1 - (1 - tails[0]) * (1 - tails[1]), x)
    assert exact_makespan(bag((6, 4))) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("protected", [0, 1, 3])
def test_against_linear_equations(protected):
    """Two queues of one core, one theft of a task at a time: every state by its counts."""
    n = 7
    spec = bag((n, 0), thieves="every", protected=protected, most=1)
    index = {(a, b): k for k, (a, b) in enumerate((a, b) for a in range(n + 1) for b in range(n + 1))}

    def settled(a, b):
        while True:  # the waiting ones are those beyond the one that is served
            if b == 0 and a - 1 > protected:
                a, b = a - 1, b + 1
            elif a == 0 and b - 1 > protected:
                a, b = a + 1, b - 1
            else:
                return a, b

    matrix, right = np.eye(len(index)), np.zeros(len(index))
    for (a, b), row in index.items():
        rate = (a > 0) + (b > 0)
        if rate:
            right[row] = 1 / rate
            for after in ([(a - 1, b)] if a else []) + ([(a, b - 1)] if b else []):
                matrix[row, index[settled(*after)]] -= 1 / rate
    expected = np.linalg.solve(matrix, right)[index[settled(n, 0)]]
    assert exact_makespan(spec) == pytest.approx(expected, rel=1e-10)


def test_protection_can_only_prolong():
    times = [exact_makespan(bag((12, 3), cores=2, thieves="every", protected=p)) for p in (0, 2, 5, 20)]
    assert times == sorted(times)
    assert times[-1] == pytest.approx(exact_makespan(bag((12, 3), cores=2)), rel=1e-12)
