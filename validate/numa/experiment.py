"""The simulation of a NUMA machine: its replications and their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.systems.memory.numa import NumaMachine
from validate.campaigns.experiment import Experiment
from validate.estimates.statistics import mean_interval
from validate.numa.kernel import COMMANDS, EVENTS, SWITCHES, TRANSFERRED, WAITED
from validate.numa.result import NumaSimulation
from validate.numa.run import Run, run_replication


@dataclass(frozen=True, kw_only=True)
class NumaExperiment(Experiment):
    """The simulation of one NUMA machine from its start to its end; made by `validate.simulate`.

    Designs with one seed and the same law of computing meet the same times, wherever their data lie.

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

    run_type = Run
    result_type = NumaSimulation
    precise = ("execution_time",)
    run_replication = staticmethod(run_replication)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        every = [_metrics(self.spec, run) for run in runs]
        metrics = {
            name: mean_interval([one[name] for one in every], confidence=self.confidence)
            for name in self.spec.metric_names
        }
        blocks = sum(self.spec.steps_of(core) for core in range(self.spec.chip.cores))
        names = ("core", "controller", "channel")
        utilization = {f"{name}s": metrics[f"{name}_utilization"] for name in names}
        return {
            "metrics": metrics,
            "utilization": utilization,
            "bottleneck": max(names, key=lambda name: metrics[f"{name}_utilization"].best) + "s",
            "core_time": np.mean([run.ends for run in runs], axis=0) / self.spec.clock_ghz,
            "core_busy": np.mean([run.computing / run.ends.max() for run in runs], axis=0),
            "channel_busy": np.mean([run.held / run.ends.max() for run in runs], axis=0),
            "controller_busy": np.mean([run.served / run.ends.max() for run in runs], axis=0),
            "effort": {"blocks": blocks, "events": int(sum(run.sums[EVENTS] for run in runs))},
        }


def _metrics(spec: NumaMachine, run: Run) -> dict[str, float]:
    end = float(run.ends.max())
    steps = np.array([spec.steps_of(core) for core in range(spec.chip.cores)])
    working = steps > 0
    commands = float(run.sums[COMMANDS])
    channels = run.held.mean() if spec.dma.assignment == "any" else run.held.max()
    clock = spec.clock_ghz
    return {
        "execution_time": end / clock,
        "step_time": float((run.ends[working] / steps[working]).mean()) / clock,
        "transfer_time": float(run.sums[TRANSFERRED]) / commands / clock,
        "channel_wait": float(run.sums[WAITED]) / commands / clock,
        "bandwidth": float(steps.sum()) * (spec.work.read_bytes + spec.work.write_bytes) / end * clock,
        "controller_utilization": float(run.served.max()) / end,
        "channel_utilization": float(channels) / end,
        "core_utilization": float(run.computing.max()) / end,
        "switch_ratio": float(run.sums[SWITCHES]) / commands,
    }
