"""Base of every answer and simulation: metrics by name, tables, pictures and files."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.spec.conditions import plain
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.metrics import full_name
from qmodels.systems.spec.store import UNDECIDED, said

SAVED = (
    "metrics", "latency_parts", "utilization", "traffic_intensity", "bottleneck", "stable", "validated",
)  # fmt: skip
"""Attributes that all results save."""
SHOWN = 64
"""Metrics that a printed result shows; the others are in ``metrics``."""


class Result:
    """Metrics of one system, or of a sweep, by the same names and in the same units whatever the system.

    ``result["packet_latency"]`` and ``result.packet_latency`` are the same; names complete with tab.
    Subclasses are dataclasses with these attributes, of which all but ``metrics`` may be left at
    their defaults.

    Attributes
    ----------
    spec : object
        The system; None where a formula was called with numbers.
    metrics : mapping of str to float, array or Estimate
        By name, see `qmodels.systems.spec.metrics.METRICS`.
    latency_parts : mapping of str to float, array or Estimate
        Shares of the main latency, which they add up to, in its unit.
    utilization, traffic_intensity : mapping of str to float, array or Estimate
        Of every resource, or of the busiest of each group: busy fraction, at most 1; and share of what
        it can carry that it is offered, which may exceed 1.
    bottleneck : str or array of str
        The resource that saturates first if all traffic grows alike.
    stable, validated : bool or array of bool
        Whether every resource keeps up, of a simulation None where its runs cannot tell; whether the
        numbers may be trusted as far as their intervals say.
    error : mapping of str to MeasuredError
        Of a model against simulation on systems like this, by metric, with its sign.
    notes : tuple of str
        Notes for a reader beside the numbers, a line each.
    """

    @property
    def saved_as(self) -> str:
        """Kind of the result in a file."""
        return "answer"

    @property
    def saved(self) -> tuple[str, ...]:
        """Names of the attributes that are saved."""
        return SAVED

    def __getitem__(self, name: str) -> Any:
        try:
            return self.metrics[full_name(name, self.metrics)]
        except KeyError:
            stem = name.partition("[")[0]
            same = [one for one in self.metrics if one.partition("[")[0] == stem]
            near = f"; there is {', '.join(same[:6])}" if same else checks.nearest(name, self.metrics)
            raise KeyError(f"no metric {name!r}{near}") from None

    def __getattr__(self, name: str) -> Any:
        # Pickle and copy ask for attributes before there are any.
        if not name.startswith("_") and name != "metrics" and name in self.metrics:
            return self.metrics[name]
        raise AttributeError(f"{type(self).__name__} has no metric {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in self.metrics if name.isidentifier())})

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.metrics)

    @property
    def title(self) -> str:
        """One line that says what was solved or simulated."""
        raise NotImplementedError

    @property
    def main(self) -> str:
        """The metric that a picture of a sweep shows."""
        return next(iter(self.metrics))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for a reader beside the numbers, a line each."""
        return ()

    @property
    def units(self) -> dict[str, str]:
        """Unit of each metric, "1" for a pure number."""
        return {name: metric_of(self.spec, name).unit for name in self.metrics}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a sweep, () for one system."""
        return np.broadcast_shapes(*(np.shape(_number(value)) for value in self.metrics.values()))

    def swept(self) -> dict[str, Any]:
        """Return the fields of the spec that are swept, each of the shape of the sweep."""
        from qmodels.systems.spec.fields import swept_fields

        return {} if self.spec is None or not self.shape else swept_fields(self.spec)

    def in_cycles(self) -> dict[str, Any]:
        """Return the metrics with times of hardware in cycles of the spec's clock instead of ns.

        Raises
        ------
        ValueError
            If the spec has no single clock.
        """
        clock = getattr(self.spec, "clock_ghz", None)
        if clock is None:
            raise ValueError(f"in_cycles needs a spec with clock_ghz, got a {type(self.spec).__name__}")
        scales = {"ns": clock, "1/ns": 1.0 / clock}
        return {
            name: _scaled(value, scales.get(self.units[name], 1.0)) for name, value in self.metrics.items()
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per point and metric: where it is, metric, unit, value, and what is known of it.

        A simulated value has ``low``, ``high`` and ``interval_valid``, a model's one ``low`` and ``high`` of
        what 90 % of simulations of such systems show, and the measured ``error`` (mean size) and its signed
        mean ``bias``, in ``error_unit``, where they are known.
        """
        shape = self.shape
        places = {name: np.broadcast_to(values, shape) for name, values in self.swept().items()}
        ends = {name: self.ends(name) for name in self.metrics}
        rows = []
        for index in np.ndindex(*shape):
            where = {name: values[index].item() for name, values in places.items()}
            if shape and not where:
                where = {"point": index[0] if len(index) == 1 else str(index)}
            for name, value in self.metrics.items():
                rows.append(
                    {
                        **where,
                        "metric": name,
                        "unit": self.units[name],
                        **self._cell(name, value, ends[name], index),
                    }
                )
        return rows

    def _cell(
        self, name: str, value: Any, ends: tuple[Any, Any] | None, index: tuple[int, ...]
    ) -> dict[str, Any]:
        if hasattr(value, "best"):
            found = {"value": value.best, "low": value.low, "high": value.high}
            return {**found, "interval_valid": value.valid}
        number = {"value": _at(value, index)}
        if ends is not None:
            number |= {end: _at(one, index) for end, one in zip(("low", "high"), ends, strict=True)}
        error = self.error.get(name)
        if error is None:
            return number
        return {
            **number,
            "error": _at(error.mean, index),
            "bias": _at(error.bias, index),
            "error_unit": error.unit,
        }

    def ends(self, name: str) -> tuple[Any, Any] | None:
        """Return the 90 % interval of a metric of a model, None where there is none."""
        if getattr(self, "evidence", None) is None:
            return None
        low, high = self.evidence.interval(self, name, 0.9)
        return (low, high) if np.any(np.isfinite(high)) else None

    def _unmeasured(self) -> list[str]:
        """Return why the main number has no interval, if it has none."""
        evidence = getattr(self, "evidence", None)
        if evidence is None or not np.all(self.stable) or self.ends(self.main) is not None:
            return []
        return [evidence.not_measured(self, self.main)]

    def to_dict(self) -> dict[str, Any]:
        """Return every metric by name, and whether it is ``stable``."""
        return {**self.metrics, "stable": said(self.stable)}

    def to_pandas(self) -> Any:
        """Return the `rows` as a tidy DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def plot(self) -> Any:
        """Return a matplotlib figure: of a sweep the main metric along it, of one system where time goes."""
        from qmodels.systems.spec.pictures import parts_figure, sweep_figure

        return sweep_figure(self) if self.shape else parts_figure(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the result as JSON, atomically; ``qmodels.load`` reads it back as an `Answer`."""
        from qmodels.systems.spec.store import write

        return write(self, Path(path))

    def _lines(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield the rows of the printed table: metric, value, unit, and what is known of its error."""
        units = self.units
        for name, value in islice(self.metrics.items(), SHOWN):
            unit = units[name]
            text, beside = _text(value), ""
            if hasattr(value, "best"):
                beside = f"[{value.low:.5g}, {value.high:.5g}]" + ("" if value.valid else " ?")
            elif not self.shape and (ends := self.ends(name)) is not None and self.stable:
                low, high = ends
                beside = (
                    f"simulated {plain(low)} to {plain(high)} (90 %)" if low < high else "simulated alike"
                )
            yield name, text, "" if unit == "1" else unit, beside
        if len(self.metrics) > SHOWN:
            yield "...", f"{len(self.metrics) - SHOWN} more", "", ""

    def remarks(self) -> list[str]:
        """Return whether it keeps up, the bottleneck, and what a reader must know, a line each."""
        if self.shape:
            return [f"{int(np.sum(self.stable))} of {np.size(self.stable)} stable", *self.notes]
        states = {None: f"{UNDECIDED} whether it is stable: simulate longer", False: "overloaded"}
        state = states.get(None if self.stable is None else bool(np.all(self.stable)), "stable")
        first = f"; bottleneck: {self.bottleneck}" if self.bottleneck else ""
        return [state + first, *dict.fromkeys([*self._unmeasured(), *self.notes])]

    def __repr__(self) -> str:
        return table_text(self.title, self._lines(), self.remarks())

    def _repr_html_(self) -> str:
        return table_html(self.title, self._lines(), self.remarks())


Cells = Iterable[tuple[str, str, str, str]]
"""Rows of a printed table: name, value, unit, and what is known of it."""


def table_text(title: str, cells: Cells, remarks: Iterable[str]) -> str:
    """Return a table as text, its remarks below."""
    rows = list(cells)
    name, number, unit = (max((len(row[k]) for row in rows), default=0) for k in range(3))
    lines = [f"  {n:<{name}}  {v:>{number}} {u:<{unit}}  {e}".rstrip() for n, v, u, e in rows]
    return "\n".join([title, *lines, *(f"  {line}" for line in remarks)])


def table_html(title: str, cells: Iterable[Sequence[str]], remarks: Iterable[str]) -> str:
    """Return a table as HTML, numbers flush right, its remarks below."""
    from html import escape

    def cell(text: str) -> str:
        side = " style='text-align:right'" if re.match(r"[-+\d]|inf", text) else ""
        return f"<td{side}>{escape(text)}</td>"

    rows = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in cells)
    return (
        f"<table><caption>{escape(title)}</caption>{rows}</table><p>{'<br>'.join(map(escape, remarks))}</p>"
    )


def _number(value: Any) -> Any:
    return value.best if hasattr(value, "best") else value


def _at(value: Any, index: tuple[int, ...]) -> Any:
    """Return the value at a point of a sweep, or the value that all points share."""
    found = np.asarray(value)
    return (found[index] if found.ndim else found).item()


def _scaled(value: Any, factor: float) -> Any:
    return value.scaled(factor) if hasattr(value, "best") else value * factor


def _text(value: Any) -> str:
    """Return a number, or the least and the largest of several."""
    found = np.asarray(_number(value), dtype=float)
    known = found[~np.isnan(found)]
    found = known if known.size else found
    low, high = np.min(found, initial=np.inf), np.max(found, initial=-np.inf)
    return f"{low:.5g}" if low == high or math.isnan(low) else f"{low:.5g} .. {high:.5g}"
