"""What the 16-SRP paper measured with small benchmarks, beside the model and our simulation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cases.published.cell import Cell, only
from cases.published.claim import Claim, Value, compared, ratio
from cases.published.rows import published
from cases.published.srp.specs import ALGORITHMS, LOADS, Costs, benchmark, blurring, chip, loads
from qmodels.systems.memory.numa import NumaMachine

LEADERS = (0, 5, 10, 15)
"""The corners of the mesh: a core of each cluster, equally far from its memory."""
OWN = tuple(core // 4 for core in range(16))
SWAPPED = tuple((2, 3, 0, 1)[cluster] for cluster in OWN)
OPPOSITE = tuple(3 - cluster for cluster in OWN)
ROUND = tuple(tuple((core + k) % 4 for k in range(4)) for core in range(16))
EVERYONE = tuple(range(16))
READINGS = {
    "as many loads: 1/3": 1 / 3,
    "loads, additions and one scaling and store each (7/19)": 7 / 19,
    "the same, with equal additions (13/19)": 13 / 19,
}
"""Computing of the optimal over the non-optimal version if not as the bytes moved (1/2)."""
MOST = {
    "sixteen at one": ("most that any placement can gain, all cores fetching", "most"),
    "blurring at one": ("most that any placement can gain, non-optimal blurring", ""),
}
"""Benchmarks of which a limit is found, and where the published one stands."""
STILL = ("enumerated at one", "enumerated round")
"""Benchmarks that are also run with channels that turn to another memory in no time."""
HEADING = "Statements of the text, and other readings of the computing (costs fitted to non-optimal)"


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """The execution time of a benchmark. [cycles]."""

    name: str  # a key of `benchmark_specs`
    # model, simulated: ours.
    model: float
    simulated: float
    most_speedup: float | None = None  # by the model, what the best placement could gain; for those of `MOST`


def benchmark_specs(costs: Costs) -> dict[str, NumaMachine]:
    """Return the benchmarks by name."""
    names: dict[str, tuple[Sequence[int | Sequence[int]], Sequence[int], str]] = {
        "alone": (OWN, (0,), "paired"),
        "alone swapped": (SWAPPED, (0,), "paired"),
        "alone opposite": (OPPOSITE, (0,), "paired"),
        "four nearest": (OWN, LEADERS, "paired"),
        "four swapped": (SWAPPED, LEADERS, "paired"),
        "four opposite": (OPPOSITE, LEADERS, "paired"),
        "four at one": ((0,) * 16, LEADERS, "paired"),
        "sixteen nearest": (OWN, EVERYONE, "paired"),
        "sixteen swapped": (SWAPPED, EVERYONE, "paired"),
        "sixteen opposite": (OPPOSITE, EVERYONE, "paired"),
        "sixteen at one": ((0,) * 16, EVERYONE, "paired"),
        "enumerated at one": ((0,) * 16, EVERYONE, "enumerated"),
        "enumerated nearest": (OWN, EVERYONE, "enumerated"),
        "paired round": (ROUND, EVERYONE, "paired"),
        "enumerated round": (ROUND, EVERYONE, "enumerated"),
    }
    specs = {
        name: benchmark(costs, memories, cores=cores, assignment=assignment)
        for name, (memories, cores, assignment) in names.items()
    }
    # What the turning of channels takes of a speed-up.
    still = replace(costs, switch_cycles=0.0)
    for name in STILL:
        memories, cores, assignment = names[name]
        specs[f"{name}, no turning"] = benchmark(still, memories, cores=cores, assignment=assignment)
    specs["blurring at one"] = blurring(costs, "non-optimal", "one")
    for core in range(4):
        for memory in range(4):
            specs[f"loads {core} {memory}"] = loads(costs, core, memory)
    for text, share in READINGS.items():
        changed = replace(costs, compute_per_byte=2 * share * costs.compute_per_byte)
        specs[text] = blurring(changed, "optimal", "clustered")
    return specs


def benchmark_rows(
    specs: Mapping[str, NumaMachine], simulated: Mapping[NumaMachine, float]
) -> list[Benchmark]:
    """Return the execution times of the benchmarks, solved and simulated."""
    from qmodels import solve
    from qmodels.memory.numa.solve import placement_speedup

    return [
        Benchmark(
            name=name,
            model=float(solve(spec).execution_time),
            simulated=simulated[spec],
            most_speedup=float(placement_speedup(spec)) if name in MOST else None,
        )
        for name, spec in specs.items()
    ]


def check_claims(costs: Costs, cells: Sequence[Cell], benchmarks: Iterable[Benchmark]) -> list[Claim]:
    """Return the statements, from the times of the benchmarks and the costs they were found with."""
    times = {one.name: one for one in benchmarks}
    said = published("srp")
    rows: list[tuple[str, float | None, Value]] = [
        *_loads(times, LOADS * chip(costs).scratchpad_cycles),
        *((one["text"], _said(one), ratio(times[one["time"]], times[one["over"]])) for one in said["ratios"]),
        *((text, said["channels"].get(key), _limit(times[name])) for name, (text, key) in MOST.items()),
    ]
    groups = [
        *["statements"] * (len(rows) - len(said["ratios"]) - len(MOST)),
        *(one.get("group", "statements") for one in said["ratios"]),
        *["statements"] * len(MOST),
    ]
    for placement in ("clustered", "all"):
        for algorithm, group in zip(ALGORITHMS, ("speedups_fitted", "speedups"), strict=True):
            one, cell = (
                only(cells, table="table61", fitted_on=ALGORITHMS[0], row=algorithm, column=column)
                for column in ("one", placement)
            )
            text = f"{algorithm} blurring, {placement} over one memory: speed-up"
            rows.append((text, said["speedups"][placement][algorithm], ratio(one, cell)))
            groups.append(group)
    for reading in READINGS:
        text = f"optimal, clustered [million cycles] if computing goes {reading}"
        rows.append((text, said["table61"]["clustered"]["optimal"], _over(times[reading], 1e6)))
        groups.append("")  # other readings are no numbers of ours
    return [
        compared(text, found, published=value, group=group if value is not None else "", heading=HEADING)
        for group, (text, value, found) in zip(groups, rows, strict=True)
    ]


def _said(one: Mapping[str, Any]) -> float | None:
    """Return the number that a ratio is published with: it stands in another table."""
    table, name = one.get("said", ("", ""))
    return float(published("srp")[table][name]) if table else None


def _over(one: Benchmark, unit: float) -> Value:
    return lambda which: float(getattr(one, which)) / unit


def _limit(one: Benchmark) -> Value:
    most = one.most_speedup or 0.0
    return lambda which: most * getattr(one, which) / one.model


def _loads(times: Mapping[str, Benchmark], scratchpad: float) -> list[tuple[str, float, Value]]:
    """Return what is said of loads: NUMA factors, and the nearest memory over the scratchpad."""
    said = published("srp")["numa"]
    factors = [
        ratio(times[f"loads {core} {memory}"], times[f"loads {core} 0"])
        for core in range(4)
        for memory in range(1, 4)
    ]
    nearest = [_over(times[f"loads {core} 0"], scratchpad) for core in range(4)]
    least, most = said["memory_over_scratchpad"]

    def by_model(found: Value) -> float:
        return found("model")

    return [
        ("least NUMA factor of a load", said["least_factor"], min(factors, key=by_model)),
        ("largest NUMA factor of a load", said["largest_factor"], max(factors, key=by_model)),
        ("load from the nearest memory over the scratchpad, least", least, min(nearest, key=by_model)),
        ("load from the nearest memory over the scratchpad, most", most, max(nearest, key=by_model)),
    ]
