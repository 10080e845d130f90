"""Walks through a program: what it takes with what parts answer, and with what is met at pools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qmodels.composed.couplings.pools import Pool
from qmodels.composed.couplings.setup_times import setup_times
from qmodels.composed.decomposition import PartResponses
from qmodels.composed.fixed_point.state import State
from qmodels.composed.latency import Held, LatencyInputs, LatencyWalk
from qmodels.composed.program_latency import ProgramLatency
from qmodels.systems.composed.flow import Flow


@dataclass(frozen=True, kw_only=True, eq=False)
class PoolWaits:
    """What is met at pools."""

    pools: dict[str, Pool]  # at each pool
    within: Mapping[str, PartResponses]  # what parts answer to jobs that hold tokens of a pool


NO_POOLS = PoolWaits(pools={}, within={})


def walk(
    state: State, flow: Flow, answers: PartResponses, met: PoolWaits
) -> tuple[ProgramLatency, dict[str, Held]]:
    """Return what a program takes, and how long it holds the tokens of pools."""
    walking = LatencyWalk(
        state.form,
        LatencyInputs(
            answers=answers,
            within=met.within,
            waits={t.number: met.pools[t.part].wait for t in state.form.takes if t.part in met.pools},
            turning=setup_times(state.form.takes, state.turning, state.times_taken) if state.turning else {},
            own=state.parts.own_loads(state.rates, answers),
            together=state.parts.batches,
            network=state.system.interconnect,
            rows=state.rows,
        ),
    )
    return walking.latency_of(state.form.roots[flow.name]), walking.held
