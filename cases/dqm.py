"""The data-queueing case: the tables of Ykman-Couvreur et al. (DAC 2002) published, simulated and solved.

``python -m cases.dqm`` simulates everything on the trace it finds and writes ``data/dqm-cells.csv``,
``data/dqm-techniques.csv`` and ``data/dqm-causes.csv``, which are kept so that the results can be read
without the trace.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cases.dqm_causes import Cause, causes_text, find_causes
from cases.dqm_claims import Claim, check_claims, claims_text
from cases.dqm_explore import (
    OBJECTIVES,
    Techniques,
    explore_techniques,
    front_text,
    greedy_text,
    published_point,
)
from cases.dqm_specs import DATA, Evaluate, base_spec
from cases.dqm_tables import TITLES, Cell, table_cells, table_text
from cases.tables import csv_text
from qmodels import _check
from qmodels.systems.arrivals import Recorded
from qmodels.systems.data_queueing import DataQueueing
from qmodels.systems.trace import Trace

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What `reproduce` found.

    Parameters
    ----------
    base : DataQueueing
        The conventional technique under the traffic that was used.
    source : str
        Where the packets came from.
    packets, replications, seed : int
        What was run.
    cells : tuple of Cell
        Every number of Tables 1 to 4.
    techniques : Techniques or None
        The 180 techniques, simulated.
    claims : tuple of Claim
        The paper's claims beside what was found.
    causes : tuple of Cause
        What changes when one property of the traffic does.
    seconds : float
        Wall-clock time.
    """

    base: DataQueueing
    source: str
    packets: int
    replications: int
    seed: int
    cells: tuple[Cell, ...]
    techniques: Techniques | None
    claims: tuple[Claim, ...]
    causes: tuple[Cause, ...]
    seconds: float

    def table(self) -> str:
        """Return everything as text; in each cell of a table published | simulated | model."""
        parts = [
            f"Data queueing, {self.packets} packets of {self.source}, {self.replications} replications, "
            f"seed {self.seed}\nEvery cell: published | simulated | model; conflicts in percent without (wo) "
            "and with page control",
            *(table_text(self.cells, name) for name in TITLES),
        ]
        if self.techniques is not None:
            parts += [greedy_text(self.techniques), front_text(self.techniques)]
        parts.append(claims_text(self.claims))
        if self.causes:
            parts.append(causes_text(self.causes))
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        techniques = self.techniques
        return {
            "source": self.source,
            "packets": self.packets,
            "replications": self.replications,
            "seed": self.seed,
            "cells": [asdict(cell) for cell in self.cells],
            "claims": [asdict(claim) for claim in self.claims],
            "causes": [asdict(cause) for cause in self.causes],
            "techniques": [] if techniques is None else technique_rows(techniques),
            "greedy": []
            if techniques is None
            else [
                {**published_point(techniques.greedy.space, step.design), "kept": step.kept}
                for step in techniques.steps
            ],
            "seconds": self.seconds,
        }

    def to_pandas(self) -> Any:
        """Return the numbers of the tables as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame([asdict(cell) for cell in self.cells])

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory and return their paths."""
        from cases.dqm_plots import save_plots

        out.mkdir(parents=True, exist_ok=True)
        text = out / "dqm.txt"
        text.write_text(self.table() + "\n", encoding="utf-8")
        return [text, *save_tables(self, out), *save_plots(self, out)]


def reproduce(
    trace: Trace | str | os.PathLike[str] | None = None,
    *,
    packets: int = 100_000,
    replications: int = 3,
    seed: int = 0,
    exploration: bool = True,
    causes: bool = True,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Return the paper's Tables 1 to 4 beside a simulation on real packets and the model.

    Parameters
    ----------
    trace : Trace or path, optional
        Recorded packets; by default the Bellcore trace where it is found (see
        `cases.dqm_specs.find_trace`), otherwise self-similar sessions with sizes of `imix`.
    packets : int
        Packets of each run, at least 1000.
    replications : int
        Runs of each number of the tables; the exploration and the causes use the first alone.
    seed : int
        Everything random follows from it.
    exploration : bool
        Whether to explore the 180 techniques.
    causes : bool
        Whether to change one property of the traffic at a time.
    executor : concurrent.futures.Executor, optional
        Where runs are done; otherwise as many threads as there are cores.
    progress : callable, optional
        Called with (what, finished, in all).

    Returns
    -------
    Reproduction

    Raises
    ------
    ValueError
        If an argument is out of range or the trace cannot be read.
    """
    _check.count("packets", packets, minimum=1000)
    _check.count("replications", replications)
    if executor is None:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return reproduce(
                trace,
                packets=packets,
                replications=replications,
                seed=seed,
                exploration=exploration,
                causes=causes,
                executor=pool,
                progress=progress,
            )
    from qmodels.allocator.data_queueing import solve_data_queueing

    started = time.perf_counter()
    base = base_spec(trace)
    steps = 1 + exploration + causes

    def report(done: int) -> None:
        if progress:
            progress("parts of the case", done, steps)

    report(0)
    cells = table_cells(
        base,
        packets=packets,
        replications=replications,
        seed=seed,
        executor=executor,
        model=lambda spec: dict(solve_data_queueing(spec).metrics),
    )
    report(1)
    techniques = None
    if exploration:
        evaluate = Evaluate(packets=packets, seed=seed)
        techniques = explore_techniques(base, evaluate=evaluate, executor=executor)
        report(2)
    found = find_causes(base, packets=packets, seed=seed, executor=executor) if causes else []
    report(steps)
    arrivals = base.traffic.arrivals
    return Reproduction(
        base=base,
        source=Path(arrivals.trace.source).name if isinstance(arrivals, Recorded) else "a generator",
        packets=packets,
        replications=replications,
        seed=seed,
        cells=tuple(cells),
        techniques=techniques,
        claims=tuple(check_claims(cells, techniques)),
        causes=tuple(found),
        seconds=time.perf_counter() - started,
    )


def technique_rows(techniques: Techniques) -> list[dict[str, Any]]:
    """Return the 180 techniques with their metrics and whether they are on the fronts."""
    table = techniques.exhaustive.table
    front = set(table["design"][techniques.exhaustive.front].tolist())
    survivors, overall = set(techniques.survivors.tolist()), set(techniques.overall.tolist())
    names = (
        *OBJECTIVES,
        "allocation_failure_probability",
        "write_conflict_probability",
        "read_conflict_probability",
    )
    return [
        {
            **techniques.point(int(design)),
            **{name: float(table[name][row]) for name in names},
            "pareto": design in front,
            "survivor": design in survivors,
            "optimal_overall": design in overall,
        }
        for row, design in enumerate(table["design"].tolist())
    ]


def save_tables(result: Reproduction, out: Path) -> list[Path]:
    """Write the numbers as CSV files and return their paths."""
    rows: dict[str, list[dict[str, Any]]] = {"dqm-cells.csv": [asdict(cell) for cell in result.cells]}
    if result.techniques is not None:
        rows["dqm-techniques.csv"] = technique_rows(result.techniques)
    if result.causes:
        rows["dqm-causes.csv"] = [row for cause in result.causes for row in cause.rows()]
    paths = []
    for name, lines in rows.items():
        columns = {key: [_plain(line[key]) for line in lines] for key in lines[0]}
        path = out / name
        path.write_text(csv_text(columns), encoding="utf-8")
        paths.append(path)
    return paths


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    everything = reproduce()
    print(everything.table())
    save_tables(everything, DATA)
