"""The 16-core SRP chip: image blurring on NUMA memory with DMA channels.

From a master's thesis of Seoul National University. Region growing on the chip stands in
`cases.published.srp_growing`, the placement of tasks in `cases.published.srp_placement`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from cases.published.numbers import Cell, Design, name_of, published, read_toml, select
from cases.published.srp_growing import (  # noqa: F401
    FILE,
    IMAGES,
    SIZED,
    VERSIONS,
    form_cells,
    forms_text,
    growing_spec,
    image_body,
    orderings,
    orderings_with_forms,
    published_time,
    run_forms,
    shifted,
    simulated_cells,
    solved_cells,
)
from cases.published.srp_placement import placements
from qmodels.systems.memory.numa import NumaMachine
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine, NumaChip
from qmodels.systems.programs.work_queues import Stealing  # noqa: F401
from qmodels.systems.spec.fields import replace_fields

ALGORITHMS, PLACEMENTS = ("non-optimal", "optimal"), ("one", "clustered", "all")
ROW_BYTES, ROWS = 4096, 4096
READ_ROWS = {"non-optimal": 3, "optimal": 1}
"""Rows fetched for one that is written: the results are a quarter and a half of all transfers."""
HOPS = 7
"""Time of a controller in hops, which gives the NUMA factors 1.1 and 1.5 at once."""
BENCHMARK_BYTES, BENCHMARK_STEPS, LOADS = 16_384, 640, 20_000
"""The benchmark: 10 MB, 16 kB a time; loads of that of latencies."""
LEADERS, EVERYONE = (0, 5, 10, 15), tuple(range(16))
"""The corners of the mesh, a core of each cluster, equally far from its memory; all cores."""
OWN = tuple(core // 4 for core in range(16))
SWAPPED = tuple((2, 3, 0, 1)[cluster] for cluster in OWN)
OPPOSITE = tuple(3 - cluster for cluster in OWN)
ROUND = tuple(tuple((core + k) % 4 for k in range(4)) for core in range(16))
READINGS = {
    "as many loads: 1/3": 1 / 3,
    "loads, additions and one scaling and store each (7/19)": 7 / 19,
    "the same, with equal additions (13/19)": 13 / 19,
}
"""Computing of the optimal over the non-optimal version if not as the bytes moved (1/2)."""
LIMITED = ("sixteen at one", "blurring at one")
"""Benchmarks of which the most that any placement can gain is found."""
STILL = ("enumerated at one", "enumerated round")
"""Benchmarks that are also run with channels that turn to another memory in no time."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The three times that are fitted to one row of Table 6.1."""

    controller_cycles: float  # of one access of 64 bytes [cycles]
    compute_per_byte: float  # computing of a core per byte moved [cycles / byte]
    switch_cycles: float  # of a channel that turns to another memory [cycles]


def chip(costs: Costs) -> NumaChip:
    """Return the chip with the fitted time of its controllers."""
    hop = costs.controller_cycles / HOPS
    return NumaChip(
        controller_cycles=costs.controller_cycles,
        hop_cycles=hop,
        scratchpad_cycles=2 * costs.controller_cycles / HOPS,
        local_cycles=2 * costs.controller_cycles / HOPS,
        local_miss_cycles=10 * costs.controller_cycles / HOPS,
    )


def blurring(costs: Costs, algorithm: str, placement: str) -> NumaMachine:
    """Return image blurring with the data in one memory, clustered, or in all memories."""
    read = READ_ROWS[algorithm] * ROW_BYTES
    return NumaMachine(
        chip=chip(costs),
        dma=DmaEngine(switch_cycles=costs.switch_cycles),
        work=BlockWork(
            steps=ROWS // 16,
            compute_cycles=costs.compute_per_byte * (read + ROW_BYTES),
            read_bytes=read,
            write_bytes=ROW_BYTES,
            placement=placement,
        ),
    )


