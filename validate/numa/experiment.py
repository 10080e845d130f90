"""The simulation of a NUMA machine: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qmodels import checks
from qmodels.systems.memory.numa import NUMA_METRICS, NumaMachine
from validate.estimates.statistics import mean_interval
from validate.numa.kernel import COMMANDS, EVENTS, SWITCHES, TRANSFERRED, WAITED
from validate.numa.result import NumaResult
from validate.numa.run import Job, Run, run_replication


@dataclass(frozen=True, kw_only=True)
class NumaExperiment:
    """The simulation of one NUMA machine from its start to its end; made by `validate.simulate`.

    Parameters
    ----------
    spec : NumaMachine
        One machine.
    seed : int
        Everything random follows from it: the computing times of each core's blocks. Machines with
        one seed and the same law of computing meet the same times, wherever their data lie.
    confidence : float
        Coverage of the intervals (Student's, over the replications).

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    Every access of every command and load is an event at its controller. A replication is a whole
    run, so there is no warm-up. All cores begin at once.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from validate import simulate
    >>> fetching = replace(NumaMachine().work, compute_cycles=0.0, steps=8)
    >>> one, clustered = (
    ...     simulate(NumaMachine(work=replace(fetching, placement=placement)), replications=2)
    ...     for placement in ("one", "clustered")
    ... )
    >>> round(float(one.execution_time) / float(clustered.execution_time), 2)
    3.98
    """

    spec: NumaMachine
    seed: int = 0
    confidence: float = 0.95

    run_type: ClassVar[type[Run]] = Run
    precise: ClassVar[tuple[str, ...]] = ("execution_time",)
    run_replication: ClassVar[Callable[[Job], Run]] = staticmethod(run_replication)

    def __post_init__(self) -> None:
        if not isinstance(self.spec, NumaMachine):
            raise ValueError(f"spec must be a NumaMachine, got {self.spec!r}")
        checks.seed(self.seed)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence!r}")

    def jobs(self, start: int, stop: int) -> list[Job]:
        """Return a job for each replication."""
        return [Job(spec=self.spec, seed=self.seed, replication=k) for k in range(start, stop)]

    def summarize(self, runs: Sequence[tuple[Job, Run]], *, replications: int, seconds: float) -> NumaResult:
        """Return the estimates of finished replications."""
        each = [run for _, run in runs]
        every = [_metrics(self.spec, run) for run in each]
        return NumaResult(
            metrics={
                name: mean_interval([one[name] for one in every], confidence=self.confidence)
                for name in NUMA_METRICS
            },
            core_time=np.mean([run.ends for run in each], axis=0),
            core_busy=np.mean([run.computing / run.ends.max() for run in each], axis=0),
            channel_busy=np.mean([run.held / run.ends.max() for run in each], axis=0),
            controller_busy=np.mean([run.served / run.ends.max() for run in each], axis=0),
            blocks=sum(self.spec.steps_of(core) for core in range(self.spec.chip.cores)),
            replications=replications,
            seed=self.seed,
            events=int(sum(run.sums[EVENTS] for run in each)),
            seconds=seconds,
        )


def _metrics(spec: NumaMachine, run: Run) -> dict[str, float]:
    end = float(run.ends.max())
    steps = np.array([spec.steps_of(core) for core in range(spec.chip.cores)])
    working = steps > 0
    commands = float(run.sums[COMMANDS])
    channels = run.held.mean() if spec.dma.assignment == "any" else run.held.max()
    return {
        "execution_time": end,
        "step_time": float((run.ends[working] / steps[working]).mean()),
        "transfer_time": float(run.sums[TRANSFERRED]) / commands,
        "channel_wait": float(run.sums[WAITED]) / commands,
        "throughput": float(steps.sum()) * (spec.work.read_bytes + spec.work.write_bytes) / end,
        "controller_utilization": float(run.served.max()) / end,
        "channel_utilization": float(channels) / end,
        "core_utilization": float(run.computing.max()) / end,
        "switch_ratio": float(run.sums[SWITCHES]) / commands,
    }
