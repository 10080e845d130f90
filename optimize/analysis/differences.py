"""Derivatives of a model by `scipy.differentiate`, with kinks, steps and edges told from smooth metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.analysis.model import Model
from optimize.search.pareto import FloatArray

STAGES = 0.02, 0.02 / 64
"""Largest steps, in sizes of the value, each halved three times; finer ones where an error is too large."""

ENOUGH = 5e-9
"""Error with which no finer stage is needed, relative to the slope; a tenth of it to metric over field."""

KINK, STEP, UNKNOWN, BLUR = 1e-6, 1e-5, 0.01, 20
"""Noise, relative, of slopes below and above, of values, of a derivative; changes in the finest step."""

EPSILON = 2 * float(np.finfo(float).eps)


@dataclass(frozen=True, kw_only=True, eq=False)
class Slopes:
    """Derivatives of all metrics (last axis) by some fields (first axis); a NaN is not known."""

    value: FloatArray  # of the metrics
    slope: FloatArray
    error: FloatArray
    below: FloatArray  # slopes to either side
    above: FloatArray
    kind: npt.NDArray[np.str_]  # words, see `optimize.analysis.sensitivity.Elasticity`


class _Seen:
    """Metrics at steps from a point along each field: those that are not known yet are solved together."""

    def __init__(self, model: Model, point: Mapping[str, float]) -> None:
        self._model, self.point = model, point
        self.x = np.array(list(map(float, point.values())))
        self.size = np.where(self.x, np.abs(self.x), 1.0)
        self._known: dict[tuple[int, float], FloatArray] = {}

    def at(self, rows: Any, values: FloatArray) -> FloatArray:
        """Return the metrics where fields (rows) have values (rows, n): an array (rows, n, metrics)."""
        steps = np.round((values - self.x[rows, None]) / self.size[rows, None], 10) + 0.0
        keys = [[(int(k) if s else 0, s) for s in line] for k, line in zip(rows, steps.tolist(), strict=True)]
        new = {
            key: v
            for line, vs in zip(keys, values.tolist(), strict=True)
            for key, v in zip(line, vs, strict=True)
        }
        new = {key: value for key, value in new.items() if key not in self._known}
        if new:
            columns = {field: [float(value)] * len(new) for field, value in self.point.items()}
            for place, ((k, step), value) in enumerate(new.items()):
                if step:
                    columns[list(columns)[k]][place] = value
            found = self._model(columns, forgiving=True)
            self._known |= dict(zip(new, np.where(np.isfinite(found), found, np.nan), strict=True))
        return np.array([[self._known[key] for key in line] for line in keys])

    def stencil(self, rows: Any, largest: float) -> FloatArray:
        """Return the metrics at a step and three halves of it: an array (rows, 2 sides, 4 steps, metrics)."""
        steps = largest / 2.0 ** np.arange(4) * np.array([[-1.0], [1.0]])
        moved = self.x[rows, None] + self.size[rows, None] * np.append(0.0, steps.ravel())
        return self.at(rows, moved)[:, 1:].reshape(len(rows), 2, 4, -1)

    def slope(self, rows: Any, largest: float, order: int, side: int) -> tuple[FloatArray, FloatArray]:
        """Return derivatives, and by how much they differ from those of the next coarser steps."""
        from scipy.differentiate import derivative

        metrics = self.at(rows, self.x[rows, None]).shape[2]
        x, h = (np.repeat(column[rows, None], metrics, axis=1) for column in (self.x, largest * self.size))

        def read(values: FloatArray) -> FloatArray:
            flat = values.reshape(len(rows), metrics, -1)[:, 0]
            return self.at(rows, flat).swapaxes(1, 2).reshape(values.shape)

        options: dict[str, Any] = {"step_direction": side, "preserve_shape": True}
        options |= {"initial_step": h, "tolerances": {"atol": 0.0, "rtol": 0.0}}
        with np.errstate(all="ignore"):
            if side:  # steps h, h/2, h/4, h/8 on one side: scipy takes the root of the factor
                options |= {"step_factor": 4.0, "maxiter": 1}
                slope = derivative(read, x, order=order, **options).df
                options["initial_step"] = h / 4
                return slope, np.abs(slope - derivative(read, x, order=order - 2, **options).df)
            found = derivative(read, x, order=order, maxiter=2, **options)
        return found.df, np.asarray(found.error)


def differentiate(model: Model, point: Mapping[str, float]) -> Slopes:
    """Differentiate all metrics by all fields of a point, in one or two calls if they may be arrays."""
    seen = _Seen(model, point)
    rows = np.arange(len(point))
    values = seen.stencil(rows, STAGES[0])
    at = seen.at(rows[:1], seen.x[:1, None])[0, 0]
    size = np.abs(at) / seen.size[:, None]
    found, finest = _stage(seen, rows, STAGES[0], size), np.full(values.shape, np.nan)
    for largest in STAGES[1:]:
        with np.errstate(invalid="ignore"):
            rest = ~(found[1] <= ENOUGH * (np.abs(found[0]) + 0.1 * size)) & np.isfinite(at)
        fine = np.flatnonzero(rest.any(axis=1))
        if not fine.size:
            break
        last = seen.stencil(fine, largest)
        finest[fine] = last if largest == STAGES[-1] else np.nan
        finer = _stage(seen, fine, largest, size[fine])
        for k in range(0, 6, 2):
            better = ~(found[k + 1][fine] <= finer[k + 1]) & ~np.isnan(finer[k])
            for old, new in zip(found[k : k + 2], finer[k : k + 2], strict=True):
                old[fine] = np.where(better, new, old[fine])
    return _told(at, seen, values, finest, size, found)


def _stage(seen: _Seen, rows: Any, largest: float, size: FloatArray) -> list[FloatArray]:
    """Return the slope and its error, and the same below and above."""
    found: list[FloatArray] = []
    for order, side in ((6, 0), (4, -1), (4, 1)):
        slope, error = seen.slope(rows, largest, order, side)
        found += [slope, error + (1 + abs(side)) * EPSILON * size / (largest / 8)]
    return found


def _told(
    at: FloatArray,
    seen: _Seen,
    values: FloatArray,
    finest: FloatArray,
    size: FloatArray,
    found: list[FloatArray],
) -> Slopes:
    """Return slopes with the words that say what they are."""
    slope, error, below, below_error, above, above_error = found
    h = seen.size[:, None, None] * STAGES[0] / 2.0 ** np.arange(4)[:, None]
    secants = (values[:, 1] - values[:, 0]) / (2 * h)
    kind = np.full(slope.shape, "smooth", dtype="U8")

    def decide(word: str, where: Any, slope_there: Any, error_there: Any) -> None:
        nonlocal slope, error
        kind[where] = word
        slope, error = np.where(where, slope_there, slope), np.where(where, error_there, error)

    with np.errstate(invalid="ignore"):
        missing = np.isnan(below)
        one, off = np.where(missing, above, below), np.where(missing, above_error, below_error)
        decide("edge", np.isnan(slope) & ~np.isnan(one), one, off)
        bent = np.abs(above - below) > 10 * (below_error + above_error) + KINK * (
            np.abs(below) + np.abs(above)
        )
        decide("kink", bent, (below + above) / 2, np.abs(above - below) / 2)
        # A metric that tends to another value than it has, in the last steps of a stage that was needed.
        before, limits = (2 * finest[:, :, k] - finest[:, :, k - 1] for k in (2, 3))
        height = np.abs(limits - at)
        near = (np.abs(finest[:, :, 2:] - limits[:, :, None]) < height[:, :, None] / 4).all(axis=2)
        blur = BLUR * np.nan_to_num(np.abs(secants)).max(axis=1) * STAGES[-1] / 8 * seen.size[:, None]
        jumps = near & (height > 10 * np.abs(limits - before) + STEP * np.abs(at) + blur[:, None])
        decide("step", jumps.any(axis=1), np.nan, np.inf)
        # Slopes of wide steps tend to that of a smooth metric.
        weights = np.where(np.isfinite(secants), h**2, 0.0)
        wide = (weights * np.nan_to_num(secants)).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-300)
        spread = np.maximum(np.nan_to_num(np.abs(secants - wide[:, None])).max(axis=1), np.abs(slope - wide))
        rough = error > UNKNOWN * (np.abs(slope) + UNKNOWN**2 * size)
        decide("rough", (kind == "smooth") & rough & (weights > 0).any(axis=1), wide, spread)
    decide("refused", np.isnan(slope) & (kind != "step"), np.nan, np.inf)
    decide("unstable", np.broadcast_to(~np.isfinite(at), kind.shape), np.nan, np.inf)
    return Slopes(value=at, slope=slope, error=error, below=below, above=above, kind=kind)
