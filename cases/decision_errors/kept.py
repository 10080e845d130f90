"""Simulated designs that are kept, under several workloads, and decisions replayed against them.

``python -m cases.decision_errors.kept`` simulates every design of the default study under its main workload
(an hour on one core) and a hundred drawn ones under three others (ten minutes) and writes them to
``cases/data/decision-*.csv``; with names of workloads, these alone; ``--store FILE`` resumes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from cases.study.analysis import DIGITS
from cases.study.deciding import stated_errors
from cases.study.packet_processor import (
    DATA,
    SUBJECT_TO,
    default_processor,
    default_space,
    solved_columns,
)  # fmt: skip
from cases.tables import load_table, write_table
from optimize.decisions.decide import decide
from optimize.decisions.decision import Decision
from optimize.search.exploration import Exploration, conclude
from optimize.search.explore import explore
from optimize.search.feasibility import Goals
from optimize.spaces.evaluation import significant
from optimize.spaces.numbering import Columns
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import get_field, replace_fields
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.traffic.arrivals import OnOff
from qmodels.systems.traffic.sizes import imix

MINIMIZE = ("packet_latency", "energy_per_packet", "cost", "write_conflict_probability")
MAXIMIZE = ("saturation_data_rate",)
"""Objectives with which the designs were drawn and kept."""

PACKETS, REPLICATIONS, SEED = 20_000, 4, 1000
DRAWN, DRAWN_PACKETS = 100, 10_000
KEPT_DIGITS = 5

STUDENT_95, STUDENT_90 = 3.182, 2.353
"""Half-widths of intervals of four replications over their standard error."""

METRICS = (
    "packet_latency",
    "packet_latency_p99",
    "energy_per_packet",
    "saturation_data_rate",
    "write_conflict_probability",
    "read_conflict_probability",
    "overflow_probability",
)
"""What is kept, with the ends of 95 % intervals."""


def _bursty(on_packets: int, peak_to_mean: float) -> PacketProcessor:
    arrivals = OnOff(on_packets=on_packets, peak_to_mean=peak_to_mean)
    fields = {"offered_gbps": 40.0, "sizes": imix(), "arrivals": arrivals}
    return replace_fields(default_processor("large-packets"), {f"workload.{k}": v for k, v in fields.items()})


def processor(workload: str) -> PacketProcessor:
    """Return the base of the designs under a workload."""
    match workload:
        case "short-bursts":
            return _bursty(4, 2.0)
        case "bursts":
            return _bursty(10, 3.0)
    return default_processor(workload)


WORKLOADS = ("small-packets", "large-packets", "short-bursts", "bursts")
"""The first with every design."""


def file_of(workload: str) -> Path:
    """Return where the simulated designs of a workload are kept."""
    return DATA / f"decision-{workload}.csv"


def drawn(space: Space, workload: str) -> npt.NDArray[np.int64]:
    """Return the designs to simulate: all, or some drawn of those with more than one channel."""
    if workload == WORKLOADS[0]:
        return np.arange(space.size)
    able = np.flatnonzero(space.columns()["channels"] > 1)
    return np.sort(np.random.default_rng(7).permutation(able)[:DRAWN])


def keep(workload: str, designs: npt.NDArray[np.int64], store: Path | None) -> None:
    """Simulate designs under a workload and write them to their file."""
    from validate import simulate

    space = default_space(processor(workload))
    specs = [space.spec(int(design)) for design in designs]
    packets = PACKETS if workload == WORKLOADS[0] else DRAWN_PACKETS
    runs = simulate(specs, packets=packets, replications=REPLICATIONS, seed=SEED, store=store)
    table: Columns = {"design": designs, "stable": np.array([run.stable is True for run in runs])}
    for name in METRICS:
        for end, suffix in (("best", ""), ("low", "_low"), ("high", "_high")):
            values = np.array([getattr(run.metrics[name], end) for run in runs], dtype=float)
            table[name + suffix] = significant(values, KEPT_DIGITS)
    write_table(file_of(workload), table)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """A workload's designs as simulated, beside the model's answers of today."""

    workload: str
    table: Columns
    model: Exploration

    @classmethod
    def load(cls, workload: str) -> Kept:
        """Read what is kept and solve these designs."""
        return cls.of(workload, load_table(file_of(workload)))

    @classmethod
    def of(cls, workload: str, table: Columns) -> Kept:
        """Solve the designs of a table."""
        order = np.argsort(table["design"])
        table = {name: column[order] for name, column in table.items()}
        model = explore(
            default_space(processor(workload)),
            solved_columns,
            designs=table["design"].astype(int),
            minimize=MINIMIZE,
            maximize=MAXIMIZE,
            subject_to=SUBJECT_TO,
            vectorized=True,
            digits=DIGITS,
        )
        return cls(workload=workload, table=table, model=model)

    @cached_property
    def truth(self) -> Exploration:
        """The same designs by what was simulated: its front is the reference."""
        model = self.model
        goals = Goals(minimize=model.minimize, maximize=model.maximize, subject_to=model.subject_to)
        return conclude(goals, {**model.table, **self.table}, space=model.space, method=model.method)

    def decide(self, points: int, seed: int, *, noise: bool) -> Decision:
        """Return a decision whose simulations are looked up; with noise as other packets would give."""
        stated = stated_errors(self.model)
        stated = {name: error for name, error in stated.items() if name in METRICS}
        return decide(
            self.model,
            _Lookup(self, np.random.default_rng(seed) if noise else None),
            stated=stated,
            bounded=[name for name in stated if not is_relative(name)],
            subject_to=self.model.subject_to,
            budget_seconds=None,
            points=points,
            seed=seed,
        )


class _Lookup:
    """A simulation that looks results up, with the 90 % intervals of a study."""

    def __init__(self, kept: Kept, rng: np.random.Generator | None) -> None:
        self._kept, self._rng = kept, rng
        space = kept.model.space
        self._place = {name: {v: k for k, v in enumerate(values)} for name, values in space.choices.items()}

    def __call__(self, specs: list[Any]) -> list[dict[str, Any]]:
        return [self._result(spec) for spec in specs]

    def _result(self, spec: Any) -> dict[str, Any]:
        space, table = self._kept.model.space, self._kept.table
        digits = [self._place[name][get_field(spec, space.paths[name])] for name in space.choices]
        row = int(np.searchsorted(table["design"], int(space.number_of(digits))))
        found: dict[str, Any] = {"stable": bool(table["stable"][row])}
        for name in METRICS:
            best, low, high = (float(table[name + end][row]) for end in ("", "_low", "_high"))
            error = (high - low) / 2 / STUDENT_95 if np.isfinite(high) else 0.0
            if self._rng is not None and best > 0:
                best = max(best + error * float(self._rng.standard_normal()), best / 4)
            found[name] = SimpleNamespace(
                low=max(best - STUDENT_90 * error, 0.0), best=best, high=best + STUDENT_90 * error
            )
        return found


def main() -> None:
    """Simulate and write."""
    arguments = sys.argv[1:]
    store = None
    if "--store" in arguments:
        place = arguments.index("--store")
        store = Path(arguments[place + 1])
        del arguments[place : place + 2]
    for workload in arguments or WORKLOADS:
        keep(workload, drawn(default_space(processor(workload)), workload), store)


if __name__ == "__main__":
    main()
