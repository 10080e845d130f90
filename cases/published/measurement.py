"""The error maps of the published systems' models: ``python -m cases.published.measurement NAME``.

Designs around a case are solved, simulated and summed up, some 10 minutes of one processor; NAME is a key of
`MEASUREMENTS`. Rows are kept beside the case's data, and the map beside the model, from which answers say how
far they can be trusted. Changes of ``dqm``, ``lossy`` and ``growing``, one at a time, are in ``errors.toml``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cases.published import dqm, ocmpi, srp_growing
from cases.published.numbers import data_folder, read_toml, write_rows
from cases.tables import read_rows, text_table
from qmodels.allocator.conflict_errors import ERRORS as CONFLICT_ERRORS
from qmodels.allocator.conflict_errors import LOSSY_ERRORS, REGIONS, is_validated, lossy_region
from qmodels.evidence.error_map import NAN, ErrorMap, summarize
from qmodels.llc.processor_errors import ERRORS as LLC_ERRORS
from qmodels.llc.processor_errors import VARIED, region_of
from qmodels.llc.processor_hits import hit_ratios, llc_load
from qmodels.memory.numa.error_map import ERRORS as NUMA_ERRORS
from qmodels.memory.numa.error_map import kind_of
from qmodels.noc.solve_program import ERRORS as PROGRAM_ERRORS
from qmodels.systems.cache.llc_processor import ARCHITECTURES, LlcProcessor
from qmodels.systems.memory.numa import NumaMachine
from qmodels.systems.memory.numa_parts import BlockWork, DmaEngine
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, DataQueueing
from qmodels.systems.packets.data_queueing_traffic import QueueTraffic
from qmodels.systems.programs import collectives
from qmodels.systems.programs.messaging import MessageProgram
from qmodels.systems.programs.region import Cube, Uneven
from qmodels.systems.programs.work_queues import RunQueues, WorkQueues
from qmodels.systems.spec.fields import get_field, replace_fields
from qmodels.systems.traffic.popularity import Zipf
from qmodels.work_queues.solve import ERRORS as QUEUE_ERRORS

Row = dict[str, Any]
Points = Iterator[tuple[Row, Any]]


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """How a model is compared with its simulation, and where the errors are kept."""

    errors: ErrorMap  # the map of the model
    about: str  # what was measured, for the head of the map
    name: str  # of the command
    points: Callable[[], Iterable[tuple[Row, Any]]]  # returns what is said of each design, and the design
    # The metrics and the units of their errors ("%" or "points"), by the prefix of their columns.
    metrics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # Returns the entries of the map, ``region`` among them, that a row counts in.
    where: Callable[[Row], Row] = lambda row: {}
    # What rows are sorted by for the map; by default they stay in their order.
    order: Callable[[Row], Any] = lambda row: 0
    file: Path | None = None  # keeps the rows
    options: Mapping[str, Any] = field(default_factory=dict)  # of `validate.simulate`
    # Returns a value of a metric of a design as it stands in the rows.
    convert: Callable[[Any, str, float], float] = lambda spec, metric, value: value
    decimals: int | None = None  # to which the errors in the map are rounded

    def measure(self, points: Iterable[tuple[Row, Any]] | None = None, **options: Any) -> list[Row]:
        """Return a row for each of some points, by default of all: what it is, and its `columns`."""
        from qmodels import solve
        from validate import simulate

        wanted = list(self.points() if points is None else points)
        results = simulate([spec for _, spec in wanted], **{**self.options, **options})
        return [
            {**what, **self.columns(spec, solve(spec), result)}
            for (what, spec), result in zip(wanted, results, strict=True)
        ]

    def columns(self, spec: Any, answer: Any, result: Any) -> Row:
        """Return each metric by the model, simulated, and half its interval of 95 %."""
        found: Row = {}
        for prefix, (metric, _) in self.metrics.items():
            one = result.metrics[metric]
            values = {
                "model": float(answer.metrics[metric]),
                "simulated": one.best,
                "half_width": one.half_width,
            }
            found |= {prefix + name: self.convert(spec, metric, value) for name, value in values.items()}
        return found

    def kept(self) -> list[Row]:
        """Return the rows in the file."""
        assert self.file is not None
        return read_rows(self.file)

    def lines(self, rows: Iterable[Row]) -> list[Row]:
        """Return the map: the errors of each metric by where rows count."""
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in sorted(rows, key=self.order):
            groups.setdefault(tuple(self.where(row).items()), []).append(row)
        found = []
        for where, mine in groups.items():
            for prefix, (metric, unit) in self.metrics.items():
                summed = summarize((error(row, unit, prefix) for row in mine), decimals=self.decimals)
                found.append({"metric": metric, "unit": unit, **dict(where), **summed})
        return found

    def main(self) -> None:
        """Measure, write rows and map, and print it; the store lets a run that was killed resume."""
        store = Path(f"{self.name}-errors.sqlite")
        rows = self.measure(store=store)
        if self.file is not None:
            write_rows(self.file, rows)
        lines = self.write_map(rows)
        store.unlink()
        print(text_table(list(lines[0]), [list(line.values()) for line in lines]))

    def write_map(self, rows: Iterable[Row]) -> list[Row]:
        """Write the map of some rows, and return its lines."""
        lines = self.lines(rows)
        command = f"python -m cases.published.measurement {self.name}"
        self.errors.write(lines, about=self.about, command=command)
        return lines


def error(row: Row, unit: str = "%", prefix: str = "") -> float:
    """Return the signed error of the model in a row: in percent, or in percentage points."""
    model, simulated = row[f"{prefix}model"], row[f"{prefix}simulated"]
    return float(100 * (model - simulated if unit == "points" else model / simulated - 1))


@cache
def changes_of(case: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return what is changed, one design at a time, by name."""
    return read_toml(data_folder(case) / "errors.toml")


