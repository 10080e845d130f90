"""Requests per second of the cache simulator, and the time of a model point."""

import pytest

import qmodels as qm
from qmodels import CacheLevel, CacheSystem
from qmodels.traffic import Zipf
from validate.cache.experiment import CacheExperiment

SPECS = {
    "one level": CacheSystem(private=(CacheLevel(lines=1000),)),
    "28 cores, 28 slices": CacheSystem(
        entries_per_line=32,
        assignment="random",
        cores=28,
        private=(CacheLevel(lines=2), CacheLevel(lines=16)),
        shared=CacheLevel(lines=64, slices=28),
        inclusion="exclusive",
    ),
    "a million lines": CacheSystem(
        popularity=Zipf(entries=1_000_000, exponent=0.83), private=(CacheLevel(lines=50_000),)
    ),
}


@pytest.mark.parametrize("name", SPECS)
def test_five_million_requests(benchmark, name):
    (job,) = CacheExperiment(spec=SPECS[name], requests=5_000_000, warm_up=0).jobs(0, 1)
    benchmark.pedantic(CacheExperiment.run_replication, args=(job,), rounds=3, warmup_rounds=1)


@pytest.mark.parametrize("name", SPECS)
def test_a_model_point(benchmark, name):
    benchmark(qm.solve, SPECS[name])
