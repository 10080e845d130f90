"""The exact chain, against sums known in closed form and a chain written with a matrix."""

import numpy as np
import pytest

from qmodels import WorkQueues
from qmodels.systems.programs.work_queues import Bag, Clusters, RunQueues, Stealing, TaskCosts
from tests.qmodels.work_queues.exact import exact_makespan


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
