"""The simulation of a queueing network: its replications and what they say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qmodels import checks
from qmodels.systems.spec.cost import afford
from validate.campaigns.experiment import Experiment
from validate.network.replication import NetworkJob, Run, run_replication
from validate.network.state import JOB
from validate.network.summary import summarize


def replicate(job: NetworkJob) -> Run:
    """Run one replication: by recursion where that gives all that events give, else event by event."""
    # Imported here because the recursion makes the event-driven simulator's runs.
    from validate.network import recursions

    return recursions.run_replication(job) if recursions.applies(job.spec) else run_replication(job)


@dataclass(frozen=True, kw_only=True)
class NetworkExperiment(Experiment):
    """The simulation of one queueing network; made by `validate.simulate`.

    Networks whose stations and classes have the same names meet the same random numbers at each.

    A replication begins empty (closed classes at their reference). Memory does not depend on
    ``passages``. Whether the warm-up was enough is found afterwards, by MSER and the correlation of
    batches: the result's ``short``. Where jobs pile up, the result's ``stable`` is False and the
    times of the station are ``inf``. A single FIFO station without losses goes by recursion. Where rare
    long services decide a mean, it has no upper end; with one FIFO server and independent gaps it is
    taken from the idle times instead (`validate.network.summary`).

    Metrics are given by name and, in brackets, place: ``mean_response_time[disk]``, and
    ``[disk, read]`` where there are several classes. A network of one station leaves its name out.
    Of a station (a fork included, whose service is the whole of its tasks):

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
    """

    # Jobs of each replication that leave the network (in whatever way), or cycles of closed ones, while it is
    # measured. Before that, as a warm-up, run a quarter as many.
    passages: int = 100_000
    # Whether every second replication is the mirror image of the one before, with 1 - u for each random
    # number u. The two are then one observation: give an even number of replications. They are correlated by
    # -0.3 at best (M/M/1, load 0.5, short runs), so that a pair is worth up to three runs; long runs and
    # rules that look at the state gain nothing.
    antithetic: bool = False

    run_type = Run
    precise = ("system_response_time",)
    run_replication = staticmethod(replicate)

    def check(self) -> None:
        """Refuse options out of range."""
        checks.count("passages", self.passages, minimum=1000)
        people = int(self.spec.populations.sum())
        afford("classes.population", people, bytes=2 * JOB.itemsize * people)

    def jobs(self, start: int, stop: int) -> list[NetworkJob]:
        """Return replications `start` to `stop` - 1."""
        return [
            NetworkJob(
                spec=self.spec,
                seed=self.seed,
                replication=k // 2 if self.antithetic else k,
                passages=self.passages,
                antithetic=self.antithetic and k % 2 == 1,
            )
            for k in range(start, stop)
        ]

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        return summarize(
            self.spec,
            runs,
            passages=self.passages,
            confidence=self.confidence,
            antithetic=self.antithetic,
        )
