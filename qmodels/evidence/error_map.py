"""Measured errors of the models: one class, and one form of table for every kind of system.

A map is a CSV file beside the model, made by a command that its comments name. Each row is what was measured
of one metric in one region: `COLUMNS`, an empty cell where something is not known, and after them what only
one map has. A pair of columns ``<name>_above`` and ``<name>_to`` limits a region, above the first and up to
the second number; 0 is in a region that begins there.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray

COLUMNS = (
    "metric", "unit", "region", "load_above", "load_to", "designs", "bias", "mean", "largest",
    "separated", "agree",
)  # fmt: skip
"""What every map has; the last two are pairs of choices that the simulation separates, and those of them that
the model orders alike."""

NUMBERS = ("load_above", "load_to", "designs", "bias", "mean", "largest")
_WORDS = ("metric", "unit", "region")
_TINY = np.nextafter(0.0, 1.0)
NAN = float("nan")


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredError:
    """The error of one metric against simulation on systems like one's own.

    Numbers, or arrays of one value per design; NaN where nothing was measured or it is not known. Errors are
    model minus simulation.
    """

    metric: str  # the metric
    unit: str  # "%" of the simulated value, or "points": percentage points of a probability
    region: Any = ""  # in words, what was measured; empty where nothing was, or where the load says it all
    # load_above, load_to: the loads it was measured at, above the first and up to the second.
    load_above: Any = NAN
    load_to: Any = NAN
    designs: Any = NAN  # how many systems were measured there
    bias: Any = NAN  # signed mean: below 0 where the model is too low
    # mean, largest: of the sizes of the errors.
    mean: Any = NAN
    largest: Any = NAN

    def mapped(self, change: Callable[[Any], Any]) -> MeasuredError:
        """Return the error with a function applied to all that has a value per design."""
        return replace(self, **{name: change(getattr(self, name)) for name in ("region", *NUMBERS)})

    @property
    def known(self) -> Any:
        """Whether anything was measured on such a design."""
        return np.isfinite(self.mean) | np.isfinite(self.largest)

    @property
    def where(self) -> str:
        """What was measured, in words; of a single design."""
        words = [] if np.isnan(self.designs) else [f"{self.designs:.0f} designs"]
        if np.isfinite(self.load_to):
            ends = f"{self.load_above:.0%} to " if self.load_above < self.load_to else ""
            words.append(f"at loads of {ends}{self.load_to:.0%}")
        return " ".join(words) + (", " if words and self.region else "") + str(self.region)

    def __str__(self) -> str:
        """Return mean size, bias and largest size, as far as they are known; of a single design."""
        said = (("", self.mean, ""), ("bias ", self.bias, "+"), ("at most ", self.largest, ""))
        known = [
            f"{words}{round(float(value), 1 if abs(value) >= 1 else 2):{sign}g}"
            for words, value, sign in said
            if np.isfinite(value)
        ]
        return ", ".join([f"{known[0]} {self.unit}", *known[1:]]) if known else "not known"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Table:
    """The rows of one metric in one unit."""

    metric: str
    unit: str
    region: npt.NDArray[np.object_]
    ends: dict[str, tuple[FloatArray, FloatArray]]
    values: dict[str, FloatArray]

    @cached_property
    def conditions(self) -> tuple[Any, ...]:
        """What decides which row it is: metrics that were measured together share it."""
        return *self.region, *(a.tobytes() for ends in self.ends.values() for a in ends)

    def rows_at(self, region: Any, where: Mapping[str, Any]) -> IntArray:
        """Return the number of the row for each design, -1 for those in none."""
        found = np.full(np.broadcast_shapes(np.shape(region), *map(np.shape, where.values())), -1)
        if not found.ndim:  # a third of the time of a small model otherwise
            return np.asarray(self._row_at(region, {name: float(v) or _TINY for name, v in where.items()}))
        values = {name: np.where(np.equal(value, 0), _TINY, value) for name, value in where.items()}
        for k, label in enumerate(self.region):
            here: Any = True if region is None else np.equal(region, label)
            for name, value in values.items():
                above, to = (ends[k] for ends in self.ends[name])
                here = here & ~((value <= above) | (value > to) | np.isnan(value))
            found[here] = k
        return found

    def _row_at(self, region: Any, where: Mapping[str, float]) -> int:
        inside = [
            k
            for k, label in enumerate(self.region)
            if region in (None, label)
            and all(self.ends[name][0][k] < value <= self.ends[name][1][k] for name, value in where.items())
        ]
        return inside[-1] if inside else -1

    def error(self, row: IntArray) -> MeasuredError:
        """Return what stands in the rows, one for each design."""
        values: dict[str, Any] = {name: np.append(column, NAN)[row] for name, column in self.values.items()}
        region = np.append(self.region, "")[row]
        return MeasuredError(metric=self.metric, unit=self.unit, region=region, **values)

    def single(self, row: int) -> MeasuredError:
        """Return what stands in a row as numbers; made once, a small model is done before it is made."""
        if row not in self._singles:
            self._singles[row] = self.error(np.asarray(row)).mapped(_plain)
        return self._singles[row]

    @cached_property
    def _singles(self) -> dict[int, MeasuredError]:
        return {}


class ErrorMap:
    """A table of measured errors in a file, read when it is first asked.

    Examples
    --------
    >>> from qmodels.noc.error_map import LATENCY
    >>> region, loads = "meshes and tori, single flits", np.array([0.3, 0.8])
    >>> error = LATENCY.at(region=region, load=loads)["packet_latency"]
    >>> error.mean.round(1), error.unit
    (array([0.3, 0.8]), '%')
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The rows as they stand in the file: words, and numbers, NaN where a cell is empty."""
        with self.path.open(newline="", encoding="utf-8") as file:
            return tuple(
                {n: v if n in _WORDS else float(v or NAN) for n, v in row.items()}
                for row in csv.DictReader(line for line in file if not line.startswith("#"))
            )

    @property
    def regions(self) -> tuple[str, ...]:
        """The names of the regions."""
        return tuple(dict.fromkeys(row["region"] for row in self.rows))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics."""
        return tuple(dict.fromkeys(row["metric"] for row in self.rows))

    @cached_property
    def _tables(self) -> dict[str | None, list[_Table]]:
        """The tables of all rows, under None, and those of each region."""
        found: dict[str | None, list[_Table]] = {}
        for region in (None, *self.regions):
            parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
            for row in self.rows:
                if region in (None, row["region"]):
                    parts.setdefault((row["metric"], row["unit"]), []).append(row)
            found[region] = [_table(*key, rows) for key, rows in parts.items()]
        return found

    def at(self, *, region: Any = None, **where: Any) -> dict[str, MeasuredError]:
        """Return the errors measured on designs like these, by metric.

        Parameters
        ----------
        region : str or array of str, optional
            Only rows of this region, or of that of each design; a metric never measured there is left out.
        **where : float or array
            ``load``, and what else limits the regions of this map, of each design.
        """
        arrays = {name: np.asarray(value, dtype=float) for name, value in where.items()}
        one = region is None or isinstance(region, str)
        found: dict[str, MeasuredError] = {}
        picked: dict[tuple[Any, ...], IntArray] = {}
        for table in self._tables.get(region if one else None, ()):
            key = table.conditions
            if key not in picked:
                picked[key] = table.rows_at(None if one else region, arrays)
            row = picked[key]
            error = table.error(row) if row.ndim else table.single(int(row))
            found[table.metric] = error
        return found

    def write(self, rows: Sequence[Mapping[str, Any]], *, about: str, command: str) -> None:
        """Write the file whole or not at all: `COLUMNS`, then the others that the rows have.

        What is missing or NaN is not known; ``about`` says what was measured, ``command`` what makes it.
        """
        names = list(dict.fromkeys([*COLUMNS, *(name for row in rows for name in row)]))
        part = self.path.with_suffix(".part")
        with part.open("w", newline="", encoding="utf-8") as file:
            file.writelines(f"# {line}\n" for line in (*about.splitlines(), f"Made by: {command}"))
            table = csv.writer(file, lineterminator="\n")
            table.writerow(names)
            table.writerows([_cell(row.get(name)) for name in names] for row in rows)
        os.replace(part, self.path)
        self.forget()

    def forget(self) -> None:
        """Read the file anew when next asked."""
        for kept in ("rows", "_tables"):
            self.__dict__.pop(kept, None)


