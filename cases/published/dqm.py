"""Ykman-Couvreur et al. (DAC 2002): data queueing in a network processor.

Operations are those that the paper names, of whole packets: n writes in a row once a packet has arrived, n
reads in a row when it leaves. One input receives packets back to back at line rate, in steady overload; a
segment without a block is lost alone; packets leave in random order, which stands for many flows. Then
(`variants` changes one property at a time):

- A packet's reads meet the banks of its own blocks, which two trials keep apart: reads fall with trials, as
  published. Where ports take turns by the segment they do not.
- A list that is dry gives a packet of one segment the block just read: this is what page control saves, at
  every number of trials. Poisson arrivals, or packets admitted whole, remove it.
- Rejected blocks are the last that are left in a short list: the 1.7 to 2.4 % of writes that page control and
  three and more trials leave.

Open: the fall of writes without page control from two trials to four (published 0.9 points, ours 0.1), the
writes of lists for small packets at small Vms1Size (0.2 % for 1.4), overflow, which is flat here, and the
last row of Table 3.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.published.numbers import Cell, Design, name_of, published
from cases.tables import text_table
from optimize.search.explore import explore
from optimize.spaces.space import Space
from qmodels.systems.packets.data_queueing import Allocation, DataMemory, DataQueueing
from qmodels.systems.packets.data_queueing_traffic import LineRate, QueueTraffic
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded
from qmodels.systems.traffic.sizes import SizeLaw, bimodal, fixed, heavy_tailed, imix
from qmodels.systems.traffic.trace import Trace, read_trace

if TYPE_CHECKING:
    from cases.study.simulating import Runs

PUBLISHED_SEGMENTS = 4_194_304
SEGMENTS, PAGE_SEGMENTS = 4096, 128
"""Segments of our memory, a 1024th of the paper's: in overload the free list is short in any memory.

Vms1Size and the pages are scaled alike, pages to one segment at least; tables name the paper's sizes."""
LOAD_FACTOR = 1.025
"""In steady overload 1 - 1/load of the segments find no block: fitted to the 2.45 % of Table 4."""
SINGLE, DECAY, LONGEST = 0.52, 0.875, 9
"""The packets: the share of one segment, and the ratio of the shares of 3 and 2, 4 and 3, ... 9 and 8.

Fitted to the rows of one and two trials of Table 1, in steps of 0.01 and 0.025: they make the largest of the
model's six errors least, 0.61 points (``fit_sizes``). The least is flat: up to (0.56, 0.925) it is 0.62."""
FITTED_TRIALS = 2
TRIALS, SMALL = (1, 2, 3, 4, 5), (1, 2, 3, 4)
CONTROLS = (False, True)
VMS1 = (2_097_152, 3_145_728, 3_495_232, 3_670_016, 3_774_848, 3_984_576, 4_054_528, 4_089_472, 4_194_304)
ORDER = ("alloc_trial_count", "small_packet_segments", "vms1_size")
"""The parameters in the order in which the paper's greedy exploration decides them."""
OBJECTIVES = (
    "vms1_overflow_probability", "vms2_overflow_probability", "vms3_overflow_probability", "enqueue_overhead",
    "deletion_overhead",
)  # fmt: skip
"""The five dimensions of the paper's curve: overflows of the three lists, and both worst cases (sec. 5.3)."""
GREEDY = ("write_conflict_probability", "read_conflict_probability")
"""What the greedy exploration improves, weighted alike, to a tenth of a percent, as the paper prints them."""
FAILURES = "allocation_failure_probability"
METRICS = (*OBJECTIVES, FAILURES, *GREEDY)
"""What is kept of each technique."""
PARAMETERS = dict(zip(ORDER, ("trials", "small", "vms1_size"), strict=True))
BY_SEGMENT = "ports that take turns by the segment, Poisson arrivals of IMIX"
WARM_UP = 0.3
"""Share of the packets: in an overload of 2.5 % the memory fills slowly."""
Simulated = Mapping[DataQueueing, Any]


