"""One replication of a NUMA chip: draw the computing times, run, keep the sums."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.memory.numa import NumaMachine
from validate.campaigns.experiment import Job
from validate.engine.events import STATION, new_calendar
from validate.numa import kernel as k


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What is left of a replication.

    Parameters
    ----------
    ends : array of float
        When each core had finished. [cycles]
    computing : array of float
        Time that each core computed, waiting for its own loads included. [cycles]
    held : array of float
        Time that each channel was busy with commands. [cycles]
    commands : array of int
        Commands of each channel.
    served : array of float
        Time that each controller was busy. [cycles]
    accesses : array of int
        Accesses of each controller.
    sums : array of float
        Over all commands, see `validate.numa.kernel`.
    """

    ends: FloatArray
    computing: FloatArray
    held: FloatArray
    commands: IntArray
    served: FloatArray
    accesses: IntArray
    sums: FloatArray


def run_replication(job: Job) -> Run:
    """Run one replication."""
    world = build_world(job.spec, computing_times(job))
    k.run(world)
    return Run(
        ends=world.cores["end"].copy(),
        computing=world.cores["busy"].copy(),
        held=world.channels["busy"].copy(),
        commands=world.channels["commands"].copy(),
        served=world.controllers["busy"].copy(),
        accesses=world.controllers["served"].copy(),
        sums=world.sums,
    )


def computing_times(job: Job) -> list[FloatArray]:
    """Return the time of each block of each core, without its loads from global memory. [cycles]."""
    spec = job.spec
    scv, mean = spec.work.compute_scv, spec.work.compute_cycles
    loads = spec.own_cycles - mean
    times = []
    for core in range(spec.chip.cores):
        blocks = np.full(spec.steps_of(core), mean, dtype=float)
        if scv and mean:
            key = np.random.SeedSequence(job.seed, spawn_key=(job.replication, core))
            draws = np.random.Generator(np.random.PCG64(key)).standard_gamma(1 / scv, size=blocks.size)
            blocks = mean * scv * draws
        times.append(blocks + loads)
    return times


def build_world(spec: NumaMachine, computing: list[FloatArray]) -> k.World:
    """Return the world before the first event."""
    chip, dma, work = spec.chip, spec.dma, spec.work
    cores = np.zeros(chip.cores, dtype=k.CORE)
    channels = np.zeros(dma.channels, dtype=k.CHANNEL)
    queues = np.zeros(dma.channels, dtype=k.QUEUE)
    agents = chip.cores + dma.channels
    places = [spec.memories_of(core) for core in range(chip.cores)]
    cores["steps"] = [spec.steps_of(core) for core in range(chip.cores)]
    cores["first"] = np.cumsum([0, *(times.size for times in computing[:-1])])
    cores["places"] = np.cumsum([0, *map(len, places[:-1])])
    cores["round"] = [len(one) for one in places]
    cores["channel"] = dma.channels_of(chip.cores)
    for name in ("reads", "writes", "block", "next"):
        cores[name] = k.NOTHING
    channels["core"] = channels["memory"] = k.NOTHING
    queues["head"] = queues["tail"] = k.NOTHING
    ways = np.zeros((agents, chip.memories))
    for core in range(chip.cores):
        ways[core] = [chip.way_cycles(core, memory) for memory in range(chip.memories)]
    transfers = spec.transfers
    return k.World(
        heap=new_calendar(2 * agents + 2).heap,
        cores=cores,
        channels=channels,
        queues=queues,
        controllers=np.zeros(chip.memories, dtype=STATION),
        computing=np.concatenate(computing),
        places=np.array([memory for one in places for memory in one], dtype=np.int64),
        ways=ways,
        sizes=np.array([transfers[0], transfers[1] if len(transfers) > 1 else 0], dtype=np.int64),
        costs=np.array([chip.controller_cycles, dma.setup_cycles, dma.switch_cycles], dtype=float),
        flags=np.array([work.global_loads, int(work.double_buffering)], dtype=np.int64),
        sums=np.zeros(5),
        load_memory=np.zeros(chip.cores, dtype=np.int64),
    )
