"""How designs of a study are simulated, and the model's error on those that were."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cases.study import PACKETS
from cases.study.packet_processor import PART
from optimize.decisions.decision import LEVEL
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.search.pareto import FloatArray, IntArray
from optimize.spaces.numbering import Columns
from qmodels import checks
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.hashing import stable_hash
from qmodels.systems.spec.metrics import is_relative
from validate.comparison.model import signed_error

if TYPE_CHECKING:
    from qmodels.systems.spec.answer import Answer

LOAD_OF_THE_CLAIM = 0.8
"""Share of saturation up to which the model's error is claimed."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How designs are simulated."""

    # packets: length of a replication, by default the simulator's own, but `PACKETS` of a packet processor; a
    # recorded trace is simulated whole in any case.
    packets: int | None = None
    # replications, seed: as `validate.simulate` takes them
    replications: int = 4
    seed: int = 0
    workers: int | None = None  # threads; None for one per core. Results do not depend on it

    def __post_init__(self) -> None:
        if self.packets is not None:
            checks.count("packets", self.packets, minimum=1000)
        checks.count("replications", self.replications, minimum=2)
        checks.seed(self.seed)
        if self.workers is not None:
            checks.count("workers", self.workers)

    def simulate(
        self, specs: Any, *, store: Path | None = None, progress: Progress | None = None, **options: Any
    ) -> Any:
        """Simulate one design or several, as `validate.simulate` does with these and other options."""
        from validate import simulate

        own = PACKETS if isinstance(specs[0] if isinstance(specs, list) else specs, PacketProcessor) else None
        packets = own if self.packets is None else self.packets
        options |= {} if packets is None else {"packets": packets}
        with ThreadPoolExecutor(self.workers or os.cpu_count()) as pool:
            return simulate(
                specs,
                replications=self.replications,
                seed=self.seed,
                confidence=LEVEL,
                executor=pool,
                store=store,
                progress=progress,
                **options,
            )


def simulated_columns(result: Answer) -> dict[str, Any]:
    """Return what the table of a check holds for a simulated design."""
    return {
        **result.metrics,
        "stable": result.stable is True,
        "undecided": result.stable is None,
        "bottleneck": result.bottleneck,
        "short": result.short,
        **{PART + name: share for name, share in result.latency_parts.items()},
    }


@dataclass(frozen=True, kw_only=True)
class MetricError:
    """How far the model is from the simulation in one metric, over some designs."""

    metric: str  # its name
    relative: bool  # whether errors are relative to the simulated value, or differences (of probabilities)
    designs: int  # designs compared
    finite: int  # those of them with a finite value from both; the others are saturated by one or both
    mean: float  # mean magnitude of the finite errors
    largest: float  # largest magnitude; infinite if a design is saturated by one of the two only
    worst: int | None  # number of the design with the largest
    # Designs for which the model's value lies inside the simulation's interval. One that is saturated by one
    # of the two only is not among them.
    covered: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Check:
    """Simulated designs of an analysis beside their analytic values."""

    simulated: Exploration  # the simulated designs: best values, and ``_low`` and ``_high`` of the intervals
    rows: IntArray  # the row of each in the analytic table
    # errors, errors_in_range: one entry per metric: over all of them, and over those whose busiest resource
    # is at most 80 % loaded.
    errors: tuple[MetricError, ...]
    errors_in_range: tuple[MetricError, ...]
    disputed: tuple[int, ...]  # designs that one of the two calls stable and the other saturated


def check(analytic: Exploration, results: Mapping[int, Answer]) -> Check:
    """Measure the model's error on the simulated designs of an analytic exploration, given by its rows."""
    rows = np.array(sorted(results), dtype=np.int64)
    found = {stable_hash(analytic.spec(row)): result for row, result in results.items()}
    simulated = explore(
        analytic.space,
        lambda spec: simulated_columns(found[stable_hash(spec)]),
        designs=analytic.table["design"][rows],
        minimize=analytic.minimize,
        maximize=analytic.maximize,
    )
    stable = analytic.table["stable"][rows]
    seen = simulated.table
    agreed = (stable == seen["stable"]) | seen["undecided"] if len(rows) else np.zeros(0, dtype=bool)
    in_range = analytic.table["bottleneck_load"][rows] <= LOAD_OF_THE_CLAIM
    return Check(
        simulated=simulated,
        rows=rows,
        errors=_errors(analytic, simulated, rows, np.ones(len(rows), dtype=bool)),
        errors_in_range=_errors(analytic, simulated, rows, in_range),
        disputed=tuple(simulated.table["design"][~agreed].tolist()),
    )


def model_error(metric: str, model: Any, simulated: Any) -> FloatArray:
    """Return the signed error of the model in the form stated for the metric, see `is_relative`."""
    return signed_error(model, simulated, relative=is_relative(metric))


def half_widths(table: Columns, metric: str) -> FloatArray:
    """Return half the widths of the intervals of a metric, one per design; NaN for infinite ones."""
    finite = np.isfinite(table[metric])
    low, high = (np.where(finite, table[f"{metric}_{end}"], np.nan) for end in ("low", "high"))
    return np.asarray((high - low) / 2)


def _errors(
    analytic: Exploration, simulated: Exploration, places: IntArray, counted: npt.NDArray[np.bool_]
) -> tuple[MetricError, ...]:
    result = []
    for metric in PacketProcessor.metric_names if len(places) else ():
        model, best = analytic.table[metric][places], simulated.table[metric]
        sizes = np.abs(model_error(metric, model, best))
        finite = counted & np.isfinite(model) & np.isfinite(best)
        inside = (simulated.table[f"{metric}_low"] <= model) & (model <= simulated.table[f"{metric}_high"])
        designs = simulated.table["design"][counted]
        result.append(
            MetricError(
                metric=metric,
                relative=is_relative(metric),
                designs=len(designs),
                finite=int(finite.sum()),
                mean=float(sizes[finite].mean()) if finite.any() else float("nan"),
                largest=float(sizes[counted].max()) if len(designs) else float("nan"),
                worst=int(designs[sizes[counted].argmax()]) if len(designs) else None,
                covered=int((inside & counted).sum()),
            )
        )
    return tuple(result)
