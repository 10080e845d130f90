"""The model of the LLC-slice processor against its simulation: ``python -m cases.published.llc3d.errors``.

Writes ``data/errors.csv``: the published design with one parameter changed at a time, for each
architecture, and random designs; and the error map of the model, ``qmodels/llc/processor_error_map.csv``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.published.rows import data_folder, read_rows, write_rows
from qmodels.error_map import ErrorMap, summarize
from qmodels.llc.processor_errors import ERRORS, VARIED, region_of
from qmodels.llc.processor_hits import hit_ratios, llc_load
from qmodels.systems.cache.llc_processor import ARCHITECTURES, LlcProcessor
from qmodels.systems.spec.metrics import METRICS as DECLARED
from qmodels.systems.traffic.popularity import Zipf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validate.estimates.simulation import Simulation

ONE_AT_A_TIME: dict[str, tuple[float, ...]] = {
    "cores": (4, 8, 12, 16, 20, 24, 28, 40),
    "slices": (1, 2, 4, 8, 16),
    "capacity": (20, 50, 200, 400),
    "channels": (8, 16, 24, 48),
    "line_bytes": (2, 4, 8, 16, 32, 128),
    "load": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 0.9, 1.0, 1.2),
    "entries": (1000, 5000, 10_000, 40_000, 60_000),
    "exponent": (0.5, 0.64, 0.95, 1.1),
}
FILE = data_folder("llc3d") / "errors.csv"
RANDOM = 60
REQUESTS, REPLICATIONS = 200_000, 8
METRICS = {"blocking": "blocking_probability", "waiting": "waiting_latency", "on_chip": "on_chip_hit_ratio"}


def changed(spec: LlcProcessor, **values: Any) -> LlcProcessor:
    """Return a spec with other values; ``entries`` and ``exponent`` are those of its popularity.

    Examples
    --------
    >>> changed(LlcProcessor(), entries=1000).popularity.entries
    1000
    """
    law = {name: values.pop(name) for name in ("entries", "exponent") if name in values}
    return replace(spec, popularity=replace(spec.popularity, **law), **values)


def designs() -> list[LlcProcessor]:
    """Return the designs that are compared."""
    found = [
        changed(LlcProcessor(architecture=architecture), **{name: value})
        for architecture in ARCHITECTURES
        for name, values in ONE_AT_A_TIME.items()
        if name != "slices" or architecture == "slices"
        for value in values
    ]
    rng = np.random.default_rng(4)
    for _ in range(RANDOM):
        cores, channels = int(rng.integers(4, 41)), int(rng.integers(8, 49))
        found.append(
            LlcProcessor(
                architecture=str(rng.choice(ARCHITECTURES)),
                cores=cores,
                slices=int(rng.integers(1, 29)),
                capacity=int(rng.integers(20, 201)),
                channels=channels,
                line_bytes=int(2 ** rng.integers(1, 8)),
                load=float(min(cores / channels * rng.uniform(0.2, 1.4), 1.2)),
                popularity=Zipf(
                    entries=int(10 ** rng.uniform(3, 4.7)), exponent=round(float(rng.uniform(0.5, 1.1)), 2)
                ),
                assignment=str(rng.choice(["random", "consecutive"])),
            )
        )
    return found


def rows(specs: Sequence[LlcProcessor], results: Sequence[Simulation]) -> list[dict[str, Any]]:
    """Return the rows of the file: the designs, simulated with half-widths of 95 % intervals, and solved."""
    from qmodels import solve

    found = []
    for spec, result in zip(specs, results, strict=True):
        answer = solve(spec)
        row: dict[str, Any] = {"architecture": spec.architecture, "assignment": spec.assignment}
        row |= {name: getattr(spec if hasattr(spec, name) else spec.popularity, name) for name in VARIED}
        row["llc_load"] = round(llc_load(spec, hit_ratios(spec)), 6)
        for name, metric in METRICS.items():
            estimate = result.metrics[metric]
            scale = spec.clock_ghz if DECLARED[metric].unit == "ns" else 1.0  # in the spec's time units
            row |= {
                f"{name}_simulated": round(scale * estimate.best, 6),
                f"{name}_half_width": round(scale * estimate.half_width, 6),
                f"{name}_model": round(scale * answer.metrics[metric], 6),
            }
        found.append(row)
    return found


def kept() -> list[dict[str, Any]]:
    """Return the rows that the file holds."""
    return read_rows(FILE)


def write_map(table: list[dict[str, Any]], errors: ErrorMap = ERRORS) -> None:
    """Write the error map: of each architecture, apart where its LLC is nearly full."""
    regions: dict[str, list[dict[str, Any]]] = {}
    for row in table:
        regions.setdefault(region_of(row["architecture"], row["llc_load"]), []).append(row)
    lines = []
    for region, mine in regions.items():
        for name, metric in METRICS.items():
            pairs = [(row[f"{name}_model"], row[f"{name}_simulated"]) for row in mine]
            points = DECLARED[metric].unit == "1"
            each = [100 * (model - best if points else model / best - 1) for model, best in pairs]
            unit = "points" if points else "%"
            lines.append({"metric": metric, "unit": unit, "region": region, **summarize(each)})
    about = "Designs by architecture; with an LLC nearly full (offered 0.75 to 1.1 of what it can do) apart."
    errors.write(lines, about=about, command="python -m cases.published.llc3d.errors")


def main(path: Path = FILE, *, store: Path = Path("llc3d-errors.sqlite")) -> None:
    """Simulate and solve all designs and write the files; the store lets a killed run resume."""
    from validate import simulate

    specs = designs()
    campaign = simulate(specs, requests=REQUESTS, replications=REPLICATIONS, store=store)
    write_rows(path, rows(specs, list(campaign)))
    write_map(kept())
    store.unlink()


if __name__ == "__main__":
    main()