TRIALS = (1, 2, 3, 5)
SMALL = DataQueueing(
    data=DataMemory(segments=4096, page_control=False),
    allocation=Allocation(small_packet_segments=0, vms1_size=4096),
    traffic=QueueTraffic(load_factor=0.95),
)
"""The module whose conflicts are measured, small enough that its lists do not run dry."""


def queueing_points(lossy: bool) -> Points:
    """Yield the designs of the free list, with or without lost segments, with each number of trials."""
    base = replace_fields(dqm.case_spec(), {"page_control": False}) if lossy else SMALL
    for name, change in changes_of("dqm")["lossy" if lossy else "small"].items():
        for trials in TRIALS:
            spec = replace_fields(dqm.changed(base, change), {"alloc_trial_count": trials})
            row = {"design": name, "trials": trials, "validated": int(is_validated(spec))}
            yield row | ({"region": str(lossy_region(spec))} if lossy else {}), spec


def by_trials(row: Row) -> Row:
    """Return where a row counts: by trials, in its region or with the validated designs or the others."""
    above = max((0, *(trials for trials in TRIALS if trials < row["trials"])))
    region = row.get("region", REGIONS[row["validated"]])
    return {"region": region, "trials_above": above, "trials_to": row["trials"]}


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


def slice_points() -> Points:
    """Yield the published design, one parameter changed at a time, by architecture, and 60 random ones."""
    found = [
        replace_fields(LlcProcessor(architecture=architecture), {name: value})
        for architecture in ARCHITECTURES
        for name, values in ONE_AT_A_TIME.items()
        if name != "slices" or architecture == "slices"
        for value in values
    ]
    rng = np.random.default_rng(4)
    for _ in range(60):
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
    for spec in found:
        row: Row = {"architecture": spec.architecture, "assignment": spec.assignment}
        row |= {name: get_field(spec, name) for name in VARIED}
        yield {**row, "llc_load": round(llc_load(spec, hit_ratios(spec)), 6)}, spec


def machine_points(*, steps: int = 128) -> Points:
    """Yield the machines: placement, channels, computing and its variation, turning, results, buffers.

    Then those with loads from global memory by the cores, and with blocks of each core anywhere.
    """
    rng = np.random.default_rng(0)
    placements, assignments = ("one", "clustered", "all"), ("paired", "enumerated", "any")
    computing, variation, turning = (20_000.0, 35_000.0, 50_000.0, 80_000.0), (0.0, 0.1, 0.5), (0.0, 7_000.0)
    machines = []
    for placement, assignment, cycles, scv, turn, written, double in product(
        placements, assignments, computing, variation, turning, (4_096, 0), (True, False)
    ):
        work = BlockWork(
            steps=steps,
            compute_cycles=cycles,
            compute_scv=scv,
            write_bytes=written,
            placement=placement,
            double_buffering=double,
        )
        machines.append(NumaMachine(dma=DmaEngine(assignment=assignment, switch_cycles=turn), work=work))
    for assignment, cycles, scv, turn in product(assignments[:2], computing[:3], variation[:2], turning):
        work = BlockWork(steps=steps, compute_cycles=cycles, compute_scv=scv)
        anywhere = tuple(tuple(rng.integers(0, 4, rng.integers(1, 4)).tolist()) for _ in range(16))
        works = [replace(work, placement=placement, global_loads=300) for placement in placements]
        works.append(replace(work, placement="per-core", memories=anywhere))
        dma = DmaEngine(assignment=assignment, switch_cycles=turn)
        machines += [NumaMachine(dma=dma, work=one) for one in works]
    for machine in machines:
        if kind_of(machine):
            yield {"region": kind_of(machine)}, machine