def benchmark(
    costs: Costs, memories: Sequence[int | Sequence[int]], *, cores: Sequence[int], assignment: str = "paired"
) -> NumaMachine:
    """Return the paper's benchmark: some cores fetch 10 MB each, 16 kB a time, and compute nothing.

    ``memories``: the memory, or the memories in turn, of each of the 16 cores; ``cores``: the cores that
    fetch; ``assignment``: of cores to channels.
    """
    work = BlockWork(
        core_steps=tuple(BENCHMARK_STEPS if core in cores else 0 for core in range(16)),
        compute_cycles=0.0,
        read_bytes=BENCHMARK_BYTES,
        write_bytes=0,
        placement="per-core",
        memories=tuple((one,) if isinstance(one, int) else tuple(one) for one in memories),
    )
    dma = DmaEngine(assignment=assignment, switch_cycles=costs.switch_cycles)
    return NumaMachine(chip=chip(costs), dma=dma, work=work)


def loads(costs: Costs, core: int, memory: int) -> NumaMachine:
    """Return the paper's latency benchmark: one core loads from one memory, all others idle."""
    machine = benchmark(costs, [memory] * 16, cores=[core])
    steps = tuple(int(k == core) for k in range(16))
    return replace(machine, work=replace(machine.work, core_steps=steps, read_bytes=64, global_loads=LOADS))


def execution_time(machine: NumaMachine) -> float:
    """Return the model's execution time. [million cycles]."""
    from qmodels import solve

    return float(solve(machine).execution_time) / 1e6


@cache
def calibrate(row: str, evaluate: Callable[[NumaMachine], float] = execution_time) -> Costs:
    """Return the costs with which one row of Table 6.1, "non-optimal" or "optimal", comes out as published.

    One memory gives the controllers' time, clustered data the computing, all memories the turning: each
    is found by bisection with the ones before, by the model's execution times if no other are given.
    """
    table = published("srp")["table61"]
    found = Costs(controller_cycles=35.0, compute_per_byte=0.0, switch_cycles=0.0)
    for placement, name, most in (
        ("one", "controller_cycles", 200.0),
        ("clustered", "compute_per_byte", 20.0),
        ("all", "switch_cycles", 200_000.0),
    ):
        low, high = 0.0, most
        for _ in range(24):
            middle = (low + high) / 2
            found = replace(found, **{name: middle})
            if evaluate(blurring(found, row, placement)) < table[placement][row]:
                low = middle
            else:
                high = middle
    return found


def costs(**changes: float) -> Costs:
    """Return the times fitted to non-optimal blurring, to four digits, with others in their place."""
    values = {name: float(f"{value:.4g}") for name, value in asdict(calibrate("non-optimal")).items()}
    return Costs(**values | changes)


def fetching(
    memories: Sequence[int | Sequence[int]],
    cores: Sequence[int] = EVERYONE,
    assignment: str = "paired",
    **changes: float,
) -> NumaMachine:
    """Return the benchmark of the text in which cores fetch and compute nothing."""
    return benchmark(costs(**changes), memories, cores=cores, assignment=assignment)


def refitted(machine: NumaMachine) -> NumaMachine:
    """Return a machine with the times of its controllers and channels fitted to optimal blurring."""
    other = calibrate("optimal")
    dma = replace(machine.dma, switch_cycles=other.switch_cycles)
    return replace(machine, chip=chip(other), dma=dma)


def controlled(cycles: float, machine: NumaMachine) -> NumaMachine:
    """Return a machine with another controller, all else as fitted."""
    return replace_fields(machine, {"chip.controller_cycles": cycles})


