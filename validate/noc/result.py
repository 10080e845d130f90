"""What the simulation of a network-on-chip found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.noc.spec import NOC_METRICS, Noc
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import Estimate, exactly, ratio_interval
from validate.noc.meter import FLOW_BINS, flow_quantiles
from validate.noc.replication import Run
from validate.noc.verdict import overloaded_flows

INF = float("inf")


@dataclass(frozen=True, kw_only=True, eq=False)
class NocSimulation(MetricResult):
    """Estimates of the steady state of a network-on-chip.

    Parameters
    ----------
    spec : Noc
        What was simulated.
    metrics : mapping of str to Estimate
        By name, see `NOC_METRICS`; also attributes of the result. Those of times are ``inf`` where the
        network does not keep up; the throughput is then what it carried.
    verdict : str
        "stable", "saturated", "metastable" or "deadlocked", see `validate.noc.verdict`.
    bottleneck : str
        The channel that was busy for most of the time.
    short : bool
        Whether a replication measured fewer than 500 packets.
    runs : tuple of Run
        The replications.
    seed, replications : int
        What was run.
    packets, cycles : int
        Packets measured and cycles simulated in all replications.
    seconds : float
        Wall-clock time.
    confidence : float
        Coverage of the intervals.
    """

    spec: Noc
    metrics: Mapping[str, Estimate]
    verdict: str
    bottleneck: str
    short: bool
    runs: tuple[Run, ...]
    seed: int
    replications: int
    packets: int
    cycles: int
    seconds: float
    confidence: float

    @property
    def stable(self) -> bool:
        """Whether the network kept up with its traffic."""
        return self.verdict == "stable"

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric."""
        return NOC_METRICS[metric].unit

    def flow_rows(self) -> list[dict[str, Any]]:
        """Return a row for each flow: its ends and path, its rate and its times with their intervals.

        Times are ``inf`` where the flow's source queue grows, or nothing of it was delivered.

        Returns
        -------
        list of dict
            ``packet_latency_p95`` and ``packet_latency_p99`` are there if they were asked for; they
            are those of all replications together, off by up to 2 %. [packets/cycle, cycles]
        """
        table = self.spec.flow_table()
        sums = np.stack([run.sums for run in self.runs]).astype(float)
        cycles = float(sum(run.cycles for run in self.runs))
        lost = self._overloaded()
        latency = _ratios(sums[:, 1], sums[:, 0], self.confidence, lost)
        queueing = _ratios(sums[:, 2], sums[:, 0], self.confidence, lost)
        quantiles = self._flow_quantiles(lost)
        return [
            {
                "source": int(table.source[f]),
                "target": int(table.target[f]),
                "packet_class": int(table.packet_class[f]),
                "path": " ".join(table.path(f)),
                "throughput": sums[:, 0, f].sum() / cycles,
                "packet_latency": latency[f].best,
                "packet_latency_low": latency[f].low,
                "packet_latency_high": latency[f].high,
                "source_queue_delay": queueing[f].best,
                **{name: values[f] for name, values in quantiles.items()},
            }
            for f in range(table.source.size)
        ]

    def _overloaded(self) -> npt.NDArray[np.bool_]:
        """Return the flows whose times are infinite."""
        if self.stable:
            return np.zeros(self.runs[0].sums.shape[1], dtype=bool)
        if self.verdict == "deadlocked":
            return np.ones(self.runs[0].sums.shape[1], dtype=bool)
        return overloaded_flows([run.lags for run in self.runs], [run.cycles for run in self.runs])

    def _flow_quantiles(self, lost: npt.NDArray[np.bool_]) -> dict[str, FloatArray]:
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

    def channel_rows(self) -> list[dict[str, Any]]:
        """Return a row for each channel: its utilization with its interval, flits per cycle, mean occupancy.

        The occupancy is the mean number of flits in all virtual channels of the buffer it leads to; 0
        for an ejection, whose flits leave at once. [1, flits/cycle, flits]
        """
        table = self.spec.flow_table()
        values = np.stack([run.channels for run in self.runs]).astype(float)
        cycles = np.array([run.cycles for run in self.runs], dtype=float)
        width = np.asarray(table.channel_cycles_per_flit)
        busy = [
            ratio_interval(values[:, 0, c] * width[c], cycles, confidence=self.confidence)
            for c in range(width.size)
        ]
        return [
            {
                "channel": name,
                "utilization": busy[c].best,
                "utilization_low": busy[c].low,
                "utilization_high": busy[c].high,
                "flits": values[:, 0, c].sum() / cycles.sum(),
                "occupancy": values[:, 1, c].sum() / cycles.sum(),
            }
            for c, name in enumerate(table.channel_names)
        ]

    def to_pandas(self, what: str = "metrics") -> Any:
        """Return the metrics, the ``"flows"`` or the ``"channels"`` as a DataFrame (needs pandas)."""
        import pandas as pd

        rows = {"metrics": self.rows, "flows": self.flow_rows, "channels": self.channel_rows}
        if what not in rows:
            raise ValueError(f"what must be one of {', '.join(rows)}, got {what!r}")
        return pd.DataFrame(rows[what]())

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain dictionaries, numbers and words, without flows and channels."""
        return {
            "metrics": {row["metric"]: row for row in self.rows()},
            "verdict": self.verdict,
            "stable": self.stable,
            "bottleneck": self.bottleneck,
            "short": self.short,
            "seed": self.seed,
            "replications": self.replications,
            "packets": self.packets,
            "cycles": self.cycles,
            "seconds": self.seconds,
            "confidence": self.confidence,
        }

    def __repr__(self) -> str:
        lines = [
            f"network-on-chip, simulated: {self.replications} replications, {self.packets} packets, "
            f"{self.cycles} cycles, seed {self.seed}; {self.confidence:.4g} intervals"
        ]
        lines += self.metric_lines()
        lines.append(f"  {self.verdict}; busiest: {self.bottleneck}")
        circle = self.spec.find_deadlock()
        if circle and self.verdict != "deadlocked":
            lines.append(f"  no deadlock in this run, but there may be one from {circle[0]} on")
        if self.short:
            lines.append("  too short for its intervals: use more packets")
        return "\n".join(lines)


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
