"""The message-passing case: Joven et al., "QoS-ocMPI", published, solved and simulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cases.published.cell import select
from cases.published.ocmpi.calibrate import CHOSEN, alternatives_text, find_tries, left_out_cells
from cases.published.ocmpi.plots import figures
from cases.published.ocmpi.tables import (
    FIGURES,
    Finish,
    answer,
    designs,
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
    return _reproduction(find_tries(), store=store)


def renew(kept: Reproduction) -> Reproduction:
    """Return everything solved and simulated anew but the other choices, which take minutes."""
    return _reproduction(kept.tables["tries"])


def _reproduction(tries: Sequence[Mapping[str, Any]], *, store: Path | None = None) -> Reproduction:
    from validate import simulate

    programs: dict[Any, MessageProgram] = {**profile_programs(), **service_programs()}
    results = simulate(list(programs.values()), replications=2, store=store)
    simulated = dict(zip(programs, results, strict=True))
    solved = {key: answer(program) for key, program in programs.items()}
    finishes = find_finishes(solved, simulated)
    return Reproduction(
        paper=PAPER,
        cells=(*profile_cells(solved, simulated), *service_cells(finishes), *left_out_cells(tries)),
        tables={"processes": finishes, "tries": tuple(tries)},
    )


def sections(found: Reproduction) -> list[str]:
    """Return the numbers, the finish times and the alternatives."""
    labels = {"name": "", "unit": "unit"}
    cycles, left_out = select(found.cells, unit="cycles"), select(found.cells, section="left out")
    effects = [cell for cell in select(found.cells, unit="%") if cell not in left_out]
    chosen = {name: name.replace("_", " ") for name in CHOSEN}
    return [
        "QoS-ocMPI, message passing on a 4x4 mesh of ARM cores\n"
        "Errors against the published number or the nearer end of its range; what is fitted proves nothing.",
        list_text("Library (sec. VIII.A)", cycles, labels, digits=0),
        list_text("Quality of service (sec. VIII.B)", effects, labels, digits=1),
        *(finishes_text(found.tables["processes"], section) for section in FIGURES),
        alternatives_text(found.tables["tries"]),
        list_text(
            "Each effect by the packets, buffers, words and computing chosen on the other seven",
            left_out, labels | chosen, digits=1,
        ),
    ]  # fmt: skip


PAPER = Paper(
    name="ocmpi",
    simulate=simulate,
    renew=renew,
    sections=sections,
    designs=designs,
    figures=figures,
    tables={"processes": Finish, "tries": dict},
)
