"""Walks through a program: what it takes with what parts answer, and with what is met at pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qmodels.composed.asking import Heard
from qmodels.composed.couplings.pools import Pool
from qmodels.composed.couplings.turning import turning_of
from qmodels.composed.fixed_point.state import State
from qmodels.composed.passage import Held, Surroundings, Walk
from qmodels.composed.times import Passage
from qmodels.systems.composed.flow import Flow


@dataclass(frozen=True, kw_only=True, eq=False)
class Met:
    """What is met at pools."""

    pools: dict[str, Pool]  # at each pool
    within: Mapping[str, Heard]  # what parts answer to jobs that hold tokens of a pool


NO_POOLS = Met(pools={}, within={})


def walk(state: State, flow: Flow, heard: Heard, met: Met) -> tuple[Passage, dict[str, Held]]:
    """Return what a program takes, and how long it holds the tokens of pools."""
    walking = Walk(
        state.form,
        Surroundings(
            heard=heard,
            within=met.within,
            waits={t.number: met.pools[t.part].wait for t in state.form.takes if t.part in met.pools},
            turning=turning_of(state.form.takes, state.turning, state.times_taken) if state.turning else {},
            own=state.asking.own_loads(state.rates, heard),
            together=state.asking.batches,
            network=state.system.interconnect,
            rows=state.rows,
        ),
    )
    return walking.through(state.form.roots[flow.name]), walking.held
