"""The simulation of a message-passing program: its replications and what they say together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.programs.messaging import PROCESS_TIMES, services
from qmodels.systems.spec.estimate import Estimate
from validate.campaigns.experiment import Experiment, Job
from validate.estimates.intervals import mean_interval


@dataclass(frozen=True, kw_only=True)
class ProgramJob(Job):
    """A replication, with the cycles after which it is given up."""

    longest: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    finish: FloatArray  # when each process ended [cycles]
    parts: FloatArray  # its time: computing, software, network, blocked [cycles]
    latency: float  # mean time of a message [cycles]
    service: FloatArray  # packets, the sum of their latencies and the longest
    cycles: int  # cycles simulated


def run_replication(job: ProgramJob) -> Run:
    """Run one replication."""
    # Imported here because they compile kernels.
    from validate.messaging.kernel import run
    from validate.messaging.program import build_world, compile_program

    program = compile_program(job.spec, seed=job.seed, replication=job.replication)
    message = np.zeros((len(program.messages), 2))
    service = np.zeros((len(program.known), 3))
    world = build_world(job.spec)
    finish, parts, end = run(
        world,
        program.operations,
        program.start,
        program.mailboxes,
        program.response,
        message,
        service,
        job.longest,
    )
    if end < 0:
        raise RuntimeError(
            f"the program did not end: its packets block one another for ever, or it takes more than "
            f"longest = {job.longest} cycles"
        )
    latency = float(np.mean(message[:, 1] - message[:, 0])) if len(message) else 0.0
    return Run(finish=finish, parts=parts, latency=latency, service=service, cycles=end)


@dataclass(frozen=True, kw_only=True)
class ProgramExperiment(Experiment):
    """The simulation of one message-passing program; made by `validate.simulate`.

    The latency parts are those of the process that ends last. Intervals have no width where the program has
    no jitter: it takes the same course every time.

    What is random is how long the computing steps take: programs that differ in priorities or circuits
    only meet the same random numbers.

    Packets go through the flit-level network of `validate.noc`; responses take a network of their
    own on which they meet nobody. A process has one packet under way at most.
    """

    longest: int = 1_000_000_000  # cycles after which a replication is given up with an error

    job_type = ProgramJob
    run_type = Run
    precise = ("execution_time",)
    run_replication = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse a longest time that is none."""
        checks.count("longest", self.longest)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Combine the replications into one answer."""
        finish = np.stack([run.finish for run in runs], axis=1)
        parts = np.stack([run.parts for run in runs], axis=2)
        period = 1 / self.spec.clock_ghz

        def mean(values: FloatArray) -> Estimate:
            return mean_interval(values, confidence=self.confidence).scaled(period)

        metrics = {
            "execution_time": mean(finish.max(axis=0)),
            "message_latency": mean(np.array([run.latency for run in runs])),
        }
        for name, times in zip(PROCESS_TIMES, [finish, *parts.transpose(1, 0, 2)], strict=True):
            metrics |= {f"{name}[{k}]": mean(row) for k, row in enumerate(times)}
        # Another process may be the last in each replication.
        last = parts[finish.argmax(axis=0), :, np.arange(len(runs))]
        service = np.stack([run.service for run in runs])
        packets = service[:, :, 0].sum(axis=0)
        return {
            "metrics": metrics,
            "latency_parts": {
                name.removesuffix("_time"): mean(last[:, k]) for k, name in enumerate(PROCESS_TIMES[1:])
            },
            "details": {
                "finish": finish * period,
                "services": services(self.spec)[1],
                "packets": packets,
                "mean_packet_latency": service[:, :, 1].sum(axis=0) / np.maximum(packets, 1) * period,
                "max_packet_latency": service[:, :, 2].max(axis=0) * period,
            },
            "effort": {"cycles": sum(run.cycles for run in runs)},
        }
