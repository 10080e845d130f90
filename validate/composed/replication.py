"""One replication of a system: run, drop the warm-up, and reduce to a few arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.system import System
from qmodels.systems.memory.dram_system import Dram, DramSystem
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station
from validate.cache.hierarchies import MOST_LEVELS
from validate.campaigns.experiment import Job
from validate.composed.kernels import link_names
from validate.composed.machine import run
from validate.composed.memories import memories, named
from validate.composed.state import ASKED, Core
from validate.composed.world import Machine, answer, grown, new_machine, system_rotations
from validate.dram.state import BURST, COUNT
from validate.network.replication import (
    BATCHES,
    MOST_JOBS_AT_ONCE,
    WARM_UP_BATCHES,
    BatchRun,
    area,
    job_counts,
    run_batches,
    served,
)
from validate.network.state import POOL_FULL, STUCK, World
from validate.network.world import ENDLESS
from validate.noc.traffic import seen as carried

HOPELESS = 4
"""Jobs that begin for each that is to end after which a replication gives up: the others pile up."""

FLOW_COUNTS = ("born", "ended", "lost")
FLOWS = (
    *(*FLOW_COUNTS, "bytes", "segments", "lost_segments"),
    *("latency_sum", "uncounted_sum", "last_end", "number"),
)
"""Columns of `Run.flows`; bytes and segments are those of jobs that ended, ``number`` is a time integral."""
PARTS = ("visits", "time_sum", "turns", "number")
"""Columns of `Run.parts`."""


@dataclass(frozen=True, kw_only=True)
class SystemJob(Job):
    """One replication."""

    passages: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Run(BatchRun):
    """Result of a replication; its histograms are of all visits, then of the latencies of each flow."""

    flows: FloatArray  # counts and sums of the jobs
    flow_times: FloatArray  # where the time of the jobs that ended went [ns]
    parts: FloatArray  # visits to each part, the sum of their times, and the time integral of their number
    lookups: FloatArray  # of each system of caches by the level that had the line, memory last
    stages: FloatArray  # stages of jobs that ended, and the sum of their times [ns]
    busy: FloatArray  # time integral of the share of each resource that is busy, see `resources` [ns]
    waiting: IntArray  # visits to each part under way at the end
    # When every job waited for another and nothing else was to come; ``inf`` if that was never so [ns].
    stuck: float


def resources(spec: System) -> list[tuple[str, str]]:
    """Return the part that each resource belongs to, and its name in it where there are several.

    They are the copies of stations and pools, pointer memories, all banks together, buses of channels, links
    of the interconnect.
    """
    found = [
        (name, f"{spec.place[name][k]}" if spec.copies(name) > 1 else "")
        for kind in (Station, Tokens)
        for name, part in spec.parts.items()
        if isinstance(part, kind)
        for k in range(spec.copies(name))
    ]
    found += [(name, "") for kind in (FreeList, BankedChannels) for name in named(spec, kind)]
    for name, part in spec.parts.items():
        if isinstance(part, DramSystem):
            several = part.geometry.channels > 1
            found += [(name, f"channel {k}" if several else "") for k in range(part.geometry.channels)]
    for name in named(spec, Dram):
        one = memories(spec)[name].geometry
        found += [(name, f"channel {k} bus") for k in range(one.channels)]
        found += [(name, f"channel {k} bank {b}") for k in range(one.channels) for b in range(one.banks)]
    return found + [(name, f"link {link}") for name, link in link_names(spec)]


def run_replication(job: SystemJob) -> Run:
    """Run one replication and return its numbers."""
    stuck = np.inf

    def further(machine: Machine, **goal: Any) -> Machine:
        nonlocal stuck
        machine, reason = advance(machine, **goal)
        if reason == STUCK and machine.core.flows["number"].any():
            stuck = float(machine.world.state["now"][0])
        return machine

    machine, sums, series = run_batches(
        new_machine(job.spec, seed=job.seed, replication=job.replication),
        _goals(job),
        advance=further,
        world=lambda machine: machine.world,
        seen=seen,
        progress=_progress,
    )
    return Run(waiting=machine.core.parts["number"].copy(), stuck=stuck, **sums, **series)


@lru_cache(maxsize=4)
def system_of(spec: Any, *given: Any) -> System:
    """Return the system that a spec of another kind is; its replications share it."""
    found: System = spec.system(*given)
    return found


def run_as_system(job: Job, passages: int, *given: Any) -> Run:
    """Run one replication of the system that the spec of a job is."""
    system = system_of(job.spec, *given)
    return run_replication(
        SystemJob(spec=system, seed=job.seed, replication=job.replication, passages=passages)
    )


def _goals(job: SystemJob) -> list[dict[str, Any]]:
    """Return where each batch ends: after n jobs, or at a time."""
    if job.spec.ends:
        return [{}]
    replay = system_rotations(job.spec, job.passages)
    if replay is None:
        return job_counts(job.passages)
    measured = BATCHES - WARM_UP_BATCHES
    warm_up = replay.warm_up * np.arange(1, WARM_UP_BATCHES + 1) / WARM_UP_BATCHES
    rest = replay.warm_up + replay.measured * np.arange(1, measured + 1) / measured
    return [{"until": time} for time in (replay.period * np.append(warm_up, rest)).tolist()]


def advance(machine: Machine, *, ended: int = 2**62, until: float = np.inf) -> tuple[Machine, int]:
    """Run until n jobs have ended, hopelessly more have begun, or to a time; return why it stopped."""
    limits = until, ended, HOPELESS * min(ended, 2**60)
    while True:
        w, c, kernels, services = machine
        reason = run(w, c, kernels, *limits)
        if reason == ASKED:
            answer(services, w, c)
            continue
        if reason != POOL_FULL:
            return machine, reason
        if w.jobs.size > MOST_JOBS_AT_ONCE:
            raise RuntimeError(
                f"more than {MOST_JOBS_AT_ONCE} jobs are in the system at {w.state['now'][0]:g} ns: it is "
                "overloaded, simulate fewer passages"
            )
        machine = grown(machine, w.jobs.size)


def _progress(machine: Machine) -> FloatArray:
    """Return time, sum and number of latencies, and the time integral of the jobs of each flow."""
    now = float(machine.world.state["now"][0])
    f = machine.core.flows
    return np.array([now, f["latency_sum"].sum(), f["ended"].sum(), *area(f, "number", now)])


def seen(machine: Machine) -> dict[str, Any]:
    """Return all counts and sums up to now."""
    w, c = machine.world, machine.core
    now = float(w.state["now"][0])
    flows = [c.flows[name].astype(float) for name in FLOWS[:-1]] + [area(c.flows, "number", now)]
    parts = [c.parts[name].astype(float) for name in PARTS[:-1]] + [area(c.parts, "number", now)]
    counted = np.delete(c.flow_times, -1, axis=1)
    return {
        "time": now,
        "flows": np.stack(flows, axis=-1),
        "flow_times": counted,
        "parts": np.stack(parts, axis=-1),
        "lookups": _lookups(machine),
        "stages": table_sums(c.stages),
        "busy": np.concatenate(
            [
                _served(w, now)[: c.state["stations"][0]],
                _held(c, now),
                _operated(c, now),
                area(c.banked, "busy", now) / (c.banked["channels"] * c.banked["banks"]),
                *_carried(machine),
            ]
        ),
    }


def _served(w: World, now: float) -> Any:
    """Return the time integral of the busy share of each copy of each station; 0 of a delay."""
    return np.where(w.nodes["servers"] < ENDLESS, served(w, now).sum(axis=1) / w.nodes["servers"], 0.0)


def _carried(machine: Machine) -> list[Any]:
    """Return the busy time of the buses of all channels and of the links of the interconnect."""
    if machine.kernels is None:
        return []
    c, network, channels = machine.core, machine.kernels.network, machine.kernels.channels
    bursts = channels.sums[:, :, 0, COUNT].sum(axis=1) * channels.p[:, BURST]
    flits, _ = carried(network, now=int(c.state["cycle"][0]))
    links = flits * network.channel["cycles"] / c.state["ghz"][0]
    connected = links if c.routes.size > 1 else links[:0]
    behind = c.state["controlled"][0]
    served = [bursts[:behind] / c.channels["ghz"][:behind]]
    for memory in c.memories[c.memories["burst"] > 0]:
        now, first, count = float(machine.world.state["now"][0]), memory["first"], memory["channels"]
        buses = c.channels[first : first + count]
        # Of the work a bus has accepted only what is done by now counts.
        served.append(buses["busy"] - np.maximum(buses["free_at"] - now, 0.0))
        served.append(c.rows["busy"][memory["first_bank"] :][: count * memory["banks"]])
    return [*served, connected]


def _operated(c: Core, now: float) -> Any:
    """Return the time integral of the operations of each pointer memory."""
    return c.servers["busy_sum"] + now * c.servers["taken"]


def _lookups(machine: Machine) -> FloatArray:
    """Return the lookups of each system of caches by the level that had the line, memory last."""
    if machine.kernels is None:
        return np.zeros((0, MOST_LEVELS + 1))
    caches = machine.kernels.caches
    hits, rows = caches.hits.astype(float), np.arange(len(caches.hits))
    memory = caches.plan["private"] + (caches.plan["slices"] > 0)
    missed = hits[rows, memory]
    hits[rows, memory] = 0.0
    hits[:, -1] = missed
    return hits


def table_sums(table: Any) -> FloatArray:
    """Return the columns of a table of records as one array."""
    return np.stack([table[name].astype(float) for name in table.dtype.names], axis=-1)


def _held(c: Core, now: float) -> Any:
    """Return the time integral of the share of the tokens of each pool that is held."""
    pools = c.pools
    return (pools["held_sum"] + now * (pools["tokens"] - pools["free"])) / np.maximum(pools["tokens"], 1)
