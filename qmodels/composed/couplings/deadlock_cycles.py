"""Pools acquired in a circle: jobs that hold tokens of some may wait for each other for ever."""

from __future__ import annotations

from math import inf

from qmodels.systems.composed.program_form import ProgramForm, window_of
from qmodels.systems.composed.system import System


def deadlock_doubts(system: System, form: ProgramForm) -> tuple[str, ...]:
    """Return in words which pools jobs acquire more of while they hold some.

    Jobs stand still for ever only where each waits for tokens that another of them holds [1]_: where "is
    taken while tokens are held of" leads from a pool back to itself. A pool with tokens for all jobs that may
    be there lets nobody wait. Whether the others do stand still depends on times: that is not looked at.

    References
    ----------
    .. [1] E. G. Coffman, M. J. Elphick, A. Shoshani, "System deadlocks", ACM Computing Surveys 3(2), 1971.
    """
    after: dict[str, set[str]] = {}
    for pool, inner in form.nested_takes:
        if inner in system.parts and _most_wanted(system, form, inner) > system.parts[inner].count:
            after.setdefault(pool, set()).add(inner)
    reach = {pool: _reached(pool, after) for pool in after}
    circles = {
        tuple(sorted(other for other in reach[pool] if pool in reach.get(other, ())))
        for pool in after
        if pool in reach[pool]
    }
    for circle in sorted(circles):
        if len(circle) > 1:
            raise ValueError(
                f"pools must not be acquired in a circle, got {' and '.join(circle)}: jobs may come to wait "
                "for each other for ever; simulate it"
            )
    return tuple(
        f"tokens of {pool} are acquired by jobs that hold some: they may come to wait for each other for "
        "ever, which the model does not see; simulate it"
        for (pool,) in sorted(circles)
    )


def _most_wanted(system: System, form: ProgramForm, pool: str) -> float:
    """Most tokens of a pool that all jobs hold or wait for."""
    wanted = 0.0
    for take in form.takes:
        if take.part == pool:
            flow = system.flow(take.flow)
            inside = any(other.part == window_of(flow.name) for other in form.takes)
            jobs = (
                float(flow.population if flow.closed else flow.window or inf)
                if flow.closed or inside
                else inf
            )
            wanted += jobs * max(take.batch.size - 1, take.copies.size - 1) * take.step.tokens
    return wanted


def _reached(pool: str, after: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [pool]
    while ahead:
        for inner in after.get(ahead.pop(), set()) - found:
            found.add(inner)
            ahead.append(inner)
    return found