def growing_specs() -> dict[tuple[str, str], WorkQueues]:
    """Return the programs of region growing by version and change: one parameter at a time."""
    bodies: dict[str, Callable[..., Any]] = {
        "cube": lambda side: Cube(side=side),
        "uneven": lambda radius, roughness, waves, form: Uneven(
            radius=radius, roughness=roughness, **({"waves": waves, "form": form} if waves else {})
        ),
        "image": lambda name: srp_growing.image_body(name).body,
    }

    def value(name: str, given: Any) -> Any:
        if name == "tasks.body":
            return bodies[given[0]](*given[1:])
        if name == "queues":
            return RunQueues(**given)
        return tuple(map(tuple, given)) if name == "numa_factors" else given

    found = {}
    for image, part in (("C", "every"), ("B", "queues"), ("B", "thefts")):
        table = changes_of("srp")[part]
        for version in srp_growing.VERSIONS:
            if (
                part == "every"
                or version == "four stealing"
                or (part, version) == ("queues", "four clustered")
            ):
                base = srp_growing.growing_spec(version, srp_growing.image_body(image))
                for name, change in table.items():
                    changes = {key: value(key, given) for key, given in change.items()}
                    found[version, name] = replace_fields(base, changes)
    return found


def growing_points() -> Points:
    """Yield the programs with their version, change and number of tasks."""
    for (version, change), spec in growing_specs().items():
        yield {"version": version, "change": change, "tasks": spec.task_count}, spec


def base_programs(words: int) -> Iterator[tuple[str, MessageProgram]]:
    """Yield the programs of ocMPI and other collective operations, with so many words."""
    for suffix, on in (("", False), (", priorities", True)):
        yield f"gather{suffix}", ocmpi.gathering(prioritised=on, words=words)
    for suffix, on in (("", False), (", priorities", True)):
        yield f"compute and gather{suffix}", ocmpi.computing(prioritised=on, words=words)
    for suffix, on in (("", False), (", circuit", True)):
        yield f"all to one{suffix}", ocmpi.streaming(circuit=on, words=words)
    for shape in collectives.SHAPES:
        scatter = collectives.scatter(processes=16, words=words, shape=shape)
        reduce = collectives.reduce(processes=16, words=words, cycles_per_word=4, shape=shape)
        yield f"scatter, {shape}", ocmpi.program(scatter)
        yield f"reduce, {shape}", ocmpi.program(ocmpi.from_memory(reduce))
        yield f"scan, {shape}", ocmpi.program(collectives.scan(processes=16, words=words, shape=shape))
    nine = ocmpi.from_memory(collectives.gather(processes=9, words=words))
    yield "gather, 9 cores", ocmpi.program(nine, side=3)


def program_points() -> Points:
    """Yield programs with other packets and buffers, and gathers with less software, which crowd more."""
    for words, overhead, buffer in product((8, 32, 128), (8, 12, 16), (5, 8)):
        for name, spec in base_programs(words):
            costs = replace(spec.costs, packet_overhead_bytes=overhead)
            router = replace(spec.router, buffer_flits=buffer)
            yield {"program": name, "words": words}, replace(spec, costs=costs, router=router)
    for words, pipeline, channels, copying, rows in product((10, 40), (2, 3), (1, 2), (0, 8), (0, 1, 2)):
        spec = ocmpi.program(collectives.gather(processes=16, words=words))
        times: dict[str, Any] = {"send_cycles": 100.0, "receive_cycles": 40.0, "receive_word_cycles": 3.0}
        costs = replace(spec.costs, send_word_cycles=float(copying), **times)
        router = replace(
            spec.router,
            pipeline_cycles=pipeline,
            credit_cycles=pipeline + 2,
            virtual_channels=channels,
            buffer_flits=8 // channels,
        )
        levels = tuple(7 if k % 4 < rows else 0 for k in range(16))
        name = f"gather, little software, {rows} rows last"
        yield {"program": name, "words": words}, replace(spec, costs=costs, router=router, priorities=levels)


