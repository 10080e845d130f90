"""Whether the model orders the choices of a packet processor as the simulation does, measured axis by axis.

From designs drawn at random one decision after the other is varied over its choices with all else, the
offered traffic included, held; each design is simulated with the same random numbers, so that the paired
differences of two of them separate what single intervals do not. ``python -m cases.joint_errors.directions``
writes every pair to ``cases/data/directions.csv`` and the share of the separated pairs that the model orders
alike, by region, to the map that answers read (``qmodels/packet_processor/direction_map.csv``); with
``--solve`` what the model says today beside the kept runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from cases.joint_errors.measured import at_load, within
from cases.study.packet_processor import DATA
from cases.tables import Table, as_columns, load_table, markdown_table, with_table, write_table
from qmodels.packet_processor.error_map import ANY, DIRECTIONS
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import get_field, replace_fields
from qmodels.systems.spec.hashing import stable_hash
from qmodels.systems.traffic.arrivals import OnOff, Poisson
from qmodels.systems.traffic.sizes import bimodal, imix
from validate.estimates.statistics import paired_difference
from validate.packet_processor import counts as c
from validate.packet_processor.energy import energy_per_packet
from validate.packet_processor.run import Job, Run, run_replication

FILE = DATA / "directions.csv"
COMMAND = "python -m cases.joint_errors.directions"
GUIDE = Path(__file__).parents[2] / ".github" / "docs" / "reference" / "accuracy.md"
ABOUT = """\
Pairs of designs one decision (the region) apart, by load of the fullest resource and interleaving step: how
many, those that the simulation separates, those of them that the model orders alike, and of neighbours."""

AXES: dict[str, tuple[int, ...]] = {
    "interleaving_step": (1, 2, 4, 8, 16, 32),
    "alloc_trial_count": (1, 2, 3, 5, 8),
    "channels": (2, 4, 8),
    "link_width": (8, 16, 32),
    "slices": (0, 1, 2, 4, 8),
    "small_packet_segments": (0, 1, 2, 4),
}
"""The decisions and the choices along each, in order."""

OBJECTIVES = (
    "packet_latency",
    "packet_latency_p99",
    "write_conflict_probability",
    "read_conflict_probability",
    "energy_per_packet",
    "saturation_data_rate",
)

LOADS = ((0.35, 0.0, 0.5), (0.7, 0.5, 0.8))
"""Loads of the designs drawn, and the regions of load they stand for."""

STEPS = ((1, 2), (4, 8), (16, 32))
"""Interleaving steps of the designs drawn: packets spread over all channels, over some, or meet on one."""

STEP_REGIONS = ((0.0, 2.0), (2.0, 8.0), (8.0, np.inf))
"""The regions they stand for: steps above the first and up to the second number."""

WORKLOADS: dict[str, dict[str, Any]] = {
    "small": {"sizes": imix(), "arrivals": OnOff(on_packets=4, peak_to_mean=2.0)},
    "large": {"sizes": bimodal(small=64, large=1518, small_fraction=0.3), "arrivals": Poisson()},
}
"""Packets and arrivals of the two bundled workloads."""

PACKETS, CLOSED_PACKETS, REPLICATIONS, WINDOW, SEED = 6000, 4000, 5, 512, 2
CONFIDENCE = 0.98
MATERIAL = 0.01
"""Of the values: pairs that differ by less are not counted, however sure the difference is."""
FULL = 0.95
"""Model load above which a design is not simulated: it may have no steady state."""
OVERLOAD_GROWTH = 0.005
"""Packets piled up for each that arrived above which a run is taken to be overloaded."""
TIE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """What the model says of a design, and each replication of the simulation."""

    load: float
    step: int
    model: dict[str, float]
    runs: dict[str, np.ndarray]


def bases(seed: int = SEED) -> Iterator[tuple[dict[str, Any], PacketProcessor]]:
    """Yield a design for every workload, load and region of the step, all other choices at random."""
    rng = np.random.default_rng(seed)
    number = 0
    for mix, packets in WORKLOADS.items():
        for load, _, _ in LOADS:
            for steps in STEPS:
                drawn = {name: int(rng.choice(choices)) for name, choices in AXES.items()}
                drawn["interleaving_step"] = int(rng.choice(steps))
                # Most pairs of the trials and of the step are found where several channels share the load.
                drawn["channels"] = int(rng.choice((4, 8)))
                fields = {f"workload.{name}": value for name, value in packets.items()}
                spec = replace_fields(PacketProcessor(), fields | drawn)
                offered = at_load(spec, load)
                rate = float(offered.workload.offered_gbps)
                yield {"base": number, "mix": mix, "load": load, **drawn, "offered_gbps": rate}, offered
                number += 1


def measure(*, executor: Executor, seed: int = SEED, limit: int | None = None) -> Table:
    """Return a table with a row for each pair of designs on an axis and each objective.

    ``seed``: of the designs drawn and of all simulations; ``limit``: only so many of the bases.
    """
    rows: list[dict[str, Any]] = []
    for what, base in list(bases(seed))[:limit]:
        seen: dict[str, Design | None] = {}
        for decision, choices in AXES.items():
            specs = {choice: replace_fields(base, {decision: choice}) for choice in choices}
            for spec in specs.values():
                if stable_hash(spec) not in seen:  # simulated once for all axes
                    closed = what["load"] == LOADS[-1][0]
                    seen[stable_hash(spec)] = _measured(spec, closed=closed, executor=executor, seed=seed)
            designs = ((choice, seen[stable_hash(spec)]) for choice, spec in specs.items())
            found = [(choice, design) for choice, design in designs if design is not None]
            for (k, one), (m, other) in combinations(enumerate(found), 2):
                rows += [
                    {**what, "decision": decision, **_pair(one, other, metric), "adjacent": m == k + 1}
                    for metric in OBJECTIVES
                    if metric in one[1].runs and metric in other[1].runs
                ]
    return as_columns(rows)


def solved_anew(table: Table) -> Table:
    """Return kept pairs beside what the model says of their designs now."""
    from qmodels import solve

    answers: dict[PacketProcessor, Any] = {}
    found = {name: column.copy() for name, column in table.items()}
    for row in range(len(table["base"])):
        what = {name: column[row] for name, column in table.items()}
        fields = {f"workload.{name}": value for name, value in WORKLOADS[what["mix"]].items()}
        fields |= {name: int(what[name]) for name in AXES}
        base = replace_fields(
            PacketProcessor(), {**fields, "workload.offered_gbps": float(what["offered_gbps"])}
        )
        for end in ("first", "second"):
            spec = replace_fields(base, {what["decision"]: int(what[end])})
            if spec not in answers:
                answers[spec] = solve(spec)
            answer = answers[spec]
            found[f"{end}_model"][row] = float(answer.metrics[what["metric"]])
            found[f"{end}_load"][row] = float(answer.bottleneck_load)
    return {name: np.array([_short(value) for value in column.tolist()]) for name, column in found.items()}


def _measured(spec: PacketProcessor, *, closed: bool, executor: Executor, seed: int) -> Design | None:
    """Return what the model and the runs say of a design; None where it does not keep up."""
    from qmodels import solve

    model = solve(spec)
    if not model.stable or model.bottleneck_load > FULL:
        return None
    jobs = [Job(spec=spec, seed=seed, replication=k, packets=PACKETS) for k in range(REPLICATIONS)]
    if closed:  # once is enough: nothing is held and time is as long as it takes
        jobs += [replace(job, packets=CLOSED_PACKETS, window=WINDOW) for job in jobs]
    runs = list(executor.map(run_replication, jobs))
    opened = runs[:REPLICATIONS]
    if np.mean([run.growth for run in opened]) > OVERLOAD_GROWTH:
        return None
    return Design(
        load=float(model.bottleneck_load),
        step=int(get_field(spec, "dram.interleaving_step")),
        model={name: float(model.metrics[name]) for name in OBJECTIVES},
        runs=_values(spec, opened, runs[REPLICATIONS:]),
    )


def _values(spec: PacketProcessor, opened: list[Run], closed: list[Run]) -> dict[str, np.ndarray]:
    """Return the objectives of each replication."""
    counts = np.array([run.counts for run in opened], dtype=float)
    values = {
        "packet_latency": [run.parts.sum() for run in opened],
        "packet_latency_p99": [run.p99 for run in opened],
        "write_conflict_probability": counts[:, c.WRITE_CONFLICTS] / counts[:, c.WRITES],
        "read_conflict_probability": counts[:, c.READ_CONFLICTS] / counts[:, c.READS],
        "energy_per_packet": [energy_per_packet(spec, run) for run in opened],
    }
    if closed:
        values["saturation_data_rate"] = [8 * run.counts[c.LEFT_BYTES] / run.duration for run in closed]
    return {name: np.asarray(value, dtype=float) for name, value in values.items()}


def _pair(one: tuple[int, Design], other: tuple[int, Design], metric: str) -> dict[str, Any]:
    """Return how two choices along an axis differ in a metric."""
    interval = paired_difference(one[1].runs[metric], other[1].runs[metric], confidence=CONFIDENCE).difference
    row: dict[str, Any] = {"metric": metric}
    for end, (choice, design) in (("first", one), ("second", other)):
        row |= {
            end: choice,
            f"{end}_load": design.load,
            f"{end}_step": design.step,
            f"{end}_model": design.model[metric],
            f"{end}_simulated": float(design.runs[metric].mean()),
        }
    row |= {"low": interval.low, "high": interval.high}
    return {name: _short(value) for name, value in row.items()}


def _short(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


def judged(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Return which pairs the simulation separates, and which of them the model orders alike."""
    first, second = table["first_simulated"], table["second_simulated"]
    model = table["second_model"] - table["first_model"]
    sign = np.where(np.abs(model) <= TIE * np.abs(table["first_model"]), 0.0, np.sign(model))
    material = np.abs(second - first) >= MATERIAL * np.maximum(np.abs(first), np.abs(second))
    separated = ((table["low"] > 0) | (table["high"] < 0)) & material
    return separated, separated & (sign == np.sign(second - first))


