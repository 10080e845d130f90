"""Inverse problems: the smallest whole number or the largest rate that meets a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.queues.markovian.erlang import erlang_b_pair, erlang_b_step, erlang_c_from_b
from qmodels.queues.words import described

_LARGEST = 1 << 20
_MANY = 1 << 15  # servers beyond which the number is bisected


def _target(
    model: Callable[..., Any], parameter: str, meets: Callable[[Any], Any], fixed: dict[str, Any]
) -> Callable[[float], bool]:
    """Return whether the model's result meets the target at a value of the parameter."""
    for name, function in (("model", model), ("meets", meets)):
        if not callable(function):
            raise ValueError(f"{name} must be a function, got {checks.shown(function)}")
    if not isinstance(parameter, str):
        raise ValueError(f"parameter must be the name of an argument, got {checks.shown(parameter)}")

    def met(value: float) -> bool:
        return bool(meets(model(**{parameter: value}, **fixed)))

    return met


def smallest_whole(
    model: Callable[..., Any],
    parameter: str,
    meets: Callable[[Any], Any],
    *,
    minimum: int = 1,
    maximum: int = _LARGEST,
    **fixed: Any,
) -> int:
    """Return the smallest whole value of a parameter at which a model's result meets a target.

    Parameters
    ----------
    model : callable
        A model of this package, or any function of keyword arguments.
    parameter : str
        The parameter to find: ``"servers"``, ``"capacity"``.
    meets : callable
        Says of a result whether it meets the target. It must stay met as the parameter grows.
    minimum, maximum : int
        Where to look. The search doubles, so it asks the model for about twice the answer; a model
        whose work grows with the parameter takes its time near a large maximum.
    **fixed
        The other arguments of the model, scalars.

    Returns
    -------
    int
        The target is met with this value and, unless it is `minimum`, missed with one less:
        both are evaluated on the model itself.

    Raises
    ------
    ValueError
        If the target is not met at `maximum`, or the range is none of whole numbers.

    Examples
    --------
    The fewest servers with 99 % of the responses within 5 service times:

    >>> from qmodels.queues import mm1k
    >>> from qmodels.queues import mmc
    >>> in_time = lambda q: q.response_time_quantile(0.99) <= 5
    >>> smallest_whole(mmc, "servers", in_time, arrival_rate=8, service_rate=1)
    10

    The smallest buffer that loses one packet in a million:

    >>> rare = lambda q: q.blocking_probability <= 1e-6
    >>> smallest_whole(mm1k, "capacity", rare, arrival_rate=0.8, service_rate=1)
    55
    """
    low = int(checks.count("minimum", minimum, minimum=0))
    last = int(checks.count("maximum", maximum, minimum=low))

    met = _target(model, parameter, meets, fixed)
    if met(low):
        return low
    step, high = 1, min(low + 1, last)
    while not met(high):
        if high == last:
            raise ValueError(f"maximum must meet the target, got {parameter} = {last}, which misses it")
        low, step = high, 2 * step
        high = min(low + step, last)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high


def largest_rate(
    model: Callable[..., Any],
    parameter: str,
    meets: Callable[[Any], Any],
    *,
    maximum: float,
    minimum: float = 0.0,
    **fixed: Any,
) -> float:
    """Return the largest value of a rate at which a model's result meets a target.

    Parameters
    ----------
    model : callable
        A model of this package, or any function of keyword arguments.
    parameter : str
        The parameter to find: ``"arrival_rate"``, ``"offered_load"``.
    meets : callable
        Says of a result whether it meets the target. It must stay missed as the rate grows.
    maximum, minimum : float
        Where to look.
    **fixed
        The other arguments of the model, scalars.

    Returns
    -------
    float
        The target is met at this rate and missed at the next larger floating-point number,
        both evaluated on the model itself; `maximum` if the target is met there.

    Raises
    ------
    ValueError
        If the range is empty or the target is missed at `minimum`.

    Examples
    --------
    How much traffic may be offered if at most one packet in a thousand is to be lost:

    >>> from qmodels.queues import md1k
    >>> rare = lambda q: q.blocking_probability <= 1e-3
    >>> rate = largest_rate(md1k, "arrival_rate", rare, maximum=2, service_rate=1, capacity=8)
    >>> round(rate, 6)
    0.653573
    """
    low, high = (float(checks.finite(name, v)) for name, v in (("minimum", minimum), ("maximum", maximum)))
    if low > high:
        raise ValueError(f"minimum must be at most maximum = {high:g}, got {low:g}")

    met = _target(model, parameter, meets, fixed)
    if met(high):
        return high
    if not met(low):
        raise ValueError(f"minimum must meet the target, got {parameter} = {low:g}, which misses it")
    while True:
        middle = low + 0.5 * (high - low)
        # Across many decades the middle of the logarithms gets there sooner.
        if 0 < low < high / 4:
            middle = float(np.sqrt(low) * np.sqrt(high))
        if not low < middle < high:
            return low
        low, high = (middle, high) if met(middle) else (low, middle)


