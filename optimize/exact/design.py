"""The best design of a space that nobody can enumerate, with a bound and what that rests on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf
from types import MappingProxyType
from typing import Any

from optimize import checks
from optimize.exact.oracle import Oracle, axes_of, goals_of
from optimize.exact.relations import Relations
from optimize.exact.search import LINES, Search
from optimize.exact.tables import TableError
from optimize.programs.linear import solver_name
from optimize.programs.milp import seconds_of
from optimize.programs.outcome import ProgramOutcome, gap_of
from optimize.spaces.space import Space


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactDesign(ProgramOutcome):
    """The outcome of `exact_design`.

    Parameters
    ----------
    status : str
        "optimal" or "infeasible": proven if the declared bounds and sums hold; "optimal as measured" or
        "infeasible as measured": nothing that was evaluated contradicts it, see ``rests_on``; "feasible":
        the budget was spent before the bound met the best value; "nothing found": the same without a design.
    gap, seconds, solver, message
        See `optimize.programs.outcome.ProgramOutcome`; no gap without a bound.
    design : int or None
        Number of the best design found; evaluated by the model itself.
    objective : float or None
        Its objective by the model.
    bound : float or None
        No design is better than this, as far as ``status`` says; None if nothing was shown.
    evaluations, solves : int
        Designs evaluated, integer programs solved.
    proposed : int or None
        The design that the tables alone lead to.
    proposed_objective : float or None
        Its objective by the model, None where it is not feasible.
    errors : tuple of TableError
        Error of the tables, measured on designs that were not used to make them.
    rests_on : str
        What the bound rests on, in words.
    """

    design: int | None
    objective: float | None
    bound: float | None
    evaluations: int
    solves: int
    proposed: int | None
    proposed_objective: float | None
    errors: tuple[TableError, ...]
    rests_on: str


def exact_design(
    space: Space,
    evaluate: Callable[[Any], object],
    *,
    minimize: str | None = None,
    maximize: str | None = None,
    subject_to: Mapping[str, checks.Range] | None = None,
    groups: Iterable[Iterable[str]],
    sums: Mapping[str, Iterable[Iterable[str]]] = MappingProxyType({}),
    bounds: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    vectorized: bool = False,
    gap: float = 0.0,
    slack: float = 1e-4,
    lines: int = LINES,
    draws: int = 200,
    evaluations: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
) -> ExactDesign:
    r"""Find the best design of a space too large to enumerate, by integer programs over tables of its model.

    Parameters
    ----------
    space : Space
        The designs, without constraints and conditions.
    evaluate : callable
        The model, as for `optimize.explore`.
    minimize, maximize : str
        The objective, one metric or field.
    subject_to : mapping, optional
        ``{metric: (low, high)}``, inclusive; None leaves a side open. Designs that the model calls not
        ``stable`` are never feasible, unless ``{"stable": (None, None)}`` admits them.
    groups : sequence of sequence of str
        Groups of fields that belong together, tabulated together: in the first one those in which metrics
        go up and down and those that depend on each other most, in further ones what else is coupled; they
        may share fields. Fields that are in no group are tables of their own.
    sums : mapping, optional
        Metrics that are sums of tables over such groups by their formula, such as a cost. They become
        rows of the program, checked on the designs evaluated first.
    bounds : mapping, optional
        ``{metric: {field: "increasing" | "decreasing" | "constant"}}`` where that is known for certain; for
        a metric that is not named, what is as bad as what is learned from lines and checked throughout.
    vectorized : bool
        Whether `evaluate` broadcasts over specs with arrays in their fields.
    gap : float
        Relative gap that is small enough.
    slack : float
        Relative improvement of a metric up to which a choice still counts as at least as bad as another:
        the noise of the model's iteration. What of it was seen counts against the bound.
    lines : int
        Random designs through which the lines along every field are evaluated to learn from.
    draws : int
        Designs drawn from what is excluded, evaluated before a bound is believed.
    evaluations : int, optional
        Designs after which the search ends with what it has; by default no limit.
    time_limit : float, optional
        Seconds after which it does.
    seed : int
        Of the designs drawn.

    Returns
    -------
    ExactDesign
        The best design, a bound, the gap and what these rest on.

    Raises
    ------
    ValueError
        For a space with constraints, unknown names, or a declared sum or bound that an evaluation
        contradicts.

    Notes
    -----
    The program has a binary for the choices of every field and a variable for every cell of a group. Its
    objective are tables made by differences from the best design known (`optimize.exact.tables`); they only
    say where to look. The model is evaluated there, on all open cells of the first group. Each design
    :math:`a` that misses a limit, or the best value known, excludes all that is at least as bad,

    .. math:: \sum_{c \in B} x_c + \sum_{f} \sum_{v \succeq a_f} y_{fv} \le F,

    with :math:`B` the cells found bad and what is as bad as these, :math:`v \succeq a_f` the choices of
    the field f, one of F others, that never improve that goal over :math:`a_f`. Where the program
    has no solution left, nothing better exists: a combinatorial Benders decomposition [1]_ whose cuts are
    those of the true model. The order of the choices is declared, or learned and so "measured".

    References
    ----------
    .. [1] J. N. Hooker, G. Ottosson, "Logic-based Benders decomposition", Mathematical Programming 96, 2003.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> @dataclass(frozen=True)
    ... class Memory:
    ...     channels: int = 1
    ...     step: int = 1
    ...     width: int = 8
    ...     lines: int = 1
    >>> def model(memory):
    ...     wires = 100 / memory.width + 50 / memory.channels + (np.log2(memory.step / memory.channels)) ** 2
    ...     return {"latency": wires * (1 + 1 / memory.lines),
    ...             "cost": 3 * memory.channels + memory.width / 4 + memory.lines}
    >>> space = Space(Memory(), channels=range(1, 9), step=range(1, 9), width=[8, 16, 32, 64],
    ...               lines=[1, 2, 4, 8, 16])
    >>> terms = [("channels",), ("width",), ("lines",)]
    >>> found = exact_design(space, model, minimize="latency", subject_to={"cost": (None, 30)},
    ...                      vectorized=True, groups=[("channels", "step")], sums={"cost": terms},
    ...                      bounds={"latency": {"width": "decreasing", "lines": "decreasing"}})
    >>> found.status, space.spec(found.design)
    ('optimal', Memory(channels=6, step=6, width=32, lines=4))
    """
    start = time.perf_counter()
    if space.coupled:
        raise ValueError(f"space must have no constraints and conditions, got some on {space.coupled}")
    if evaluations is not None:
        checks.whole("evaluations", evaluations, least=1)
    for name, number in (("lines", lines), ("draws", draws), ("seed", seed)):
        checks.whole(name, number, least=0 if name != "lines" else 1)
    for name, share in (("gap", gap), ("slack", slack)):
        if not 0 <= share < 1:
            raise ValueError(f"{name} must be at least 0 and below 1, got {share!r}")
    goals = goals_of(minimize, maximize, subject_to)
    parts = axes_of(space, "groups", groups)
    exact = {metric: axes_of(space, f"sums[{metric!r}]", given) for metric, given in sums.items()}
    exact |= {name: [(axis,)] for axis, name in enumerate(space.choices) if name in space.numeric}
    oracle = Oracle(space, evaluate, goals, vectorized)
    relations = Relations(space, goals, bounds, slack)
    search = Search(
        oracle,
        goals,
        parts,
        exact,
        relations,
        lines=lines,
        draws=draws,
        evaluations=space.size + 1 if evaluations is None else evaluations,
        gap=gap,
        deadline=start + seconds_of(time_limit),
        seed=seed,
    )
    search.run()
    sign, found = goals[0].sign, search.best is not None
    objective = sign * search.value if found else None
    bound = sign * search.bound if abs(search.bound) < inf else None
    proposed, worth = search.proposed if search.proposed else (None, None)
    return ExactDesign(
        status=search.status,
        gap=gap_of(objective, bound),
        seconds=time.perf_counter() - start,
        solver=solver_name(),
        message="" if found or not search.finished else "no design meets all limits",
        design=search.best,
        objective=objective,
        bound=bound,
        evaluations=oracle.evaluations,
        solves=search.solves,
        proposed=proposed,
        proposed_objective=sign * float(worth[0]) if worth is not None and oracle.feasible(worth) else None,
        errors=tuple(search.errors),
        rests_on=search.rests_on,
    )
