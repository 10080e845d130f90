"""Cycles per second of the flit simulator, beside BookSim2 if its path is in BOOKSIM.

Run with --benchmark-enable -s. The comparison takes turns, so that both meet the same machine.
"""

import importlib.util
import os
import resource
import time
from pathlib import Path

import pytest

from qmodels import Noc, mesh
from qmodels.noc import Router, uniform
from validate.noc.experiment import NocJob, run_replication

POINTS = {"single-flit packets, 0.1 packets/cycle": (1, 0.1), "9-flit packets, 0.1 flits/cycle": (9, 0.1 / 9)}
_SPEC = importlib.util.spec_from_file_location(
    "booksim_reference", Path(__file__).parents[1] / "validate" / "noc" / "booksim_reference.py"
)
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)


def job(flits, rate, cycles=40_000):
    spec = Noc(
        topology=mesh(8, 8),
        router=Router(virtual_channels=2, buffer_flits=8),
        traffic=uniform(nodes=64, self_traffic=True),
        flits_per_packet=flits,
        injection_rate=rate,
    )
    return NocJob(spec=spec, seed=1, replication=0, packets=100, cycles=cycles, flow_quantiles=False)


def ours(flits, rate):
    """Return simulated cycles per second of one replication, warm-up and set-up included."""
    started = time.process_time()
    run = run_replication(job(flits, rate, cycles=160_000))
    return run.simulated / (time.process_time() - started)


def booksims(flits, rate):
    """Return simulated cycles per second of processor time of a run of BookSim2."""
    row = {
        "network": "mesh 8x8", "virtual_channels": "2", "buffer_flits": "8", "flits": str(flits),
        "traffic": "uniform", "injection_rate": str(rate),
    }  # fmt: skip
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    _, text = reference.booksim(row, seed=1, period=5000, samples=2)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return int(text.rpartition("Time taken is ")[2].split()[0]) / seconds


@pytest.mark.parametrize("point", POINTS)
def test_cycles_of_an_8x8_mesh(benchmark, point):
    flits, rate = POINTS[point]
    run = benchmark(lambda: run_replication(job(flits, rate)))
    assert run.simulated >= 50_000


@pytest.mark.skipif("BOOKSIM" not in os.environ, reason="needs BookSim2: its path in BOOKSIM")
@pytest.mark.parametrize("point", POINTS)
def test_cycles_beside_booksim(benchmark, point):
    # Target: 20 times as many.
    flits, rate = POINTS[point]
    ours(flits, rate)  # compiled
    pairs = [(ours(flits, rate), booksims(flits, rate)) for _ in range(3)]
    benchmark.pedantic(lambda: run_replication(job(flits, rate)), rounds=1)
    best, theirs = (max(values) for values in zip(*pairs, strict=True))
    print(f"\n{point}: {best:.0f} cycles/s, BookSim2 {theirs:.0f}, ratio {best / theirs:.1f}")
    assert best > theirs
