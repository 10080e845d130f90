"""The measured error of the packet processor model over its whole range, made by a command and kept as data.

``python -m cases.accuracy`` simulates designs drawn from the default space, with and without lists for
small packets, under three packet mixes at loads from 1 % to 95 % of their saturation and writes every
run to ``cases/data/accuracy.csv`` and the error by region of load to the map that answers show
(``qmodels/packet_processor/error_map.csv``).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np

from cases.check import model_error
from cases.packet_processor import CHOICES, DATA, default_space
from cases.tables import csv_text
from optimize.fields import get_field, replace_fields
from qmodels.packet_processor.error_map import FILE as ERROR_MAP
from qmodels.systems.metrics import is_relative
from qmodels.systems.packet_processor import PacketProcessor
from qmodels.systems.sizes import SizeLaw, bimodal, imix
from validate.compare_regions import REGIONS, errors_by_region

FILE = DATA / "accuracy.csv"

MIXES: dict[str, SizeLaw] = {
    "imix": imix(),
    "small": bimodal(small=64, large=576, small_fraction=0.9),
    "large": bimodal(small=64, large=1518, small_fraction=0.3),
}
LOADS = (0.01, 0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95)
METRICS = (
    "packet_latency",
    "packet_latency_p99",
    "lookup_latency",
    "write_latency",
    "read_latency",
    "saturation_throughput",
    "write_conflict_probability",
    "read_conflict_probability",
    "row_hit_ratio",
    "pointer_accesses_per_allocation",
    "llc_hit_ratio",
    "energy_per_packet",
)
DRAWN: dict[str, tuple[int, ...]] = {**CHOICES, "small_packet_segments": (0, 1, 2, 4)}
"""Fields and choices of the designs drawn."""

DESIGNS, SEED = 48, 1


def cases(count: int = DESIGNS, seed: int = SEED) -> Iterator[tuple[dict[str, Any], PacketProcessor]]:
    """Yield designs drawn evenly from the choices in `DRAWN`, loads and mixes in turn.

    Examples
    --------
    >>> drawn = [what for what, _ in cases(8)]
    >>> sorted({what["load"] for what in drawn})
    [0.01, 0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95]
    """
    from qmodels import solve

    rng = np.random.default_rng(seed)
    for number in range(count):
        mix = list(MIXES)[number % len(MIXES)]
        load = LOADS[number % len(LOADS)]
        base = replace_fields(PacketProcessor(), {"workload.sizes": MIXES[mix]})
        space = default_space(base, choices=DRAWN)
        spec = space.spec(int(rng.integers(space.size)))
        full = float(solve(spec).saturation_throughput)
        yield (
            {"mix": mix, "load": load, **{name: get_field(spec, name) for name in DRAWN}},
            replace_fields(spec, {"workload.offered_gbps": load * full}),
        )


def measure(
    count: int = DESIGNS,
    seed: int = SEED,
    *,
    packets: int = 20_000,
    replications: int = 4,
    executor: Executor | None = None,
) -> dict[str, Any]:
    """Return a table with a row per design and metric: model, simulated, its interval, error."""
    from qmodels import solve
    from validate import simulate

    drawn = list(cases(count, seed))
    runs = simulate(
        [spec for _, spec in drawn], packets=packets, replications=replications, seed=seed, executor=executor
    )
    rows: list[dict[str, Any]] = []
    for (what, spec), run in zip(drawn, runs, strict=True):
        model = solve(spec)
        for metric in METRICS:
            estimate, value = run.metrics[metric], model.metrics[metric]
            rows.append(
                {
                    **what,
                    "metric": metric,
                    "model": value,
                    "simulated": estimate.best,
                    "low": estimate.low,
                    "high": estimate.high,
                    "error": 100.0 * float(model_error(metric, value, estimate.best)),
                    "stable": run.stable,
                }
            )
    return {name: [row[name] for row in rows] for name in rows[0]}


def summary(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return mean and largest size of the error of each metric by region of load; stable runs only."""
    metric, load, error = (np.asarray(table[name]) for name in ("metric", "load", "error"))
    good = np.asarray([str(value) == "True" for value in table["stable"]])
    lines = []
    for name in METRICS:
        mine = (metric == name) & good
        for region in errors_by_region(error[mine], load[mine]):
            lines.append(
                {
                    "metric": name,
                    "unit": "%" if is_relative(name) else "points",
                    "load_above": region.load_above,
                    "load_to": region.load_to,
                    "mean": region.mean,
                    "largest": region.largest,
                    "designs": region.points,
                }
            )
    return lines


def load_table(path: Path = FILE) -> dict[str, Any]:
    """Return the kept table; numbers as numbers."""
    import csv

    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    words = {"mix", "metric", "stable"}
    return {name: [row[name] if name in words else float(row[name]) for row in rows] for name in rows[0]}


def markdown(lines: list[dict[str, Any]]) -> str:
    """Return the summary as a table with a row per metric and a column per region of load."""
    text = [
        "| metric | unit | " + " | ".join(f"{low:.0%} to {high:.0%}" for low, high in REGIONS) + " |",
        "|---|---|" + "---|" * len(REGIONS),
    ]
    for name in METRICS:
        mine = [line for line in lines if line["metric"] == name]
        cells = [f"{line['mean']:.1f} / {line['largest']:.1f}" for line in mine]
        unit = mine[0]["unit"]
        text.append(f"| {name.replace('_', ' ')} | {unit} | " + " | ".join(cells) + " |")
    return "\n".join(text)


def write(path: Path, columns: dict[str, Any]) -> None:
    """Write a table whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(csv_text(columns), encoding="utf-8")
    os.replace(part, path)


def main() -> None:
    """Measure, write both tables and print the summary."""
    if "--summary" not in sys.argv:
        write(FILE, measure())
    lines = summary(load_table())
    write(ERROR_MAP, {name: [line[name] for line in lines] for name in lines[0]})
    print(markdown(lines))


if __name__ == "__main__":
    main()
