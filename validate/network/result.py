"""What the simulation of a queueing network found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from validate.engine.histogram import BINS
from validate.estimates.metric_result import MetricResult
from validate.estimates.statistics import Estimate, Histogram, exactly, quantile_interval

INF = float("inf")

UNITS = {
    "throughput": "jobs/time",
    "utilization": "1",
    "mean_waiting_time": "time",
    "mean_response_time": "time",
    "mean_number_in_queue": "jobs",
    "mean_number_in_system": "jobs",
    "waiting_probability": "1",
    "blocking_probability": "1",
    "abandonment_probability": "1",
    "blocked_servers": "servers",
    "system_throughput": "jobs/time",
    "system_response_time": "time",
    "mean_number_in_network": "jobs",
    "system_loss_probability": "1",
}
"""Units of the metrics, by their names without the place in brackets."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """Histograms of all times of all replications, without their empty bins.

    Parameters
    ----------
    unit : float
        Unit of the histograms. [time]
    rows : mapping of str to tuple of int
        Which histograms to add up for ``waiting`` and ``response`` by place and ``system response``
        by class.
    runs : tuple
        Per replication the bins that are not empty, counted through all histograms, and their counts.
    """

    unit: float
    rows: Mapping[str, tuple[int, ...]]
    runs: tuple[tuple[IntArray, IntArray], ...]

    def histograms(self, what: str) -> list[Histogram]:
        """Return one histogram per replication."""
        found = []
        for bins, counts in self.runs:
            mine = np.isin(bins // BINS, self.rows[what])
            merged = np.bincount(bins[mine] % BINS, weights=counts[mine], minlength=BINS)
            found.append(Histogram(unit=self.unit, counts=merged.astype(np.int64)))
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkSimulation(MetricResult):
    """Estimates of the steady state of a queueing network.

    Parameters
    ----------
    system : str
        What was simulated.
    metrics : mapping of str to Estimate
        By name and, in brackets, place: ``mean_response_time[disk]``, and ``[disk, read]`` where
        there are several classes. A network of one station leaves its name out. Also
        ``result["..."]``. Of a station (a fork included, whose service is the whole of its tasks):

        - ``throughput``: jobs that complete a visit;
        - ``utilization``: busy fraction of its servers (of a class: busy with it), 0 for a delay; a
          server that is held by a blocked job, is set up or on vacation is not busy;
        - ``mean_waiting_time``: time in the queue, interruptions included, over all jobs that enter,
          served or not; with shared servers the response less the service time;
        - ``mean_response_time``: time at the station over the same jobs, being blocked included;
        - ``mean_number_in_queue``, ``mean_number_in_system``: time averages; with shared servers
          nobody is in the queue;
        - ``waiting_probability``: jobs that enter and have to wait (with shared servers: are slowed down);
        - ``blocking_probability``: arrivals that are lost because the station is full;
        - ``abandonment_probability``: jobs that enter and give up;
        - ``blocked_servers``: mean number of servers held by jobs blocked after service, if the
          network has blocking.

        Of the whole network, and in brackets by the class a job began in where there are several:

        - ``system_throughput``: jobs that leave it served, or cycles of a closed class;
        - ``system_response_time``: from entry to the end, or of a cycle without the stay at its
          reference if that is a delay;
        - ``mean_number_in_network``: jobs in it, without those at a delay that is their reference;
        - ``system_loss_probability``: jobs from outside that are lost or give up anywhere.
    stable : bool
        Whether no station filled up for as long as the runs lasted. The times and numbers of one
        that did, and those of the network, are ``inf``.
    overloaded : tuple of str
        The stations that did.
    short : bool
        Whether the runs were too short for their warm-up or for the intervals to be believed.
    counted : Counted
        What the histograms behind `quantile` are made from.
    seed, passages, replications : int
        What was run.
    events : int
        Events of all runs.
    most_jobs : int
        Jobs that memory was taken for.
    seconds : float
        Wall-clock time.
    confidence : float
        Coverage of the intervals.
    """

    system: str
    metrics: Mapping[str, Estimate]
    stable: bool
    overloaded: tuple[str, ...]
    short: bool
    counted: Counted
    seed: int
    passages: int
    replications: int
    events: int
    most_jobs: int
    seconds: float
    confidence: float

    def __getitem__(self, name: str) -> Estimate:
        return self.metrics[name]

    def quantile(self, what: str, probability: float) -> Estimate:
        """Return a quantile of a time, its interval the error of the histogram's bins included.

        Parameters
        ----------
        what : str
            ``"waiting"``, ``"response"`` or ``"system response"``, with a place in brackets as in the
            metrics' names: ``"response[disk, read]"``.
        probability : float
            The quantile's order, in [0, 1].

        Returns
        -------
        Estimate
            ``inf`` where the place is overloaded.

        Raises
        ------
        ValueError
            If there is no such time.
        """
        if what not in self.counted.rows:
            close = checks.nearest(what, self.counted.rows)
            raise ValueError(f"what must be a time of the network, got {what!r}{close}")
        place = what.partition("[")[2].rstrip("]").split(", ")[0]
        if not self.stable and (place in self.overloaded or what.startswith("system") or not place):
            return exactly(INF, confidence=self.confidence)
        return quantile_interval(self.counted.histograms(what), probability, confidence=self.confidence)

    @staticmethod
    def unit_of(metric: str) -> str:
        """Return the unit of a metric, whose name may end with a place in brackets."""
        return UNITS[metric.partition("[")[0]]

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain dictionaries, numbers and words; no histograms."""
        return {
            "system": self.system,
            "metrics": {row["metric"]: row for row in self.rows()},
            "stable": self.stable,
            "overloaded": list(self.overloaded),
            "short": self.short,
            "seed": self.seed,
            "passages": self.passages,
            "replications": self.replications,
            "events": self.events,
            "most_jobs": self.most_jobs,
            "seconds": self.seconds,
            "confidence": self.confidence,
        }

    def __repr__(self) -> str:
        lines = [
            f"{self.system}: {self.replications} replications of {self.passages} passages, "
            f"seed {self.seed}; {self.confidence:.4g} intervals"
        ]
        lines += self.metric_lines()
        if not self.stable:
            lines.append(f"  overloaded: {', '.join(self.overloaded)}")
        if self.short:
            lines.append("  too short for its warm-up or its intervals: use more passages")
        return "\n".join(lines)
