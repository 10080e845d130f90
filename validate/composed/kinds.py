"""Kinds that are systems of parts: their simulation is that of the system, in their own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.memory.numa_system import NumaMachine, channel_name, core_name, loading_name, memory_name
from qmodels.systems.spec.estimate import Estimate
from validate.campaigns.experiment import Experiment, Job
from validate.composed.replication import FLOWS, PARTS, Run, resources, run_as_system, system_of
from validate.estimates.intervals import mean_interval
from validate.network.replication import Replications

MOST_TABLES = 100_000
"""Entries up to which each replication draws which of them share a line: of more, one table is the mean."""


@dataclass(frozen=True, kw_only=True)
class LlcProcessorJob(Job):
    """One replication; ``requests`` arrive while counting, refused ones included."""

    requests: int


def run_llc_processor(job: LlcProcessorJob) -> Run:
    """Run one replication."""
    word = np.random.SeedSequence(job.seed, spawn_key=(job.replication,)).generate_state(1)
    tables = job.spec.assignment == "random" and job.spec.popularity.entries <= MOST_TABLES
    return run_as_system(job, job.requests, int(word[0]) if tables else 0)


@dataclass(frozen=True, kw_only=True)
class LlcProcessorExperiment(Experiment):
    """The simulation of one packet processor; made by `validate.simulate`.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The system is `LlcProcessor.system`: exact replacement in every cache, exponential stages. Lines move
    when they are looked up. The caches fill before the clock starts, by requests that take no time; the
    queues start empty, and a quarter as many requests as are counted are dropped.

    Examples
    --------
    >>> from validate import simulate
    >>> result = simulate(LlcProcessor(architecture="none"), requests=20_000, replications=2)
    >>> 0.94 < 1 - result.blocking_probability.best < 0.98
    True
    """

    requests: int = 100_000  # Requests of each replication, refused ones included, at least 1000

    job_type = LlcProcessorJob
    run_type = Run
    precise = ("waiting_latency",)
    run_replication = staticmethod(run_llc_processor)

    def check(self) -> None:
        """Refuse options out of range."""
        checks.count("requests", self.requests, minimum=1000)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        metrics = _metrics(self.spec, runs, self.confidence)
        busy = {"cores": "core_utilization", "LLC": "llc_utilization", "DRAM banks": "memory_utilization"}
        utilization = {
            name: metrics[of] for name, of in busy.items() if self.spec.llc_slices or name != "LLC"
        }
        return {
            "metrics": metrics,
            "utilization": utilization,
            "bottleneck": max(utilization, key=lambda name: utilization[name].best),
            "effort": {"requests": self.requests, "events": sum(run.events for run in runs)},
        }


def _metrics(spec: LlcProcessor, runs: Sequence[Run], confidence: float) -> dict[str, Estimate]:
    data, system = Replications(runs, confidence=confidence), system_of(spec)
    flow = {name: column[:, 0] for name, column in data.columns("flows", FLOWS).items()}
    parts = data.columns("parts", PARTS)
    core = list(system.parts).index("core")
    accepted, requests = flow["ended"], flow["ended"] + flow["lost"]
    l1, l2, llc, *_ = hits = data.stacked("lookups")[:, 0].T
    found, on_chip = hits.sum(axis=0), l1 + l2 + llc
    busy: dict[str, list[FloatArray]] = {"core": [], "slice": [], "dram": []}
    for (name, _), time in zip(resources(system), data.stacked("busy").T, strict=True):
        busy[name].append(time)
    shares = {name: np.mean(times, axis=0) if times else 0.0 * data.time for name, times in busy.items()}
    ratios = {
        "data_rate": (accepted * spec.gbps(spec.arrival_rate), requests),
        "waiting_latency": (parts["time_sum"][:, core], parts["visits"][:, core]),
        "response_latency": (flow["latency_sum"], accepted),
        "mean_number_in_system": (flow["number"], data.time),
        **{
            f"{name}_utilization": (shares[part], data.time)
            for name, part in (("core", "core"), ("llc", "slice"), ("memory", "dram"))
        },
    }
    of_all = {
        "blocking_probability": (flow["lost"], requests),
        "l1_hit_ratio": (l1, found),
        "l2_hit_ratio": (l2, found - l1),
        "llc_hit_ratio": (llc, found - l1 - l2 if spec.llc_slices else 0.0 * found),
        "on_chip_hit_ratio": (on_chip, found),
    }
    return {
        name: data.share(*of_all[name]) if name in of_all else data.ratio(*ratios[name])
        for name in spec.metric_names
    }


def run_numa(job: Job) -> Run:
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
    run_replication = staticmethod(run_numa)

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
