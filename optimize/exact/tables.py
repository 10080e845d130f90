"""A model as a sum of tables over groups of fields, made from evaluations around one design."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from optimize.exact.oracle import Oracle, digits_of
from optimize.search.pareto import FloatArray
from optimize.spaces.numbering import Designs

FLOOR = 1e-3
"""Part of a limit below which a positive metric counts as this: 1e-300 needs no table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TableError:
    """Error of a decomposition on designs it was not made from."""

    metric: str  # the metric
    # mean, largest: relative to the metric, of the designs finite in both.
    mean: float
    largest: float
    designs: int  # how many these were
    missed: int  # others, in which just one of model and tables is infinite


class Tables:
    r"""One goal as a sum over groups of fields, by differences from an anchor.

    For groups :math:`G_1, G_2, \ldots` in their order and an anchor :math:`a`,

    .. math:: f(x) \approx f(a) + \sum_k [f(x_{G_k}, a) - f(x_{S_k}, a)],
        \quad S_k = G_k \cap (G_1 \cup \ldots \cup G_{k-1}),

    of the logarithm of a positive metric, of the metric otherwise: exact at the anchor and in every
    design that differs from it within the first group only, and everywhere if the metric is such a sum.

    Parameters
    ----------
    oracle : Oracle
        The model.
    goal : int
        Which of its goals.
    groups : sequence of tuple of int
        Axes of the groups.
    anchor : ndarray
        Digits of the anchor.
    log : bool
        Whether logarithms add up, rather than values.
    floor : float
        Values below count as this in logarithms.
    """

    def __init__(
        self,
        oracle: Oracle,
        goal: int,
        groups: Sequence[tuple[int, ...]],
        anchor: Designs,
        *,
        log: bool,
        floor: float = 0.0,
    ) -> None:
        self._shape, self._log, self._floor = oracle.space.shape, log, floor
        self.groups = list(groups)
        before: set[int] = set()
        self.parts: list[FloatArray] = []
        self.base = float(self.scaled(oracle.look(_number(oracle, anchor[None]))[:, goal])[0])
        for group in self.groups:
            cells = _cells(self._shape, group, anchor)
            shared = cells.copy()
            fresh = [axis for axis in group if axis not in before]
            shared[:, fresh] = anchor[fresh]
            here, there = (
                self.scaled(oracle.look(_number(oracle, designs))[:, goal]) for designs in (cells, shared)
            )
            with np.errstate(invalid="ignore"):
                self.parts.append(np.where(np.isfinite(there), here - there, 0.0))
            before |= set(group)

    @property
    def rounding(self) -> float:
        """By how much a total may be off as differences and sums are rounded."""
        sizes = [np.abs(part[np.isfinite(part)]).max(initial=0.0) for part in self.parts]
        size = (abs(self.base) if np.isfinite(self.base) else 0.0) + float(np.sum(sizes))
        return 4.0 * (len(self.parts) + 1) * float(np.finfo(float).eps) * size

    def scaled(self, values: FloatArray) -> FloatArray:
        """Return signed values on the scale on which they add up."""
        if not self._log:
            return values
        sign = -1.0 if (values < 0).any() else 1.0
        with np.errstate(divide="ignore"):
            return np.asarray(sign * np.log(np.maximum(np.abs(values), self._floor)))

    def cell(self, k: int, digits: Designs) -> Designs:
        """Return the cell of a group for every row of digits."""
        group = self.groups[k]
        return np.ravel_multi_index(tuple(digits[:, list(group)].T), [self._shape[a] for a in group])

    def total(self, digits: Designs) -> FloatArray:
        """Return the sum for every row of digits."""
        parts = [part[self.cell(k, digits)] for k, part in enumerate(self.parts)]
        return np.asarray(self.base + np.sum(parts, axis=0)) if parts else np.full(len(digits), self.base)

    def error(self, oracle: Oracle, goal: int, metric: str, designs: Designs) -> TableError:
        """Return the relative error on some designs."""
        true = self.scaled(oracle.look(designs)[:, goal])
        found = self.total(digits_of(oracle.space, designs))
        both = np.isfinite(true) & np.isfinite(found)
        off = found[both] - true[both]
        off = np.sign(off) * np.maximum(np.abs(off) - self.rounding, 0.0)
        share = np.abs(np.expm1(off)) if self._log else np.abs(off) / np.maximum(np.abs(true[both]), 1e-300)
        return TableError(
            metric=metric,
            mean=float(share.mean()) if share.size else np.inf,
            largest=float(share.max(initial=0.0)),
            designs=int(both.sum()),
            missed=int((np.isfinite(true) != np.isfinite(found)).sum()),
        )


def _number(oracle: Oracle, digits: Designs) -> Designs:
    return oracle.space.number_of(digits.T)


def _cells(shape: Sequence[int], group: tuple[int, ...], anchor: Designs) -> Designs:
    """Return the digits of all cells of a group, the other fields at the anchor, in row-major order."""
    cells = np.tile(anchor, (int(np.prod([shape[axis] for axis in group])), 1))
    cells[:, list(group)] = list(product(*(range(shape[axis]) for axis in group)))
    return cells


def scale_of(values: FloatArray, limit: float) -> tuple[bool, float]:
    """Return whether the logarithms of signed values add up, and the floor under their size."""
    size = np.abs(values[np.isfinite(values)])
    if not size.size or not size.any() or ((values > 0).any() and (values < 0).any()):
        return False, 0.0
    least = FLOOR * (abs(limit) if np.isfinite(limit) and limit else float(np.median(size[size > 0])))
    return True, max(least, float(np.finfo(float).tiny))
