"""A closed flow and the parts it goes round: its rate is what its jobs leave room for."""

from __future__ import annotations

from typing import Any

from scipy.optimize import brentq

from qmodels.systems.composed.flow import Flow

FULL = 1 - 1e-9
"""Share of the rate at which the first resource is full that a closed flow gets at most."""


def closed_rate(state: Any, flow: Flow) -> float:
    r"""Return the rate of a closed flow, and keep what its jobs wait beyond what parts answer.

    Parameters
    ----------
    state : State
        The system in a round of its fixed point; ``extra`` of the flow is set.
    flow : Flow
        The flow.

    Notes
    -----
    The rate with :math:`X (Z + R(X)) = N` for the time Z between jobs and the time R of a program among the
    others, see `State.view`: exact for single exponential servers in balance. No more than what the first
    full resource carries: there jobs wait for it as long as N of them make.
    """
    idle = flow.think.mean if flow.think is not None else 0.0
    most = state.asking.limit({**state.rates, flow.name: 1.0}, [flow.name]) * FULL

    def excess(rate: float) -> float:
        passage, _ = state.passage(flow, state.view(flow, rate))
        return float(rate * (idle + passage.span.mean)) - flow.population

    passage, _ = state.passage(flow, state.view(flow, 0.0))
    alone = idle + passage.span.mean
    if alone <= 0:
        raise ValueError(f"flow {flow.name!r}: program must take time in a closed flow, got none")
    high = min(most, flow.population / alone)
    state.extra[flow.name] = 0.0
    if high <= 0:
        return 0.0
    left = excess(high)
    if left > 0:
        return float(brentq(excess, 0.0, high, xtol=high * 1e-13, rtol=1e-12))
    state.extra[flow.name] = -left / high if high == most else 0.0
    return high
