"""One verb for every spec: ``solve(spec)``."""

from __future__ import annotations

from typing import Any

from qmodels.system_result import SystemResult


def solve(spec: Any) -> SystemResult:
    """Return the analytic answer of a system spec.

    Parameters
    ----------
    spec : PacketProcessor
        A frozen spec; where its numeric fields are arrays the answer has their broadcast shape.

    Raises
    ------
    TypeError
        If there is no model for the spec's type.

    Examples
    --------
    >>> from qmodels.systems.packet_processor import PacketProcessor
    >>> bool(solve(PacketProcessor()).stable)
    True
    """
    from qmodels.packet_processor import solve_packet_processor
    from qmodels.systems.packet_processor import PacketProcessor

    if isinstance(spec, PacketProcessor):
        return solve_packet_processor(spec)
    raise TypeError(f"solve needs a system spec such as PacketProcessor, got {type(spec).__name__}")
