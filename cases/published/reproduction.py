"""A published paper's numbers beside ours: kept, computed anew, shown and written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cases.plots import save as save_figure
from cases.published.cell import Cell, Number
from cases.published.claim import Claim, claims_text
from cases.published.rows import (
    data_folder,
    plain_row,
    published,
    read_toml,
    write_rows,
)
from cases.published.tags import tags_text
from cases.tables import columns_of, read_rows
from qmodels.systems.spec.whole import whole
from qmodels.systems.traffic.trace import Trace, read_trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cases.published.design import Design

CELLS, RUN = "cells.csv", "run.toml"


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """A paper's numbers: published, simulated and from the model."""

    paper: Paper  # What is special to it
    cells: tuple[Cell, ...]  # Every number of its tables and figures
    # What else was found, by the names of `Paper.tables`: rows, dataclasses or dictionaries
    tables: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)  # How it was simulated

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the paper states in words, beside what was found."""
        return tuple(self.paper.claims(self))

    def table(self) -> str:
        """Return everything as text."""
        return "\n\n".join(
            [
                *self.paper.sections(self),
                *([claims_text(self.claims)] if self.claims else []),
                tags_text(self.paper.name, self.numbers()),
                *(
                    f"{title}\n" + "\n".join(f"  - {text}" for text in texts)
                    for title, texts in self.paper.notes.items()
                ),
            ]
        )

    def numbers(self) -> list[Number]:
        """Return every published number beside ours."""
        return [number for number in (*self.cells, *self.claims, *self.paper.more(self)) if number.group]

    def columns(self) -> dict[str, list[Any]]:
        """Return the cells, one row each."""
        return columns_of(cell.row() for cell in self.cells)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        columns = self.columns()
        return {
            **self.run,
            "cells": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            "claims": [plain_row(claim) for claim in self.claims],
            **{name: [plain_row(row) for row in self.tables.get(name, ())] for name in self.paper.tables},
            "notes": {title: list(texts) for title, texts in self.paper.notes.items()},
        }

    def to_pandas(self) -> Any:
        """Return the cells as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def write(self, folder: Path, *, prefix: str = "") -> list[Path]:
        """Write the numbers in full into a directory, see `Paper.read`; return the paths."""
        paths = []
        if self.run:
            paths.append(folder / f"{prefix}{RUN}")
            lines = (f"{name} = {json.dumps(value)}\n" for name, value in self.run.items())
            with whole(paths[0]) as part:
                part.write_text("".join(lines), encoding="utf-8")
        for name, rows in {CELLS: [cell.row() for cell in self.cells], **self._files()}.items():
            paths.append(folder / f"{prefix}{name}")
            write_rows(paths[-1], rows)
        return paths

    def _files(self) -> dict[str, Sequence[Any]]:
        return {f"{name.replace('_', '-')}.csv": rows for name, rows in self.tables.items() if rows}

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory, which is made; return their paths."""
        out.mkdir(parents=True, exist_ok=True)
        text = out / f"{self.paper.name}.txt"
        with whole(text) as part:
            part.write_text(self.table() + "\n", encoding="utf-8")
        paths = [text, *self.write(out, prefix=f"{self.paper.name}-")]
        for name, figure in self.paper.figures(self).items():
            paths.append(out / f"{self.paper.name}-{name}.png")
            save_figure(figure, paths[-1])
        return paths


@dataclass(frozen=True, kw_only=True)
class Paper:
    """What is special to a paper."""

    name: str  # Of the case, and of its folder
    # Returns its `Reproduction`, computed anew; takes ``store``, an SQLite file that keeps finished
    # replications, so that a reproduction that was killed resumes, ``trace`` if it ``plays`` one, and options
    # of its own
    simulate: Callable[..., Reproduction]
    # Returns what was kept with everything computed anew that takes less than a minute
    renew: Callable[[Reproduction], Reproduction] = lambda kept: kept
    sections: Callable[[Reproduction], Iterable[str]]  # Returns the texts of its tables
    designs: Callable[[], Iterable[Design]]  # Returns the systems behind its numbers
    # Returns what it states in words beside what was found
    claims: Callable[[Reproduction], Iterable[Claim]] = lambda found: ()
    # Returns further published numbers beside ours, which stand in `Reproduction.tables`
    more: Callable[[Reproduction], Iterable[Number]] = lambda found: ()
    figures: Callable[[Reproduction], Mapping[str, Figure]]  # Returns its pictures by name
    # What is found besides cells, by name: the kind of the rows
    tables: Mapping[str, type] = field(default_factory=dict)
    derived: Mapping[str, Sequence[str]] = field(default_factory=dict)  # Notes that are computed
    plays: bool = False  # Whether recorded packets are played through it

    @property
    def notes(self) -> Mapping[str, Sequence[str]]:
        """What has to be known, in words, under titles: kept with the published numbers, or derived."""
        return {**published(self.name).get("notes", {}), **self.derived}

    def read(self, folder: Path) -> Reproduction:
        """Return what `Reproduction.write` wrote."""
        run = folder / RUN
        paths = {name: folder / f"{name.replace('_', '-')}.csv" for name in self.tables}
        return Reproduction(
            paper=self,
            cells=tuple(map(Cell.of_row, read_rows(folder / CELLS))),
            tables={
                name: tuple(self.tables[name](**row) for row in read_rows(path))
                for name, path in paths.items()
                if path.is_file()
            },
            run=read_toml(run) if run.is_file() else {},
        )

    def kept(self) -> Reproduction:
        """Return what was found before, ``python -m cases.published.keep`` with the name of the case."""
        return self.read(data_folder(self.name))

    def today(self) -> Reproduction:
        """Return what is found today: what takes longer than a minute is kept, all else is computed."""
        return self.renew(self.kept())

    def reproduce(self, trace: Any = None, *, store: Path | None = None, **options: Any) -> Reproduction:
        """Compute everything anew.

        ``trace``: recorded packets, for a case that plays them; ``store``: an SQLite file that keeps finished
        replications; ``**options``: of the case, see its ``simulate``.

        Raises
        ------
        ValueError
            If a trace is given to a case without packets or cannot be read, or the store is damaged or
            foreign.
        """
        if trace is not None and not self.plays:
            given = os.fspath(trace)
            raise ValueError(f"trace must be left out, as this case has no packets, got {given!r}")
        if self.plays:
            # Before anything is made: it may be no trace.
            options["trace"] = trace if trace is None or isinstance(trace, Trace) else read_trace(trace)
        if store is not None:
            store.parent.mkdir(parents=True, exist_ok=True)
        return self.simulate(store=store, **options)