def summary(table: Table) -> list[dict[str, Any]]:
    """Return the rows of the map: by decision, objective and region, how many pairs are ordered alike.

    A pair belongs to the regions of both its designs: of the load of their fullest resource, and of
    their interleaving step. ``adjacent`` counts neighbouring choices alone (the sign of a step along the
    axis), the others all pairs (the ranking).
    """
    separated, agree = judged(table)
    regions = [(*load[1:], *steps) for load, steps in product(LOADS, STEP_REGIONS)]
    lines = []
    for name, objective, (above, to, low, most) in product((*AXES, ANY), OBJECTIVES, regions):
        first, second = (
            within(table[f"{end}_load"], above, to) & within(table[f"{end}_step"], low, most)
            for end in ("first", "second")
        )
        pairs = (first | second) & (table["metric"] == objective)
        pairs &= (table["decision"] == name) | (name == ANY)
        near = pairs & table["adjacent"]
        lines.append(
            {
                "metric": objective,
                "unit": "",
                "region": name,
                "load_above": above,
                "load_to": to,
                "step_above": low,
                "step_to": most,
                "designs": int(pairs.sum()),
                "separated": int((pairs & separated).sum()),
                "agree": int((pairs & agree).sum()),
                "adjacent_separated": int((near & separated).sum()),
                "adjacent_agree": int((near & agree).sum()),
            }
        )
    return lines


def markdown(table: Table) -> str:
    """Return how many of the separated pairs the model orders alike, by decision and objective."""
    separated, agree = judged(table)
    rows = []
    for name in AXES:
        here = (table["decision"] == name) & separated
        mine = [here & (table["metric"] == objective) for objective in OBJECTIVES]
        cells = [f"{(pairs & agree).sum()} of {pairs.sum()}" if pairs.any() else "–" for pairs in mine]
        rows.append([name.replace("_", " "), *cells])
    return markdown_table(["decision", *(name.replace("_", " ") for name in OBJECTIVES)], rows)


def main() -> None:
    """Measure or solve anew, write the table and the map, and bring the guide up to date."""
    if "--solve" in sys.argv:
        table = solved_anew(load_table(FILE))
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            table = measure(executor=pool)
    write_table(FILE, table)
    DIRECTIONS.write(summary(table), about=ABOUT, command=COMMAND)
    GUIDE.write_text(with_table(GUIDE.read_text(encoding="utf-8"), markdown(table)), encoding="utf-8")


if __name__ == "__main__":
    main()
