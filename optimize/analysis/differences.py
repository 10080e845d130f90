"""Derivatives of a model by differences: one batch of designs, extrapolated to step 0, with their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optimize.analysis.model import Model
from optimize.search.pareto import FloatArray

Truths = npt.NDArray[np.bool_]

COARSE = (0.02, 0.01, 0.005, 0.0025)
"""Steps of the first batch, in sizes of the value: what a change means that somebody would make."""

FINE = tuple(0.0025 / 4**k for k in range(1, 5))
"""Steps of the second one, for fields of which a metric is not known well enough."""

SEARCHED = (2e-3, 1e-3)
"""Steps of a gradient that leads a search, in sizes that are given."""

ENOUGH = 5e-9
"""Error with which no second batch is needed, relative to the slope; a tenth of it to metric over field."""

KINK = 1e-6
"""Relative difference of the slopes below and above a value that is noise of the model and no kink."""

STEP = 1e-5
"""The same for the value that a metric tends to from either side."""

BLUR = 20
"""Times what wide steps change within the finest one: a step that is lower is no step."""

UNKNOWN = 0.01
"""Relative error from which a slope is no derivative that differences can tell."""

EPSILON = 4 * float(np.finfo(float).eps)
"""Rounding of a metric, relative."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Slopes:
    """Derivatives of all metrics (last axis) by some fields (first axis); a NaN is not known."""

    value: FloatArray  # of the metrics
    slope: FloatArray
    error: FloatArray
    below: FloatArray  # slopes to either side
    above: FloatArray
    kind: npt.NDArray[np.str_]  # words, see `optimize.analysis.sensitivity.Elasticity`


def differentiate(model: Model, point: Mapping[str, float]) -> Slopes:
    """Differentiate all metrics by all fields of a point, in at most two calls if they may be arrays."""
    sizes = {field: abs(value) or 1.0 for field, value in point.items()}
    scale = np.array(list(sizes.values()))
    at, values = stencil(model, point, sizes, COARSE)
    found = _slopes(at, values, scale, COARSE)
    with np.errstate(invalid="ignore"):
        tolerance = ENOUGH * (np.abs(found.slope) + 0.1 * np.abs(at) / scale[:, None])
        rest = ~(found.error <= tolerance) & np.isfinite(at)
    rows = np.flatnonzero(rest.any(axis=1))
    if rows.size:
        again = {field: value for k, (field, value) in enumerate(point.items()) if k in rows}
        finer = np.concatenate([values[rows], stencil(model, again, sizes, FINE)[1]], axis=1)
        better = _slopes(at, finer, scale[rows], (*COARSE, *FINE))
        for name in ("slope", "error", "below", "above", "kind"):
            getattr(found, name)[rows] = getattr(better, name)
    return found


def gradient(
    model: Model, point: Mapping[str, float], scale: Mapping[str, float]
) -> tuple[FloatArray, FloatArray]:
    """Return metrics and their derivatives by all fields (first axis), 0 where unknown: one call."""
    at, values = stencil(model, point, scale, SEARCHED)
    low, high, here = (np.where(np.isfinite(v), v, np.nan) for v in (values[:, :, 0], values[:, :, 1], at))
    nodes = np.array(SEARCHED)
    h = nodes[:, None] * np.array([scale[field] for field in point])[:, None, None]
    slope = np.full(low[:, 0].shape, np.nan)
    sides = ((high - low) / (2 * h), nodes**2), ((here - low) / h, nodes), ((high - here) / h, nodes)
    for secants, powers in sides:
        slope = np.where(np.isnan(slope), extrapolated(secants, powers, 0 * h)[0], slope)
    return at, np.nan_to_num(slope)