@described("cooper1981, chapter 3.3")
def erlang_b_servers(
    *, offered_load: npt.ArrayLike, blocking_probability: npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Return the smallest number of servers whose Erlang loss is at most a target.

    Parameters
    ----------
    blocking_probability : array_like
        Target in (0, 1].

    Returns
    -------
    Number of servers >= 1; one pass of the recurrence per point.

    Examples
    --------
    >>> erlang_b_servers(offered_load=[1, 10, 1000], blocking_probability=0.01)
    array([   5,   18, 1029])
    """
    return _servers(offered_load, "blocking_probability", blocking_probability, lambda c, a, b: b)


@described("cooper1981, chapter 3.4")
def erlang_c_servers(
    *, offered_load: npt.ArrayLike, waiting_probability: npt.ArrayLike
) -> npt.NDArray[np.int64]:
    """Return the smallest number of servers with which at most a given fraction of the jobs has to wait.

    Parameters
    ----------
    waiting_probability : array_like
        Target in (0, 1).

    Returns
    -------
    Number of servers >= 1, more than the offered load; one pass of the recurrence per point.

    Examples
    --------
    >>> erlang_c_servers(offered_load=[1, 10, 1000], waiting_probability=0.1)
    array([   3,   16, 1046])
    """

    def waits(c: int, a: float, b: float) -> float:
        return float(erlang_c_from_b(b, a / c, (c - a) / c)) if a < c else 1.0

    return _servers(offered_load, "waiting_probability", waiting_probability, waits)


def _servers(
    offered_load: npt.ArrayLike,
    name: str,
    target: npt.ArrayLike,
    measure: Callable[[int, float, float], float],
) -> npt.NDArray[np.int64]:
    load, wanted = np.broadcast_arrays(
        checks.nonnegative("offered_load", offered_load), checks.probability(name, target)
    )
    if np.any(load > checks.LARGEST_COUNT / 2):
        raise ValueError(f"offered_load must be at most {checks.LARGEST_COUNT / 2:g}, got {np.max(load):g}")
    if np.any(wanted <= 0):
        raise ValueError(f"{name} must be > 0, got {np.min(wanted):g}")
    found = np.empty(load.shape, dtype=np.int64)
    for i in np.ndindex(load.shape):
        a, goal = float(load[i]), float(wanted[i])
        if a > _MANY:
            found[i] = _bisected(a, goal, measure)
            continue
        c, blocking = 1, float(erlang_b_step(1, a, 1.0))
        while measure(c, a, blocking) > goal:
            c += 1
            blocking = float(erlang_b_step(c, a, blocking))
        found[i] = c
    return found[()]


def _blocking(servers: int, load: float) -> float:
    return float(erlang_b_pair(np.array(load), np.array(servers))[0])


def _bisected(load: float, goal: float, measure: Callable[[int, float, float], float]) -> int:
    """Return the smallest number of servers that meets a goal > 0, which one near the load does."""
    low, high = 0, int(load) + 1

    def met(servers: int) -> bool:
        return measure(servers, load, _blocking(servers, load)) <= goal

    while not met(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high
