"""Trials, interleaving step and channels: the joint model's conflicts against simulation over their plane.

``python -m cases.joint_errors.trial_plane`` simulates every point of the plane under both bundled workloads,
at their own rate and at 30, 50 and 80 % of the capacity, and writes ``cases/data/trial-plane.csv``
(model | simulated with its interval); it takes about an hour on one core. With ``--summary`` it
solves the points again and prints how far the model is. The constants of
`qmodels.packet_processor.trials.conflicts` are fitted to it by `cases.fits.processor`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from cases.joint_errors.measured import compared
from cases.study.packet_processor import DATA, WORKLOADS, default_processor
from cases.tables import Table, as_columns, load_table, write_table
from qmodels.checks import FloatArray
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields

FILE = DATA / "trial-plane.csv"
STEPS, TRIALS, CHANNELS = (1, 2, 4, 8, 16, 32), (1, 2, 3, 5, 8), (4, 8, 2)
LOADS = (0.0, 0.3, 0.5, 0.8)
"""Parts of the capacity that are offered; 0 for the workload's own rate."""
CAPACITY = {
    ("small-packets", 2): 48.0,
    ("small-packets", 4): 96.0,
    ("small-packets", 8): 126.8,
    ("large-packets", 2): 50.3,
    ("large-packets", 4): 100.5,
    ("large-packets", 8): 153.7,
}
"""Saturation data rate with one trial, by workload and channels, to which loads refer. [Gb/s]"""
MOST = 0.86
"""Part of the capacity above which a workload's own rate is left out."""
METRICS = WRITES, READS, ACCESSES = (
    "write_conflict_probability",
    "read_conflict_probability",
    "pointer_accesses_per_allocation",
)
NAMES = ("workload", "load", "gbps", "channels", "interleaving_step", "alloc_trial_count")
REPLICATIONS, SEED = 4, 7
RELATIVE, SMALL, POINTS = 0.15, 0.005, 0.001
"""The bar: error relative to the simulation, or in absolute terms where that is below ``SMALL``."""


def points() -> Iterator[dict[str, Any]]:
    """Yield workload, load, rate and decisions of every point."""
    for load, workload, channels, step, trials in product(LOADS, WORKLOADS, CHANNELS, STEPS, TRIALS):
        full = CAPACITY[workload, channels]
        own = float(default_processor(workload).workload.offered_gbps)
        gbps = load * full if load else own
        if gbps <= MOST * full:
            yield dict(zip(NAMES, (workload, load, gbps, channels, step, trials), strict=True))


def spec_of(workload: str, gbps: Any, channels: Any, step: Any, trials: Any) -> PacketProcessor:
    """Return the processor of one point, or of many points of one workload."""
    fields = {
        "workload.offered_gbps": gbps,
        "dram.channels": channels,
        "dram.interleaving_step": step,
        "free_list.alloc_trial_count": trials,
    }
    return replace_fields(default_processor(workload), fields)


def packets_of(point: dict[str, Any]) -> int:
    """Return how many packets a point is simulated with."""
    return 5000 if point["workload"] == "large-packets" and point["load"] else 6000


def measure(*, store: Path | None = None, executor: Executor | None = None) -> Table:
    """Return a table with a row per point and metric: model, simulated, its interval."""
    options = {"replications": REPLICATIONS, "seed": SEED, "saturation": False}
    rows: list[dict[str, Any]] = []
    for packets, group in groupby(points(), key=packets_of):
        specs = ((point, spec_of(point["workload"], *(point[name] for name in NAMES[2:]))) for point in group)
        rows += compared(specs, METRICS, packets=packets, store=store, executor=executor, **options)
    numbers = ("model", "simulated", "low", "high")
    return as_columns(
        [
            {name: row[name] for name in (*NAMES, "metric")}
            | {name: float(f"{row[name]:.6g}") for name in numbers}
            for row in rows
        ]
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Plane:
    """The points of one workload with what was simulated there; arrays, one element a point.

    ``simulated``, ``low`` and ``high`` are by metric; ``where`` has the other columns by name.
    """

    workload: str
    where: dict[str, FloatArray]
    simulated: dict[str, FloatArray]
    low: dict[str, FloatArray]
    high: dict[str, FloatArray]

    @property
    def spec(self) -> PacketProcessor:
        """All points as one sweep."""
        return spec_of(self.workload, *(self.where[name] for name in NAMES[2:]))

    def solved(self) -> dict[str, FloatArray]:
        """Return the model's metrics."""
        from qmodels import solve

        metrics = solve(self.spec).metrics
        return {name: np.asarray(metrics[name]) for name in METRICS}

    def errors(self, metric: str, model: FloatArray) -> FloatArray:
        """Return errors in multiples of the bar."""
        truth = self.simulated[metric]
        return np.where(truth < SMALL, (model - truth) / POINTS, (model / truth - 1.0) / RELATIVE)

    def order(self, metric: str, model: FloatArray, along: str) -> tuple[int, int]:
        """Return pairs of points along one decision with separate intervals, and those the model turns."""
        others = [self.where[name] for name in NAMES[1:] if name != along]
        same = np.all([a[:, None] == a for a in others], axis=0)
        up = same & (self.where[along][:, None] < self.where[along])
        less = self.high[metric][:, None] < self.low[metric]
        apart = up & (less | less.T)
        turned = np.where(less, model[:, None] >= model, model[:, None] <= model)
        return int(apart.sum()), int((apart & turned).sum())


def planes(path: Path = FILE) -> list[Plane]:
    """Return the kept measurements by workload."""
    table = load_table(path)
    result = []
    for workload in WORKLOADS:
        mine = {metric: (table["workload"] == workload) & (table["metric"] == metric) for metric in METRICS}
        columns = {
            kind: {metric: table[kind][here] for metric, here in mine.items()}
            for kind in ("simulated", "low", "high")
        }
        where = {name: table[name][mine[WRITES]] for name in NAMES[1:]}
        where |= {name: where[name].astype(int) for name in NAMES[3:]}
        result.append(Plane(workload=workload, where=where, **columns))
    return result


def summary(kept: list[Plane]) -> str:
    """Return how many points are outside the bar, the errors, and the order along trials and steps."""
    lines = []
    for plane in kept:
        for metric, model in plane.solved().items():
            error = plane.errors(metric, model)
            ratio = 100.0 * (model / plane.simulated[metric] - 1.0)
            text = f"{plane.workload} {metric}: {np.sum(np.abs(error) > 1)} of {error.size} outside the bar, "
            size = np.abs(ratio)
            text += f"mean {ratio.mean():+.1f} %, mean size {size.mean():.1f} %, largest {size.max():.0f} %"
            if metric != ACCESSES:
                for along in NAMES[4:]:
                    apart, turned = plane.order(metric, model, along)
                    text += f"; {along}: {turned} of {apart} separated pairs turned"
            lines.append(text)
    return "\n".join(lines)


def main() -> None:
    """Measure and write the table, or print what it says of the model."""
    if "--summary" not in sys.argv:
        store = FILE.with_suffix(".sqlite")
        write_table(FILE, measure(store=store))
        store.unlink()
    print(summary(planes()))


if __name__ == "__main__":
    main()
