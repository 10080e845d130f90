"""The simulated check of an analysis: chosen designs simulated, resumable, and the model's error on them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cases.study.packet_processor import MAXIMIZE, MINIMIZE, PART
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
    from validate.packet_processor.result import PacketSimulation

LOAD_OF_THE_CLAIM = 0.8
"""Share of saturation up to which the model's error is claimed."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Runs:
    """How designs are simulated.

    Parameters
    ----------
    packets, replications, seed : int
        As `validate.simulate` takes them.
    workers : int or None
        Threads; None for one per core. Results do not depend on it.

    Raises
    ------
    ValueError
        If a number is out of range: before anything is simulated or written.
    """

    packets: int = 20_000
    replications: int = 8
    seed: int = 0
    workers: int | None = None

    def __post_init__(self) -> None:
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

        with ThreadPoolExecutor(self.workers or os.cpu_count()) as pool:
            return simulate(
                specs,
                packets=self.packets,
                replications=self.replications,
                seed=self.seed,
                executor=pool,
                store=store,
                progress=progress,
                **options,
            )


def simulated_columns(result: PacketSimulation) -> dict[str, Any]:
    """Return what the table of a check holds for a simulated design."""
    return {
        **result.metrics,
        "stable": result.stable,
        "bottleneck": result.bottleneck,
        "short": result.short,
        **{PART + name: share for name, share in result.latency_parts.items()},
    }


@dataclass(frozen=True, kw_only=True)
class MetricError:
    """How far the model is from the simulation in one metric, over some designs.

    Parameters
    ----------
    metric : str
        Its name.
    relative : bool
        Whether errors are relative to the simulated value, or differences (of probabilities).
    designs : int
        Designs compared.
    finite : int
        Those of them with a finite value from both; the others are saturated by one or both.
    mean : float
        Mean magnitude of the finite errors.
    largest : float
        Largest magnitude; infinite if a design is saturated by one of the two only.
    worst : int or None
        Number of the design with the largest.
    covered : int
        Designs for which the model's value lies inside the simulation's interval. One that is
        saturated by one of the two only is not among them.
    """

    metric: str
    relative: bool
    designs: int
    finite: int
    mean: float
    largest: float
    worst: int | None
    covered: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Check:
    """Simulated designs of an analysis beside their analytic values.

    Parameters
    ----------
    simulated : Exploration
        The simulated designs: best values, and ``_low`` and ``_high`` of the intervals.
    rows : ndarray of int
        The row of each in the analytic table.
    errors, errors_in_range : tuple of MetricError
        One entry per metric: over all of them, and over those whose busiest resource is at most
        80 % loaded.
    disputed : tuple of int
        Designs that one of the two calls stable and the other saturated.
    asked : int
        How many were to be simulated; fewer are if the run was interrupted.
    seconds : float
        Time for the simulations that were not in the store. [s]
    """

    simulated: Exploration
    rows: IntArray
    errors: tuple[MetricError, ...]
    errors_in_range: tuple[MetricError, ...]
    disputed: tuple[int, ...]
    asked: int
    seconds: float
    results: dict[int, PacketSimulation]

    @property
    def interrupted(self) -> bool:
        """Whether some designs are missing because the user stopped the run."""
        return len(self.rows) < self.asked


def check(
    analytic: Exploration, rows: IntArray, *, runs: Runs, store: Path, progress: Progress | None = None
) -> Check:
    """Simulate designs of an analytic exploration and measure the model's error on them.

    Parameters
    ----------
    analytic : Exploration
        The exploration.
    rows : ndarray of int
        Rows of its table to simulate.
    runs : Runs
        How.
    store : Path
        File where each finished run is kept at once; those found there are not repeated.
    progress : callable, optional
        Called with (runs finished, runs in all). Ctrl-C ends the check with what is done.
    """
    from validate import CampaignInterrupted

    designs = analytic.table["design"][rows]
    started = time.perf_counter()
    try:
        campaign = runs.simulate([analytic.space.spec(k) for k in designs], store=store, progress=progress)
    except CampaignInterrupted as stop:
        campaign = stop.campaign
    found = {stable_hash(spec): result for spec, result in zip(campaign.specs, campaign, strict=True)}
    simulated = explore(
        analytic.space,
        lambda spec: simulated_columns(found[stable_hash(spec)]),
        designs=designs[list(campaign.points)],
        minimize=MINIMIZE,
        maximize=MAXIMIZE,
    )
    seconds = time.perf_counter() - started
    places = np.searchsorted(analytic.table["design"], simulated.table["design"])
    stable = analytic.table["stable"][places]
    agreed = stable == simulated.table["stable"] if len(places) else np.zeros(0, dtype=bool)
    in_range = analytic.table["bottleneck_load"][places] <= LOAD_OF_THE_CLAIM
    return Check(
        simulated=simulated,
        rows=places,
        errors=_errors(analytic, simulated, places, np.ones(len(places), dtype=bool)),
        errors_in_range=_errors(analytic, simulated, places, in_range),
        disputed=tuple(simulated.table["design"][~agreed].tolist()),
        asked=len(rows),
        seconds=seconds,
        results={int(row): found[stable_hash(analytic.spec(row))] for row in places},
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