def _plain(value: Any) -> Any:
    return value if np.ndim(value) else np.asarray(value).item()


def _table(metric: str, unit: str, rows: Sequence[Mapping[str, Any]]) -> _Table:
    columns = {n: np.array([row[n] for row in rows], dtype=float) for n in rows[0] if n not in _WORDS}
    limits = [name.removesuffix("_to") for name in columns if name.endswith("_to")]
    values = {name: columns[name] for name in NUMBERS}
    return _Table(
        metric=metric,
        unit=unit,
        # Of objects, so that a label is not copied for each of many designs.
        region=np.array([row["region"] for row in rows], dtype=object),
        ends={name: (columns[f"{name}_above"], columns[f"{name}_to"]) for name in limits},
        values=values,
    )


def summarize(errors: Iterable[float], *, decimals: int | None = None) -> dict[str, float]:
    """Return how many errors there are, their bias, and the mean and the largest of their sizes.

    Signed errors; those that are not finite are left out, and the others rounded to ``decimals`` if given.
    """
    each = np.array(list(errors), dtype=float)
    each = each[np.isfinite(each)]
    if not each.size:
        return {"designs": 0, "bias": NAN, "mean": NAN, "largest": NAN}
    size = np.abs(each)
    found = {"bias": each.mean(), "mean": size.mean(), "largest": size.max()}
    digits = 15 if decimals is None else decimals
    return {"designs": each.size, **{name: round(float(value), digits) for name, value in found.items()}}


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return "" if np.isnan(value) else f"{value:.6g}"
