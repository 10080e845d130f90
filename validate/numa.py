"""The simulation of a NUMA machine: that of its system of parts, in the machine's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.systems.memory.numa_system import NumaMachine, channel_name, core_name, loading_name, memory_name
from validate.campaigns.experiment import Experiment, Job
from validate.composed.replication import FLOWS, PARTS, Run, resources, run_as_system, system_of
from validate.estimates.intervals import mean_interval


def run_replication(job: Job) -> Run:
    """Run one replication."""
    return run_as_system(job, 1)


@dataclass(frozen=True, kw_only=True)
class NumaExperiment(Experiment):
    """The simulation of one NUMA machine from its start to its end; made by `validate.simulate`.

    Without random computing times the intervals have no width.

    Designs with one seed and the same law of computing meet the same times, wherever their data lie.

    Notes
    -----
    The system is `NumaMachine.system`. Every access of every command and load is an event at its controller.
    A replication is a whole run, so there is no warm-up. All cores begin at once.

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
    precise = ("execution_time",)
    run_replication = staticmethod(run_replication)

    def work(self) -> tuple[str, float, float]:
        """Return the number of the work that asks for the most accesses."""
        work, chip = self.spec.work, self.spec.chip
        steps = max(map(self.spec.steps_of, range(chip.cores)))
        asked = {
            "steps": (steps, steps),
            "global_loads": (work.global_loads, work.global_loads),
            "read_bytes": (work.read_bytes / chip.access_bytes, work.read_bytes),
            "write_bytes": (work.write_bytes / chip.access_bytes, work.write_bytes),
        }
        field = max(asked, key=lambda name: asked[name])
        return f"work.{field}", asked[field][1], float(self.spec.accesses_of_memories().sum())

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        seen = [_Seen(self.spec, run) for run in runs]
        every = [one.metrics() for one in seen]
        metrics = {
            name: mean_interval([one[name] for one in every], confidence=self.confidence)
            for name in self.spec.metric_names
        }
        names = ("core", "controller", "channel")
        blocks = sum(self.spec.steps_of(core) for core in range(self.spec.chip.cores))
        return {
            "metrics": metrics,
            "utilization": {f"{name}s": metrics[f"{name}_utilization"] for name in names},
            "bottleneck": max(names, key=lambda name: metrics[f"{name}_utilization"].best) + "s",
            "details": {
                "core_time": np.mean([one.ends for one in seen], axis=0),
                **{f"{name}_busy": np.mean([one.busy[name] for one in seen], axis=0) for name in names},
            },
            "effort": {"blocks": blocks, "events": sum(run.events for run in runs)},
        }


class _Seen:
    """Results of a machine from the run of its system. Times in ns."""

    def __init__(self, spec: NumaMachine, run: Run) -> None:
        self.spec, system, chip = spec, system_of(spec), spec.chip
        flows = {flow.name: row for flow, row in zip(system.flows, run.flows, strict=True)}
        last = FLOWS.index("last_end")
        self.ends = np.array(
            [flows[name][last] if name in flows else 0.0 for name in map(core_name, range(chip.cores))]
        )
        self.end = float(self.ends.max())
        served = {name: time for (name, _), time in zip(resources(system), run.busy, strict=True)}
        channels = [-1] if spec.dma.assignment == "any" else range(spec.dma.channels)
        computing = [served.get(loading_name(k), served.get(core_name(k), 0.0)) for k in range(chip.cores)]
        held = [served.get(channel_name(k), 0.0) for k in channels]
        controllers = [served.get(memory_name(k), 0.0) for k in range(chip.memories)]
        self.busy = {
            name: np.array(times) / self.end
            for name, times in (("core", computing), ("channel", held), ("controller", controllers))
        }
        self.held = sum(held) * (spec.dma.channels if spec.dma.assignment == "any" else 1)
        pools = [row for name, row in zip(system.parts, run.parts, strict=True) if name in system.turning]
        self.commands = dict(zip(PARTS, np.sum(pools, axis=0).tolist(), strict=True))

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the machine."""
        steps = np.array([self.spec.steps_of(core) for core in range(self.spec.chip.cores)])
        working, commands, waited = steps > 0, self.commands["visits"], self.commands["time_sum"]
        moved = float(steps.sum()) * (self.spec.work.read_bytes + self.spec.work.write_bytes)
        return {
            "execution_time": self.end,
            "step_time": float((self.ends[working] / steps[working]).mean()),
            "transfer_time": (waited + self.held) / commands,
            "channel_wait": waited / commands,
            "bandwidth": moved / self.end,
            "controller_utilization": float(self.busy["controller"].max()),
            "channel_utilization": float(self.busy["channel"].max()),
            "core_utilization": float(self.busy["core"].max()),
            "switch_ratio": self.commands["turns"] / commands,
        }