def benchmark_specs(costs: Costs) -> dict[str, NumaMachine]:
    """Return the benchmarks by name."""
    ways: dict[str, Any] = {"nearest": OWN, "swapped": SWAPPED, "opposite": OPPOSITE, "at one": (0,) * 16}
    made: dict[str, tuple[Any, Sequence[int], str]] = {"alone": (OWN, (0,), "paired")}
    made |= {f"alone {way}": (ways[way], (0,), "paired") for way in ("swapped", "opposite")}
    for name, cores in (("four", LEADERS), ("sixteen", EVERYONE)):
        made |= {f"{name} {way}": (memories, cores, "paired") for way, memories in ways.items()}
    made["enumerated at one"] = ((0,) * 16, EVERYONE, "enumerated")
    made["enumerated nearest"] = (OWN, EVERYONE, "enumerated")
    made["paired round"], made["enumerated round"] = (
        (ROUND, EVERYONE, assignment) for assignment in ("paired", "enumerated")
    )

    def machine(name: str, costs: Costs) -> NumaMachine:
        memories, cores, assignment = made[name]
        return benchmark(costs, memories, cores=cores, assignment=assignment)

    specs = {name: machine(name, costs) for name in made}
    # What the turning of channels takes of a speed-up.
    specs |= {f"{name}, no turning": machine(name, replace(costs, switch_cycles=0.0)) for name in STILL}
    specs["blurring at one"] = blurring(costs, "non-optimal", "one")
    specs |= {
        f"loads {core} {memory}": loads(costs, core, memory) for core, memory in product(range(4), range(4))
    }
    for text, share in READINGS.items():
        changed = replace(costs, compute_per_byte=2 * share * costs.compute_per_byte)
        specs[text] = blurring(changed, "optimal", "clustered")
    return specs


def table_specs(costs: Mapping[str, Costs]) -> dict[tuple[str, str, str], NumaMachine]:
    """Return the machines of Table 6.1, by fitted row, row and column."""
    every = product(costs, ALGORITHMS, PLACEMENTS)
    return {(fitted, row, column): blurring(costs[fitted], row, column) for fitted, row, column in every}


def table_cells(costs: Mapping[str, Costs], simulated: Mapping[NumaMachine, float]) -> list[Cell]:
    """Return all numbers of Table 6.1 for every calibration, in million cycles.

    Besides row and column a cell's place holds ``fitted_on``, the row that the costs are fitted to, and
    ``regime``, by which the model says whether computing or transfers set the time.
    """
    from qmodels import solve

    cells = []
    for (fitted, row, column), machine in table_specs(costs).items():
        answer = solve(machine)
        place = {"table": "table61", "row": row, "column": column, "fitted_on": fitted}
        cells.append(
            Cell(
                place={**place, "regime": answer.regime},
                group="table61" + "_fitted" * (fitted == row),
                published=published("srp")["table61"][column][row],
                model=float(answer.execution_time) / 1e6,
                simulated=simulated[machine] / 1e6,
            )
        )
    return cells


def fitted_costs(found: Any) -> dict[str, Costs]:
    """Return the fitted times by the row of Table 6.1 they are fitted to."""
    rows = [dict(row) for row in found.tables["costs"]]
    return {row.pop("row"): Costs(**row) for row in rows}


def designs() -> Iterator[Design]:
    """Yield the machines of Table 6.1, with the times as fitted, and the programs of Table 6.2."""
    from cases.published.paper import published_case

    for (fitted, row, column), machine in table_specs(fitted_costs(published_case("srp").kept())).items():
        name = name_of(table="table61", row=row, column=column, fitted=f"fitted to {fitted}")
        time = 1e6 * published("srp")["table61"][column][row]
        yield Design(name=name, spec=machine, published={"execution_time": time})
    for version, image in product(VERSIONS, IMAGES):
        name = name_of(table="table62", row=version, image=f"image {image}")
        time = 1e6 * published_time(version, image)
        spec = growing_spec(version, image_body(image))
        yield Design(name=name, spec=spec, published={"execution_time": time})


def compute(*, store: Path | None = None) -> dict[str, Any]:
    """Fit, solve and simulate everything anew; the store keeps finished replications."""
    forms = tuple(cell.row() for cell in run_forms())
    return _computed(simulated_cells(store=store), forms, store)


def renew(kept: Any) -> dict[str, Any]:
    """Return everything anew but the simulations of region growing, which take minutes."""
    return _computed(solved_cells(select(kept.cells, table="table62")), kept.tables["growing_forms"], None)


