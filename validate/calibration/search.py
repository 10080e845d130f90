"""The numbers of a calibration: search, effects of parameters, whether they can be told apart."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from qmodels.checks import FloatArray, IntArray
from validate.calibration.result import LeaveOneOut

STARTS = 16
"""Places, spread evenly over the bounds, from the best of which the search begins."""
STEP = 1e-4
"""Share of a parameter's range by which it is moved to find its effect."""
INDEPENDENT = 1e-5
"""Ratio of the singular values of the scaled effects below which parameters are not told apart."""
AT_BOUND = 1e-6

Residuals = Callable[[FloatArray], FloatArray]
"""The errors at a place inside the bounds, each parameter from 0 (its lowest value) to 1."""


def start(residuals: Residuals, names: list[str]) -> FloatArray:
    """Return the best of the middle and of places spread evenly (an additive recurrence in each axis)."""
    dimensions = len(names)
    root = 1.5
    for _ in range(40):
        root = (1 + root) ** (1 / (dimensions + 1))
    step = root ** -np.arange(1.0, dimensions + 1)
    places = [(0.5 + k * step) % 1.0 for k in range(STARTS)]
    with np.errstate(all="ignore"):
        sums = np.array([float(np.sum(residuals(place) ** 2)) for place in places])
    sums[~np.isfinite(sums)] = np.inf
    if not np.isfinite(sums).any():
        raise ValueError(
            f"bounds must contain values for which the model is finite at every observation, got none "
            f"of {STARTS} for {', '.join(names)}"
        )
    return places[int(np.argmin(sums))]


def search(residuals: Residuals, start: FloatArray) -> FloatArray:
    """Return the place of least squares that is found from a start; RuntimeError if none is."""
    from scipy.optimize import least_squares

    with np.errstate(all="ignore"):
        found = least_squares(
            residuals,
            start,
            bounds=(0.0, 1.0),
            jac="3-point",
            xtol=1e-12,
            ftol=1e-12,
            gtol=1e-12,
            max_nfev=400,
        )
    if not found.success:
        raise RuntimeError(
            f"calibration did not converge in {found.nfev} steps (cost {found.cost:.3g}): narrow the bounds"
        )
    # The search stays strictly inside the bounds; a bound itself may be better than what is next to it.
    snapped = np.where(found.x < 1e-4, 0.0, np.where(found.x > 1 - 1e-4, 1.0, found.x))
    at_ends = residuals(snapped)
    better = np.all(np.isfinite(at_ends)) and float(at_ends @ at_ends) / 2 <= found.cost
    return np.asarray(snapped if better else found.x)


def effects(residuals: Residuals, unit: FloatArray) -> FloatArray:
    """Return the derivatives of the residuals by each parameter over its range."""
    columns = []
    for k in range(unit.size):
        ends = np.clip([unit[k] - STEP, unit[k] + STEP], 0.0, 1.0)
        sides = [residuals(np.where(np.arange(unit.size) == k, end, unit)) for end in ends]
        columns.append((sides[1] - sides[0]) / (ends[1] - ends[0]))
    return np.array(columns).T


def require_identifiable(effects: FloatArray, names: list[str]) -> None:
    """Refuse parameters without effect, or whose effects are combinations of each other's."""
    if not np.all(np.isfinite(effects)):
        raise ValueError(f"the model must be finite around the solution, got no effect of {', '.join(names)}")
    lengths = np.linalg.norm(effects, axis=0)
    idle = [
        name for name, length in zip(names, lengths, strict=True) if length <= 1e-9 * max(lengths.max(), 1.0)
    ]
    if idle:
        raise ValueError(
            f"{' and '.join(idle)} cannot be identified: no effect on the observations; "
            "fix it or observe more"
        )
    _, singular, directions = np.linalg.svd(effects / lengths)
    ratio = float(singular[-1] / singular[0])
    if ratio < INDEPENDENT:
        shares = np.abs(directions[-1])
        involved = [name for name, share in zip(names, shares, strict=True) if share > 0.1 * shares.max()]
        raise ValueError(
            f"{' and '.join(involved)} cannot be told apart by these observations (singular values of "
            f"their effects in the ratio {ratio:.1e}); fix one of them or observe more"
        )


def inverse(effects: FloatArray) -> FloatArray:
    """Return the inverse of J'J, by QR so that the condition is not squared."""
    upper = np.asarray(np.linalg.qr(effects, mode="r"))
    inverted = np.linalg.inv(upper)
    return np.asarray(inverted @ inverted.T)


def leave_one_out(residuals: Residuals, best: FloatArray, groups: dict[str, FloatArray]) -> LeaveOneOut:
    """Fit without each group, from the solution, and return the errors of its prediction."""
    errors: dict[str, float] = {}
    sizes: list[FloatArray] = []
    inside = np.clip(best, 1e-6, 1 - 1e-6)
    for label, rows in groups.items():
        mine, rest = np.flatnonzero(rows), np.flatnonzero(rows == 0)
        if rest.size >= best.size:
            missed = np.abs(residuals(search(_part(residuals, rest), inside))[mine])
            sizes.append(missed)
            errors[label] = float(np.sqrt(np.mean(missed**2)))
    every = np.concatenate(sizes) if sizes else np.array([math.inf])
    return LeaveOneOut(mean=float(every.mean()), largest=float(every.max()), by_group=errors)


def _part(residuals: Residuals, rows: IntArray) -> Residuals:
    return lambda unit: residuals(unit)[rows]
