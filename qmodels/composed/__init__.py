"""The analytic answer to a system of parts: streams, what parts answer to them, and what couples parts."""

from qmodels.composed.solve import solve_system

__all__ = ["solve_system"]