class Crowding(Measurement):
    """The errors of the finish times of all processes together, by the most that is asked of a channel."""

    def columns(self, spec: MessageProgram, answer: Any, result: Any) -> Row:
        """Return what is special to a program, and its errors [% of the simulated times]."""
        model = np.array([answer[f"finish_time[{k}]"] for k in range(len(spec.processes))])
        errors = 100 * np.abs(model / result.finish[:, 0] - 1)
        return {
            "flits": spec.costs.packet_flits(spec.costs.packet_words, spec.link_width),
            "buffer_flits": spec.router.buffer_flits,
            "virtual_channels": spec.router.virtual_channels,
            "pipeline_cycles": spec.router.pipeline_cycles,
            "word_cycles": spec.costs.send_word_cycles,
            "crowding": answer.crowding,
            "mean_error": float(errors.mean()),
            "max_error": float(errors.max()),
            "execution_error": 100 * abs(answer["execution_time"] / result["execution_time"].best - 1),
        }

    def lines(self, rows: Iterable[Row]) -> list[Row]:
        """Return the map by classes of crowding; the signs are not kept."""
        rows, found, steps = list(rows), list[Row](), (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0)
        for low, high in zip(steps, steps[1:], strict=False):
            mine = [row for row in rows if low < row["crowding"] <= high]
            where = {"unit": "%", "region": "programs of 16 processes", "load_above": low, "load_to": high}
            whole = summarize((row["execution_error"] for row in mine), decimals=2)
            sizes = summarize((row["mean_error"] for row in mine), decimals=2)
            most = round(max((row["max_error"] for row in mine), default=NAN), 1)
            for metric, summed in (("finish_time", sizes | {"largest": most}), ("execution_time", whole)):
                if mine:
                    found.append({"metric": metric, **where, **summed, "bias": NAN})
        return found


MEASUREMENTS = {
    one.name: one
    for one in (
        Measurement(
            name="dqm",
            errors=CONFLICT_ERRORS,
            about="Write conflicts by trials, of designs in the range in which the model is validated, "
            "and others.",
            points=lambda: queueing_points(False),
            metrics={"": ("write_conflict_probability", "%")},
            where=by_trials,
            order=lambda row: (-row["validated"], row["trials"]),
            file=data_folder("dqm") / "errors.csv",
            options={"packets": 300_000, "replications": 2},
        ),
        Measurement(
            name="lossy",
            errors=LOSSY_ERRORS,
            about="Write conflicts and failed allocations where segments are lost alone, by trials.",
            points=lambda: queueing_points(True),
            metrics={
                "": ("write_conflict_probability", "%"),
                "failure_": ("allocation_failure_probability", "points"),
                "read_": ("read_conflict_probability", "%"),
            },
            where=by_trials,
            order=lambda row: (row["region"], row["trials"]),
            file=data_folder("dqm") / "lossy_errors.csv",
            options={"packets": 800_000, "replications": 2, "warm_up": 0.15},
        ),
        Measurement(
            name="llc3d",
            errors=LLC_ERRORS,
            about="Designs by architecture; with an LLC nearly full (offered 0.75 to 1.1 of what it can do) "
            "apart.",
            points=slice_points,
            metrics={
                "blocking_": ("blocking_probability", "points"),
                "waiting_": ("waiting_latency", "%"),
                "on_chip_": ("on_chip_hit_ratio", "points"),
            },
            where=lambda row: {"region": region_of(row["architecture"], row["llc_load"])},
            file=data_folder("llc3d") / "errors.csv",
            options={"requests": 200_000, "replications": 8},
            # Waits in the spec's time units.
            convert=lambda spec, metric, value: value
            * (spec.clock_ghz if metric == "waiting_latency" else 1.0),
        ),
        Measurement(
            name="srp",
            errors=NUMA_ERRORS,
            about="Execution time by placement and buffering.",
            points=machine_points,
            metrics={"": ("execution_time", "%")},
            where=lambda row: {"region": row["region"]},
            options={"replications": 4},
            decimals=2,
        ),
        Measurement(
            name="growing",
            errors=QUEUE_ERRORS,
            about="Execution time.",
            points=growing_points,
            metrics={"": ("execution_time", "%")},
            where=lambda row: {"region": "a sweep around the region-growing case"},
            file=data_folder("srp") / "growing-sweep.csv",
            options={"replications": 24},
            convert=lambda spec, metric, value: value / 1e6,  # million cycles
            decimals=1,
        ),
        Crowding(
            name="ocmpi",
            errors=PROGRAM_ERRORS,
            about="Times of programs by the most that is asked of a channel (load); their signs were not "
            "kept.",
            points=program_points,
            file=data_folder("ocmpi") / "sweep.csv",
            options={"replications": 2},
        ),
    )
}  # fmt: skip

if __name__ == "__main__":
    MEASUREMENTS[sys.argv[1]].main()
