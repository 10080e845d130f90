"""One verb for every spec: ``solve(spec)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from qmodels.system_result import SystemResult

if TYPE_CHECKING:
    from qmodels.allocator.answer import DataQueueingAnswer
    from qmodels.networks.network_answer import NetworkAnswer
    from qmodels.systems.data_queueing import DataQueueing
    from qmodels.systems.packet_processor import PacketProcessor
    from qmodels.systems.queueing_network import QueueingNetwork


@overload
def solve(spec: PacketProcessor) -> SystemResult: ...
@overload
def solve(spec: QueueingNetwork) -> NetworkAnswer: ...
@overload
def solve(spec: DataQueueing) -> DataQueueingAnswer: ...
@overload
def solve(spec: Any) -> Any: ...
def solve(spec: Any) -> Any:
    """Return the analytic answer of a system spec.

    Parameters
    ----------
    spec : PacketProcessor, QueueingNetwork or DataQueueing
        A frozen spec; where numeric fields of a packet processor or a data-queueing module are
        arrays the answer has their broadcast shape.

    Returns
    -------
    SystemResult, NetworkAnswer or DataQueueingAnswer
        What the model of the spec's type gives.

    Raises
    ------
    TypeError
        If there is no model for the spec's type.
    ValueError
        If no model covers a network, see `qmodels.networks.solve_network.solve_network`.

    Examples
    --------
    >>> from qmodels.systems.packet_processor import PacketProcessor
    >>> bool(solve(PacketProcessor()).stable)
    True
    """
    from qmodels.systems.packet_processor import PacketProcessor

    if isinstance(spec, PacketProcessor):
        from qmodels.packet_processor import solve_packet_processor

        return solve_packet_processor(spec)
    from qmodels.systems.queueing_network import QueueingNetwork

    if isinstance(spec, QueueingNetwork):
        from qmodels.networks.solve_network import solve_network

        return solve_network(spec)
    from qmodels.systems.data_queueing import DataQueueing

    if isinstance(spec, DataQueueing):
        from qmodels.allocator import solve_data_queueing

        return solve_data_queueing(spec)
    known = "PacketProcessor, QueueingNetwork or DataQueueing"
    raise TypeError(f"solve needs a system spec such as {known}, got {type(spec).__name__}")
