"""The analytic model of the joint packet processor."""

from qmodels.systems.spec.named import attached

__getattr__, __dir__, __all__ = attached(__name__, {f"{__name__}.answer": "solve_packet_processor"})
