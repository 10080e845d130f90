"""The error of the NUMA model against simulation over a sweep around the 16-SRP case.

``python -m cases.published.srp.accuracy`` writes ``qmodels/memory/numa/error_map.csv``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.tables import text_table
from qmodels.error_map import summarize
from qmodels.memory.numa.error_map import ERRORS, kind_of
from qmodels.systems.memory.numa import NumaMachine
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine

if TYPE_CHECKING:
    from validate.numa.result import NumaSimulation

PLACEMENTS, ASSIGNMENTS = ("one", "clustered", "all"), ("paired", "enumerated", "any")
COMPUTING = (20_000.0, 35_000.0, 50_000.0, 80_000.0)
VARIATION = (0.0, 0.1, 0.5)
TURNING = (0.0, 7_000.0)
WRITTEN = (4_096, 0)
GLOBAL_LOADS = 300
STEPS, REPLICATIONS = 128, 4


@dataclass(frozen=True, kw_only=True)
class Point:
    """One machine of the sweep: the model's and the simulated execution time. [cycles]."""

    machine: NumaMachine
    model: float
    simulated: float

    @property
    def error(self) -> float:
        """Error of the model. [%]."""
        return 100 * (self.model / self.simulated - 1)


def sweep(*, steps: int = STEPS) -> list[NumaMachine]:
    """Return the machines: placement, channels, computing and its variation, turning, results, buffers.

    Then those with loads from global memory by the cores, and with blocks of each core anywhere.

    Examples
    --------
    >>> len(sweep())
    816
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
    return [machine for machine in machines if kind_of(machine)]


def measure(machines: Sequence[NumaMachine], *, store: Path | None = None) -> list[Point]:
    """Solve and simulate every machine."""
    from qmodels import solve
    from validate import simulate

    results: list[NumaSimulation] = list(
        simulate(machines, replications=REPLICATIONS, store=store, progress=lambda done, known: None)
    )
    return [
        Point(
            machine=machine,
            model=float(solve(machine).execution_time),
            simulated=float(result.execution_time),
        )
        for machine, result in zip(machines, results, strict=True)
    ]


def error_rows(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Return the rows of the error map: the errors by kind of machine."""
    kinds: dict[str, list[float]] = {}
    for point in points:
        kinds.setdefault(kind_of(point.machine), []).append(point.error)
    return [
        {"metric": "execution_time", "unit": "%", "region": kind, **summarize(errors, decimals=2)}
        for kind, errors in kinds.items()
    ]


if __name__ == "__main__":
    everything = measure(sweep())
    rows = error_rows(everything)
    about = "Execution time by placement and buffering."
    ERRORS.write(rows, about=about, command="python -m cases.published.srp.accuracy")
    print(text_table(list(rows[0]), [list(row.values()) for row in rows]))
    print("all:", summarize((point.error for point in everything), decimals=2))
