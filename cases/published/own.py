"""A user's own paper as a TOML file: systems, tags, and numbers as expressions over metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cases.published.expression import evaluate
from cases.published.numbers import Cell, Design, read_toml
from cases.published.paper import Paper, published_case
from qmodels import checks
from qmodels.systems.spec.text.toml import spec_from_toml


class LackingError(Exception):
    """One of model and simulation has no such metric."""


@dataclass(frozen=True)
class Metrics:
    """The metrics of a system, by name, as the model or the simulation has them."""

    values: Mapping[str, Any]
    known: Sequence[str]  # what either may have

    def __getattr__(self, name: str) -> float:
        if name in self.values:
            value = self.values[name]
            return float(getattr(value, "best", value))
        if name in self.known:
            raise LackingError
        raise AttributeError(f"no metric {name!r}{checks.nearest(name, self.known)}")


@dataclass(frozen=True, kw_only=True)
class Own:
    """Module of a user's paper for `cases.published.paper.Paper`, from its data.

    ``systems``: by name, each ``of`` a published system or a file beside this one, with fields ``set``;
    ``numbers``: ``what`` is published, the number (``published``, ``published_high``), ``of``, an expression
    over ``system.metric``, its ``group`` and whether errors are ``points``.
    """

    data: Mapping[str, Any]
    folder: Path

    @property
    def names(self) -> dict[str, Any]:
        """Names that expressions may use besides the systems."""
        return {}

    @cached_property
    def systems(self) -> dict[str, Any]:
        """The systems by name."""
        found = {}
        for name, one in self.data["systems"].items():
            source = self.folder / one["of"]
            text = source if source.suffix == ".toml" else designs_of(one["of"])[0].text()
            found[name] = spec_from_toml(text, one.get("set", {}))
        return found

    def designs(self) -> Iterable[Design]:
        """Yield the systems, with the numbers that are a metric of one."""
        for name, spec in self.systems.items():
            said: dict[str, float | None] = {}
            for one in self.data["numbers"]:
                plain = re.fullmatch(rf"{re.escape(name)}\.(\w+)", one["of"])
                said |= {plain[1]: one["published"]} if plain else {}
            yield Design(name=name, spec=spec, published=said)

    def compute(self, *, store: Path | None = None) -> dict[str, Any]:
        """Solve and simulate the systems, and compute the numbers."""
        from qmodels import solve
        from validate import simulate

        specs = list(self.systems.values())
        answers = {"model": map(solve, specs), "simulated": simulate(specs, store=store)}
        known = {
            which: {
                name: Metrics(one.metrics, _metrics_of(spec, one))
                for (name, spec), one in zip(self.systems.items(), some, strict=True)
            }
            for which, some in answers.items()
        }
        cells = []
        for one in self.data["numbers"]:
            ours: dict[str, Any] = {which: _value(one["of"], names) for which, names in known.items()}
            given: dict[str, Any] = {
                name: one[name] for name in ("published", "published_high", "group", "points") if name in one
            }
            cells.append(Cell(place={"what": one["what"]}, **given, **ours))
        return {"cells": tuple(cells)}


def _value(expression: str, names: Mapping[str, Any]) -> float | None:
    """Return an expression's value, None where the source lacks a metric of it."""
    try:
        return float(evaluate(expression, names))
    except LackingError:
        return None
    except TypeError as error:
        raise ValueError(f"expression {expression!r}: {error}") from None


def _metrics_of(spec: Any, answer: Any) -> tuple[str, ...]:
    """Return the metrics that a model or a simulation of a spec may have."""
    declared = type(spec).metric_names
    return (*declared.both, *declared.model, *declared.simulation, *answer.metrics)


def paper_of(name: str) -> Paper:
    """Return a bundled case, or the paper of a TOML file, ``mine.toml``."""
    if not name.endswith(".toml"):
        return published_case(name)
    path = Path(name)
    try:
        data = read_toml(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    missing = [key for key in ("systems", "numbers", "tags") if key not in data]
    missing += [
        one.get("group", "")
        for one in data.get("numbers", ())
        if one.get("group", "") not in data.get("tags", {})
    ]
    if missing:
        raise ValueError(
            f"{name} must have {', '.join(map(repr, missing))}: systems, numbers, and a tag of each group"
        )
    shown = {"head": data.get("title", path.stem), "tables": [{"labels": {"what": "number"}}]}
    return Paper(name=path.stem, data=shown | data, module=Own(data=data, folder=path.parent))


def designs_of(name: str) -> list[Design]:
    """Return the systems of a case, ``"stnoc"``, or those whose names begin so, ``"stnoc/table2"``.

    Raises
    ------
    ValueError
        If there is no such case or no such system.

    Examples
    --------
    >>> [design.name for design in designs_of("llc3d/realistic")]
    ['realistic-slices', 'realistic-none', 'realistic-shared']
    """
    case, _, wanted = (name, "", "") if name.endswith(".toml") else name.partition("/")
    every = paper_of(case).designs()
    found = [one for one in every if one.name == wanted]
    found = found or [one for one in every if one.name.startswith(wanted)]
    if not found:
        near = checks.nearest(wanted, [one.name for one in every])
        raise ValueError(f"{case} has no system {wanted!r}{near}; qmodels describe {case} lists them")
    return found
