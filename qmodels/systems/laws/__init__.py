"""Laws of times: what a source draws its gaps from, or a station its service times."""

from qmodels.systems.laws.phases import MAP, HyperExponential, PhaseType
from qmodels.systems.laws.times import (
    Deterministic,
    Empirical,
    Erlang,
    Exponential,
    Gamma,
    Geometric,
    Law,
    LogNormal,
    Pareto,
    Replay,
    Uniform,
    Weibull,
)

__all__ = [
    "Deterministic",
    "Empirical",
    "Erlang",
    "Exponential",
    "Gamma",
    "Geometric",
    "HyperExponential",
    "Law",
    "LogNormal",
    "MAP",
    "Pareto",
    "PhaseType",
    "Replay",
    "Uniform",
    "Weibull",
]
