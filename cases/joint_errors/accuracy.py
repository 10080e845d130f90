"""The measured error of the packet processor model over its whole range, made by a command and kept as data.

``python -m cases.joint_errors.accuracy`` simulates designs drawn from the default space, with and without
lists for small packets, under three packet mixes, Poisson and bursty arrivals, at loads from 1 % to 95 % of
their saturation and writes every run to ``cases/data/accuracy.csv`` and the error by region of load and of
burstiness to the map that answers show (``qmodels/packet_processor/error_map.csv``). It also measures
whether the model orders the choices as the simulation does, see `cases.joint_errors.directions`, and brings
the tables of the guide up to date. A quarter of an hour on two cores; ``--solve`` solves the model anew
beside the kept runs, at the rates that they were offered, and ``--summary`` makes the maps and tables alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cases.joint_errors import directions
from cases.joint_errors.measured import at_load, compared, within
from cases.study.check import model_error
from cases.study.packet_processor import CHOICES, DATA, default_space
from cases.tables import Table, as_columns, load_table, markdown_table, with_table, write_table
from qmodels.evidence.error_map import summarize
from qmodels.packet_processor.burstiness import burstiness
from qmodels.packet_processor.error_map import DIRECTIONS, ERRORS
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import get_field, replace_fields
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.traffic.arrivals import Arrivals, OnOff, Poisson
from qmodels.systems.traffic.sizes import SizeLaw, bimodal, imix
from validate.comparison.regions import REGIONS

FILE = DATA / "accuracy.csv"
COMMAND = "python -m cases.joint_errors.accuracy"
ABOUT = """\
Model minus simulation by load of the fullest resource and dispersion of the arrivals; of probabilities in
percentage points, and in % where they are above a thousandth."""

MIXES: dict[str, SizeLaw] = {
    "imix": imix(),
    "small": bimodal(small=64, large=576, small_fraction=0.9),
    "large": bimodal(small=64, large=1518, small_fraction=0.3),
}
LOADS = (0.01, 0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95)
ARRIVALS: dict[str, Arrivals] = {
    "poisson": Poisson(),
    "short bursts": OnOff(on_packets=4, peak_to_mean=2.0),
    "bursts": OnOff(on_packets=10, peak_to_mean=3.0),
}
TURNS = ("poisson", "bursts", "poisson", "short bursts")
BURSTS = {"Poisson arrivals": (0.0, 1.2), "bursts up to 8 times as dispersed as Poisson": (1.2, 8.0)}
"""Regions of the dispersion of the arrivals over that of Poisson packets."""
SMALL_SHARE = 1e-3
"""Probabilities below are left out of relative errors."""
METRICS = (
    "packet_latency",
    "packet_latency_p99",
    "lookup_latency",
    "write_latency",
    "read_latency",
    "saturation_data_rate",
    "write_conflict_probability",
    "read_conflict_probability",
    "row_hit_ratio",
    "pointer_accesses_per_allocation",
    "llc_hit_ratio",
    "energy_per_packet",
)
DRAWN: dict[str, tuple[int, ...]] = {**CHOICES, "small_packet_segments": (0, 1, 2, 4)}
"""Fields and choices of the designs drawn."""

DESIGNS, SEED = 96, 1
PACKETS, REPLICATIONS = 10_000, 4
GUIDE = Path(__file__).parents[2] / ".github" / "docs" / "reference" / "accuracy.md"


def cases(count: int = DESIGNS, seed: int = SEED) -> Iterator[tuple[dict[str, Any], PacketProcessor]]:
    """Yield designs drawn evenly from the choices in `DRAWN`, loads, mixes and arrivals in turn.

    Examples
    --------
    >>> drawn = [what for what, _ in cases(8)]
    >>> sorted({what["load"] for what in drawn})
    [0.01, 0.1, 0.3, 0.5, 0.65, 0.8, 0.9, 0.95]
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        mix = list(MIXES)[number % len(MIXES)]
        load = LOADS[number % len(LOADS)]
        arrivals = TURNS[number // (len(LOADS) * len(MIXES)) % len(TURNS)]
        fields = {"workload.sizes": MIXES[mix], "workload.arrivals": ARRIVALS[arrivals]}
        space = default_space(replace_fields(PacketProcessor(), fields), choices=DRAWN)
        spec = space.spec(int(rng.integers(space.size)))
        drawn = {name: get_field(spec, name) for name in DRAWN}
        offered = at_load(spec, load)
        rate = float(offered.workload.offered_gbps)
        yield {"mix": mix, "load": load, "arrivals": arrivals, **drawn, "offered_gbps": rate}, offered


def design(what: Mapping[str, Any]) -> PacketProcessor:
    """Return the design that a row of the table names, at its rate."""
    fields: dict[str, Any] = {name: int(what[name]) for name in DRAWN}
    fields |= {"workload.sizes": MIXES[what["mix"]], "workload.arrivals": ARRIVALS[what["arrivals"]]}
    return replace_fields(PacketProcessor(), {**fields, "workload.offered_gbps": float(what["offered_gbps"])})


def measure(count: int = DESIGNS, seed: int = SEED, **options: Any) -> Table:
    """Return a table with a row per design and metric, simulated with options of `validate.simulate`."""
    drawn = (
        ({**what, "dispersion": float(burstiness(spec.workload).dispersion[0])}, spec)
        for what, spec in cases(count, seed)
    )
    usual = {"packets": PACKETS, "replications": REPLICATIONS, "seed": seed}
    return as_columns(compared(drawn, METRICS, **usual | options))


def solved_anew(table: Table) -> Table:
    """Return kept runs beside what the model says of their designs now."""
    from qmodels import solve

    model = table["model"].copy()
    for rows in np.split(np.arange(len(model)), len(model) // len(METRICS)):
        answer: Any = solve(design({name: table[name][rows[0]] for name in table}))
        model[rows] = [float(answer.metrics[name]) for name in table["metric"][rows]]
    error = [
        100.0 * float(model_error(metric, value, simulated))
        for metric, value, simulated in zip(table["metric"], model, table["simulated"], strict=True)
    ]
    return {**table, "model": model, "error": np.array(error)}


def summary(table: Table) -> list[dict[str, Any]]:
    """Return the rows of the error map: the errors of each metric by region; stable runs only.

    Of probabilities twice: in percentage points, and in % where they are above a thousandth.
    """
    error, model, simulated = (table[name] for name in ("error", "model", "simulated"))
    good = table["stable"] & np.isfinite(error)
    relative = np.full(error.shape, np.nan)
    worth = np.isfinite(model) & np.isfinite(simulated) & (simulated > SMALL_SHARE)
    relative[worth] = 100.0 * (model[worth] / simulated[worth] - 1.0)
    lines = []
    for name, (words, (least, most)), (above, to) in product(METRICS, BURSTS.items(), REGIONS):
        mine = (table["metric"] == name) & good & within(table["load"], above, to)
        mine &= within(table["dispersion"], least, most)
        where = {"region": words, "load_above": above, "load_to": to}
        where |= {"dispersion_above": least, "dispersion_to": most}
        for unit, errors in (("%", error),) if is_relative(name) else (("points", error), ("%", relative)):
            lines.append({"metric": name, "unit": unit, **where, **summarize(errors[mine])})
    return lines


def markdown(lines: list[dict[str, Any]]) -> str:
    """Return the summary with two rows per metric, Poisson and bursty, and a column per region of load."""
    rows = []
    for name, (arrivals, region) in product(METRICS, zip(("Poisson", "bursts"), BURSTS, strict=True)):
        key = name, region, "%" if is_relative(name) else "points"
        found = [line for line in lines if (line["metric"], line["region"], line["unit"]) == key]
        cells = [f"{line['bias']:+.1f} / {line['mean']:.1f} / {line['largest']:.1f}" for line in found]
        rows.append([name.replace("_", " "), arrivals, key[2], *cells])
    loads = [f"{low:.0%} to {high:.0%}" for low, high in REGIONS]
    return markdown_table(["metric", "arrivals", "unit", *loads], rows)


def main() -> None:
    """Measure, write the tables and the maps, bring the guide up to date and print it all."""
    if "--solve" in sys.argv:
        write_table(FILE, solved_anew(load_table(FILE)))
        write_table(directions.FILE, directions.solved_anew(load_table(directions.FILE)))
    elif "--summary" not in sys.argv:
        store = FILE.with_suffix(".sqlite")
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            write_table(FILE, measure(store=store, executor=pool))
            write_table(directions.FILE, directions.measure(executor=pool))
        store.unlink()
    lines = summary(load_table(FILE))
    ERRORS.write(lines, about=ABOUT, command=COMMAND)
    pairs = load_table(directions.FILE)
    DIRECTIONS.write(directions.summary(pairs), about=directions.ABOUT, command=COMMAND)
    text = GUIDE.read_text(encoding="utf-8")
    for table in (markdown(lines), directions.markdown(pairs)):
        print(table)
        text = with_table(text, table)
    GUIDE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
