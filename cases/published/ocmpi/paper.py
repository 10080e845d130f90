"""The message-passing case: Joven et al., "QoS-ocMPI", published, solved and simulated."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cases.published.cell import select
from cases.published.ocmpi.calibrate import alternatives_text, find_alternatives
from cases.published.ocmpi.plots import figures
from cases.published.ocmpi.tables import (
    FIGURES,
    Finish,
    find_finishes,
    finishes_text,
    profile_cells,
    profile_programs,
    service_cells,
    service_programs,
)
from cases.published.reproduction import Paper, Reproduction
from cases.published.text import list_text
from qmodels.systems.programs.messaging import MessageProgram


def simulate(*, store: Path | None = None) -> Reproduction:
    """Solve and simulate everything; the programs are deterministic."""
    from qmodels import solve
    from validate import simulate

    programs: dict[Any, MessageProgram] = {**profile_programs(), **service_programs()}
    results = simulate(list(programs.values()), replications=2, store=store)
    simulated = dict(zip(programs, results, strict=True))
    solved = {key: solve(program) for key, program in programs.items()}
    finishes = find_finishes(solved, simulated)
    return Reproduction(
        paper=PAPER,
        cells=(*profile_cells(solved, simulated), *service_cells(finishes)),
        tables={"processes": finishes, "alternatives": tuple(find_alternatives())},
    )


def sections(found: Reproduction) -> list[str]:
    """Return the numbers, the finish times and the alternatives."""
    labels = {"name": "", "unit": "unit"}
    cycles, effects = select(found.cells, unit="cycles"), select(found.cells, unit="%")
    return [
        "QoS-ocMPI, message passing on a 4x4 mesh of ARM cores\n"
        "Errors against the published number or the nearer end of its range; what is fitted proves nothing.",
        list_text("Library (sec. VIII.A)", cycles, labels, digits=0),
        list_text("Quality of service (sec. VIII.B)", effects, labels, digits=1),
        *(finishes_text(found.tables["processes"], section) for section in FIGURES),
        alternatives_text(found.tables["alternatives"]),
    ]


PAPER = Paper(
    name="ocmpi",
    simulate=simulate,
    sections=sections,
    figures=figures,
    tables={"processes": Finish, "alternatives": dict},
)
