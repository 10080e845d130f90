import pytest

from validate.composed.experiment import SystemExperiment


def simulated(system, *, replications=20, **options):
    """Simulate in this thread; at 99.9 %, so that a test of intervals fails once in a thousand seeds."""
    experiment = SystemExperiment(spec=system, confidence=0.999, **options)
    runs = [(job, experiment.run_replication(job)) for job in experiment.jobs(0, replications)]
    return experiment.summarize(runs, replications=replications, seconds=0.0)


@pytest.fixture(name="simulated")
def simulated_fixture():
    return simulated
