"""A model's answers beside a reference: for one system, and over a sweep."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.store import UNDECIDED
from validate.campaigns.experiment import write_csv
from validate.comparison.metrics import is_share, signed_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure


import numpy.typing as npt

REGIONS = ((0.0, 0.3), (0.3, 0.5), (0.5, 0.65), (0.65, 0.8), (0.8, 1.0))
"""Loads above the first and up to the second number."""


@dataclass(frozen=True, kw_only=True)
class RegionError:
    """The size of the error over the points of a region."""

    # load_above, load_to: the region: loads above the one and up to the other.
    load_above: float
    load_to: float
    # mean, largest: of the sizes of the errors, in their unit.
    mean: float
    largest: float
    points: int  # points in the region with a finite error


def errors_by_region(
    error: npt.ArrayLike, load: npt.ArrayLike, *, regions: Sequence[tuple[float, float]] = REGIONS
) -> list[RegionError]:
    """Return mean and largest size of the error in each region of load that has a point.

    ``error``, ``load``: one value per point; infinite errors are left out; ``regions``: loads above the first
    and up to the second number.

    >>> errors_by_region([0.01, -0.03, 0.2], [0.1, 0.2, 0.9])[0]
    RegionError(load_above=0.0, load_to=0.3, mean=0.02, largest=0.03, points=2)
    """
    sizes, loads = np.abs(np.asarray(error, dtype=float)), np.asarray(load, dtype=float)
    found = []
    for low, high in regions:
        if not low < high:
            raise ValueError(f"regions must be pairs of ascending loads, got ({low!r}, {high!r})")
        chosen = sizes[np.isfinite(sizes) & (loads > low) & (loads <= high)]
        if chosen.size:
            found.append(
                RegionError(
                    load_above=low,
                    load_to=high,
                    mean=float(chosen.mean()),
                    largest=float(chosen.max()),
                    points=int(chosen.size),
                )
            )
    return found


Curve = Callable[[Mapping[str, Any], str, FloatArray], Mapping[str, FloatArray]]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One metric: the model's value, the reference with its interval, and how far apart they are.

    ``error`` is model minus reference; ``relative_error`` is that over the reference; both as
    `signed_error` gives them. ``inside`` is None where the reference has no interval, or one that is in
    doubt.
    """

    metric: str
    unit: str
    model: float
    reference: Estimate
    error: float
    relative_error: float
    inside: bool | None

    @property
    def stated_error(self) -> float:
        """The error in the form in which it is summed up: of a share in points, otherwise in %."""
        return 100.0 * (self.error if is_share(self.metric) else self.relative_error)


def row(metric: str, unit: str, model: float, reference: Estimate) -> Row:
    """Return the comparison of one metric."""
    return Row(
        metric=metric,
        unit=unit,
        model=model,
        reference=reference,
        error=float(signed_error(model, reference.best)),
        relative_error=float(signed_error(model, reference.best, relative=True)),
        inside=_covers(reference, model) if reference.confidence > 0 and reference.valid else None,
    )


