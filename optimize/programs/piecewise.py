"""Curves between two piecewise-linear functions, for integer programs with queueing costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray

MOST_KNOTS = 4096
"""A bracket with more is refused."""

NEARBY = 1e-6
"""Distance of the two points of a secant that stands for a tangent, in lengths of the section."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PiecewiseLinear:
    """Two continuous piecewise-linear functions with a curve between them.

    Parameters
    ----------
    knots : ndarray
        Where the curve was evaluated, ascending; both functions meet it there.
    lower : tuple of ndarray
        Vertices (x, y) of the function below the curve.
    upper : tuple of ndarray
        Vertices (x, y) of the function above the curve.
    error : float
        The largest distance between the two: neither is farther from the curve.
    convex : bool
        Whether the curve is convex on all of it, so that an epigraph needs no binaries.
    """

    knots: FloatArray
    lower: tuple[FloatArray, FloatArray]
    upper: tuple[FloatArray, FloatArray]
    error: float
    convex: bool

    def lines(self) -> tuple[FloatArray, FloatArray]:
        """Return slopes and intercepts whose maximum is nowhere above `lower`, if that is convex."""
        x, y = self.lower
        wide = np.flatnonzero(np.diff(x) > NEARBY * (x[-1] - x[0]))
        slopes = (y[wide + 1] - y[wide]) / (x[wide + 1] - x[wide])
        return slopes, (y - slopes[:, None] * x).min(axis=1)

    def below(self, x: npt.ArrayLike) -> FloatArray:
        """Return the function below the curve."""
        return np.asarray(np.interp(np.asarray(x, dtype=float), *self.lower), dtype=float)

    def above(self, x: npt.ArrayLike) -> FloatArray:
        """Return the function above the curve."""
        return np.asarray(np.interp(np.asarray(x, dtype=float), *self.upper), dtype=float)


