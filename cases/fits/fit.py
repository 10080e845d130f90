"""Fit constants of a model anew: least squares, and what fits without parts of the data say of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

ASIDE = 1.1
"""The search starts at the kept values and beside them, and what ends lower counts."""


class Problem(NamedTuple):
    """What a fit makes small."""

    # Relative errors of the model with the constants as they stand, one for each row of the data.
    errors: Callable[[], FloatArray]
    groups: IntArray  # rows that belong together, such as those of one network: left out together
    weights: FloatArray | float = 1.0  # factors of the errors in the fit
    used: BoolArray | None = None  # rows that are fitted; the others are held out


class Found(NamedTuple):
    """What a fit gives for one constant: the best value, and its interval of 95 %."""

    best: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Constants that are fitted together."""

    name: str  # of the fit
    # module, attribute: where the model has the group of constants.
    module: ModuleType
    fields: tuple[str, ...]  # the constants that are fitted; the others of the group stay
    data: str  # file from the root of the repository; its first line or its module says what makes it
    problem: Callable[[], Problem]  # reads the data
    attribute: str = "LAW"
    named: str = ""  # the group in `qmodels.evidence.constants`, if not the name of the fit
    # Size of a weighted error from which on it counts less than its square (soft L1); infinite for least
    # squares.
    scale: float = np.inf
    parts: int = 10  # of the data that are left out one after the other, at most
    slow: bool = False  # takes more than some seconds: the search ends earlier

    @property
    def group(self) -> str:
        """Name of the group of constants in `qmodels.evidence.constants`."""
        return self.named or self.name

    @property
    def kept(self) -> FloatArray:
        """The values that the model has."""
        group = getattr(self.module, self.attribute)
        return np.array([getattr(group, name) for name in self.fields])

    @contextmanager
    def trying(self) -> Iterator[Callable[[FloatArray], None]]:
        """Yield a function that puts values into the model, and put the kept ones back in the end."""
        group: Any = getattr(self.module, self.attribute)

        def put(values: FloatArray) -> None:
            changed = group._replace(**dict(zip(self.fields, values.tolist(), strict=True)))
            setattr(self.module, self.attribute, changed)

        try:
            yield put
        finally:
            setattr(self.module, self.attribute, group)


def run(fit: Fit) -> tuple[dict[str, Found], float]:
    r"""Return what a fit finds, and the mean size of the errors of what was left out [%].

    The groups of rows are divided at random into :math:`m` parts; each is left out in turn. With the
    values :math:`\theta_k` found without part k the interval is that of the jackknife,
    :math:`\hat\theta \pm t_{m-1} \sqrt{\tfrac{m-1}{m} \sum_k (\theta_k - \bar\theta)^2}`: it counts
    rows of a group as one observation, whatever they have in common. Errors of rows left out are those
    of the fits without them, or, where the data name rows to hold out, of these.
    """
    from scipy.special import stdtrit

    problem = fit.problem()
    used = np.ones(problem.groups.size, dtype=bool) if problem.used is None else problem.used
    names = np.unique(problem.groups[used])
    part = np.random.default_rng(1).permutation(names.size) % min(fit.parts, names.size)
    parts = [np.isin(problem.groups, names[part == k]) & used for k in range(part.max() + 1)]
    step, tolerance, most = (5e-3, 1e-3, 10) if fit.slow else (1e-3, 1e-10, 40)
    starts = (fit.kept, fit.kept * ASIDE ** np.resize([1, -1], len(fit.fields)))
    with fit.trying() as put:

        def errors(values: FloatArray) -> FloatArray:
            put(values)
            return problem.errors()

        def search(rows: BoolArray, start: FloatArray) -> tuple[float, FloatArray]:
            from scipy.optimize import least_squares

            found = least_squares(
                lambda values: (errors(values) * problem.weights)[rows],
                start,
                loss="linear" if np.isinf(fit.scale) else "soft_l1",
                f_scale=min(fit.scale, 1e9),
                x_scale=np.maximum(np.abs(start), 0.05),
                diff_step=step,
                xtol=tolerance,
                ftol=tolerance,
                max_nfev=most,
            )
            return float(found.cost), np.asarray(found.x)

        best = min((search(used, start) for start in starts), key=lambda end: end[0])[1]
        without = np.array([search(used & ~rows, best)[1] for rows in parts])
        if problem.used is None:
            missed = np.concatenate([errors(at)[rows] for at, rows in zip(without, parts, strict=True)])
        else:
            missed = errors(best)[~used]
    count = len(parts)
    spread = np.sqrt((count - 1) / count * ((without - without.mean(axis=0)) ** 2).sum(axis=0))
    half = float(stdtrit(count - 1, 0.975)) * spread
    values = zip(best.tolist(), (best - half).tolist(), (best + half).tolist(), strict=True)
    found = {name: Found(*three) for name, three in zip(fit.fields, values, strict=True)}
    return found, 100 * float(np.abs(missed).mean())
