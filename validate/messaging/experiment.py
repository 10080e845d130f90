"""The simulation of a message-passing program: its replications and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.programs.message_metrics import PROCESS_METRICS
from qmodels.systems.programs.message_network import services
from qmodels.systems.programs.messaging import MessageProgram
from validate.estimates.statistics import Estimate, mean_interval
from validate.messaging.result import ProgramSimulation


@dataclass(frozen=True, kw_only=True)
class Job:
    """One replication to run; picklable.

    Parameters
    ----------
    spec : MessageProgram
        The program.
    seed, replication : int
        Everything random follows from them.
    longest : int
        Cycles after which a run is given up.
    """

    spec: MessageProgram
    seed: int
    replication: int
    longest: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What is left of a replication.

    Parameters
    ----------
    finish : array of float
        When each process ended. [cycles]
    parts : array of float, shape (processes, 4)
        Its time: computing, software, network, blocked. [cycles]
    latency : float
        Mean time of a message. [cycles]
    service : array of float, shape (services, 3)
        Packets, the sum of their latencies and the longest.
    cycles : int
        Cycles simulated.
    """

    finish: FloatArray
    parts: FloatArray
    latency: float
    service: FloatArray
    cycles: int


def run_replication(job: Job) -> Run:
    """Run one replication.

    Raises
    ------
    RuntimeError
        If the packets block one another for ever, or the program takes longer than allowed.
    """
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
class ProgramExperiment:
    """The simulation of one message-passing program; made by `validate.simulate`.

    Parameters
    ----------
    spec : MessageProgram
        The program.
    seed : int
        Everything random follows from it: how long the computing steps take. Programs that differ in
        priorities or circuits only meet the same random numbers.
    confidence : float
        Coverage of the intervals (Student's, over the replications).
    longest : int
        Cycles after which a replication is given up with an error.

    Notes
    -----
    Packets go through the flit-level network of `validate.noc`; responses take a network of their
    own on which they meet nobody. A process has one packet under way at most.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Examples
    --------
    >>> from qmodels.systems.programs.collectives import barrier
    >>> from qmodels.systems.noc.topologies import mesh
    >>> from validate import simulate
    >>> program = MessageProgram(topology=mesh(2, 2), processes=barrier(processes=4))
    >>> result = simulate(program, replications=2)
    >>> result["execution_time"].best
    2861.0
    """

    spec: MessageProgram
    seed: int = 0
    confidence: float = 0.95
    longest: int = 1_000_000_000

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("execution_time",)
    run_replication: ClassVar[Callable[[Job], Run]] = staticmethod(run_replication)

    def __post_init__(self) -> None:
        if not isinstance(self.spec, MessageProgram):
            raise ValueError(f"spec must be a MessageProgram, got {self.spec!r}")
        checks.seed(self.seed)
        checks.count("longest", self.longest)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence!r}")

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return replications `start` to `stop` - 1."""
        return [
            Job(spec=self.spec, seed=self.seed, replication=k, longest=self.longest)
            for k in range(start, stop)
        ]

    def summarize(
        self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float
    ) -> ProgramSimulation:
        """Return what the replications say together."""
        found = [run for _, run in runs]
        finish = np.stack([run.finish for run in found], axis=1)
        parts = np.stack([run.parts for run in found], axis=2)

        def mean(values: FloatArray) -> Estimate:
            return mean_interval(values, confidence=self.confidence)

        metrics = {
            "execution_time": mean(finish.max(axis=0)),
            "message_latency": mean(np.array([run.latency for run in found])),
        }
        for name, times in zip(PROCESS_METRICS, [finish, *parts.transpose(1, 0, 2)], strict=True):
            metrics |= {f"{name}[{k}]": mean(row) for k, row in enumerate(times)}
        service = np.stack([run.service for run in found])
        packets = service[:, :, 0].sum(axis=0)
        return ProgramSimulation(
            metrics=metrics,
            finish=finish,
            services=services(self.spec)[1],
            packets=packets,
            mean_packet_latency=service[:, :, 1].sum(axis=0) / np.maximum(packets, 1),
            max_packet_latency=service[:, :, 2].max(axis=0),
            replications=replications,
            seed=self.seed,
            cycles=sum(run.cycles for run in found),
            seconds=seconds,
        )
