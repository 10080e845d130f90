"""The error of the NUMA model against simulation over a sweep around the 16-SRP case.

``python -m cases.published.srp.accuracy`` writes ``qmodels/memory/numa/error_map.csv``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from cases.published.measurement import Measurement, Row
from qmodels.memory.numa.error_map import ERRORS, kind_of
from qmodels.systems.memory.numa import NumaMachine
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine

PLACEMENTS, ASSIGNMENTS = ("one", "clustered", "all"), ("paired", "enumerated", "any")
COMPUTING = (20_000.0, 35_000.0, 50_000.0, 80_000.0)
VARIATION = (0.0, 0.1, 0.5)
TURNING = (0.0, 7_000.0)
WRITTEN = (4_096, 0)
GLOBAL_LOADS = 300
STEPS = 128


def sweep(*, steps: int = STEPS) -> Iterator[tuple[Row, NumaMachine]]:
    """Yield the machines: placement, channels, computing and its variation, turning, results, buffers.

    Then those with loads from global memory by the cores, and with blocks of each core anywhere.
    """
    rng = np.random.default_rng(0)
    machines = [
        NumaMachine(
            dma=DmaEngine(assignment=assignment, switch_cycles=turning),
            work=BlockWork(
                steps=steps,
                compute_cycles=computing,
                compute_scv=scv,
                write_bytes=written,
                placement=placement,
                double_buffering=double,
            ),
        )
        for placement, assignment, computing, scv, turning, written, double in itertools.product(
            PLACEMENTS, ASSIGNMENTS, COMPUTING, VARIATION, TURNING, WRITTEN, (True, False)
        )
    ]
    for assignment, computing, scv, turning in itertools.product(
        ASSIGNMENTS[:2], COMPUTING[:3], VARIATION[:2], TURNING
    ):
        work = BlockWork(steps=steps, compute_cycles=computing, compute_scv=scv)
        anywhere = tuple(tuple(rng.integers(0, 4, rng.integers(1, 4)).tolist()) for _ in range(16))
        works = [replace(work, placement=placement, global_loads=GLOBAL_LOADS) for placement in PLACEMENTS]
        works.append(replace(work, placement="per-core", memories=anywhere))
        dma = DmaEngine(assignment=assignment, switch_cycles=turning)
        machines += [NumaMachine(dma=dma, work=one) for one in works]
    for machine in machines:
        if kind_of(machine):
            yield {"region": kind_of(machine)}, machine


MEASUREMENT = Measurement(
    errors=ERRORS,
    about="Execution time by placement and buffering.",
    command="cases.published.srp.accuracy",
    points=sweep,
    metrics={"": ("execution_time", "%")},
    where=lambda row: {"region": row["region"]},
    options={"replications": 4},
    decimals=2,
)

if __name__ == "__main__":
    MEASUREMENT.main()
