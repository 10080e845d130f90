"""What a simulation found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from qmodels.systems.spec.metrics import METRICS
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import Estimate


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulationResult(MetricResult):
    """Estimates of a system's metrics, and where its time goes.

    Parameters
    ----------
    system : str
        What was simulated.
    metrics : mapping of str to Estimate
        By metric name, see ``qmodels.systems.spec.metrics.METRICS`` for units; also attributes of the
        result (``result.packet_latency``). The saturation throughput is missing where the
        closed runs were switched off. Where the design does not keep up, latencies are ``inf``.
    latency_parts : mapping of str to Estimate
        Shares of the mean packet latency, which they add up to. [ns]
    utilization : mapping of str to Estimate
        Busy fraction of the busiest member of each group of resources.
    saturation_utilization : mapping of str to Estimate
        The same when packets are always waiting (empty without closed runs).
    bottleneck : str
        The group with the highest utilization.
    resources, waiting : mapping of str to Estimate
        Busy fraction of every single resource, and mean time a job waits for it. [1, ns]
    growth : Estimate
        Packets by which the number under way grew for each that arrived; about 0 if stable.
    stable : bool
        Whether the design keeps up with the offered load.
    short : bool
        Whether the runs were too short for their warm-up or for a 99th percentile: use more packets.
    seed, replications : int
        What was run.
    packets : int
        Packets each replication really had: all of a recorded trace that has fewer than asked for.
    events : int
        Events of all runs.
    seconds : float
        Wall-clock time from the start of the first run to the end of the last, other points' runs
        between them; 0 if all were found in a store.
    """

    system: str
    metrics: Mapping[str, Estimate]
    latency_parts: Mapping[str, Estimate]
    utilization: Mapping[str, Estimate]
    saturation_utilization: Mapping[str, Estimate]
    bottleneck: str
    resources: Mapping[str, Estimate]
    waiting: Mapping[str, Estimate]
    growth: Estimate
    stable: bool
    short: bool
    seed: int
    packets: int
    replications: int
    events: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, numbers and words."""
        return asdict(self)

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return METRICS[metric].unit

    def __repr__(self) -> str:
        confidence = self.metrics["packet_latency"].confidence
        lines = [
            f"{self.system}: {self.replications} replications of {self.packets} packets, seed {self.seed}; "
            f"{confidence:.0%} intervals"
        ]
        lines += self.metric_lines()
        state = "stable" if self.stable else "saturated"
        busiest = self.utilization[self.bottleneck].best
        lines.append(f"  {state}; fills up first: {self.bottleneck} (busy {busiest:.3f})")
        if self.short:
            lines.append("  too short for its warm-up: use more packets")
        return "\n".join(lines)
