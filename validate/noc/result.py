"""What the simulation of a network-on-chip found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from validate.estimates.simulation import Simulation
from validate.estimates.statistics import INF, Estimate, exactly, ratio_interval
from validate.noc.meter import FLOW_BINS, flow_quantiles
from validate.noc.replication import Run
from validate.noc.verdict import overloaded_flows


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NocSimulation(Simulation):
    """Estimates of the steady state of a network-on-chip; see `Simulation` for what all have.

    Times are ``inf`` where the network does not keep up; the delivered rate is then what it carried.
    ``short`` is whether a replication measured fewer than 500 packets.
    """

    verdict: str = ""  # One of `validate.noc.verdict.VERDICTS`
    # The replications; a result that was loaded has none, and no flows and channels
    runs: tuple[Run, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What speaks against the intervals, the verdict, and whether there may be a deadlock."""
        said = [] if self.stable else [self.verdict]
        circle = self.spec.find_deadlock()
        if circle and self.verdict != "deadlocked":
            said.append(f"no deadlock in this run, but there may be one from {circle[0]} on")
        return (*super().notes, *said)

    @property
    def flows(self) -> dict[str, Any]:
        """Columns: source, target, packet class, path, rate [1/ns] and times [ns] with their intervals.

        Times are ``inf`` where the flow's source queue grows, or nothing of it was delivered.
        ``packet_latency_p95`` and ``packet_latency_p99`` are there if they were asked for; they are those
        of all replications together, off by up to 2 %.
        """
        table, clock = self.spec.flow_table(), self.spec.clock_ghz
        sums = np.stack([run.sums for run in self.runs]).astype(float)
        cycles = float(sum(run.cycles for run in self.runs))
        lost = self._overloaded()
        latency = _ratios(sums[:, 1], sums[:, 0], self.confidence, lost)
        queueing = _ratios(sums[:, 2], sums[:, 0], self.confidence, lost)
        times = {
            "packet_latency": np.array([one.best for one in latency]),
            "packet_latency_low": np.array([one.low for one in latency]),
            "packet_latency_high": np.array([one.high for one in latency]),
            "source_queue_delay": np.array([one.best for one in queueing]),
            **self._flow_quantiles(lost),
        }
        return {
            "source": table.source,
            "target": table.target,
            "packet_class": table.packet_class,
            "path": [" ".join(table.path(f)) for f in range(table.source.size)],
            "delivered_rate": sums[:, 0].sum(axis=0) / cycles * clock,
            **{name: values / clock for name, values in times.items()},
        }

    def _overloaded(self) -> npt.NDArray[np.bool_]:
        """Return the flows whose times are infinite."""
        if self.stable is not False:
            return np.zeros(self.runs[0].sums.shape[1], dtype=bool)
        if self.verdict == "deadlocked":
            return np.ones(self.runs[0].sums.shape[1], dtype=bool)
        return overloaded_flows([run.lags for run in self.runs], [run.cycles for run in self.runs])

    def _flow_quantiles(self, lost: npt.NDArray[np.bool_]) -> Mapping[str, FloatArray]:
        if not any(run.flow_latencies.size for run in self.runs):
            return {}
        counts = np.zeros(lost.size * FLOW_BINS, dtype=np.int64)
        for run in self.runs:
            counts[run.flow_latencies[0]] += run.flow_latencies[1]
        by_flow = counts.reshape(-1, FLOW_BINS)
        return {
            f"packet_latency_p{percent}": np.where(lost, INF, flow_quantiles(by_flow, percent / 100))
            for percent in (95, 99)
        }

    @property
    def channels(self) -> dict[str, Any]:
        """Columns: name, utilization with its interval, flits per cycle, mean occupancy of the buffer.

        The occupancy is the mean number of flits in all virtual channels of the buffer it leads to; 0
        for an ejection, whose flits leave at once. [1, flits/cycle, flits]
        """
        flits, held = np.sum([run.channels for run in self.runs], axis=0).astype(float)
        cycles = float(sum(run.cycles for run in self.runs))
        busy = list(self.utilization.values())
        return {
            "name": self.spec.flow_table().channel_names,
            "utilization": np.array([one.best for one in busy]),
            "utilization_low": np.array([one.low for one in busy]),
            "utilization_high": np.array([one.high for one in busy]),
            "flits": flits / cycles,
            "buffer_occupancy": held / cycles,
        }


def _ratios(
    above: FloatArray, below: FloatArray, confidence: float, lost: npt.NDArray[np.bool_]
) -> Sequence[Estimate]:
    """Return the interval of each column's ratio; ``inf`` where it is lost or there is nothing."""
    return [
        exactly(INF, confidence=confidence)
        if lost[k] or not below[:, k].any()
        else ratio_interval(above[:, k], below[:, k], confidence=confidence)
        for k in range(above.shape[1])
    ]
