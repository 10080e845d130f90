"""One verb for every spec: ``solve(spec)``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from qmodels.system_result import SystemResult

if TYPE_CHECKING:
    from qmodels.allocator.answer import DataQueueingAnswer
    from qmodels.networks.answer import NetworkAnswer
    from qmodels.systems.packets.data_queueing import DataQueueing
    from qmodels.systems.packets.packet_processor import PacketProcessor
    from qmodels.systems.stations.queueing_network import QueueingNetwork

MODELS = {
    "qmodels.systems.packets.packet_processor.PacketProcessor": (
        "qmodels.packet_processor.solve_packet_processor"
    ),
    "qmodels.systems.stations.queueing_network.QueueingNetwork": "qmodels.networks.solve.solve_network",
    "qmodels.systems.packets.data_queueing.DataQueueing": "qmodels.allocator.solve_data_queueing",
    "qmodels.systems.noc.spec.Noc": "qmodels.noc.solve_noc.solve_noc",
    "qmodels.systems.programs.messaging.MessageProgram": "qmodels.noc.solve_program.solve_program",
    "qmodels.systems.memory.dram_system.DramSystem": "qmodels.memory.dram.solve.solve_dram",
    "qmodels.systems.cache.spec.CacheSystem": "qmodels.llc.solve_cache.solve_cache",
    "qmodels.systems.cache.llc_processor.LlcProcessor": "qmodels.llc.solve_processor.solve_llc_processor",
    "qmodels.systems.memory.numa.NumaMachine": "qmodels.memory.numa.solve.solve_numa",
    "qmodels.systems.programs.work_queues.WorkQueues": "qmodels.work_queues.solve.solve_work_queues",
}
"""The model of each kind of spec, both by their full names: only what is used is imported."""


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
    spec : dataclass
        A frozen spec of a type in `MODELS`. Where numeric fields of a packet processor or a
        data-queueing module are arrays the answer has their broadcast shape; of a `Noc` the injection
        rate, and of DRAM traffic the arrival rate, may be an array.

    Returns
    -------
    SystemResult, NetworkAnswer, DataQueueingAnswer, NocAnswer, ...
        What the model of the spec's type gives.

    Raises
    ------
    TypeError
        If there is no model for the spec's type.
    ValueError
        If no model covers a network, see `qmodels.networks.solve.solve_network`.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> bool(solve(PacketProcessor()).stable)
    True
    """
    for base in type(spec).__mro__:
        model = MODELS.get(f"{base.__module__}.{base.__qualname__}")
        if model is not None:
            module, _, name = model.rpartition(".")
            return getattr(import_module(module), name)(spec)
    known = ", ".join(name.rpartition(".")[2] for name in MODELS)
    raise TypeError(f"solve needs a system spec ({known}), got {type(spec).__name__}")
