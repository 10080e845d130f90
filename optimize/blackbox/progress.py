"""How the volume that a front dominates grew: over evaluations and over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from optimize.checks import choice
from optimize.search.pareto import FloatArray, IntArray, hypervolume
from optimize.search.picture import own_axes

LABELS = {"evaluations": "evaluations", "seconds": "seconds since the search began"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """The volume dominated after every evaluation.

    Parameters
    ----------
    evaluations : ndarray of int
        1, 2, ...
    seconds : ndarray
        When the values were told, since the search began; pauses between `save` and `resume` do not count.
    hypervolume : ndarray
        In the product of the units of the objectives, as measured.

    Examples
    --------
    >>> grown = Progress(
    ...     evaluations=np.arange(1, 4), seconds=np.arange(3.0), hypervolume=np.array([0, 0.5, 0.7])
    ... )
    >>> grown.reached(0.5), grown.reached(0.9)
    (2, None)
    """

    evaluations: IntArray
    seconds: FloatArray
    hypervolume: FloatArray

    def reached(self, volume: float) -> int | None:
        """Return after how many evaluations a volume was reached; None if it was not."""
        rows = np.flatnonzero(self.hypervolume >= volume)
        return int(self.evaluations[rows[0]]) if rows.size else None

    def plot(self, axes: Any = None, *, over: str = "evaluations", label: str | None = None) -> Any:
        """Draw the volume over evaluations or seconds on axes, of a figure of their own by default."""
        choice("over", over, LABELS)
        axes = own_axes() if axes is None else axes
        axes.step(getattr(self, over), self.hypervolume, where="post", label=label)
        axes.set_xlabel(LABELS[over])
        axes.set_ylabel("volume dominated")
        axes.set_ylim(bottom=0)
        if label is not None:
            axes.legend(fontsize="small")
        return axes


def progress_of(
    costs: FloatArray, feasible: npt.NDArray[np.bool_], seconds: FloatArray, corner: FloatArray | None
) -> Progress:
    """Return the progress of designs in the order they were told, all objectives minimised."""
    if corner is None:
        corner = costs[feasible].max(axis=0) if feasible.any() else np.zeros(costs.shape[1])
    volume, last = np.zeros(len(costs)), 0.0
    front = np.zeros((0, costs.shape[1]))
    for k, (row, able) in enumerate(zip(costs, feasible, strict=True)):
        if able and (row < corner).all() and not (front <= row).all(axis=1).any():
            front = np.concatenate([front[~(front >= row).all(axis=1)], row[None]])
            last = hypervolume(front, reference=corner)
        volume[k] = last
    return Progress(evaluations=np.arange(1, len(costs) + 1), seconds=seconds, hypervolume=volume)
