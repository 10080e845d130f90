"""A paper: its data and numbers beside ours, kept or computed anew, and shown; its systems changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cases.published import CASES, numbers, tables
from cases.published.computing import Simulate, computed, designs, names_of, solved
from cases.published.numbers import Cell, Claim, Design, Number
from cases.tables import columns_of, csv_text, read_rows, rows_of, text_table
from cases.tables import save as save_figure
from qmodels import checks
from qmodels.systems.spec.fields import array_fields, varied_fields
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.spec.whole import whole
from qmodels.systems.traffic.trace import Trace, read_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CELLS, RUN = "cells.csv", "run.toml"


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """A paper's numbers: published, simulated and from the model."""

    paper: Paper  # What is special to it
    cells: tuple[Cell, ...]  # Every number of its tables and figures
    tables: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # What else was found: rows by name
    run: Mapping[str, Any] = field(default_factory=dict)  # How it was simulated

    @cached_property
    def names(self) -> dict[str, Any]:
        """Names that expressions of the paper's data may use; ``found`` is this."""
        return {**self.paper.names, **self.run, **self.tables, "found": self, "run": dict(self.run)}

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """Claims of the paper in words, beside the values found."""
        return tuple(claim for one in self.paper.data.get("claims", ()) for claim in self._claims(one))

    def value(self, expression: Any, which: str, names: Mapping[str, Any] | None = None) -> Any:
        """Return the value of an expression over "published", "model" or "simulated" numbers of cells.

        In it ``c(table=..., ...)`` is the number of the cell at a place, ``every(...)`` those of all cells
        there.
        """

        def every(**place: Any) -> list[Any]:
            return [getattr(cell, which) for cell in numbers.select(self.cells, **place)]

        def number(**place: Any) -> Any:
            return getattr(numbers.only(self.cells, **place), which)

        own = {"c": number, "every": every, "which": which}
        return tables.evaluate(expression, {**(self.names if names is None else names), **own})

    def _claims(self, one: Mapping[str, Any]) -> Iterator[Claim]:
        """Yield the claims of an entry: its loops gone through, its expressions computed for each source."""
        for names in tables.loops(one.get("for", {}), self.names):
            if not tables.evaluate(one.get("if", True), names):
                continue
            ends = {
                name: self.value(one.get(name), "published", names)
                for name in ("published", "published_high")
            }
            ours: dict[str, Any] = {
                which: self.value(one["of"], which, names) if one.get("only", which) == which else None
                for which in ("model", "simulated")
            }
            known = {**names, **ends, **ours}
            words: dict[str, Any] = {
                name: tables.fill(one[name], known) for name in ("text", "said", "group") if name in one
            }
            given = {name: one[name] for name in ("heading", "form", "points") if name in one}
            holds = None if "holds" not in one else tables.evaluate(one["holds"], known)
            yield Claim(**words, **given, **ends, **ours, holds=None if holds is None else bool(holds))

    def sections(self) -> Iterator[str]:
        """Yield the texts of the paper's tables, as its data describes them."""
        yield tables.fill(self.paper.data["head"], self.names)
        for one in self.paper.data["tables"]:
            if "needs" in one and not self.tables.get(one["needs"]):
                continue
            for names in tables.loops(one.get("for", {}), self.names):
                yield self._section(one, names)

    def _section(self, one: Mapping[str, Any], names: Mapping[str, Any]) -> str:
        place = {name: tables.entry(value, names) for name, value in one.get("where", {}).items()}
        rows = self.tables[one["rows_of"]] if "rows_of" in one else self.cells
        rows = tables.evaluate(one["rows_in"], names) if "rows_in" in one else rows
        mine = numbers.select(rows, **place)
        title = [tables.fill(one["title"], names)] if "title" in one else []
        if "call" in one:
            body = [tables.evaluate(one["call"], names)]
        elif "columns" in one:
            flat = (row.row() if isinstance(row, Cell) else row for row in mine)
            body = [tables.rows_text(flat, one["columns"], names)]
        elif "labels" in one:
            body = [tables.list_text(mine, one)]
        else:
            body = [tables.grid_text(mine, one)] if "rows" in one else []
        if "errors" in one and any(cell.group for cell in mine):
            body.append(one.get("indent", "") + tables.errors_text(mine, digits=one["errors"]))
        if "below" in one:
            body.append(tables.fill(one["below"], names))
        return "\n".join([*title, *body])

    def table(self) -> str:
        """Return everything as text."""
        return "\n\n".join(
            [
                *self.sections(),
                *([tables.claims_text(self.claims)] if self.claims else []),
                numbers.tags_text(self.paper.tags, self.numbers()),
                *(
                    f"{title}\n" + "\n".join(f"  - {text}" for text in texts)
                    for title, texts in self.paper.notes.items()
                ),
            ]
        )

    def numbers(self) -> list[Number]:
        """Return every published number beside ours."""
        more = tables.evaluate(self.paper.data.get("more", ()), self.names)
        return [number for number in (*self.cells, *self.claims, *more) if number.group]

    def columns(self) -> dict[str, list[Any]]:
        """Return the cells, one row each."""
        return columns_of(cell.row() for cell in self.cells)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return {
            **self.run,
            "cells": rows_of(self.columns()),
            "claims": [numbers.plain_row(claim) for claim in self.claims],
            **{name: list(map(dict, self.tables.get(name, ()))) for name in self.paper.data.get("rows", ())},
            "notes": {title: list(texts) for title, texts in self.paper.notes.items()},
        }

    def write(self, folder: Path, *, prefix: str = "") -> list[Path]:
        """Write the numbers in full into a directory, see `Paper.read`; return the paths."""
        paths = []
        if self.run:
            paths.append(folder / f"{prefix}{RUN}")
            lines = (f"{name} = {json.dumps(value)}\n" for name, value in self.run.items())
            with whole(paths[0]) as part:
                part.write_text("".join(lines), encoding="utf-8")
        files = {f"{name.replace('_', '-')}.csv": rows for name, rows in self.tables.items() if rows}
        for name, rows in {CELLS: [cell.row() for cell in self.cells], **files}.items():
            paths.append(folder / f"{prefix}{name}")
            numbers.write_rows(paths[-1], rows)
        return paths

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory, which is made; return their paths."""
        out.mkdir(parents=True, exist_ok=True)
        text = out / f"{self.paper.name}.txt"
        with whole(text) as part:
            part.write_text(self.table() + "\n", encoding="utf-8")
        paths = [text, *self.write(out, prefix=f"{self.paper.name}-")]
        for name, figure in self.figures().items():
            paths.append(out / f"{self.paper.name}-{name}.png")
            save_figure(figure, paths[-1])
        return paths

    def figures(self) -> dict[str, Figure]:
        """Return the pictures of which there are numbers, by name."""
        from cases.published.plots import figure

        wanted = (
            (tables.fill(one["name"], names), one, names)
            for one in self.paper.data.get("figures", ())
            if "needs" not in one or self.tables.get(one["needs"])
            for names in tables.loops(one.get("for", {}), self.names)
        )
        return {name: figure(self, one, names) for name, one, names in wanted}


@dataclass(frozen=True, kw_only=True, eq=False)
class Paper:
    """A paper as data, and a module, if it has one, with functions of its own that expressions call."""

    name: str  # Of the case
    data: Mapping[str, Any]  # Published numbers, tags, systems, tables, claims, pictures and conclusions
    folder: Path  # In which its files are
    module: ModuleType | None = None  # None for a paper that is data alone

    @cached_property
    def names(self) -> dict[str, Any]:
        """Names that expressions of the data may use."""
        return self._names()

    def _names(self, **more: Any) -> dict[str, Any]:
        own = {} if self.module is None else vars(self.module)
        public = {name: one for name, one in own.items() if not name.startswith("_")}
        return names_of(self.data, self.folder, {"designs_of": designs_of} | public | more)

    @cached_property
    def tags(self) -> dict[str, dict[str, str]]:
        """Meaning of the numbers of each group, and the tag of their agreement."""
        return numbers.tags_of(self.data, self.name)

    @property
    def notes(self) -> Mapping[str, Sequence[str]]:
        """Notes, under titles."""
        return {title: self.texts(texts) for title, texts in self.data.get("notes", {}).items()}

    @property
    def contradictions(self) -> Sequence[str]:
        """Where the paper contradicts itself, in words."""
        return self.texts(self.data.get("contradictions", ()))

    def texts(self, texts: str | Iterable[str]) -> Sequence[str]:
        """Return texts with their expressions filled in; those of a name stand elsewhere in the data."""
        return [
            tables.fill(one, self.names) for one in (self.data[texts] if isinstance(texts, str) else texts)
        ]

    def designs(self) -> list[Design]:
        """Return the systems behind its numbers."""
        return list(designs(self.data, self.names))

    def read(self, folder: Path) -> Reproduction:
        """Read what `Reproduction.write` wrote."""
        paths = {name: folder / f"{name.replace('_', '-')}.csv" for name in self.data.get("rows", ())}
        return Reproduction(
            paper=self,
            cells=tuple(map(Cell.of_row, read_rows(folder / CELLS))),
            tables={name: tuple(read_rows(path)) for name, path in paths.items() if path.is_file()},
            run=numbers.read_toml(folder / RUN) if (folder / RUN).is_file() else {},
        )

    def kept(self) -> Reproduction:
        """Return the reproduction kept by ``python -m cases.published.keep`` with the name of the case."""
        return self.read(self.folder)

    def today(self) -> Reproduction:
        """Reproduce with the models of today; simulations and fits are kept, a user's own are run."""
        if not (self.folder / CELLS).is_file():
            return self.reproduce()
        kept = self.kept()
        return Reproduction(paper=self, run=kept.run, **computed(self.data, self.names, kept))

    def reproduce(self, trace: Any = None, *, store: Path | None = None, **run: Any) -> Reproduction:
        """Compute everything anew.

        ``trace``: recorded packets, for a case that plays them; ``store``: an SQLite file that keeps finished
        replications; ``**run``: options of the simulations in place of those of the data's ``run``.

        Raises ValueError if a trace is given to a case without packets or cannot be read, or the store is
        damaged or foreign.
        """
        run = {**self.data.get("run", {}), **run}
        if self.data.get("plays", False):
            # Before anything is made: it may be no trace.
            trace = trace if trace is None or isinstance(trace, Trace) else read_trace(trace)
            run = {"source": "a generator" if trace is None else Path(trace.source).name, **run}
        elif trace is not None:
            given = os.fspath(trace)
            raise ValueError(f"trace must be left out, as this case has no packets, got {given!r}")
        if store is not None:
            store.parent.mkdir(parents=True, exist_ok=True)
        simulate = _simulator(store)
        names = self._names(**run, trace=trace, simulated_all=lambda specs, **how: simulate(specs, how))
        return Reproduction(paper=self, run=run, **computed(self.data, names, None, simulate))