def case_spec(
    trace: Trace | str | os.PathLike[str] | None = None, *, segments: int = SEGMENTS
) -> DataQueueing:
    """Return the conventional technique under packets at line rate, or under a trace."""
    arrivals: LineRate | Recorded = LineRate()
    if trace is not None:
        arrivals = Recorded(trace=trace if isinstance(trace, Trace) else read_trace(trace))
    traffic = QueueTraffic(
        arrivals=arrivals,
        sizes=imix() if trace is not None else packet_sizes(SINGLE, DECAY),
        load_factor=LOAD_FACTOR,
        input_ports=1,
        output_ports=1,
        service="random",
        operations="packet",
    )
    return DataQueueing(
        data=DataMemory(segments=segments, page_segments=max(1, scaled(PAGE_SEGMENTS, segments))),
        allocation=Allocation(alloc_trial_count=1, vms1_size=segments, admission="lossy"),
        traffic=traffic,
    )


def packet_sizes(single: float, decay: float) -> SizeLaw:
    """Return packets of 1 to `LONGEST` segments: so many of one, the others falling by a ratio."""
    others = decay ** np.arange(LONGEST - 1.0)
    share = np.append(single, (1.0 - single) * others / others.sum())
    share /= share.sum()
    return SizeLaw(bytes=tuple(64 * (np.arange(LONGEST) + 1)), probability=tuple(share))


def fit_sizes() -> tuple[float, float, float]:
    """Return the largest error of the model in two rows of Table 1 [points], and the `packet_sizes` with it.

    ``python -c "from cases.published.dqm import fit_sizes; print(fit_sizes())"`` takes a minute.
    """
    from qmodels import solve

    data = published("dqm")["table1"]

    def worst(share: float, decay: float) -> float:
        sizes = packet_sizes(share, decay)
        answers = [single(n, page_control=control, sizes=sizes) for n in (1, 2) for control in CONTROLS]
        found = [solve(spec) for spec in answers]
        return max(
            abs(100 * answer[metric] - data[f"{column}_{'with' if control else 'wo'}"][n])
            for (n, control), answer in zip(product((0, 1), CONTROLS), found, strict=True)
            for column, metric in zip(("write", "read"), GREEDY, strict=True)
        )

    grid = product(np.arange(50, 61) / 100, np.arange(32, 41) / 40)
    return min((worst(share, decay), float(share), float(decay)) for share, decay in grid)


def scaled(size: int, segments: int) -> int:
    """Return a size in the paper's memory for a memory of so many segments.

    >>> scaled(2_097_152, 4096), scaled(4_089_472, 4096)
    (2048, 3994)
    """
    return round(size * segments / PUBLISHED_SEGMENTS)


def technique(
    base: DataQueueing, *, trials: int, small: int, vms1_size: int, page_control: bool = True, **changes: Any
) -> DataQueueing:
    """Return a technique of the paper, its Vms1Size as published, with other fields changed."""
    size = scaled(vms1_size, int(base.data.segments))
    values = (trials, small, size, page_control)
    fields = dict(zip((*ORDER, "page_control"), values, strict=True))
    return replace_fields(normalised(replace_fields(base, fields)), changes)


def normalised(spec: DataQueueing) -> DataQueueing:
    """Return the technique as a single list of all blocks where small packets have none of their own."""
    a, segments = spec.allocation, spec.data.segments
    if a.small_packet_segments > 0 and a.vms1_size < segments:
        return spec
    return replace_fields(spec, {"small_packet_segments": 0, "vms1_size": segments})


BASE = case_spec()


def single(trials: int, *, page_control: bool = True, **changes: Any) -> DataQueueing:
    """Return one list of all blocks, with other fields changed."""
    return technique(
        BASE, trials=trials, small=0, vms1_size=PUBLISHED_SEGMENTS, page_control=page_control, **changes
    )


def lists(trials: int, small: int, size: int, **changes: Any) -> DataQueueing:
    """Return a technique with lists for small packets."""
    return technique(BASE, trials=trials, small=small, vms1_size=size, **changes)


def technique_space(base: DataQueueing) -> Space:
    """Return the 180 techniques.

    The paper explores 180 and does not list them. The values of its tables give that number when
    SmallPktSize 0, which uses one list, is taken together with the Vms1Size of the whole memory, which
    leaves nothing for the other two: then 20 of the 180 are 5 single lists, four times each.
    """
    sizes = [scaled(size, int(base.data.segments)) for size in VMS1]
    return Space(base, alloc_trial_count=TRIALS, small_packet_segments=SMALL, vms1_size=sizes)


