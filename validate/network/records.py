"""One run of a queueing network in detail: its visits, its events, its state over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import IntArray
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.network.kernel import run
from validate.network.replication import advance
from validate.network.state import (
    ARRIVED,
    BUFFER_FULL,
    COMPLETED,
    HELD,
    INTERRUPTED,
    LOST,
    POOL_FULL,
    RENEGED,
    STARTED,
    STUCK,
    SWITCHED,
)
from validate.network.world import grown, new_world

OUTCOMES = {int(COMPLETED): "completed", int(LOST): "lost", int(RENEGED): "reneged"}
"""How a visit ended, by the number in the records' ``outcome``."""
EVENTS = OUTCOMES | {
    int(ARRIVED): "arrived",
    int(STARTED): "started",
    int(HELD): "held",
    int(INTERRUPTED): "interrupted",
    int(SWITCHED): "switched",
}
"""What the lines of an event trace tell, by the number in ``event``."""


def visit_records(
    spec: QueueingNetwork, *, passages: int, seed: int = 0, replication: int = 0, rows: int = 100_000
) -> Iterator[npt.NDArray[Any]]:
    """Yield a row for every visit of a job to a node, a block of rows at a time, from time 0 on.

    ``passages``: jobs that leave the network, or cycles of closed ones, before it ends; ``seed``,
    ``replication``: as in `validate.network.run.NetworkExperiment`: the same run as there; ``rows``: rows
    kept in memory at once. Yields fields of `validate.network.state.RECORD`: job (numbered from 0), class and
    node by number, times of arrival, first start of service (NaN if there was none) and leaving, the outcome
    (see `OUTCOMES`), and the number of the branch for the task of a fork, -1 otherwise.
    """
    checks.count("passages", passages)
    world = new_world(spec, seed=seed, replication=replication, records=1)
    least = int(world.state["most_rows"][0]) + 1
    world = new_world(spec, seed=seed, replication=replication, records=max(rows, least))
    while True:
        reason = run(world, np.inf, passages)
        if reason == POOL_FULL:
            world = grown(world, world.jobs.size)
            continue
        filled = int(world.state["records"][0])
        world.state["records"] = 0
        yield world.records[:filled].copy()
        if reason != BUFFER_FULL:
            if reason == STUCK:
                raise RuntimeError("no event is left: every job waits for another")
            return


def event_trace(
    spec: QueueingNetwork, *, rows: int = 1000, seed: int = 0, replication: int = 0
) -> npt.NDArray[Any]:
    """Return the first events of a run, for debugging.

    ``rows``: lines, at least 100; some at the end may be missing. Returns fields of
    `validate.network.state.TRACE`: time, event (see `EVENTS`), node, job and class by number; -1 where no job
    is concerned.
    """
    checks.count("rows", rows, minimum=100)
    world = new_world(spec, seed=seed, replication=replication, trace=rows)
    while run(world, np.inf, 2**62) == POOL_FULL:
        world = grown(world, world.jobs.size)
    return world.trace[: int(world.state["traced"][0])].copy()


def state_series(
    spec: QueueingNetwork, *, times: npt.ArrayLike, seed: int = 0, replication: int = 0
) -> IntArray:
    """Return the number of jobs of each class at each node at given times of a run.

    ``times``: when to look, ascending, from 0 on [time].
    """
    when = checks.nonnegative("times", times)
    if when.ndim != 1 or np.any(np.diff(when) < 0):
        raise ValueError(f"times must be ascending, got {times!r}")
    world = new_world(spec, seed=seed, replication=replication)
    states = []
    for time in when:
        world = advance(world, until=float(time))
        states.append(world.tallies["number"].copy())
    return np.array(states, dtype=np.int64).reshape(when.size, len(spec.nodes), len(spec.classes))
