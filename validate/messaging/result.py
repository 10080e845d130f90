"""What the simulation of a message-passing program found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels.checks import FloatArray
from qmodels.systems.programs.message_metrics import unit_of
from qmodels.systems.programs.message_network import Service
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import Estimate

SHOWN = 16
"""Processes that a printed result shows one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramSimulation(MetricResult):
    """Estimates of the times of a program.

    Parameters
    ----------
    metrics : mapping of str to Estimate
        By name, see `qmodels.systems.programs.message_metrics.PROGRAM_METRICS`, with the number of the
        process in brackets; also ``result["finish_time[3]"]``. Intervals have no width where the program has
        no jitter: it takes the same course every time.
    finish : array of float, shape (processes, replications)
        When each process ended. [cycles]
    services : tuple of Service
        Who sent to whom with which priority, or through a circuit.
    packets : array of int
        Packets of each service, all replications together.
    mean_packet_latency, max_packet_latency : array of float
        Of each service, from the network interface to the other. [cycles]
    replications, seed : int
        What was run.
    cycles : int
        Cycles of the network simulated in all.
    seconds : float
        Wall-clock time.
    """

    metrics: Mapping[str, Estimate]
    finish: FloatArray
    services: tuple[Service, ...]
    packets: FloatArray
    mean_packet_latency: FloatArray
    max_packet_latency: FloatArray
    replications: int
    seed: int
    cycles: int
    seconds: float

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return unit_of(metric)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers, words and arrays."""
        return asdict(self)

    def __repr__(self) -> str:
        lines = [
            f"message-passing program, simulated: {len(self.finish)} processes, "
            f"{self.replications} replications, seed {self.seed}"
        ]
        lines += self.metric_lines()[: 2 + SHOWN]
        if len(self.finish) > SHOWN:
            lines.append(f"  ... {len(self.finish) - SHOWN} more processes in metrics")
        return "\n".join(lines)