def _simulator(store: Path | None) -> Simulate:
    """Return a function that simulates specs, each once."""
    done: dict[Any, Any] = {}

    def simulate(specs: Sequence[Any], options: Mapping[str, Any]) -> list[Any]:
        from validate import simulate as run

        key = repr(sorted(options.items()))
        missing = [spec for spec in dict.fromkeys(specs) if (key, spec) not in done]
        if missing:
            results = run(missing, store=store, **options)
            done.update({(key, spec): one for spec, one in zip(missing, results, strict=True)})
        return [done[key, spec] for spec in specs]

    return simulate


@cache
def published_case(name: str) -> Paper:
    """Return a bundled case; only the module of the one that is asked for is imported."""
    if name not in CASES:
        raise ValueError(f"case must be one of {', '.join(CASES)}, got {name!r}{checks.nearest(name, CASES)}")
    module = f"cases.published.{name}"
    own = import_module(module) if find_spec(module) else None
    return Paper(name=name, data=numbers.published(name), folder=numbers.data_folder(name), module=own)


def paper_of(name: str) -> Paper:
    """Return a bundled case, or the paper of a TOML file, ``mine.toml``."""
    if not name.endswith(".toml"):
        return published_case(name)
    path = Path(name)
    try:
        data = numbers.read_toml(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    missing = [key for key in ("systems", "numbers", "tags") if key not in data]
    groups = [one.get("group", "") for one in data.get("numbers", ())]
    missing += [group for group in groups if group not in data.get("tags", {})]
    if missing:
        raise ValueError(
            f"{name} must have {', '.join(map(repr, missing))}: systems, numbers, and a tag of each group"
        )
    shown = {"head": data.get("title", path.stem), "tables": [{"labels": {"what": "number"}}]}
    return Paper(name=path.stem, data=shown | data, folder=path.parent)


def designs_of(name: str) -> list[Design]:
    """Return the systems of a case, ``"stnoc"``, or those whose names begin so, ``"stnoc/table2"``.

    Raises ValueError if there is no such case or no such system.

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


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Systems of a paper with other values of some fields."""

    name: str  # Of the case, or of some of its systems
    # A metric of a system each: published, by the model as it was published and changed, and simulated
    rows: Sequence[Mapping[str, Any]]
    fields: Sequence[str]  # What was changed
    refused: Mapping[str, str] = field(default_factory=dict)  # Systems that do not take the change, and why

    def text(self) -> str:
        """Return it for a terminal."""
        shown = {"published": "published", "model": "model", "changed": "model, changed"}
        if "simulated" in self.rows[0]:
            shown["simulated"] = "simulated, changed"
        rows = [
            [row["system"], f"{row['metric']} [{row['unit']}]".replace(" [1]", ""),
             *("-" if row[name] is None else f"{row[name]:.4g}" for name in shown)]
            for row in self.rows
        ]  # fmt: skip
        lines = [text_table(["system", "metric", *shown.values()], rows)]
        if self.fields:
            said = f"not of what was changed: {', '.join(self.fields)}"
            lines.append(f"Published numbers are of the paper's systems, {said}.")
        else:
            lines.append("Nothing differs from the paper's systems.")
        marks = {"saturated": "stable", "outside the range of the model's known error": "validated"}
        for word, mark in marks.items():
            names = list(dict.fromkeys(row["system"] for row in self.rows if not row[mark]))
            lines += [f"Changed, {word}: {_first(names)}"] if names else []
        for why in dict.fromkeys(self.refused.values()):
            names = [name for name, said in self.refused.items() if said == why]
            lines.append(f"Left out: {_first(names)}: {why}")
        return f"{self.name}\n" + "\n".join(lines)

    def data(self) -> dict[str, Any]:
        """Return it for a program."""
        return {"changed": list(self.fields), "rows": list(self.rows), "left_out": dict(self.refused)}

    def csv(self) -> str:
        """Return a row per metric of a system."""
        return csv_text(columns_of(self.rows))


def _first(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def changed(name: str, changes: Mapping[str, Any], *, other: Any = None, simulated: bool = False) -> Changed:
    """Return systems of a case, ``"stnoc/table2"``, with fields changed.

    ``name``: see `designs_of`; ``changes``: values by names of fields, as ``--set`` takes them; ``other``: a
    file with the one system, edited; ``simulated``: whether to simulate the changed systems too.

    Raises ValueError if no system takes the changes, or a file is given for several.
    """
    designs, refused, specs = designs_of(name), {}, {}
    if other is not None and len(designs) > 1:
        raise ValueError(f"a file needs one system, got {len(designs)} of {name}")
    for one in designs:
        try:
            spec = spec_from_toml(other or to_toml(one.spec, kind=True), changes)
            for path in array_fields(spec):
                raise ValueError(f"{path} must be one value here, not several")
            specs[one.name] = spec
        except ValueError as error:
            refused[one.name] = str(error)
    if not specs:
        raise ValueError(next(iter(refused.values())))
    kept = [one for one in designs if one.name in specs]
    fields = {path for one in kept for path in varied_fields([one.spec, specs[one.name]])}
    runs: Any = dict.fromkeys(specs)
    if simulated:
        from validate import simulate

        runs = dict(zip(specs, simulate(list(specs.values())), strict=True))
    rows = [row for one in kept for row in _rows(one, specs[one.name], runs[one.name])]
    return Changed(name=name, rows=rows, fields=sorted(fields), refused=refused)


def _rows(design: Design, spec: Any, simulation: Any) -> Iterable[dict[str, Any]]:
    """Yield a row per metric; what is no metric of a simulation has no estimate."""
    before, after = solved(design.spec), solved(spec)
    for metric, said in design.published.items():
        row = {
            "system": design.name,
            "metric": metric,
            "unit": metric_of(design.spec, metric).unit,
            "published": said,
            "model": float(before[metric]),
            "changed": float(after.metrics[metric]) if metric in after.metrics else None,
            "stable": bool(after.stable),
            "validated": bool(after.validated),
        }
        if simulation is not None:
            ends = {"simulated": "best", "low": "low", "high": "high"}
            row |= {name: getattr(simulation.metrics.get(metric), end, None) for name, end in ends.items()}
        yield row
