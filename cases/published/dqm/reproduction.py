"""The data-queueing case: the tables of Ykman-Couvreur et al. (DAC 2002) published, simulated and solved.

``python -m cases.published.dqm.reproduction`` simulates everything on the trace it finds and writes
``data/dqm-run.toml``,
``data/dqm-cells.csv``, ``data/dqm-techniques.csv`` and ``data/dqm-causes.csv``, which are kept so that
the results can be read without the trace. While it runs, finished replications stand in ``dqm.sqlite``
in the working directory, from which the same command resumes if it was killed.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases.published.dqm.causes import Cause, cause_specs, causes_text, find_causes
from cases.published.dqm.claims import Claim, check_claims, claims_text
from cases.published.dqm.explore import (
    Techniques,
    explore_techniques,
    front_text,
    greedy_text,
    published_point,
)
from cases.published.dqm.files import (
    columns_of,
    read_causes,
    read_cells,
    read_run,
    read_techniques,
    technique_rows,
    write_numbers,
)
from cases.published.dqm.specs import DATA, base_spec, normalised, technique_space
from cases.published.dqm.tables import TITLES, Cell, table_cells, table_specs, table_text
from cases.published.numbers import Number, tags_text
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.trace import Trace

if TYPE_CHECKING:
    from cases.study.check import Runs

GROUPS = {
    "overflow": "failures",
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What `reproduce` found.

    Parameters
    ----------
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
    """

    source: str
    packets: int
    replications: int
    seed: int
    cells: tuple[Cell, ...]
    techniques: Techniques | None
    claims: tuple[Claim, ...]
    causes: tuple[Cause, ...]

    def table(self) -> str:
        """Return everything as text; in each cell of a table published | model | simulated."""
        parts = [
            f"Data queueing, {self.packets} packets of {self.source}, {self.replications} replications, "
            f"seed {self.seed}\nEvery cell: published | model | simulated; conflicts in percent without (wo) "
            "and with page control,\noverflow in percent of the allocations, overhead in SRAM cycles, "
            "energy in the paper's unit, accesses to the pointer memory",
            *(table_text(self.cells, name) for name in TITLES),
        ]
        if self.techniques is not None:
            parts += [greedy_text(self.techniques), front_text(self.techniques)]
        parts.append(claims_text(self.claims))
        if self.causes:
            parts.append(causes_text(self.causes))
        parts.append(tags_text("dqm", self.numbers()))
        return "\n\n".join(parts)

    def numbers(self) -> list[Number]:
        """Return every published number beside ours."""
        found = [
            Number(
                group=GROUPS[cell.column],
                published=cell.published,
                model=cell.model,
                simulated=cell.simulated,
            )
            for cell in self.cells
        ]
        for claim in self.claims:
            group = "saved" if "avoided" in claim.text else "pareto" if "Pareto" in claim.text else ""
            if group:
                found.append(
                    Number(
                        group=group, published=claim.published, model=claim.model, simulated=claim.simulated,
                        points=group == "saved",
                    )
                )  # fmt: skip
        return found

    def columns(self) -> dict[str, list[Any]]:
        """Return the numbers of the tables, one row each."""
        return columns_of([asdict(cell) for cell in self.cells])

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
        }

    def to_pandas(self) -> Any:
        """Return the numbers of the tables as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory and return their paths."""
        from cases.published.dqm.plots import save_plots

        out.mkdir(parents=True, exist_ok=True)
        text = out / "dqm.txt"
        text.write_text(self.table() + "\n", encoding="utf-8")
        return [text, *write_numbers(self, out), *save_plots(self, out)]


def kept() -> Reproduction:
    """Return the reproduction that ``data`` holds, made by ``python -m cases.published.dqm.reproduction``.

    Examples
    --------
    >>> print(kept().table().splitlines()[4])
    Table 1: AllocTrialCount (SmallPktSize 0, Vms1Size 4194304)
    """
    cells, techniques = read_cells(DATA), read_techniques(DATA)
    return Reproduction(
        **read_run(DATA),
        cells=cells,
        techniques=techniques,
        claims=tuple(check_claims(cells, techniques)),
        causes=read_causes(DATA),
    )


def reproduce(
    trace: Trace | str | os.PathLike[str] | None = None,
    *,
    runs: Runs | None = None,
    exploration: bool = True,
    causes: bool = True,
    store: Path | None = None,
) -> Reproduction:
    """Simulate and solve the paper's Tables 1 to 4 on real packets.

    Parameters
    ----------
    trace : Trace or path, optional
        Recorded packets; by default the Bellcore trace where it is found (see
        `cases.published.dqm.specs.find_trace`), otherwise self-similar sessions with sizes of `imix`.
    runs : Runs, optional
        How each technique is simulated; otherwise 3 replications of 100 000 packets.
    exploration : bool
        Whether to explore the 180 techniques.
    causes : bool
        Whether to change one property of the traffic at a time.
    store : path, optional
        An SQLite file that keeps finished replications, so that a reproduction that was killed
        resumes with the same call.

    Returns
    -------
    Reproduction

    Raises
    ------
    ValueError
        If the trace cannot be read, or the store is damaged or foreign.
    """
    from cases.study.check import Runs

    runs = runs or Runs(packets=100_000, replications=3)
    base = base_spec(trace)
    if store is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
    wanted = table_specs(base)
    space = technique_space(base)
    if exploration:
        wanted += [normalised(space.spec(design)) for design in range(space.size)]
    changes = cause_specs(base) if causes else {}
    wanted = list(dict.fromkeys([*wanted, *changes.values()]))
    simulated = dict(zip(wanted, runs.simulate(wanted, store=store), strict=True))

    def look_up(spec: DataQueueing) -> dict[str, float]:
        return {name: estimate.best for name, estimate in simulated[normalised(spec)].metrics.items()}

    cells = table_cells(base, simulated)
    techniques = explore_techniques(base, look_up) if exploration else None
    arrivals = base.traffic.arrivals
    return Reproduction(
        source=Path(arrivals.trace.source).name if isinstance(arrivals, Recorded) else "a generator",
        packets=runs.packets,
        replications=runs.replications,
        seed=runs.seed,
        cells=tuple(cells),
        techniques=techniques,
        claims=tuple(check_claims(cells, techniques)),
        causes=tuple(find_causes(changes, simulated)),
    )


if __name__ == "__main__":
    unfinished = Path("dqm.sqlite")
    everything = reproduce(store=unfinished)
    print(everything.table())
    write_numbers(everything, DATA)
    unfinished.unlink()
