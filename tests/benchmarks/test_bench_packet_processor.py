"""Time of the analytic packet processor: one design, the default space, the full space explored."""

from __future__ import annotations

import time
from concurrent.futures import Executor, ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

import qmodels as qm
from cases.study.packet_processor import BOUNDS, FULL_CHOICES, SUBJECT_TO, default_processor, default_space
from optimize import explore


def test_one_design(benchmark: Any) -> None:
    result = benchmark(qm.solve, qm.PacketProcessor())
    assert result.stable


def test_the_default_space(benchmark: Any) -> None:
    space = default_space(qm.PacketProcessor())
    spec = space.batch(np.arange(space.size))
    result = benchmark.pedantic(qm.solve, args=(spec,), rounds=3, warmup_rounds=1)
    assert result.packet_latency.size == space.size == 2700


OBJECTIVES = ("packet_latency", "cost", "saturation_data_rate")


def objectives(spec: qm.PacketProcessor) -> dict[str, Any]:
    metrics = qm.solve(spec).metrics
    return {name: metrics[name] for name in (*OBJECTIVES, *SUBJECT_TO)}


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["processes", "dask"])
def test_the_full_space_on_two_cores_beside_one(benchmark: Any, workers: str) -> None:
    space = default_space(default_processor(), choices=FULL_CHOICES)

    def run(executor: Executor | None = None) -> Any:
        return explore(
            space,
            objectives,
            minimize=OBJECTIVES[:2],
            maximize=OBJECTIVES[2:],
            subject_to=SUBJECT_TO,
            vectorized="grid",
            digits=3,
            executor=executor,
            keep="front",
        )

    def on_two() -> Any:
        if workers == "processes":
            with ProcessPoolExecutor(2) as pool:
                return run(pool)
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
            Client(cluster) as client,
            client.get_executor() as executor,
        ):
            return run(executor)

    started = time.perf_counter()
    alone = run()
    seconds = time.perf_counter() - started
    result = benchmark.pedantic(on_two, rounds=1)
    assert result.evaluations == space.size == 1_080_000 and str(result) == str(alone)
    for name, column in alone.table.items():
        np.testing.assert_array_equal(result.table[name], column)
    benchmark.extra_info["speed_up"] = speed_up = seconds / (time.perf_counter() - started - seconds)
    if speed_up < 1.7:
        pytest.xfail(f"the bar is 1.7 times one process, got {speed_up:.2f} (of two free cores?)")


@pytest.mark.slow
def test_the_full_space_by_branch_and_bound(benchmark: Any) -> None:
    space = default_space(default_processor(), choices=FULL_CHOICES)

    def run(**options: Any) -> Any:
        return explore(
            space,
            objectives,
            minimize=OBJECTIVES[:2],
            maximize=OBJECTIVES[2:],
            subject_to=SUBJECT_TO,
            vectorized="grid",
            digits=3,
            **options,
        )

    result = benchmark.pedantic(run, kwargs={"method": "branch_and_bound", "bounds": BOUNDS}, rounds=1)
    exact = run()
    fronts = [np.sort(each.table["design"][each.front]) for each in (exact, result)]
    np.testing.assert_array_equal(*fronts)
    if result.evaluations >= 0.05 * space.size:
        pytest.xfail(f"the bar is 5 % of the space, looked at were {result.evaluations / space.size:.1%}")
