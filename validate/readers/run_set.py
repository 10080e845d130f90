"""Runs of a simulator as a table: what was set, what was measured, in which unit."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.estimate import Estimate, exactly
from validate.estimates.intervals import mean_interval

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def find_files(paths: Paths) -> list[Path]:
    """Return the files that paths or patterns name: each pattern's in the order of their numbers."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[Path] = []
    for one in given:
        text = os.fspath(one)
        exact = os.path.isfile(text)
        matches = (
            [text] if exact else sorted(filter(os.path.isfile, glob.glob(text, recursive=True)), key=_natural)
        )
        if not matches:
            raise ValueError(f"no file matches {text!r}")
        found += map(Path, matches)
    if not found:
        raise ValueError("paths must name at least one file, got none")
    return list(dict.fromkeys(found))


def _natural(text: str) -> list[tuple[float, str]]:
    """Return a sorting key that puts rate_0.05 before rate_0.1 and run2 before run10."""
    parts = re.split(r"(\d+(?:\.\d+)?)", text)
    return [(float(part), "") if k % 2 else (0.0, part) for k, part in enumerate(parts)]


def read_text(path: Path, expected: str) -> str:
    """Return the text of a file that should be what is expected."""
    try:
        text = path.read_text(encoding="utf-8", errors="strict")
    except UnicodeDecodeError:
        raise wrong(path, expected, "it is not text") from None
    if not text.strip():
        raise wrong(path, expected, "it is empty")
    return text


def wrong(path: Path, expected: str, found: str) -> ValueError:
    """Return the error for a file that is not what was expected."""
    return ValueError(f"{path} must be {expected}: {found}")


def number(text: str) -> Setting:
    """Return a number where the text is one, otherwise the text.

    >>> number("16"), number("1e3"), number("run_2"), number("1_000")
    (16, 1000.0, 'run_2', '1_000')
    """
    if "_" in text:  # Python reads 1_000 as a number; no simulator writes one so
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def settings_of(path: Path, pattern: str | None) -> dict[str, Setting]:
    """Return the settings that a pattern with named groups finds in a path."""
    if pattern is None:
        return {}
    match = re.search(pattern, path.as_posix())
    if match is None or not match.groupdict():
        raise ValueError(f"settings must be a pattern with named groups found in {path}, got {pattern!r}")
    return {name: number(value) for name, value in match.groupdict().items() if value is not None}


