"""The simulator of each kind of system."""

from __future__ import annotations

from typing import Any

from qmodels.systems.spec.kind import kind_of


def simulator_of(spec: Any) -> type[Any]:
    """Return the experiment that simulates specs of this one's kind; only what is asked for is imported.

    Raises
    ------
    TypeError
        If the spec is of no kind that has a simulator.
    """
    kind = kind_of(spec)
    if kind.simulator is not None:
        return kind.simulator()
    match kind.name:
        case "packet-processor":
            from validate.packet_processor.simulate import PacketExperiment

            return PacketExperiment
        case "queueing-network":
            from validate.network.run import NetworkExperiment

            return NetworkExperiment
        case "data-queueing":
            from validate.data_queueing.simulate import DataQueueingExperiment

            return DataQueueingExperiment
        case "noc":
            from validate.noc.experiment import NocExperiment

            return NocExperiment
        case "message-program":
            from validate.messaging.experiment import ProgramExperiment

            return ProgramExperiment
        case "dram":
            from validate.dram.experiment import DramExperiment

            return DramExperiment
        case "cache":
            from validate.cache.experiment import CacheExperiment

            return CacheExperiment
        case "llc-processor":
            from validate.llc_processor.experiment import LlcProcessorExperiment

            return LlcProcessorExperiment
        case "numa":
            from validate.numa.experiment import NumaExperiment

            return NumaExperiment
        case "system":
            from validate.composed.experiment import SystemExperiment

            return SystemExperiment
        case "work-queues":
            from validate.work_queues.experiment import WorkQueuesExperiment

            return WorkQueuesExperiment
    raise TypeError(f"simulate needs a kind with a simulator, got {kind.name!r}")
