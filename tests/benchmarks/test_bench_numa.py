"""Speed of the NUMA model, its simulator and the placement of the 16-SRP chip."""

from cases.published.paper import published_case
from cases.published.srp import problem_of
from qmodels import solve
from validate.campaigns.experiment import Job
from validate.composed.kinds import run_numa
from validate.composed.replication import system_of

COSTS = {"controller_cycles": 35.7, "compute_per_byte": 3.05, "switch_cycles": 7266.0}
blurring = published_case("srp").names["blurring"]


def test_solve(benchmark):
    """One machine by the model."""
    assert benchmark(solve, blurring(COSTS, "optimal", "all")).stable


def test_simulate(benchmark):
    """One run, a million accesses."""
    job = Job(spec=blurring(COSTS, "non-optimal", "all"), seed=0, replication=0)
    run = benchmark.pedantic(run_numa, args=(job,), rounds=3, warmup_rounds=1)
    memories = [name.startswith("memory") for name in system_of(job.spec).parts]
    assert run.parts[memories, 0].sum() == 1_048_576


def test_place(benchmark):
    """16 tasks, 8 channels, 4 memories, proven."""
    problem = problem_of(blurring(COSTS, "optimal", "all"))
    choice, bound = benchmark.pedantic(problem.exact, rounds=2)
    assert bound > 0.99 * problem.cost(*choice)
