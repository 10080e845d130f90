"""The analytic model of the joint packet processor."""

from qmodels.packet_processor.answer import solve_packet_processor

__all__ = ["solve_packet_processor"]