class Curve:
    r"""A function of one variable that is convex or concave between known points.

    Parameters
    ----------
    function : callable
        Takes an array and returns one value per entry; finite from `low` to `high`.
    low, high : float
        Its domain, low < high. A queue ends below saturation: loads beyond are excluded.
    inflections : sequence of float
        Where it changes between convex and concave, ascending, inside the domain.

    Raises
    ------
    ValueError
        If the domain is empty or the inflections are not ascending within it.

    Notes
    -----
    On a convex section the chords between knots are above the curve, and the line through a
    knot and a point a millionth of the section beside it is below it everywhere but between
    the two; there it is above by at most the distance of the two points times the
    difference of slopes to the next point, by which it is lowered, as by the rounding of the
    values. So both bounds hold without a derivative. A concave section is the mirror image.
    The shape of a section cannot be proven from points: it is checked between and at all
    knots and refused if it is wrong.

    Examples
    --------
    The mean number in an M/M/1 queue up to 95 % load:

    >>> curve = Curve(lambda load: load / (1 - load), 0.0, 0.95)
    >>> lines = curve.bracket(tolerance=0.1)
    >>> len(lines.knots), round(lines.error, 3), lines.convex
    (25, 0.086, True)
    >>> bool(lines.below(0.5) <= 1.0 <= lines.above(0.5))
    True
    """

    def __init__(
        self,
        function: Callable[[FloatArray], npt.ArrayLike],
        low: float,
        high: float,
        *,
        inflections: Sequence[float] = (),
    ) -> None:
        if not callable(function):
            raise ValueError(f"function must be a callable on an array, got {function!r}")
        if not -np.inf < low < high < np.inf:
            raise ValueError(f"low and high must be finite with low < high, got {low!r} and {high!r}")
        self.ends = (float(low), *map(float, inflections), float(high))
        if any(a >= b for a, b in zip(self.ends, self.ends[1:], strict=False)):
            raise ValueError(f"inflections must ascend between {low!r} and {high!r}, got {list(inflections)}")
        self.function, self.low, self.high = function, float(low), float(high)

    def __call__(self, x: npt.ArrayLike) -> FloatArray:
        """Return the values of the function, checked."""
        points = np.atleast_1d(np.asarray(x, dtype=float))
        values = np.broadcast_to(np.asarray(self.function(points), dtype=float), points.shape)
        if not np.isfinite(values).all():
            bad = int((~np.isfinite(values)).argmax())
            raise ValueError(f"the curve must be finite, got {values[bad]} at {points[bad]:g}")
        return values.reshape(np.shape(x))

    def bracket(
        self, *, tolerance: float | None = None, pieces: int | None = None, knots: Sequence[float] = ()
    ) -> PiecewiseLinear:
        """Enclose the curve between two piecewise-linear functions.

        Parameters
        ----------
        tolerance : float, optional
            Split pieces until the two are nowhere farther apart than this.
        pieces : int, optional
            Split at most to this number of pieces.
        knots : sequence of float
            Points where the functions must meet the curve, besides the ends and inflections;
            one that is closer than 1e-5 of the domain to another is left out.

        Returns
        -------
        PiecewiseLinear
            The piece with the largest error is split in the middle again and again; with
            neither tolerance nor pieces none is.

        Raises
        ------
        ValueError
            If the curve is not finite, a knot is outside the domain, or a section is
            neither convex nor concave.
        """
        if tolerance is not None and not tolerance > 0:
            raise ValueError(f"tolerance must be > 0, got {tolerance!r}")
        if pieces is not None and pieces < 1:
            raise ValueError(f"pieces must be a whole number >= 1, got {pieces!r}")
        for knot in knots:
            if not self.low <= knot <= self.high:
                raise ValueError(f"knots must be from {self.low:g} to {self.high:g}, got {knot!r}")
        points = np.array(self.ends)
        for knot in map(float, knots):
            if np.abs(points - knot).min() > 10 * NEARBY * (self.high - self.low):
                points = np.sort(np.append(points, knot))
        limit = np.inf if pieces is None else pieces
        if tolerance is None and pieces is None:
            limit = 0
        while True:
            result, errors = self._enclose(points)
            if len(errors) >= limit or errors.max() <= (tolerance or 0.0):
                return result
            # All pieces that must be split anyway are split at once, the others one by one.
            if tolerance is not None and limit == np.inf:
                split = errors > tolerance
            else:
                split = np.arange(len(errors)) == errors.argmax()
            middles = (points[:-1] + points[1:])[split] / 2
            points = np.unique(np.concatenate([points, middles]))
            if len(points) > MOST_KNOTS:
                raise RuntimeError(
                    f"{len(errors)} pieces leave an error of {errors.max():.3g} for a tolerance of"
                    f" {tolerance}; ask for a larger tolerance"
                )

    def _enclose(self, knots: FloatArray) -> tuple[PiecewiseLinear, FloatArray]:
        """Return the two functions with these knots, and the error of every piece."""
        values = self(knots)
        lower, upper, shapes = [], [], []
        for start, end in zip(self.ends, self.ends[1:], strict=False):
            inside = (knots >= start) & (knots <= end)
            x, y = knots[inside], values[inside]
            shape = self._shape(x)
            tangents = self._tangents(x, shape * y, shape)
            chords, tangents = (x, y), (tangents[0], shape * tangents[1])
            lower.append(tangents if shape > 0 else chords)
            upper.append(chords if shape > 0 else tangents)
            shapes.append(shape)
        sides = []
        for parts, pick in ((lower, np.minimum), (upper, np.maximum)):
            for left, right in zip(parts, parts[1:], strict=False):
                left[1][-1] = right[1][0] = pick(left[1][-1], right[1][0])
            x = np.concatenate([parts[0][0], *(part[0][1:] for part in parts[1:])])
            y = np.concatenate([parts[0][1], *(part[1][1:] for part in parts[1:])])
            sides.append((x, y))
        vertices = np.union1d(sides[0][0], sides[1][0])
        gaps = np.interp(vertices, *sides[1]) - np.interp(vertices, *sides[0])
        errors = [
            gaps[(vertices >= a) & (vertices <= b)].max() for a, b in zip(knots, knots[1:], strict=False)
        ]
        result = PiecewiseLinear(
            knots=knots, lower=sides[0], upper=sides[1], error=float(max(errors)), convex=shapes == [1]
        )
        return result, np.array(errors)

    def _shape(self, knots: FloatArray) -> int:
        """Return 1 if the curve is convex at the knots and between them, -1 if concave."""
        x = np.linspace(knots[0], knots[-1], 9)
        x = np.unique(np.concatenate([knots, (knots[1:] + knots[:-1]) / 2, x[1:-1]]))
        x = x[np.concatenate([[True], np.diff(x) > 1e-9 * (x[-1] - x[0])])]
        y = self(x)
        slopes = np.diff(y) / np.diff(x)
        noise = 8 * np.finfo(float).eps * np.abs(y).max() * (1 / np.diff(x)[:-1] + 1 / np.diff(x)[1:])
        bends = np.diff(slopes)
        if (bends >= -noise).all():
            return 1
        if (bends <= noise).all():
            return -1
        wrong = np.flatnonzero(np.sign(bends[1:]) != np.sign(bends[:-1]))
        raise ValueError(
            f"the curve must be convex or concave from {x[0]:g} to {x[-1]:g}, but it bends both ways"
            f" near {x[wrong[0] + 1]:g}; give its inflections"
        )

    def _tangents(self, knots: FloatArray, values: FloatArray, shape: int) -> tuple[FloatArray, FloatArray]:
        """Return the vertices of a function below a convex section: the maximum of secants."""
        length = knots[-1] - knots[0]
        step = NEARBY * length * np.append(1.0, -np.ones(len(knots) - 1))
        near, far = shape * self(knots + step), shape * self(knots + 2 * step)
        slopes = (near - values) / step
        # Between the knot and its neighbour the secant may exceed the curve by the first term;
        # elsewhere by the rounding of its slope.
        rise = np.maximum(far - 2 * near + values, 0.0)
        noise = 4 * np.finfo(float).eps * np.abs(values).max() * (1 + 1 / NEARBY)
        base = values - rise - noise
        bend = np.diff(slopes)
        meet = np.diff(base - slopes * knots) / np.where(bend > 0, -bend, -1.0)
        meet = np.clip(np.where(bend > 0, meet, knots[:-1]), knots[:-1], knots[1:])
        left, right = (
            base[:-1] + slopes[:-1] * (meet - knots[:-1]),
            base[1:] + slopes[1:] * (meet - knots[1:]),
        )
        x = np.concatenate([knots[:1], meet, knots[-1:]])
        y = np.concatenate([base[:1], np.minimum(left, right), base[-1:]])
        return x, y
