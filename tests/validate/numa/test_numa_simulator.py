"""The simulator of a NUMA machine against a plain one of processes, exact times, and conservation."""

import heapq
from collections import deque
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from qmodels import NumaMachine
from qmodels.laws import Gamma
from qmodels.systems.memory.numa_system import (
    BlockWork,
    DmaEngine,
    NumaChip,
    core_name,
    loading_name,
    memory_name,
)
from validate import simulate
from validate.campaigns.experiment import Job
from validate.composed.kinds import run_numa
from validate.composed.replication import FLOWS, PARTS, resources
from validate.engine.sampling import draw, law_table
from validate.engine.streams import new_streams


def computing_times(job):
    """Return the computing times of each block of each core, from the streams of the cores."""
    spec, times = job.spec, []
    mean, loads = spec.work.compute_cycles, spec.work.global_loads + 1
    for core in range(spec.chip.cores):
        name = core_name(core)
        table = law_table([Gamma(mean=mean / loads, scv=spec.work.compute_scv)])
        streams = new_streams(
            seed=job.seed, replication=job.replication, sources=[f"service {name} 0 {name}"]
        )
        draws = [draw(table.rows, table.numbers, streams, 0) for _ in range(spec.steps_of(core))]
        times.append(loads * np.array(draws) + spec.own_cycles - mean)
    return times


class Seen:
    """What a run says of cores and memories."""

    def __init__(self, spec, run):
        system = spec.system()
        self.parts = {
            name: dict(zip(PARTS, row, strict=True))
            for name, row in zip(system.parts, run.parts, strict=True)
        }
        self.busy = {name: time for (name, _), time in zip(resources(system), run.busy, strict=True)}
        ends = {
            flow.name: row[FLOWS.index("last_end")] for flow, row in zip(system.flows, run.flows, strict=True)
        }
        self.ends = [ends.get(core_name(core), 0.0) for core in range(spec.chip.cores)]
        memories = [self.parts.get(memory_name(m), {}) for m in range(spec.chip.memories)]
        self.accesses = [int(memory.get("visits", 0)) for memory in memories]
        pools = [self.parts[name] for name in self.parts if name.startswith("channel")]
        self.commands, self.turns = (sum(pool[name] for pool in pools) for name in ("visits", "turns"))


class Plain:
    """The same machine as processes that sleep and wait for one another."""

    def __init__(self, spec, computing):
        self.spec, self.computing = spec, computing
        self.now, self.order, self.heap = 0.0, 0, []
        self.free = [0.0] * spec.chip.memories
        self.accesses = [0] * spec.chip.memories
        self.last = [None] * spec.dma.channels
        self.held = [False] * spec.dma.channels
        self.lines = [deque() for _ in range(spec.dma.channels)]
        self.ends = [0.0] * spec.chip.cores
        self.commands = self.switches = 0

    def sleep(self, process, time):
        self.order += 1
        heapq.heappush(self.heap, (time, self.order, process))

    def access(self, core, memory):
        way = self.spec.chip.way_cycles(core, memory)
        yield way / 2
        start = max(self.now, self.free[memory])
        self.free[memory] = start + self.spec.chip.controller_cycles
        self.accesses[memory] += 1
        yield self.free[memory] + way / 2 - self.now

    def compute(self, core, block, done):
        loads, places = self.spec.work.global_loads, self.spec.memories_of(core)
        for k in range(loads + 1):
            yield self.computing[core][block] / (loads + 1)
            if k < loads:
                yield from self.access(core, places[block % len(places)])
        done.append(True)
        for waiting in done[0]:
            self.sleep(waiting, self.now)

    def command(self, core, block, size):
        dma, places = self.spec.dma, self.spec.memories_of(core)
        memory = places[block % len(places)]
        channel = dma.channels_of(self.spec.chip.cores)[core]
        if self.held[channel]:
            yield self.lines[channel]  # who comes first takes it over
        self.held[channel] = True
        self.commands += 1
        turns = self.last[channel] not in (None, memory)
        self.switches += turns
        self.last[channel] = memory
        yield dma.setup_cycles + turns * dma.switch_cycles
        for _ in range(size):
            yield from self.access(core, memory)
        self.held[channel] = bool(self.lines[channel])
        if self.lines[channel]:
            self.sleep(self.lines[channel].popleft(), self.now)

    def core(self, k):
        fetch, *write = self.spec.transfers
        blocks = self.spec.steps_of(k)
        double = self.spec.work.double_buffering
        if double:
            yield from self.command(k, 0, fetch)
        for block in range(blocks):
            if not double:
                yield from self.command(k, block, fetch)
            done = [[]]
            self.sleep(self.compute(k, block, done), self.now)
            if double and block + 1 < blocks:
                yield from self.command(k, block + 1, fetch)
            if double and block and write:
                yield from self.command(k, block - 1, write[0])
            if len(done) == 1:
                yield done[0]
            if not double and write:
                yield from self.command(k, block, write[0])
        if double and write:
            yield from self.command(k, blocks - 1, write[0])
        self.ends[k] = self.now

    def run(self):
        for k in range(self.spec.chip.cores):
            if self.spec.steps_of(k):
                self.sleep(self.core(k), 0.0)
        while self.heap:
            self.now, _, process = heapq.heappop(self.heap)
            asked = next(process, None)
            if isinstance(asked, float):
                self.sleep(process, self.now + asked)
            elif asked is not None:
                asked.append(process)
        return self


