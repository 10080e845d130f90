"""One design for several scenarios: the regret of each choice under each, and the one that regrets least."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt

from optimize.search.pareto import FloatArray, IntArray, as_costs, ideal_distance, nondominated
from optimize.spaces.numbering import Columns

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class RobustChoice:
    r"""The regret of every design under every scenario.

    Notes
    -----
    Under scenario w every objective :math:`f_k`, to be minimised, is scaled so that its best value on the
    front of w is 0 and its worst 1, as for the knee (`optimize.knee_index`). With

    .. math:: d_w(x) = \Bigl(\sum_k \Bigl(\frac{f_{kw}(x) - f_{kw}^{best}}{f_{kw}^{worst} -
        f_{kw}^{best}}\Bigr)^2\Bigr)^{1/2}, \qquad r_w(x) = d_w(x) - \min_y d_w(y),

    the least distance is that of the knee, which would be chosen if w were known to come, and the regret is
    what is lost by having chosen x instead: 0.1 is a tenth of the range of one objective. The choice is that
    of Savage's minimax regret [1]_, of equals the one with least regrets in sum, then the first. An objective
    that is the same all over a front is scaled by its size, so that with a single one the regret is relative.

    References
    ----------
    .. [1] L. J. Savage, "The theory of statistical decision", Journal of the American Statistical Association
       46(253), 1951.
    """

    names: tuple[str, ...]  #: The scenarios
    designs: IntArray  #: Numbers of the designs that all scenarios have, ascending
    #: How much farther a design is from the ideal point of a scenario than its best design; infinite where
    #: the design is not feasible
    regret: FloatArray
    best: tuple[int | None, ...]  #: The best design of each scenario, None where none is feasible
    #: The design of least greatest regret among those that are feasible under all; None if none is
    chosen: int | None

    def regret_of(self, design: int) -> dict[str, float]:
        """Return the regret of a design under each scenario."""
        column = int(np.searchsorted(self.designs, design))
        if column >= self.designs.size or self.designs[column] != design:
            raise ValueError(f"design must be one that all scenarios have, got {design}")
        return dict(zip(self.names, self.regret[:, column].tolist(), strict=True))

    @property
    def feasible(self) -> int:
        """Count of designs that are feasible under all scenarios."""
        return int(np.isfinite(self.regret).all(axis=0).sum())


def robust_choice(
    tables: Mapping[str, Columns],
    feasible: Mapping[str, BoolArray],
    *,
    minimize: tuple[str, ...] = (),
    maximize: tuple[str, ...] = (),
) -> RobustChoice:
    """Return the regret of each design under each scenario, and the design that is robust over all.

    Parameters
    ----------
    tables : mapping of str to columns
        Of each scenario the column ``design`` and the objectives, of designs of one space.
    feasible : mapping of str to ndarray of bool
        Which rows of a table satisfy the constraints of their scenario.
    minimize, maximize : tuple of str
        The objectives.

    Raises
    ------
    ValueError
        If there is no scenario or no objective, or if scenarios have no design in common.

    Examples
    --------
    Two designs that are best under one of two scenarios each, and one that is nearly as good under both:

    >>> import numpy as np
    >>> designs = {"design": np.array([0, 1, 2]), "cost": np.array([1.0, 1.0, 1.0])}
    >>> tables = {"small packets": {**designs, "latency": np.array([10.0, 20.0, 11.0])},
    ...           "large packets": {**designs, "latency": np.array([60.0, 40.0, 44.0])}}
    >>> every = {name: np.full(3, True) for name in tables}
    >>> found = robust_choice(tables, every, minimize=("latency", "cost"))
    >>> found.best, found.chosen, {name: round(r, 3) for name, r in found.regret_of(2).items()}
    ((0, 1), 2, {'small packets': 0.1, 'large packets': 0.1})
    """
    objectives, mask = (*minimize, *maximize), [False] * len(minimize) + [True] * len(maximize)
    if not tables or not objectives:
        raise ValueError("robust_choice needs scenarios and objectives, got none")
    designs = np.unique(reduce(np.intersect1d, [table["design"] for table in tables.values()]))
    if not designs.size:
        raise ValueError("scenarios must have designs in common, got none")
    regret = np.full((len(tables), designs.size), np.inf)
    best: list[int | None] = []
    for k, (name, table) in enumerate(tables.items()):
        rows = np.flatnonzero(feasible[name])
        costs = as_costs(np.stack([table[one][rows].astype(float) for one in objectives], axis=1), mask)
        front = costs[nondominated(costs)]
        distance = ideal_distance(costs, front) if len(front) else np.full(len(costs), np.inf)
        best.append(int(table["design"][rows[distance.argmin()]]) if rows.size else None)
        shared = np.isin(table["design"][rows], designs)
        columns = np.searchsorted(designs, table["design"][rows][shared])
        regret[k, columns] = (distance - distance.min(initial=np.inf))[shared]
    worst = regret.max(axis=0)
    chosen = None
    if np.isfinite(worst).any():
        order = np.lexsort((designs, regret.sum(axis=0), worst))
        chosen = int(designs[order[0]])
    return RobustChoice(names=tuple(tables), designs=designs, regret=regret, best=tuple(best), chosen=chosen)