def greedy_space(base: DataQueueing) -> Space:
    """Return the techniques that the greedy exploration walks through, which starts with a single list.

    Vms1Size is that of the first row of Table 3 while the other parameters are decided.
    """
    sizes = [scaled(size, int(base.data.segments)) for size in VMS1[:-1]]
    start = replace_fields(base, {"vms1_size": sizes[0]})
    return Space(start, alloc_trial_count=TRIALS, small_packet_segments=(0, *SMALL), vms1_size=sizes)


def published_point(space: Space, design: int) -> dict[str, int]:
    """Return a technique as the paper names it: SmallPktSize 0 for a single list, its own Vms1Size."""
    point = dict(space.point(design))
    sizes = {scaled(size, int(space.base.data.segments)): size for size in VMS1}
    point["vms1_size"] = sizes[point["vms1_size"]]
    if point["small_packet_segments"] == 0 or point["vms1_size"] == PUBLISHED_SEGMENTS:
        point |= {"small_packet_segments": 0, "vms1_size": PUBLISHED_SEGMENTS}
    return point


def explore_techniques(
    base: DataQueueing, evaluate: Callable[[DataQueueing], Mapping[str, float]]
) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, Any], ...]]:
    """Evaluate the 180 techniques, exhaustively and by the paper's greedy way.

    The techniques come with their metrics and the fronts that they are on: ``pareto`` in the five
    `OBJECTIVES`; ``survivor`` of the paper's rule, which drops a technique only if another is better in
    *all* objectives; ``optimal_overall`` in failed allocations of all lists together and both worst cases.
    The greedy exploration is one path, step by step: the parameter, the technique, its conflicts, and
    whether it was kept.
    """
    exhaustive = explore(technique_space(base), evaluate, minimize=OBJECTIVES)
    known = exhaustive.table
    costs, three = (
        np.stack([known[name] for name in names], axis=1)
        for names in (OBJECTIVES, (FAILURES, *OBJECTIVES[3:]))
    )
    beaten = np.any(np.all(costs[None] < costs[:, None], axis=2), axis=1)
    no_worse = np.all(three[None] <= three[:, None], axis=2)
    dominated = np.any(no_worse & np.any(three[None] < three[:, None], axis=2), axis=1)
    pareto = np.isin(np.arange(known["design"].size), exhaustive.front)
    fronts = {"pareto": pareto, "survivor": ~beaten, "optimal_overall": ~dominated}
    techniques = tuple(
        {
            **published_point(exhaustive.space, design),
            **{name: float(known[name][row]) for name in METRICS},
            **{name: bool(front[row]) for name, front in fronts.items()},
        }
        for row, design in enumerate(known["design"].tolist())
    )

    def as_printed(spec: DataQueueing) -> dict[str, float]:
        answer = evaluate(spec)
        return {name: round(answer[name], 3) for name in GREEDY}

    greedy = explore(
        greedy_space(base), as_printed, minimize=GREEDY, method="greedy", order=ORDER, weights=[(0.5, 0.5)]
    )
    steps = tuple(
        {
            "scan": step.field or "start",
            **published_point(greedy.space, step.design),
            **dict(zip(("write", "read"), step.costs, strict=True)),
            "kept": step.kept,
        }
        for step in greedy.history
    )
    return techniques, steps


def distinct(techniques: Iterable[Mapping[str, Any]], front: str = "") -> int:
    """Return the number of techniques that differ in any of the `METRICS`; of one front if it is named."""
    return len({tuple(row[n] for n in METRICS) for row in techniques if not front or row[front]})


