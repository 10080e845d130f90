"""Assigning tasks to places that they share: DMA channels to memories, threads to cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from optimize.programs.congestion import choose_congested
from optimize.programs.outcome import ProgramOutcome
from optimize.programs.piecewise import Curve
from optimize.search.pareto import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Assignment(ProgramOutcome):
    """The outcome of `assign`.

    Parameters
    ----------
    status, gap, seconds, solver, message
        See `optimize.programs.outcome.ProgramOutcome`.
    places : tuple of int
        The place of every task; empty without an assignment.
    cost : float or None
        Costs of the tasks plus the curves at the loads.
    bound : float or None
        No assignment costs less.
    loads : ndarray
        Load of every place; empty without an assignment.
    """

    places: tuple[int, ...]
    cost: float | None
    bound: float | None
    loads: FloatArray


def assign(
    costs: npt.ArrayLike,
    loads: npt.ArrayLike,
    curves: Curve | Sequence[Curve],
    *,
    tolerance: float = 1e-3,
    time_limit: float | None = None,
) -> Assignment:
    r"""Assign every task to one place, where the places suffer from contention.

    Parameters
    ----------
    costs : array_like of shape (tasks, places)
        Cost of a task at a place by itself, such as its distance; infinite forbids it.
    loads : array_like of shape (tasks, places) or (tasks,)
        Load that a task brings to a place, >= 0.
    curves : Curve or sequence of Curve
        Cost of the total load of a place, one per place or one for all; a total outside its
        domain is infeasible, so its upper end is the capacity of the place.
    tolerance : float
        Relative gap at which the search stops.
    time_limit : float, optional
        Seconds.

    Returns
    -------
    Assignment
        The best assignment with its real cost, and the bound that proves it.

    Raises
    ------
    ValueError
        If shapes do not fit, or a number is NaN, a cost -inf or a load negative.

    Notes
    -----
    .. math:: \min \sum_{tp} c_{tp} x_{tp} + \sum_p f_p\Big(\sum_t a_{tp} x_{tp}\Big),
       \quad \sum_p x_{tp} = 1,

    with the curves bracketed as in `optimize.programs.congestion.choose_congested`. Equal places are
    used in the order of their first task.

    Examples
    --------
    Four DMA channels with loads of 0.2 to 0.5 on two equal memory ports:

    >>> waiting = Curve(lambda load: load**2 / (1 - load), 0.0, 0.95)
    >>> result = assign([[0, 0]] * 4, [0.5, 0.4, 0.3, 0.2], waiting)
    >>> result.status, result.places, result.loads.round(9).tolist()
    ('optimal', (0, 1, 1, 0), [0.7, 0.7])
    """
    cost = np.asarray(costs, dtype=float)
    if cost.ndim != 2 or not cost.size or not (cost > -np.inf).all():
        raise ValueError(
            f"costs must be a table of tasks by places, not NaN or -inf, got an array of shape {cost.shape}"
        )
    load = np.asarray(loads, dtype=float)
    load = np.repeat(load[:, None], cost.shape[1], axis=1) if load.ndim == 1 else load
    if load.shape != cost.shape or not ((load >= 0) & np.isfinite(load)).all():
        raise ValueError(
            f"loads must be finite and >= 0, of shape {cost.shape} or {cost.shape[:1]},"
            f" got shape {np.shape(loads)}"
        )
    bends = [curves] * cost.shape[1] if isinstance(curves, Curve) else list(curves)
    if len(bends) != cost.shape[1]:
        raise ValueError(f"curves must be one per place ({cost.shape[1]}), got {len(bends)}")
    cost = _ordered(cost, load, bends)
    groups = {}
    for task in range(len(cost)):
        table: dict[str, FloatArray] = {"cost": cost[task]}
        for place in range(cost.shape[1]):
            table[f"load {place}"] = np.where(np.arange(cost.shape[1]) == place, load[task], 0.0)
        groups[f"task {task}"] = table
    result = choose_congested(
        groups,
        minimize="cost",
        curves={f"load {place}": curve for place, curve in enumerate(bends)},
        tolerance=tolerance,
        time_limit=time_limit,
    )
    shared = ("status", "cost", "bound", "gap", "seconds", "solver", "message")
    return Assignment(
        places=tuple(result.chosen.values()),
        loads=np.array(list(result.loads.values())),
        **{name: getattr(result, name) for name in shared},
    )


def _ordered(cost: FloatArray, load: FloatArray, curves: list[Curve]) -> FloatArray:
    """Forbid the k-th of equal places to the first k tasks, as its first task comes later."""
    result = cost.copy()
    for place in range(cost.shape[1]):
        earlier = sum(
            bool((cost[:, other] == cost[:, place]).all() and (load[:, other] == load[:, place]).all())
            and curves[other] is curves[place]
            for other in range(place)
        )
        result[:earlier, place] = np.inf
    return result
