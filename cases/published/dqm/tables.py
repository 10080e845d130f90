"""Tables 1 to 4 of the data-queueing paper: published, simulated, and from the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cases.published.cell import Cell, select
from cases.published.design import Design, name_of
from cases.published.dqm.specs import case_spec, technique
from cases.published.rows import published
from cases.published.text import grid_text, three
from qmodels.systems.packets.data_queueing import DataQueueing

if TYPE_CHECKING:
    from qmodels.systems.spec.answer import Answer

FIXED = {
    "table1": {"small": 0, "vms1_size": 4_194_304},
    "table2": {"trials": 3},
    "table3": {"trials": 3, "small": 2},
    "table4": {},
}
PARAMETERS = {"alloc_trial_count": "trials", "small_packet_segments": "small", "vms1_size": "vms1_size"}
TITLES = {
    "table1": "Table 1: AllocTrialCount (SmallPktSize 0, Vms1Size 4194304)",
    "table2": "Table 2: SmallPktSize (AllocTrialCount 3)",
    "table3": "Table 3: Vms1Size (AllocTrialCount 3, SmallPktSize 2)",
    "table4": "Table 4: optimised techniques and the conventional one (last)",
}
CONFLICTS = {
    "write_wo": (False, "write_conflict_probability", 100.0),
    "write_with": (True, "write_conflict_probability", 100.0),
    "read_wo": (False, "read_conflict_probability", 100.0),
    "read_with": (True, "read_conflict_probability", 100.0),
}
COLUMNS: dict[str, dict[str, tuple[bool, str, float]]] = {
    "table1": {
        "mean_accesses": (True, "pointer_accesses_per_allocation", 1.0),
        "max_accesses": (True, "max_pointer_accesses_per_allocation", 1.0),
        **CONFLICTS,
    },
    "table2": {
        "mean_accesses": (True, "pointer_accesses_per_deletion", 1.0),
        "max_accesses": (True, "max_pointer_accesses_per_deletion", 1.0),
        **CONFLICTS,
    },
    "table3": {"overflow": (True, "allocation_failure_probability", 100.0), **CONFLICTS},
    "table4": {
        "write_with": CONFLICTS["write_with"],
        "read_with": CONFLICTS["read_with"],
        "overflow": (True, "allocation_failure_probability", 100.0),
        "overhead": (True, "enqueue_overhead", 1.0),
        "energy": (True, "enqueue_energy", 1.0),
    },
}
"""Of each published column: with page control or without, our metric, and its factor."""

GROUPS = {
    "overflow": "failures_fitted",
    "read_wo": "reads",
    "read_with": "reads",
    "write_wo": "writes",
    "write_with": "writes",
    "mean_accesses": "accesses",
    "max_accesses": "accesses",
    "overhead": "overhead",
    "energy": "overhead",
}
"""The tag of each column."""


def rows_of(table: str) -> list[dict[str, int]]:
    """Return the techniques of a table's rows."""
    data = published("dqm")[table]
    varied = {ours: data[name] for name, ours in PARAMETERS.items() if name in data}
    count = len(next(iter(varied.values())))
    rows = [{**FIXED[table], **{name: values[k] for name, values in varied.items()}} for k in range(count)]
    return [{name: row[name] for name in PARAMETERS.values()} for row in rows]


def table_specs(base: DataQueueing) -> list[DataQueueing]:
    """Return the techniques of the four tables, with and without page control."""
    return [
        technique(base, **row, page_control=control)
        for table in TITLES
        for row in rows_of(table)
        for control in (True, False)
    ]


def designs() -> Iterable[Design]:
    """Yield the techniques of the four tables, with and without page control."""
    for table, columns in COLUMNS.items():
        for number, row in enumerate(rows_of(table)):
            for control in sorted({of[0] for of in columns.values()}):
                yield Design(
                    name=name_of(table=table, **row, control="" if control else "without page control"),
                    spec=technique(case_spec(), **row, page_control=control),
                    published={
                        metric: published("dqm")[table][column][number] / factor
                        for column, (its, metric, factor) in columns.items()
                        if its is control
                    },
                )


def table_cells(base: DataQueueing, simulated: Mapping[DataQueueing, Answer]) -> list[Cell]:
    """Return all numbers of the four tables; the model solves each technique once."""
    from qmodels import solve

    solved = {spec: solve(spec) for spec in dict.fromkeys(table_specs(base))}
    cells = []
    for table in TITLES:
        for number, row in enumerate(rows_of(table)):
            for column, (control, metric, factor) in COLUMNS[table].items():
                spec = technique(base, **row, page_control=control)
                estimate = simulated[spec].metrics[metric]
                cells.append(
                    Cell(
                        place={"table": table, "column": column, **row},
                        group=GROUPS[column],
                        published=float(published("dqm")[table][column][number]),
                        model=factor * float(solved[spec].metrics[metric]),
                        simulated=factor * estimate.best,
                        low=factor * estimate.low,
                        high=factor * estimate.high,
                    )
                )
    return cells


def table_text(cells: Iterable[Cell], table: str) -> str:
    """Return one table in the paper's layout: in each cell published | model | simulated."""
    shown = three("{:.3g}", published="{:g}")
    rows = tuple(PARAMETERS.values())
    return grid_text(TITLES[table], select(cells, table=table), rows=rows, column="column", shown=shown)
