"""The memory systems laid beside their simulators, with the metrics that must agree and how closely."""

from __future__ import annotations

import pytest

import qmodels as qm
from qmodels import CacheLevel, dram
from validate import compare

CACHES = qm.CacheSystem(cores=2, private=(CacheLevel(lines=64),), shared=CacheLevel(lines=512, slices=4))


@pytest.mark.in_ci(1)
@pytest.mark.parametrize(
    ("spec", "options", "metric", "error"),
    [
        (dram("DDR4-3200"), {"accesses": 20_000, "replications": 2}, "read_latency", 0.02),
        (CACHES, {"requests": 200_000, "replications": 2}, "hit_ratio[llc]", 0.01),
        (qm.LlcProcessor(), {"requests": 50_000, "replications": 2}, "response_latency", 0.03),
        (qm.NumaMachine(), {"replications": 2}, "execution_time", 0.002),
        (qm.WorkQueues(), {"replications": 4}, "execution_time", 0.03),
    ],
)
def test_every_metric_has_a_row_and_the_main_one_agrees(spec, options, metric, error):
    answer, comparison = qm.solve(spec), compare(spec, **options)
    only_model = spec.metric_names.model if hasattr(spec, "metric_names") else ()
    assert set(comparison.rows) == set(answer.metrics) - set(only_model)
    assert comparison.rows[metric].model == answer.metrics[metric]
    assert abs(comparison.rows[metric].relative_error) < error
    assert comparison.rows[metric].unit == answer.units[metric]
