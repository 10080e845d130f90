r"""What every model of GI/G/1 and GI/G/c from two moments shares: its arguments, their checks, its result.

A model is a formula of the wait, of the load and the two SCVs; a decorator makes it a public function
and puts the description of the arguments into its docstring.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Protocol

import numpy.typing as npt

from qmodels import checks
from qmodels.laws.arguments import Laws, arrival_moments, service_moments
from qmodels.numerics.load import Load, load
from qmodels.result import QueueResult

Number = npt.ArrayLike | None
Formula = Callable[[Load, Any, Any], Any]
"""The mean wait from the load and the SCVs of arrivals and service, where the queue is stable."""

_ARGUMENTS = r"""Parameters
    ----------
    arrival_rate : array_like
        Rate :math:`\lambda \ge 0` of a renewal arrival process. [jobs / time]
    service_rate, mean_service_time : array_like
        Exactly one of the rate and the mean :math:`m_1` of the service of one server.
    arrival_scv, service_scv : array_like
        Squared coefficients of variation :math:`c_a^2` (of the times between arrivals) and :math:`c_s^2`.
    arrival, service : Law, optional
        The laws of the times between arrivals and of the service, in place of these numbers.{servers}

    Returns
    -------
    QueueResult
        Arrays of the broadcast shape of the inputs; waiting time ``inf`` where :math:`\rho \ge 1`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----"""
_SERVERS = r"""
    servers : array_like of int
        Number of servers :math:`c \ge 1`."""


class SingleServer(Protocol):
    """A model of GI/G/1."""

    __name__: str

    def __call__(
        self,
        *,
        arrival_rate: Number = None,
        service_rate: Number = None,
        mean_service_time: Number = None,
        arrival_scv: Number = None,
        service_scv: Number = None,
        arrival: Laws | None = None,
        service: Laws | None = None,
    ) -> QueueResult:
        """Return the result."""


class ManyServers(Protocol):
    """A model of GI/G/c."""

    __name__: str

    def __call__(
        self,
        *,
        servers: npt.ArrayLike,
        arrival_rate: Number = None,
        service_rate: Number = None,
        mean_service_time: Number = None,
        arrival_scv: Number = None,
        service_scv: Number = None,
        arrival: Laws | None = None,
        service: Laws | None = None,
    ) -> QueueResult:
        """Return the result."""


def single_server(model: str) -> Callable[[Formula], SingleServer]:
    """Make a formula a model of GI/G/1 with a name."""
    return lambda formula: _public(model, formula, SingleServer, "")


def many_servers(model: str) -> Callable[[Formula], ManyServers]:
    """Make a formula a model of GI/G/c with a name."""
    return lambda formula: _public(model, formula, ManyServers, _SERVERS)


def _public(model: str, formula: Any, kind: Any, servers: str) -> Any:
    """Return a function with the name of a formula and the arguments of its kind."""
    full = signature(kind.__call__)
    arguments = full.replace(parameters=list(full.parameters.values())[1:])

    def solve(**given: Any) -> QueueResult:
        arguments.bind(**given)
        return _result(model, formula, **given)

    for name in ("__name__", "__qualname__", "__module__"):
        setattr(solve, name, getattr(formula, name))
    described = _ARGUMENTS.replace("{servers}", servers)
    solve.__doc__ = formula.__doc__.replace("Notes\n    -----", described)
    solve.__signature__ = arguments  # type: ignore[attr-defined]
    return solve


def _result(
    model: str,
    formula: Formula,
    *,
    servers: Any = 1,
    arrival_rate: Any = None,
    service_rate: Any = None,
    mean_service_time: Any = None,
    arrival_scv: Any = None,
    service_scv: Any = None,
    arrival: Laws | None = None,
    service: Laws | None = None,
) -> QueueResult:
    arrival_rate, arrival_scv = arrival_moments(arrival, arrival_rate, arrival_scv)
    rate, mean, service_scv = service_moments(service, service_rate, mean_service_time, service_scv)
    q = load(arrival_rate, service_rate=rate, mean_service_time=mean, servers=servers)
    ca = checks.nonnegative("arrival_scv", arrival_scv)
    cs = checks.nonnegative("service_scv", service_scv)
    return QueueResult(
        model=model,
        arrival_rate=q.arrival_rate,
        throughput=q.throughput,
        utilization=q.utilization,
        mean_waiting_time=q.or_endless(formula(q, ca, cs)),
        mean_service_time=q.service_time,
    )