def stencil(
    model: Model, point: Mapping[str, float], scale: Mapping[str, float], steps: Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    """Return metrics at a point, and at steps from it along each field: [field, step, side, metric]."""
    values, sizes = (np.array([float(named[field]) for field in point]) for named in (point, scale))
    # Such that the values and their neighbours are exact; sides of a field together, as one may be refused.
    step = (values[:, None] + np.multiply.outer(sizes, steps)) - values[:, None]
    moved = np.stack([-step, step], axis=1)
    columns = np.repeat(values[:, None], 1 + moved.size, axis=1)
    columns[np.arange(moved.size) // moved[0].size, 1 + np.arange(moved.size)] += moved.reshape(-1)
    found = model(dict(zip(point, columns.tolist(), strict=True)), forgiving=True)
    return found[0], found[1:].reshape(*moved.shape, found.shape[1]).swapaxes(1, 2)


def _slopes(at: FloatArray, values: FloatArray, scale: FloatArray, steps: Sequence[float]) -> Slopes:
    """Return slopes from metrics at steps along each field, see `stencil`."""
    values = np.where(np.isfinite(values), values, np.nan)
    nodes = np.array(steps)
    h = nodes[:, None] * scale[:, None, None]  # field, step, 1
    low, high = values[:, :, 0], values[:, :, 1]
    noise = EPSILON * np.abs(at) / h
    slope, error = extrapolated((high - low) / (2 * h), nodes**2, noise)
    below, below_error = extrapolated((at - low) / h, nodes, 2 * noise)
    above, above_error = extrapolated((high - at) / h, nodes, 2 * noise)
    secants = ((high - low) / (2 * h))[:, : len(COARSE)]
    kind = np.full(slope.shape, "smooth", dtype="U8")

    def decide(word: str, where: Truths, slope_there: FloatArray, error_there: FloatArray) -> None:
        nonlocal slope, error
        kind[where] = word
        slope, error = np.where(where, slope_there, slope), np.where(where, error_there, error)

    with np.errstate(invalid="ignore"):
        missing = np.isnan(below)
        side = np.where(missing, above, below), np.where(missing, above_error, below_error)
        decide("edge", np.isnan(slope) & ~np.isnan(side[0]), *side)
        noise_of_slopes = 10 * (below_error + above_error) + KINK * (np.abs(below) + np.abs(above))
        bent = np.abs(above - below) > noise_of_slopes
        decide("kink", bent, (below + above) / 2, np.abs(above - below) / 2)
        jumps = _jumps(at, low, high, nodes, BLUR * _largest(secants) * h[:, -1])
        decide("step", jumps, np.full(slope.shape, np.nan), np.full(slope.shape, np.inf))
        size = np.abs(at) / scale[:, None]
        rough, wide, spread = _rough(secants, h[:, : len(COARSE)], slope, EPSILON * size)
        rough |= (kind == "smooth") & (error > UNKNOWN * (np.abs(slope) + UNKNOWN**2 * size))
        decide("rough", rough, wide, spread)
    nothing = np.full(slope.shape, np.nan), np.full(slope.shape, np.inf)
    decide("refused", np.isnan(slope) & (kind != "step"), *nothing)
    decide("unstable", np.broadcast_to(~np.isfinite(at), kind.shape), *nothing)
    return Slopes(value=at, slope=slope, error=error, below=below, above=above, kind=kind)


def _largest(values: FloatArray) -> FloatArray:
    """Return the largest size along the second axis of those that are known."""
    return np.asarray(np.where(np.isfinite(values), np.abs(values), 0.0).max(axis=1))


def _jumps(at: FloatArray, low: FloatArray, high: FloatArray, nodes: FloatArray, blur: FloatArray) -> Truths:
    """Return where a metric tends to another value than it has, by more than `blur`."""
    found = np.zeros(blur.shape, dtype=bool)
    for side in (low, high):
        limit, off = extrapolated(side, nodes, EPSILON * np.abs(side))
        height = np.abs(limit - at)
        # Noise of the model, or a kink near by, may look as if the metric tended elsewhere.
        there = (np.abs(side[:, -2:] - limit[:, None]) < height[:, None] / 4).all(axis=1)
        found |= there & (height > 10 * off + STEP * np.abs(at) + blur)
    return found


def extrapolated(values: FloatArray, nodes: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Extrapolate polynomials through values at nodes (second axis, falling) to 0: the best, and its error.

    Of the entries of Neville's table the one is taken that differs least from the two it comes from; that
    difference and the noise, carried along, are the error.
    """
    best = np.full(values[:, 0].shape, np.nan)
    least = np.full(best.shape, np.inf)
    row: list[FloatArray] = []
    carried: list[FloatArray] = []
    for k in range(len(nodes)):
        previous, before = row, carried
        row, carried = [values[:, k]], [np.broadcast_to(noise, values.shape)[:, k]]
        for j, coarse in enumerate(previous):
            weight = nodes[k - j - 1] / (nodes[k - j - 1] - nodes[k])
            row.append(coarse + weight * (row[j] - coarse))
            carried.append(weight * carried[j] + (weight - 1) * before[j])
            change = np.maximum(np.abs(row[-1] - row[j]), np.abs(row[-1] - coarse)) + carried[-1]
            better = change < least
            best, least = np.where(better, row[-1], best), np.where(better, change, least)
    return best, least


def _rough(
    secants: FloatArray, h: FloatArray, slope: FloatArray, noise: FloatArray
) -> tuple[Truths, FloatArray, FloatArray]:
    """Return where a slope holds so near the value alone that it says nothing, and the slope of wider steps.

    The slopes of wide steps tend to that of a smooth metric. Here they are as far from it as wider ones are.
    """
    known = np.isfinite(secants)
    off = np.where(known, np.abs(secants - slope[:, None]), 0.0)
    last = off[:, -1]
    rough = (last > 0.5 * np.maximum(np.abs(slope), np.abs(secants[:, -1]))) & known[:, -1]
    rough &= (last > 0.5 * off[:, :-1].max(axis=1)) & known[:, :-1].any(axis=1) & (last > 1e6 * noise)
    weights = np.where(known, h**2, 0.0)
    wide = (weights * np.where(known, secants, 0.0)).sum(axis=1) / weights.sum(axis=1)
    return rough, wide, np.maximum(_largest(secants - wide[:, None]), np.abs(slope - wide))
