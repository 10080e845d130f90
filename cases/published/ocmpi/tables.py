"""Every number of the ocMPI paper's evaluation beside the model's and the simulation's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from cases.published.cell import Cell
from cases.published.design import Design, name_of
from cases.published.ocmpi.specs import (
    CALIBRATED_ON,
    CYCLES,
    FIRST_ROW,
    computing,
    gathering,
    message_costs,
    profile,
    start_costs,
    streaming,
)
from cases.published.rows import published
from cases.tables import text_table
from qmodels.systems.programs.messaging import MessageProgram

ARMS = 16
FIGURES = {
    "figure9": "Fig. 9: gathering, the first row with the lowest priority",
    "figure10": "Fig. 10: broadcast, computing and gathering, the last two rows with priority",
    "figure11": "Fig. 11: a circuit from ARM_14 to ARM_0 while all write to ARM_0",
}

HIGH = tuple(k for k in range(ARMS) if k % 4 >= 2)
LOW = tuple(k for k in range(1, ARMS) if k % 4 < 2)
OTHERS = tuple(k for k in range(ARMS) if k % 4)


@dataclass(frozen=True, kw_only=True)
class Finish:
    """The cycle in which one process of one experiment ends, without and with quality of service."""

    section: str
    process: int
    model_without: float
    model_with: float
    simulated_without: float
    simulated_with: float

    def change(self, source: str) -> float:
        """Return by how many percent the process is slower, in the "model" or "simulated"."""
        without, service = getattr(self, f"{source}_without"), getattr(self, f"{source}_with")
        return float(100 * (service / without - 1))


@cache
def answer(program: MessageProgram) -> Any:
    """Return the model's answer, found once."""
    from qmodels import solve

    return solve(program)


def profile_programs() -> dict[str, MessageProgram]:
    """Return the programs whose cycles the paper gives."""
    return profile(message_costs(), start_costs())


def service_programs() -> dict[tuple[str, bool], MessageProgram]:
    """Return the programs of the figures, without and with quality of service."""
    return {
        **{("figure9", on): gathering(prioritised=on) for on in (False, True)},
        **{("figure10", on): computing(prioritised=on) for on in (False, True)},
        **{("figure11", on): streaming(circuit=on) for on in (False, True)},
    }


def designs() -> Iterable[Design]:
    """Yield the programs behind the cycles, and those of the figures without and with quality of service."""
    for name, program in profile_programs().items():
        yield Design(name=name_of(name=name), spec=program, published={"execution_time": CYCLES[name]})
    for (figure, on), program in service_programs().items():
        name = name_of(figure=figure, service="with" if on else "without")
        yield Design(name=name, spec=program, published={"execution_time": None})


def find_finishes(model: Mapping[Any, Any], simulated: Mapping[Any, Any]) -> tuple[Finish, ...]:
    """Return when each process ends, from the answers and the simulations of `service_programs`."""
    return tuple(
        Finish(
            section=section,
            process=k,
            model_without=model[section, False][name],
            model_with=model[section, True][name],
            simulated_without=simulated[section, False][name].best,
            simulated_with=simulated[section, True][name].best,
        )
        for section in FIGURES
        for k in range(ARMS)
        for name in [f"finish_time[{k}]"]
    )


def profile_cells(model: Mapping[Any, Any], simulated: Mapping[Any, Any]) -> list[Cell]:
    """Return the cycles of sec. VIII.A, from the answers and the simulations of `profile_programs`."""
    return [
        Cell(
            place={"section": "profile", "name": name, "unit": "cycles"},
            group=_group(name),
            published=float(cycles),
            model=model[name]["execution_time"],
            simulated=simulated[name]["execution_time"].best,
        )
        for name, cycles in CYCLES.items()
    ]


def _group(name: str) -> str:
    if name in CALIBRATED_ON:
        return "library_fitted"
    return "library_read" if name.startswith("ping-pong") else "library"


def effects(section: str, slower: Mapping[int, float]) -> tuple[float, ...]:
    """Return what the paper says about a figure, in its order, from what each process shows.

    ``section``: a key of `FIGURES`; ``slower``: by how many percent each process is slower.
    """
    if section == "figure9":
        mean_first = sum(slower[k] for k in FIRST_ROW) / len(FIRST_ROW)
        return mean_first, -sum(slower[k] for k in OTHERS) / len(OTHERS)
    if section == "figure10":
        high, low = [-slower[k] for k in HIGH], [slower[k] for k in LOW]
        return max(high), min(high), max(low), min(low)
    return -slower[14], -slower[0]


def service_cells(finishes: Iterable[Finish]) -> list[Cell]:
    """Return the effects in the text of sec. VIII.B."""
    cells = []
    for section, stated in published("ocmpi")["effects"].items():
        rows = [one for one in finishes if one.section == section]
        model, simulated = (
            effects(section, {one.process: one.change(source) for one in rows})
            for source in ("model", "simulated")
        )
        cells += [
            Cell(
                place={"section": section, "name": one["name"], "unit": "%"},
                group="effects",
                **dict(zip(("published", "published_high"), one["published"], strict=False)),
                points=True,
                model=solved,
                simulated=measured,
            )
            for one, solved, measured in zip(stated, model, simulated, strict=True)
        ]
    return cells


def finishes_text(finishes: Iterable[Finish], section: str) -> str:
    """Return the finish times of one experiment as a table."""
    rows = []
    for one in finishes:
        if one.section == section:
            rows.append([f"ARM_{one.process}"])
            for source in ("model", "simulated"):
                times = (getattr(one, f"{source}_{service}") for service in ("without", "with"))
                rows[-1] += [*(f"{time:.0f}" for time in times), f"{one.change(source):+.1f} %"]
    headings = ["", "model", "with", "slower", "simulated", "with", "slower"]
    return f"{FIGURES[section]} [cycles]\n{text_table(headings, rows)}"