VARIANTS = [
    (dict(placement="one"), dict()),
    (dict(placement="all", global_loads=3), dict(assignment="enumerated", switch_cycles=777.0)),
    (dict(placement="clustered", double_buffering=False), dict(assignment="enumerated", switch_cycles=500.0)),
    (dict(placement="all", write_bytes=0), dict(switch_cycles=333.0, channels=3)),
    (dict(core_steps=(9, 0, 4, 1) + (2,) * 12, double_buffering=False, write_bytes=0), dict(channels=2)),
]


@pytest.mark.in_ci(3)
@pytest.mark.parametrize(("work", "dma"), VARIANTS)
def test_against_processes(work, dma):
    """Event by event the same times: nothing differs but the way it is written.

    Ways and times are such that no two events of different cores fall together, as their order is free.
    """
    work = {"steps": 6, "read_bytes": 1000, "write_bytes": 300, "compute_cycles": 900.0, **work}
    factors = 1 + np.random.default_rng(5).random((16, 4))
    spec = NumaMachine(
        chip=NumaChip(numa_factors=tuple(map(tuple, factors.tolist()))),
        dma=DmaEngine(**{"setup_cycles": 40.0, **dma}),
        work=BlockWork(compute_scv=0.5, **work),
    )
    job = Job(spec=spec, seed=3, replication=1)
    seen = Seen(spec, run_numa(job))
    plain = Plain(spec, computing_times(job)).run()
    assert seen.ends == pytest.approx(plain.ends, rel=1e-12)
    assert seen.accesses == plain.accesses
    assert (seen.commands, seen.turns) == (plain.commands, plain.switches)


@pytest.mark.in_ci(6)
@pytest.mark.parametrize(
    ("placement", "assignment", "double", "loads"),
    list(product(("one", "all", "clustered"), ("paired", "enumerated", "any"), (True, False), (0, 2))),
)
def test_work_is_conserved(placement, assignment, double, loads):
    """Every block is fetched, computed and written once, wherever it lies and whoever moves it."""
    work = BlockWork(
        steps=6, read_bytes=500, write_bytes=100, compute_cycles=700.0, compute_scv=1.0,
        placement=placement, double_buffering=double, global_loads=loads,
    )  # fmt: skip
    spec = NumaMachine(dma=DmaEngine(assignment=assignment, switch_cycles=50.0), work=work)
    seen = Seen(spec, run_numa(Job(spec=spec, seed=1, replication=0)))
    assert seen.accesses == spec.accesses_of_memories().tolist()
    assert seen.commands == 16 * 6 * 2
    served = sum(seen.busy[memory_name(k)] for k, number in enumerate(seen.accesses) if number)
    assert served == pytest.approx(sum(seen.accesses) * 35.0)
    own = [times.sum() for times in computing_times(Job(spec=spec, seed=1, replication=0))]
    computing = [seen.busy[core_name(core)] for core in range(16)]
    assert computing == pytest.approx(own)
    assert all(end >= least for end, least in zip(seen.ends, computing, strict=True))
    if loads:
        held = [seen.busy[loading_name(core)] for core in range(16)]
        assert all(
            end >= with_loads > least
            for end, with_loads, least in zip(seen.ends, held, computing, strict=True)
        )


def test_one_core_takes_what_it_takes():
    """Set-up, and access after access: nothing else happens."""
    work = BlockWork(core_steps=(5,) + (0,) * 15, compute_cycles=1000.0, double_buffering=False)
    result = simulate(NumaMachine(work=work), replications=2)
    assert float(result.execution_time) == 5 * (1000 + 2 * 100 + 256 * 45)
    assert result.execution_time.half_width == 0
    assert float(result.channel_wait) == 0
    assert float(result.bandwidth) == pytest.approx(5 * 16384 / float(result.execution_time))


def test_with_one_memory_all_placements_are_equal():
    """To the last cycle, also where turning would cost."""
    chip = NumaChip(memory_nodes=(9,))
    times = set()
    for placement in ("one", "all", "clustered"):
        work = BlockWork(placement=placement, steps=8, compute_scv=0.3)
        spec = NumaMachine(chip=chip, dma=DmaEngine(switch_cycles=5000.0), work=work)
        times.add(float(simulate(spec, replications=2).execution_time))
    assert len(times) == 1


def test_a_free_channel_without_turning_is_preferred():
    """One core and any channel: after each memory was visited once, nothing turns."""
    work = BlockWork(core_steps=(12,) + (0,) * 15, placement="per-core", memories=((0, 1, 2),) + ((0,),) * 15)
    spec = NumaMachine(dma=DmaEngine(assignment="any", switch_cycles=100.0), work=work)
    assert Seen(spec, run_numa(Job(spec=spec, seed=0, replication=0))).turns <= 3


def test_intervals_and_common_random_numbers():
    """Random computing gives intervals; two placements meet the same computing times."""
    work = BlockWork(steps=16, compute_scv=0.5)
    result = simulate(NumaMachine(work=work), replications=4, seed=7)
    assert result.execution_time.half_width > 0
    one, other = (
        run_numa(Job(spec=NumaMachine(work=replace(work, placement=p)), seed=7, replication=2))
        for p in ("one", "all")
    )
    # The first resources are the cores: as long busy, whatever else happens.
    assert one.busy[:16].min() > 0
    assert one.busy[:16] == pytest.approx(other.busy[:16], rel=1e-12)