def _covers(reference: Estimate, model: float) -> bool:
    """Return whether an interval holds a value; one without width need not hit it to the last digit."""
    return model in reference or math.isclose(model, reference.best, rel_tol=1e-9)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """A model beside a reference.

    Parameters
    ----------
    rows : mapping of str to Row
        By metric name.
    model : object
        The model's whole answer.
    reference : object
        The whole reference, such as a simulated `Answer` or a `Run`.
    """

    rows: Mapping[str, Row]
    model: Any
    reference: Any

    def __getitem__(self, metric: str) -> Row:
        return self.rows[metric]

    def table(self) -> str:
        """Return the comparison as text, one metric a line, with units and intervals."""
        lines = [f"{'metric':<36} {'model':>12} {'reference':>12} {'interval':>25} {'error':>9}"]
        for one in self.rows.values():
            known = one.reference.confidence > 0
            interval = f"[{one.reference.low:.5g}, {one.reference.high:.5g}]" if known else ""
            mark = "?" if one.reference.doubt else "*" if one.inside is False else " "
            marks = f"{mark} {'' if one.unit == '1' else one.unit}"
            # Nothing is relative to 0: there the difference itself is shown.
            relative = one.reference.best or not one.error
            error = f"{one.relative_error:.2%}" if relative else f"{one.error:+.2g}"
            values = f"{one.model:>12.5g} {one.reference.best:>12.5g} {interval:>25} {error:>9}"
            lines.append(f"{one.metric:<36} {values} {marks}".rstrip())
        if any(one.inside is False for one in self.rows.values()):
            lines.append("* the model lies outside the interval")
        for doubt in dict.fromkeys(one.reference.doubt for one in self.rows.values() if one.reference.doubt):
            lines.append(f"? no upper end, and a best value that is probably too low: {doubt}")
        return "\n".join(lines)

    def plot(self) -> Figure:
        """Return a figure, which a notebook shows at once: the model's error by metric, and where time goes.

        Each error has the interval of the reference. The second panel is there where both say the shares
        of the latency.
        """
        from validate.comparison.picture import comparison_figure

        return comparison_figure(self)

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the rows as plain dictionaries."""
        return {name: asdict(one) for name, one in self.rows.items()}

    def __repr__(self) -> str:
        return self.table()


@dataclass(frozen=True, kw_only=True, eq=False)
class SweepComparison:
    """A model beside a reference at several points.

    Parameters
    ----------
    points : tuple of Comparison
        In the order of the sweep.
    settings : tuple of mapping
        What was set at each.
    loads : array or None
        Load of the busiest resource at each, as the model has it, if it does.
    stable : array of bool
        Whether the reference found a steady state.
    regions : sequence of pairs
        Regions of load of the error map.
    curve : callable, optional
        The model along one setting: takes the other settings, its name and its values, and
        returns the metrics there.
    """

    points: tuple[Comparison, ...]
    settings: tuple[Mapping[str, Any], ...]
    loads: FloatArray | None
    stable: Any
    regions: Sequence[tuple[float, float]] = REGIONS
    curve: Curve | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics that some point has from both."""
        return tuple(dict.fromkeys(name for point in self.points for name in point.rows))

    def __getitem__(self, metric: str) -> tuple[Row, ...]:
        """Return the rows of a metric, one per point that has it."""
        if metric not in self.metrics:
            raise KeyError(f"{metric}{checks.nearest(metric, self.metrics)}")
        return tuple(point.rows[metric] for point in self.points if metric in point.rows)

    def error_map(self) -> dict[str, list[RegionError]]:
        """Return the size of the error of each metric by region of load.

        Relative errors in %, those of shares in percentage points. Points that the reference calls
        saturated or where one of the two values is infinite are left out, see `disputed`. Without
        loads there is one region for all points.
        """
        result = {}
        for metric in self.metrics:
            places = [k for k, point in enumerate(self.points) if metric in point.rows and self.stable[k]]
            errors = np.array([self.points[k].rows[metric].stated_error for k in places])
            if self.loads is None:
                result[metric] = errors_by_region(errors, np.ones(len(places)), regions=((0.0, np.inf),))
            else:
                result[metric] = errors_by_region(errors, self.loads[places], regions=self.regions)
        return result

    @property
    def undecided(self) -> tuple[int, ...]:
        """Points whose reference cannot tell whether it found a steady state."""
        return tuple(
            k for k, point in enumerate(self.points) if getattr(point.reference, "stable", True) is None
        )

    @property
    def disputed(self) -> tuple[int, ...]:
        """Points at which only one of the two finds a steady state: some metric is infinite in one."""
        return tuple(
            k
            for k, point in enumerate(self.points)
            if any(np.isinf(one.model) != np.isinf(one.reference.best) for one in point.rows.values())
        )

    def table(self) -> str:
        """Return the error map as text: mean / largest size of the error, a line per metric."""
        regions = list(self.regions) if self.loads is not None else [(0.0, np.inf)]
        heads = [f"{low:.0%}-{high:.0%}" if high < np.inf else "all points" for low, high in regions]
        errors = self.error_map()
        used = [
            k
            for k, (low, _) in enumerate(regions)
            if any(e.load_above == low for m in errors.values() for e in m)
        ]
        lines = [
            f"model beside reference at {len(self)} points, {int(np.sum(self.stable))} of them stable"
            + (f", {len(self.undecided)} {UNDECIDED}" if self.undecided else "")
            + "; size of the error, mean / largest, by load",
            f"{'metric':<36} {'unit':<6} " + " ".join(f"{heads[k]:>15}" for k in used) + f" {'inside':>9}",
        ]
        for metric, found in errors.items():
            cells = {e.load_above: f"{e.mean:.2g} / {e.largest:.2g}" for e in found}
            known = [one.inside for one in self[metric] if one.inside is not None]
            inside = f"{sum(known)}/{len(known)}" if known else ""
            text = " ".join(f"{cells.get(regions[k][0], ''):>15}" for k in used)
            lines.append(
                f"{metric:<36} {'points' if is_share(metric) else '%':<6} {text} {inside:>9}".rstrip()
            )
        if self.disputed:
            lines.append(f"only one of the two is saturated at {len(self.disputed)} points")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return tidy columns, one row per point and metric."""
        names = list(dict.fromkeys(name for settings in self.settings for name in settings))
        beside = ("reference", "low", "high", "interval_valid")
        fixed = ("metric", "unit", "model", *beside, "error", "relative_error", "inside")
        columns: dict[str, list[Any]] = {n: [] for n in ("point", *names, "load", "stable", *fixed)}
        for k, point in enumerate(self.points):
            head = {n: self.settings[k].get(n) for n in names}
            head |= {"point": k, "stable": UNDECIDED if k in self.undecided else bool(self.stable[k])}
            head["load"] = None if self.loads is None else float(self.loads[k])
            for one in point.rows.values():
                known = one.reference.confidence > 0
                values = {n: getattr(one, n) for n in fixed if n not in beside}
                values |= {
                    "reference": one.reference.best,
                    "low": one.reference.low if known else None,
                    "high": one.reference.high if known else None,
                    "interval_valid": one.reference.valid if known else None,
                }
                for name, value in (head | values).items():
                    columns[name].append(value)
        return columns

    def to_pandas(self) -> Any:
        """Return the columns of `to_dict` as a DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.to_dict())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the columns of `to_dict`; the file appears whole or not at all."""
        write_csv(path, self.to_dict())

    def plot(self, *metrics: str, x: str | None = None) -> Figure:
        """Return a figure: the model's curve over the points of the reference with their intervals.

        Parameters
        ----------
        *metrics : str
            What to show; otherwise at most six of the metrics compared.
        x : str, optional
            The setting (or ``"load"``) on the axis; otherwise the number that takes most values,
            or the load. Other settings that vary make a series each. Without any such number the
            model is drawn against the reference.
        """
        from validate.comparison.picture import plot

        return plot(self, metrics, x)

    def __repr__(self) -> str:
        return self.table()