def flat(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Yield the numbers of nested maps and lists by their dotted names."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in pairs:
            yield from flat(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def run_of(
    path: Path,
    values: Mapping[str, float],
    totals: Mapping[str, float],
    *,
    metrics: str | Iterable[str],
    settings: Mapping[str, Setting],
) -> Run:
    """Return the run of a file of statistics: those that patterns name, and totals; NaN is left out."""
    chosen = {name: values[name] for name in select(values, metrics, path, "statistic")} | dict(totals)
    known = {name: point(value) for name, value in chosen.items() if not math.isnan(value)}
    return Run(settings=settings, metrics=known, source=str(path))


def select(names: Iterable[str], patterns: str | Iterable[str], path: Path, what: str) -> list[str]:
    """Return the names that match shell-style patterns (``*`` and ``?``), each at most once."""
    known = list(names)
    chosen: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        rule = re.compile(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."))
        matches = [name for name in known if rule.fullmatch(name)]
        if not matches:
            raise ValueError(f"{path} has no {what} {pattern!r}{checks.nearest(pattern, known)}")
        chosen.update(dict.fromkeys(matches))
    return list(chosen)


Setting = float | int | str | bool


def point(value: float) -> Estimate:
    """Return a measured value without an interval: one that covers the truth with confidence 0."""
    return exactly(float(value), confidence=0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One run."""

    settings: Mapping[str, Setting]  # what was set
    # What was measured; a value without an interval has confidence 0. What the tool could not give (NaN) is
    # absent; what has no steady state is infinite.
    metrics: Mapping[str, Estimate]
    stable: bool = True  # whether the tool found a steady state
    source: str = ""  # the file it was read from
    note: str = ""  # the tool's verdict, where it gave one

    def __post_init__(self) -> None:
        bad = [name for name, value in self.metrics.items() if math.isnan(value.best)]
        if bad:
            raise ValueError(f"metrics must be left out where they are unknown, got NaN for {bad[0]}")


@dataclass(frozen=True, kw_only=True, eq=False)
class RunSet:
    """Runs with their settings, metrics and units.

    Parameters
    ----------
    tool : str
        What made them.
    runs : tuple of Run
        In the order read.
    units : mapping of str to str
        By metric; ``"1"`` is a pure number, an unknown unit is left out.

    Examples
    --------
    >>> runs = RunSet.from_columns(settings={"injection_rate": [0.1, 0.2]},
    ...                            metrics={"latency": [12.0, 17.5]}, units={"latency": "cycles"})
    >>> runs["latency"]
    array([12. , 17.5])
    >>> runs.convert("latency", factor=0.5, unit="ns")["latency"]
    array([6.  , 8.75])
    """

    tool: str
    runs: tuple[Run, ...]
    units: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.runs:
            raise ValueError("runs must hold at least one run, got none")

    @classmethod
    def from_columns(
        cls,
        *,
        settings: Mapping[str, npt.ArrayLike],
        metrics: Mapping[str, npt.ArrayLike],
        units: Mapping[str, str] | None = None,
        tool: str = "observations",
    ) -> RunSet:
        """Return runs from columns of equal length, without intervals; NaN is what was not measured."""
        lengths = {name: np.size(column) for name, column in {**settings, **metrics}.items()}
        if len(set(lengths.values())) != 1:
            raise ValueError(f"columns must have one length, got {lengths}")
        lists = {name: np.ravel(column).tolist() for name, column in settings.items()}
        values = {name: np.asarray(column, dtype=float).ravel().tolist() for name, column in metrics.items()}
        runs = tuple(
            Run(
                settings={name: column[k] for name, column in lists.items()},
                metrics={n: point(column[k]) for n, column in values.items() if not math.isnan(column[k])},
                source=f"row {k + 1}",
            )
            for k in range(next(iter(lengths.values())))
        )
        return cls(tool=tool, runs=runs, units=dict(units or {}))

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of all metrics, in the order in which they appear."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.metrics))

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of the settings that differ between runs."""
        names = dict.fromkeys(name for run in self.runs for name in run.settings)
        first = self.runs[0].settings
        return tuple(n for n in names if any(run.settings.get(n) != first.get(n) for run in self.runs))

    def __getitem__(self, metric: str) -> FloatArray:
        """Return the best values of a metric, one per run."""
        for run in self.runs:
            self._require(metric, run.metrics, f"{run.source or 'a run'} has no metric")
        return np.array([run.metrics[metric].best for run in self.runs])

    def setting(self, name: str) -> npt.NDArray[Any]:
        """Return a setting, one value per run."""
        for run in self.runs:
            self._require(name, run.settings, f"{run.source or 'a run'} has no setting")
        return np.array([run.settings[name] for run in self.runs])

    def where(self, **settings: Setting) -> RunSet:
        """Return the runs with these settings."""
        kept = tuple(r for r in self.runs if all(r.settings.get(n) == v for n, v in settings.items()))
        if not kept:
            for name in settings:
                self._require(name, dict.fromkeys(n for r in self.runs for n in r.settings), "no run has")
            raise ValueError(f"no run of {len(self)} has the settings {settings}")
        return replace(self, runs=kept)

    def sorted_by(self, setting: str) -> RunSet:
        """Return the runs in ascending order of a setting."""
        order = np.argsort(self.setting(setting), kind="stable")
        return replace(self, runs=tuple(self.runs[k] for k in order))

    def rename(self, names: Mapping[str, str]) -> RunSet:
        """Return the runs with settings and metrics renamed, ``{name here: new name}``."""
        known = {*self.metrics, *(name for run in self.runs for name in run.settings)}
        for name in names:
            self._require(name, known, "no setting or metric is called")

        def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
            result = {names.get(name, name): value for name, value in values.items()}
            if len(result) < len(values):
                raise ValueError(f"names must stay different, got {dict(names)} for {list(values)}")
            return result

        runs = tuple(
            replace(run, settings=renamed(run.settings), metrics=renamed(run.metrics)) for run in self.runs
        )
        return replace(self, runs=runs, units=renamed(self.units))

    def convert(self, *metrics: str, factor: float, unit: str) -> RunSet:
        """Return the runs with metrics times a positive factor, such as 0.5 ns per cycle."""
        factor = float(checks.positive("factor", factor))
        for name in metrics:
            self._require(name, self.metrics, "no metric is called")

        def scaled(name: str, value: Estimate) -> Estimate:
            if name not in metrics:
                return value
            return replace(value, low=value.low * factor, best=value.best * factor, high=value.high * factor)

        runs = tuple(replace(r, metrics={n: scaled(n, v) for n, v in r.metrics.items()}) for r in self.runs)
        return replace(self, runs=runs, units={**self.units, **dict.fromkeys(metrics, unit)})

    def averaged(self, over: str = "seed", *, confidence: float = 0.95) -> RunSet:
        """Return one run for those that differ in one setting only, with intervals of their means.

        Parameters
        ----------
        over : str
            The setting that numbers the replications.
        confidence : float
            Coverage of the Student-t intervals, see `validate.estimates.intervals.mean_interval`.

        Raises
        ------
        ValueError
            If a group has only one run: there is no interval then.
        """
        groups: dict[tuple[Any, ...], list[Run]] = {}
        for run in self.runs:
            self._require(over, run.settings, f"{run.source or 'a run'} has no setting")
            groups.setdefault(tuple(sorted((n, v) for n, v in run.settings.items() if n != over)), []).append(
                run
            )
        for rest, members in groups.items():
            if len(members) < 2:
                raise ValueError(f"runs to average over {over} must be at least 2, got 1 with {dict(rest)}")
        return replace(
            self, runs=tuple(_mean(dict(rest), members, confidence) for rest, members in groups.items())
        )

    def to_pandas(self) -> Any:
        """Return a tidy DataFrame, one row per run and metric (needs pandas)."""
        import pandas as pd

        rows = [
            {
                **run.settings,
                "metric": name,
                "unit": self.units.get(name, ""),
                "low": value.low,
                "best": value.best,
                "high": value.high,
                "stable": run.stable,
                "source": run.source,
            }
            for run in self.runs
            for name, value in run.metrics.items()
        ]
        return pd.DataFrame(rows)

    def __repr__(self) -> str:
        settings = list(self.varied)
        metrics = [name for name in self.metrics if not name.endswith(("_minimum", "_maximum"))]
        head = [*settings, *metrics[:6], *(["..."] if len(metrics) > 6 else [])]
        rows = [head]
        for run in self.runs:
            values = [f"{run.metrics[n].best:.6g}" if n in run.metrics else "" for n in metrics[:6]]
            row = [str(run.settings.get(name, "")) for name in settings] + values
            rows.append(row + [""] * (len(head) - len(row)) + ([] if run.stable else ["unstable"]))
        widths = [max(len(row[k]) for row in rows) for k in range(len(head))] + [8]
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=False)).rstrip() for row in rows]
        title = f"{self.tool}: {len(self)} runs, {len(self.metrics)} metrics"
        return "\n".join([title, *lines])

    @staticmethod
    def _require(name: str, known: Iterable[str], what: str) -> None:
        if name not in known:
            raise ValueError(f"{what} {name!r}{checks.nearest(name, known)}")


def _mean(settings: dict[str, Setting], members: list[Run], confidence: float) -> Run:
    """Return the replications of one point as one run; what some of them lack is left out."""
    names = [name for name in members[0].metrics if all(name in run.metrics for run in members)]
    return Run(
        settings=settings,
        metrics={
            n: mean_interval([run.metrics[n].best for run in members], confidence=confidence) for n in names
        },
        stable=all(run.stable for run in members),
        source=", ".join(run.source for run in members),
        note=next((run.note for run in members if run.note), ""),
    )