def front_rows(techniques: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the techniques that are optimal in failures and worst cases, the same single list once."""
    return list({tuple(row[n] for n in ORDER): row for row in techniques if row["optimal_overall"]}.values())


def changed(base: DataQueueing, changes: Mapping[str, Any]) -> DataQueueing:
    """Return a module with fields changed; sizes and arrivals are told by texts, ``"fixed 384"``."""
    made: dict[str, Any] = {
        "fixed": lambda size: fixed(bytes=int(size)),
        "packets": packet_sizes,
        "bimodal": lambda small, share: bimodal(small=int(small), large=1500, small_fraction=share),
        "heavy": lambda shape: heavy_tailed(shape=shape),
        "imix": imix,
        "poisson": Poisson,
        "bursts": lambda packets, peak: OnOff(on_packets=packets, peak_to_mean=peak),
    }

    def value(name: str, given: Any) -> Any:
        if name not in ("traffic.sizes", "traffic.arrivals"):
            return given
        law, *numbers = given.split()
        return made[law](*map(float, numbers))

    return replace_fields(base, {name: value(name, given) for name, given in changes.items()})


def segment_case() -> DataQueueing:
    """Return the case with ports that take turns by the segment, one of its `variants`."""
    return variants(BASE)[BY_SEGMENT]


def variants(base: DataQueueing) -> dict[str, DataQueueing]:
    """Return the case with one thing changed at a time, by name."""
    return {name: changed(base, change) for name, change in published("dqm")["variants"].items()}


def cause_specs(base: DataQueueing) -> dict[tuple[str, int, bool], DataQueueing]:
    """Return every variant with 1 to 5 trials, with and without page control."""
    return {
        (name, trials, control): technique(
            spec, trials=trials, small=0, vms1_size=PUBLISHED_SEGMENTS, page_control=control
        )
        for name, spec in variants(base).items()
        for trials in TRIALS
        for control in (True, False)
    }


def cause_rows(
    specs: Mapping[tuple[str, int, bool], DataQueueing], simulated: Simulated
) -> tuple[dict[str, Any], ...]:
    """Return the simulations of `cause_specs`: a row for each change and number of trials.

    Conflicts of writes without and with page control and of reads with it are in percent, and so are
    the ``failures`` of allocations with one trial; ``overhead`` is that of a worst-case segment write with 4
    trials [SRAM cycles].
    """

    def value(name: str, trials: int, control: bool, metric: str) -> float:
        return float(simulated[specs[name, trials, control]].metrics[metric].best)

    return tuple(
        {
            "change": name,
            "trials": trials,
            "write_wo": 100 * value(name, trials, False, GREEDY[0]),
            "write_with": 100 * value(name, trials, True, GREEDY[0]),
            "read_with": 100 * value(name, trials, True, GREEDY[1]),
            "failures": 100 * value(name, 1, True, FAILURES),
            "overhead": value(name, 4, True, "enqueue_overhead"),
        }
        for name in dict.fromkeys(name for name, _, _ in specs)
        for trials in TRIALS
    )


def causes_text(causes: Iterable[Mapping[str, Any]]) -> str:
    """Return the variants as a table, write conflicts without / with page control."""
    changes: dict[str, list[Mapping[str, Any]]] = {}
    for row in causes:
        changes.setdefault(row["change"], []).append(row)
    rows = [
        [
            name,
            *(f"{row['write_wo']:.2f}/{row['write_with']:.2f}" for row in one),
            *(f"{one[k]['read_with']:.2f}" for k in (0, 2)),
            f"{one[0]['failures']:.2f}",
            f"{one[0]['overhead']:.2f}",
        ]
        for name, one in changes.items()
    ]
    headings = ["change", *(f"write T={t}" for t in TRIALS), "read T=1", "read T=3", "failures", "overhead"]
    return text_table(headings, rows)


def columns_of(table: str) -> dict[str, tuple[bool, str, float]]:
    """Return of each column of a table: with page control or without, our metric, and its factor."""
    ours: dict[str, Any] = published("dqm")["columns"]
    return {
        column: (ours.get(f"{table}.{column}") or ours[column])[:3]
        for column in published("dqm")[table]
        if column in ours or f"{table}.{column}" in ours
    }


def rows_of(table: str) -> list[dict[str, int]]:
    """Return the techniques of a table's rows."""
    data = published("dqm")[table]
    fixed_ones = published("dqm")["fixed"][table]
    varied = {ours: data[name] for name, ours in PARAMETERS.items() if name in data}
    count = len(next(iter(varied.values())))
    rows = [{**fixed_ones, **{name: values[k] for name, values in varied.items()}} for k in range(count)]
    return [{name: row[name] for name in PARAMETERS.values()} for row in rows]


TABLES = ("table1", "table2", "table3", "table4")


def table_specs(base: DataQueueing) -> list[DataQueueing]:
    """Return the techniques of the four tables, with and without page control."""
    rows = (row for table in TABLES for row in rows_of(table))
    return [technique(base, **row, page_control=control) for row in rows for control in (True, False)]


def designs() -> Iterable[Design]:
    """Yield the techniques of the four tables, with and without page control."""
    for table in TABLES:
        columns = columns_of(table)
        for number, row in enumerate(rows_of(table)):
            for control in sorted({of[0] for of in columns.values()}):
                yield Design(
                    name=name_of(table=table, **row, control="" if control else "without page control"),
                    spec=technique(BASE, **row, page_control=control),
                    published={
                        metric: published("dqm")[table][column][number] / factor
                        for column, (its, metric, factor) in columns.items()
                        if its is control
                    },
                )


def group_of(table: str, column: str, trials: int) -> str:
    """Return the tag's group of a number: of the conflicts of Table 1 two rows are fitted."""
    columns = published("dqm")["columns"]
    group = str(columns.get(f"{table}.{column}", columns.get(column))[3])
    if table != "table1" or group not in ("writes", "reads"):
        return group
    return "table1_fitted" if trials <= FITTED_TRIALS else "table1"


def table_cells(base: DataQueueing, simulated: Simulated) -> list[Cell]:
    """Return all numbers of the four tables; the model solves each technique once."""
    from qmodels import solve

    data = published("dqm")
    solved = {spec: solve(spec) for spec in dict.fromkeys(table_specs(base))}
    cells = []
    for table in TABLES:
        for number, row in enumerate(rows_of(table)):
            for column, (control, metric, factor) in columns_of(table).items():
                spec = technique(base, **row, page_control=control)
                one = simulated[spec].metrics[metric]
                ends = zip(("simulated", "low", "high"), (one.best, one.low, one.high), strict=True)
                cells.append(
                    Cell(
                        place={"table": table, "column": column, **row},
                        group=group_of(table, column, row["trials"]),
                        published=float(data[table][column][number]),
                        model=factor * float(solved[spec].metrics[metric]),
                        **{name: factor * value for name, value in ends},
                    )
                )
    return cells


def compute(
    *,
    trace: Trace | None = None,
    store: Path | None = None,
    runs: Runs | None = None,
    exploration: bool = True,
    causes: bool = True,
) -> dict[str, Any]:
    """Simulate and solve the paper's Tables 1 to 4.

    ``trace``: recorded packets in place of Poisson arrivals with the sizes of `imix`; ``runs``: how each
    technique is simulated; otherwise 3 replications of 200 000 packets; ``exploration``: whether to explore
    the 180 techniques; ``causes``: whether to change one property of the traffic at a time.
    """
    from cases.study.simulating import Runs

    runs = runs or Runs(packets=200_000, replications=3)
    base, space = case_spec(trace), technique_space(case_spec(trace))
    every = [normalised(space.spec(design)) for design in range(space.size)] if exploration else []
    changes = cause_specs(base) if causes else {}
    wanted = list(dict.fromkeys([*table_specs(base), *every, *changes.values()]))
    simulated = dict(zip(wanted, runs.simulate(wanted, store=store, warm_up=WARM_UP), strict=True))

    def look_up(spec: DataQueueing) -> dict[str, float]:
        return {name: estimate.best for name, estimate in simulated[normalised(spec)].metrics.items()}

    tables: dict[str, tuple[Any, ...]] = {}
    if exploration:
        tables["techniques"], tables["greedy"] = explore_techniques(base, look_up)
    if causes:
        tables["causes"] = cause_rows(changes, simulated)
    arrivals = base.traffic.arrivals
    source = Path(arrivals.trace.source).name if isinstance(arrivals, Recorded) else "a generator"
    how = {name: getattr(runs, name) for name in ("packets", "replications", "seed")}
    run = {"source": source, "warm_up": WARM_UP, **how}
    return {"cells": tuple(table_cells(base, simulated)), "tables": tables, "run": run}
