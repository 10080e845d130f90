"""What the simulation of a queueing network found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qmodels import checks
from qmodels.checks import IntArray
from validate.engine.histogram import BINS
from validate.estimates.simulation import Simulation
from validate.estimates.statistics import Estimate, Histogram, exactly, quantile_interval

INF = float("inf")


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """Histograms of all times of all replications, without their empty bins."""

    unit: float  # unit of the histograms [time]
    # Which histograms to add up for ``waiting`` and ``response`` by place and ``system response`` by class.
    rows: Mapping[str, tuple[int, ...]]
    # Per replication the bins that are not empty, counted through all histograms, and their counts.
    runs: tuple[tuple[IntArray, IntArray], ...]

    def histograms(self, what: str) -> list[Histogram]:
        """Return one histogram per replication."""
        found = []
        for bins, counts in self.runs:
            mine = np.isin(bins // BINS, self.rows[what])
            merged = np.bincount(bins[mine] % BINS, weights=counts[mine], minlength=BINS)
            found.append(Histogram(unit=self.unit, counts=merged.astype(np.int64)))
        return found


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NetworkSimulation(Simulation):
    """Estimates of the steady state of a queueing network.

    Parameters
    ----------
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
    overloaded : tuple of str
        The stations that filled up for as long as the runs lasted. Their times and numbers, and those
        of the network, are ``inf``.
    counted : Counted
        What the histograms behind `quantile` are made from.
    most_jobs : int
        Jobs that memory was taken for.
    from_idle_times : bool
        Whether mean times and numbers are those of `validate.network.idle_times`.
    """

    overloaded: tuple[str, ...]
    counted: Counted
    most_jobs: int
    from_idle_times: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Which stations are overloaded, and what speaks against the intervals."""
        full = [f"overloaded: {', '.join(self.overloaded)}"] if self.overloaded else []
        rare = "rare services decide: mean times and numbers are from the idle times and the laws' moments"
        return (*full, *([rare] if self.from_idle_times else []), *super().notes)

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
        if self.stable is False and (place in self.overloaded or what.startswith("system") or not place):
            return exactly(INF, confidence=self.confidence)
        return quantile_interval(self.counted.histograms(what), probability, confidence=self.confidence)