def _computed(growing: Sequence[Cell], forms: tuple[Any, ...], store: Path | None) -> dict[str, Any]:
    from qmodels import solve
    from qmodels.memory.numa.solve import placement_speedup
    from validate import simulate

    fitted = {row: calibrate(row) for row in ALGORITHMS}
    benchmarks = benchmark_specs(fitted[ALGORITHMS[0]])
    placed = placements(blurring(fitted[ALGORITHMS[0]], "non-optimal", "clustered"))
    wanted = [*table_specs(fitted).values(), *benchmarks.values(), *(machine for machine, _ in placed)]
    wanted = list(dict.fromkeys(wanted))
    # Nothing in these machines is random: the second replication only shows that.
    results = simulate(wanted, replications=2, store=store)
    simulated = {spec: float(one.execution_time) for spec, one in zip(wanted, results, strict=True)}
    times = [
        {
            "name": name,
            "model": float(solve(spec).execution_time),
            "simulated": simulated[spec],
            "most_speedup": float(placement_speedup(spec)) if name in LIMITED else None,
        }
        for name, spec in benchmarks.items()
    ]
    rows = [
        {
            **row,
            "model": execution_time(machine),
            "simulated": simulated[machine] / 1e6,
            "seconds": row["seconds"],
        }
        for machine, row in placed
    ]
    tables = {
        "costs": tuple({"row": row, **asdict(one)} for row, one in fitted.items()),
        "benchmarks": tuple(times),
        "placements": tuple(rows),
        "growing_forms": forms,
    }
    return {"cells": (*table_cells(fitted, simulated), *growing), "tables": tables}


def more(found: Any) -> list[Cell]:
    """Return the numbers of other forms of the images."""
    return form_cells(found.tables["growing_forms"])


def times_of(found: Any, which: str) -> dict[str, float]:
    """Return the execution times of the benchmarks. [cycles]."""
    return {row["name"]: row[which] for row in found.tables["benchmarks"]}


def most(found: Any, which: str, name: str) -> float:
    """Return the gain of the best placement in a benchmark, by the model."""
    (row,) = (row for row in found.tables["benchmarks"] if row["name"] == name)
    return float((row["most_speedup"] or 0.0) * row[which] / row["model"])


def factor(found: Any, which: str, choose: Callable[..., Any]) -> float:
    """Return the least or largest NUMA factor of a load, the one that is so by the model."""
    times = {of: times_of(found, of) for of in ("model", which)}
    ratios = [
        {of: one[f"loads {core} {memory}"] / one[f"loads {core} 0"] for of, one in times.items()}
        for core in range(4)
        for memory in range(1, 4)
    ]
    return float(choose(ratios, key=lambda ratio: ratio["model"])[which])


def over_scratchpad(found: Any, which: str, choose: Callable[..., Any]) -> float:
    """Return the least or largest time of a load from the nearest memory over one from the scratchpad."""
    scratchpad = LOADS * chip(fitted_costs(found)[ALGORITHMS[0]]).scratchpad_cycles
    times = {of: times_of(found, of) for of in ("model", which)}
    core = choose(range(4), key=lambda core: times["model"][f"loads {core} 0"])
    return times[which][f"loads {core} 0"] / scratchpad


def stated(one: Mapping[str, Any]) -> float | None:
    """Return the number that a ratio is published with: it stands in another table."""
    table, name = one.get("said", ("", ""))
    return float(published("srp")[table][name]) if table else None


def ratio_group(one: Mapping[str, Any]) -> str:
    """Return the group of a ratio, empty if it is not published."""
    return str(one.get("group", "statements")) if "said" in one else ""


def statements() -> list[dict[str, Any]]:
    """Return the claims of Table 6.2, of one image each."""
    return [
        {**one, "image": image, "said": one["text"].format(image)}
        for one in read_toml(FILE)["statements"]
        for image in one["images"]
    ]


def every_cell(found: Any) -> list[Cell]:
    """Return Table 6.2."""
    return select(found.cells, table="table62")


@cache
def pairs(found: Any, sized: str) -> list[int]:
    """Return the pairs in the published order for each choice of forms."""
    return orderings_with_forms(more(found), sized, every_cell(found))
