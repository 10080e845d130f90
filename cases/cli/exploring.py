"""Explorations of systems of any kind: varied fields, objectives and limits given on the command line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from cases.cli.inputs import choices_of, limits_of
from cases.tables import heading, text_table
from optimize.search.exploration import Exploration
from optimize.search.explore import explore
from optimize.spaces.space import Space
from optimize.spaces.stability import STABLE
from qmodels.systems.spec.fields import find_field, replace_fields, takes_array
from qmodels.systems.spec.toml import read_value, spec_from_toml, to_toml

SPEC, DESIGNS, STORE = "spec.toml", "designs.csv", "solved.sqlite"
"""What an exploration is kept in: the system, its designs with all their metrics, those solved so far."""


def explored(
    spec: Any,
    vary: Iterable[str],
    minimize: Iterable[str],
    maximize: Iterable[str],
    limits: Iterable[str],
    *,
    out: Path,
    progress: Callable[[int, int], None] | None = None,
) -> Exploration:
    """Return the exploration of all combinations of the choices, solved.

    What the model does not know of the given system (NaN) is left out of the table. Designs are kept in the
    directory as they are solved: the same exploration goes on where it was stopped.
    """
    from qmodels import solve

    choices = {find_field(spec, name): values for name, values in map(choices_of, vary)}
    if not choices:
        raise ValueError("--vary must name a field and its choices, such as --vary link_width=8,16, got none")
    space = Space(spec, choices)
    out.mkdir(parents=True, exist_ok=True)
    known = [name for name, value in solve(space.spec(0)).to_dict().items() if not np.any(np.isnan(value))]

    def metrics(one: Any) -> dict[str, Any]:
        found = solve(one).to_dict()
        return {name: found[name] for name in known}

    return explore(
        space,
        metrics,
        minimize=list(minimize),
        maximize=list(maximize),
        subject_to=limits_of(limits),
        vectorized=[name for name in choices if takes_array(spec, name) and name in space.numeric],
        store=out / STORE,
        identity=f"solve {version('qmodels-toolkit')} {' '.join(known)}",
        progress=progress,
    )


def front_columns(found: Exploration) -> dict[str, Any]:
    """Return the front: number, varied fields, objectives and limited metrics of each design."""
    limited = [one.constraint.split(" ")[0] for one in found.excluded if one.constraint != STABLE]
    names = dict.fromkeys(["design", *found.space.choices, *found.objectives, *limited])
    return {name: found.table[name][found.front] for name in names if name in found.table}


def front_text(found: Exploration) -> str:
    """Return what was explored, and the front as a table."""
    columns = front_columns(found)
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    table = text_table([heading(name) for name in columns], rows) if rows else ""
    return f"{found}\n\nFront\n{table}" if rows else str(found)


def save(found: Exploration, out: Path) -> list[Path]:
    """Write the system and its designs into a directory; return the paths."""
    (out / SPEC).write_text(to_toml(found.space.base, kind=True), encoding="utf-8")
    return [out / SPEC, found.save(out / DESIGNS)]


def design_of(folder: Path, number_of: int) -> tuple[Any, dict[str, Any]]:
    """Return a design that `save` wrote, and the values of its varied fields.

    Raises
    ------
    ValueError
        If it is not there.
    """
    base = spec_from_toml(folder / SPEC)
    with (folder / DESIGNS).open(encoding="utf-8", newline="") as file:
        rows = {int(row["design"]): row for row in csv.DictReader(file)}
    if number_of not in rows:
        raise ValueError(f"--design must be one of {len(rows)} designs of {folder}, got {number_of}")
    varied = {}
    for name, text in rows[number_of].items():
        try:
            varied[find_field(base, name)] = read_value(text)
        except ValueError:  # a metric
            continue
    return replace_fields(base, varied), varied
