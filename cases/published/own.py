"""A user's own paper as a TOML file: systems, tags, and numbers as expressions over metrics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cases.published.changing import Design, designs_of
from cases.published.expression import evaluate
from cases.published.numbers import Cell
from qmodels.systems.spec.text.toml import spec_from_toml


@dataclass(frozen=True)
class Metrics:
    """The metrics of a system, by name, as the model or the simulation has them."""

    values: Mapping[str, Any]

    def __getattr__(self, name: str) -> float | None:
        value = self.values.get(name)
        return None if value is None else float(getattr(value, "best", value))


@dataclass(frozen=True, kw_only=True)
class Own:
    """What `cases.published.paper.Paper` needs of a module, from a user's data.

    ``systems``: by name, each ``of`` a published system or a file beside this one, with fields ``set``;
    ``numbers``: ``what`` is published, the number (``published``, ``published_high``), ``of``, an expression
    over ``system.metric``, its ``group`` and whether errors are ``points``.
    """

    data: Mapping[str, Any]
    folder: Path

    @property
    def names(self) -> dict[str, Any]:
        """What expressions may use besides the systems."""
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
            said = {}
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
            which: {name: Metrics(one.metrics) for name, one in zip(self.systems, some, strict=True)}
            for which, some in answers.items()
        }
        cells = []
        for one in self.data["numbers"]:
            ours = {which: _value(one["of"], names) for which, names in known.items()}
            given = {
                name: one[name] for name in ("published", "published_high", "group", "points") if name in one
            }
            cells.append(Cell(place={"what": one["what"]}, **given, **ours))
        return {"cells": tuple(cells)}


def _value(expression: str, names: Mapping[str, Any]) -> float | None:
    """Return an expression's value, None where the source lacks a metric of it."""
    try:
        value = evaluate(expression, names)
    except TypeError:
        return None
    return None if value is None else float(value)
