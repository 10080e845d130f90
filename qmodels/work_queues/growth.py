"""A growing set of tasks as a fluid that flows from layer to layer, in rounds of one task per core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.evidence.constants import kept
from qmodels.systems.programs.work_queues import Growth, WorkQueues, grow


class RingLaw(NamedTuple):
    """The deviation of the tasks that one task passes on around a ring, see `ring_surplus`.

    Parameters
    ----------
    deviation : float
        In long rings, of equal tasks. [tasks]
    by_compute : float
        What it grows by with the coefficient of variation of the computing time. [tasks]
    full : float
        Queues of a long ring; below, the deviation falls with the root of their number. [queues]
    """

    deviation: float
    by_compute: float
    full: float


LAW = kept(RingLaw, "work_queues.ring")


def step_deviation(*, queues: int, compute_scv: float) -> float:
    """Return the deviation of the tasks that one task passes on around a ring."""
    full = LAW.deviation + LAW.by_compute * np.sqrt(compute_scv)
    return float(full * min(1.0, np.sqrt(queues / LAW.full)))


def expected_maximum(*, means: npt.ArrayLike, deviations: npt.ArrayLike) -> float:
    r"""Mean of the largest of independent normal numbers.

    :math:`E[\max] = b - \int_{-\infty}^b \prod_i \Phi((x - m_i)/\sigma_i)\,dx` for a b beyond them
    all, by the trapezoidal rule; numbers without deviation are exact.
    """
    from scipy.special import ndtr

    m, d = np.broadcast_arrays(
        checks.finite("means", means).ravel(), checks.nonnegative("deviations", deviations).ravel()
    )
    low, high = float(np.max(m - 9 * d)), float(np.max(m + 9 * d))
    if high <= low:
        return high
    x = np.linspace(low, high, 2001)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (x[:, None] - m) / d
    below = np.where(d > 0, ndtr(z), x[:, None] >= m)
    return high - float(np.trapezoid(below.prod(axis=1), x))


def ring_surplus(*, tasks: float, queues: int, compute_scv: float = 0.0) -> float:
    r"""Tasks by which the busiest of a ring of queues exceeds the mean when each passes on to the next.

    ``tasks``: tasks N of all queues together; ``queues``: queues M in the ring; ``compute_scv``: squared
    coefficient of variation of a task's time.

    Queue i + 1 runs the tasks found by queue i: around the ring the numbers form a random walk with M
    steps, each of variance :math:`\sigma^2 N/M`, that ends where it began. The mean range of a
    Brownian bridge is :math:`\sqrt{\pi/2}`, its largest departure from the mean half of that, and a
    walk in steps reaches less far than a continuous one by 0.5826 steps:

    .. math:: \sigma \left(\sqrt{\pi/8}\sqrt N - 0.5826 \sqrt{N/M}\right).

    An approximation: the :math:`\sigma` of `step_deviation` is measured, not derived, since who is
    late finds his neighbours taken, and short queues therefore find more than long ones.

    References
    ----------
    .. [1] N. H. Kuiper, "Tests concerning random points on a circle", Proc. Koninklijke Nederlandse
       Akademie van Wetenschappen A 63 (1960), 38-47: the range of a Brownian bridge.
    .. [2] D. Siegmund, "Corrected diffusion approximations in certain random walk problems", Advances
       in Applied Probability 11 (1979), 701-719: 0.5826.
    """
    total = float(checks.nonnegative("tasks", tasks))
    count = int(checks.count("queues", queues))
    scv = float(checks.nonnegative("compute_scv", compute_scv))
    deviation = step_deviation(queues=count, compute_scv=scv)
    reach = np.sqrt(np.pi / 8 * total) - 0.5826 * np.sqrt(total / count)
    return float(deviation * max(reach, 0.0)) if count > 1 else 0.0


def ring_block_imbalance(*, tasks: float, queues: int, blocks: int, compute_scv: float = 0.0) -> float:
    r"""Mean surplus of the busiest of equal sections of a ring of queues, as a share of an equal part.

    ``tasks``: tasks of all queues together; ``queues``, ``blocks``: queues in the ring, and its equal
    sections, such as clusters of cores; ``compute_scv``: squared coefficient of variation of a task's time.

    The departures of the queues are taken for independent and normal, so that the largest of them all is
    the `ring_surplus`; a section has the mean of its queues. Simulated imbalances of four clusters of
    four cores are 0.07 to 0.10 where this gives 0.07.
    """
    total = float(checks.positive("tasks", tasks))
    count = int(checks.count("blocks", blocks))
    if count == 1:
        return 0.0
    scv = float(checks.nonnegative("compute_scv", compute_scv))
    surplus = ring_surplus(tasks=total, queues=queues, compute_scv=scv)
    one = surplus / expected_maximum(means=np.zeros(queues), deviations=np.ones(queues))
    largest = expected_maximum(means=np.zeros(count), deviations=np.ones(count))
    return float(one * largest / np.sqrt(queues / count) / (total / queues))


def visit_time(*, customers: npt.ArrayLike, service_time: npt.ArrayLike, away_time: npt.ArrayLike) -> Any:
    r"""Mean response time of one server that serves a few customers in a cycle, each for a fixed time.

    ``customers``: customers n >= 0; fractions stand for means. Fewer than 1 count as 1; ``service_time``:
    fixed time s of a service [time]; ``away_time``: mean time Z from the end of a visit to the next arrival
    of the same customer [time]. Returns waiting and service together, of the broadcast shape; never
    overloaded, at most n s.

    Mean value analysis with the arrival theorem of Bard and Schweitzer: an arrival finds the share
    (n - 1)/n of the mean number x n/(Z + x); who is in service has half of it left:

    .. math:: x = s + s \frac{n-1}{Z+x} \left(x - \frac s2\right),

    a quadratic equation in x, and at least n s - Z, since the server does no more than it can. Exact
    for one customer and in the limit of many; an approximation in between.
    """
    n = np.maximum(checks.nonnegative("customers", customers), 1.0)
    s = checks.nonnegative("service_time", service_time)
    z = checks.nonnegative("away_time", away_time)
    return visit_time_unchecked(n, s, z)[()]


def visit_time_unchecked(n: FloatArray, s: FloatArray, z: FloatArray) -> FloatArray:
    """Return `visit_time` of at least one customer, without checks: for inner loops."""
    half = 0.5 * (n * s - z)
    root = np.sqrt(np.maximum(half**2 + s * z - 0.5 * (n - 1.0) * s**2, 0.0))
    return np.asarray(np.clip(half + root, np.maximum(s, n * s - z), n * s))


@dataclass(frozen=True, kw_only=True, eq=False)
class Layers:
    """Tasks by the number of steps from the seed and by the cluster of their data."""

    tasks: FloatArray  # how many there are
    blocks: FloatArray  # their mean number of blocks
    children: FloatArray  # tasks of the next layer, by cluster, that one task finds


def layers_of(spec: WorkQueues) -> Layers:
    """Return the layers of a spec's tasks; a bag is one layer."""
    clusters, homes, blocks = spec.machine.clusters, spec.homes, spec.blocks
    if isinstance(spec.tasks, Growth):
        graph = grow(spec.tasks)
        depth, parent = graph.depth, graph.parent
    else:
        depth, parent = np.zeros_like(homes), np.full_like(homes, -1)
    count = int(depth.max()) + 1
    tasks, work = np.zeros((count, clusters)), np.zeros((count, clusters))
    np.add.at(tasks, (depth, homes), 1.0)
    np.add.at(work, (depth, homes), blocks)
    children = np.zeros((count, clusters, clusters))
    later = np.flatnonzero(parent >= 0)
    np.add.at(children, (depth[parent[later]], homes[parent[later]], homes[later]), 1.0)
    some = np.maximum(tasks, 1.0)
    return Layers(tasks=tasks, blocks=work / some, children=children / some[:, :, None])


MOST_ROUNDS = 200_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Rounds:
    """Course of the fluid."""

    makespan: float  # until nothing is left [cycles]
    ends: FloatArray  # when each queue ran out of tasks for good [cycles]
    served: FloatArray  # tasks that each queue's cores ran
    # stolen, local: tasks that were stolen, and that went through a core's own queue.
    stolen: float
    local: float
    # lock_wait, memory_wait: sums over all tasks [cycles].
    lock_wait: float
    memory_wait: float
    memory_busy: FloatArray  # busy time of each memory controller [cycles]
    cycle_time: float  # mean time of a task while all cores work [cycles]


class _Fluid:
    """The rounds of one spec: what waits where, and what it takes."""

    def __init__(self, spec: WorkQueues) -> None:
        self.spec, self.layers = spec, layers_of(spec)
        self.groups, self.each = spec.groups, spec.group_cores
        clusters = spec.machine.clusters
        self.numa = np.array(spec.machine.numa_factors, dtype=float)
        self.cluster = np.arange(self.groups) * clusters // self.groups
        # Row g: share of the cores of queue g in each cluster (a central queue has all).
        self.where = np.zeros((self.groups, clusters))
        for core in range(spec.cores):
            self.where[core // self.each, core // spec.machine.cores] += 1.0 / self.each
        self.lock = (
            spec.costs.queue_cycles * (self.where @ self.numa)[np.arange(self.groups), spec.queue_memory]
        )
        self.waiting = np.zeros((self.groups, *self.layers.tasks.shape))
        self.in_local = np.zeros(self.groups)
        self.memory_time = np.full(clusters, spec.costs.transfer_cycles)
        self.lock_time = self.lock.copy()
        self.local_part = np.zeros(self.groups)
        hierarchical = spec.queues.organisation == "hierarchical"
        self.local_room = float(spec.queues.local_length * self.each if hierarchical else 0)
        if isinstance(spec.tasks, Growth):
            first = int(spec.queue_of[0]) if spec.queues.placement == "home" else 0
            self.waiting[first, 0, int(spec.homes[0])] = 1.0
        else:
            np.add.at(self.waiting[:, 0], (spec.queue_of, spec.homes), 1.0)

    def oldest(self, amount: FloatArray) -> FloatArray:
        """Return the amount that each queue gives first, by layer and cluster."""
        per_layer = self.waiting.sum(axis=2)
        before = np.cumsum(per_layer, axis=1) - per_layer
        taken = np.clip(amount[:, None] - before, 0.0, per_layer)
        part = np.divide(taken, per_layer, out=np.zeros_like(taken), where=per_layer > 0)
        return self.waiting * part[:, :, None]

    def place(self, found: FloatArray) -> None:
        """Put newly found tasks, by finding queue, layer and cluster, where they belong."""
        how, groups = self.spec.queues.placement, self.groups
        if how == "next":
            # Where a task turns up around the ring is left to chance: see `ring_surplus`.
            found = np.broadcast_to(found.mean(axis=0), found.shape)
        elif how == "home" and groups > 1:
            found = np.einsum("gdh,kh->kdh", found, self.home_part())
        self.waiting += found

    def home_part(self) -> FloatArray:
        """Return the share of each cluster's tasks that each queue is given."""
        part = np.zeros((self.groups, self.spec.machine.clusters))
        per_cluster = self.groups // self.spec.machine.clusters
        part[np.arange(self.groups), self.cluster] = 1.0 / per_cluster
        return part

    def costs_of(self, served: FloatArray, busy: FloatArray) -> FloatArray:
        """Return the mean time of a task at each queue for what its cores are serving."""
        c, spec = self.spec.costs, self.spec
        total = np.maximum(served.sum(axis=(1, 2)), 1e-12)
        compute = c.task_cycles + c.block_cycles * (served * self.layers.blocks).sum(axis=(1, 2)) / total
        children = (served * self.layers.children.sum(axis=2)).sum(axis=(1, 2)) / total
        homes = served.sum(axis=1) / total[:, None]
        if spec.data == "one":
            homes = np.zeros_like(homes)
            homes[:, 0] = 1.0
        elif spec.data == "nearest":
            homes = self.where
        if spec.data == "nearest":
            latency = np.zeros(self.groups)
        else:
            latency = (homes * (self.where @ self.numa - 1.0)).sum(axis=1) * c.transfer_cycles
        customers = np.maximum((busy[:, None] * homes).sum(axis=0), 1.0)
        # A new task is put into a queue once and taken out once, through the lock or past it.
        visits = (1.0 + children) * (1.0 - self.local_part)
        local = (1.0 + children) * self.local_part * c.local_cycles
        at_lock = np.maximum(
            busy * (2.0 if spec.queues.placement == "next" and self.groups > 1 else 1.0), 1.0
        )
        working = busy > 0
        for _ in range(3):
            cycle = compute + local + latency + homes @ self.memory_time + visits * self.lock_time
            mean_cycle = (busy * cycle).sum() / max(float(busy.sum()), 1e-12)
            away = np.maximum(mean_cycle - self.memory_time, 0.0)
            memory = visit_time_unchecked(customers, np.full(customers.size, c.transfer_cycles), away)
            away = np.maximum(cycle / np.maximum(visits, 1e-9) - self.lock_time, 0.0)
            lock = visit_time_unchecked(at_lock, self.lock, away)
            self.memory_time = 0.5 * (self.memory_time + memory)
            self.lock_time = np.where(working, 0.5 * (self.lock_time + lock), self.lock)
        self.homes, self.visits = homes, visits
        return np.asarray(
            compute + local + latency + homes @ self.memory_time + visits * self.lock_time, dtype=float
        )

    def steal(self, round_time: float) -> tuple[FloatArray, float]:
        """Move tasks to idle queues; return the share of the round each loses with it, and how many."""
        s, spec = self.spec.stealing, self.spec
        lost = np.zeros(self.groups)
        moved = 0.0
        if s.thieves == "none" or self.groups == 1:
            return lost, moved
        thieves = 1 if s.thieves == "shepherd" else self.each
        for thief in range(self.groups):
            tries = 0.0
            while self.waiting[thief].sum() < self.each:
                length = self.waiting.sum(axis=(1, 2)) - self.each - self.in_local
                length[thief] = 0.0
                good = np.flatnonzero(length > s.protected + 1e-9)
                if not good.size:
                    break
                if s.victims == "longest":
                    victim = int(good[np.argmax(length[good])])
                elif s.victims == "nearest":
                    near = self.numa[self.cluster[thief], spec.queue_memory[good]]
                    order = np.lexsort(((good - thief) % self.groups, near))
                    victim = int(good[order[0]])
                else:
                    victim = int(good[int(moved) % good.size])
                excess = float(length[victim] - s.protected)
                loot = min(float(s.most), max(min(1.0, excess), s.share * excess))
                factor = self.numa[self.cluster[thief], spec.queue_memory[victim]]
                time = s.cycles + factor * (spec.costs.queue_cycles + s.item_cycles * loot)
                tries += time / (round_time * thieves)
                amount = np.zeros(self.groups)
                amount[victim] = loot
                taken = self.oldest(amount)[victim]
                self.waiting[victim] -= taken
                self.waiting[thief] += taken
                moved += loot
                if tries >= 1.0:
                    break
            lost[thief] = min(tries, 1.0)
        return lost, moved

    def run(self, served: FloatArray) -> tuple[FloatArray, float]:
        """Take away what is served, place what it finds; return tasks run and those that go to own queues."""
        amount = served.sum(axis=(1, 2))
        found = np.zeros_like(self.waiting)
        found[:, 1:] = np.einsum("gdh,dhk->gdk", served, self.layers.children)[:, :-1]
        self.waiting = np.maximum(self.waiting - served, 0.0)
        kept = self.keep_local(found, amount)
        self.place(found)
        return amount, kept

    def keep_local(self, found: FloatArray, served: FloatArray) -> float:
        """Follow how many tasks are in the cores' own queues; return how many go there."""
        if not self.local_room:
            return 0.0
        own = found.sum(axis=1)[np.arange(self.groups), self.cluster]
        if self.spec.queues.placement != "home":
            own = found.sum(axis=(1, 2)) * (self.spec.queues.placement == "own")
        from_local = np.minimum(self.in_local, served)
        shared = self.waiting.sum(axis=(1, 2)) - self.each - self.in_local
        room = self.local_room - self.in_local + from_local
        kept = np.where(shared >= self.spec.queues.minimum_length, np.minimum(own, room), 0.0)
        self.in_local = self.in_local - from_local + kept
        self.local_part = np.divide(from_local, served, out=np.zeros(self.groups), where=served > 0)
        return float(kept.sum())


def _ring_delay(fluid: _Fluid, served: FloatArray) -> float:
    """Return the extra work of the busiest queue of a ring over the mean, both over the whole run.

    The others' idle times are spread over the run, in which resources are less crowded for that.
    """
    spec, layers = fluid.spec, fluid.layers
    mean = float(served.sum()) / fluid.groups
    surplus = ring_surplus(tasks=spec.task_count, queues=fluid.groups, compute_scv=spec.costs.compute_scv)
    mix = np.broadcast_to(layers.tasks, fluid.waiting.shape)
    cycle = []
    for active in (1.0, mean / (mean + surplus)):
        busy = np.full(fluid.groups, active * fluid.each)
        for _ in range(8):  # the waits settle
            times = fluid.costs_of(mix, busy)
        cycle.append(float(times.mean()))
    return max(0.0, (mean + surplus) * cycle[1] - mean * cycle[0]) / fluid.each


def run_rounds(spec: WorkQueues) -> Rounds:
    r"""Let the tasks flow until none is left.

    In a round each busy core runs one task; tasks found in it are there in the next one, in the layers
    of a search by breadth and in the queues the spec says. The round lasts as long as the slowest
    queue's task, for which memory and lock waits follow from the cores now busy (`visit_time`);
    quicker queues do more. With equal times and one queue this is exact; what single tasks do by
    chance is left out.
    """
    fluid = _Fluid(spec)
    now, moved, kept, lock_wait, memory_wait = 0.0, 0.0, 0.0, 0.0, 0.0
    served_by = np.zeros(fluid.groups)
    ends = np.zeros(fluid.groups)
    memory_busy = np.zeros(spec.machine.clusters)
    full_time = full_tasks = 0.0
    length = spec.serial_time / spec.task_count
    for _ in range(MOST_ROUNDS):
        left = fluid.waiting.sum(axis=(1, 2))
        if left.sum() < 1e-9:
            break
        lost, stolen = fluid.steal(length)
        moved += stolen
        busy = np.minimum(fluid.waiting.sum(axis=(1, 2)), fluid.each)
        cycle = fluid.costs_of(fluid.oldest(busy), busy)
        length = float(cycle[busy > 1e-9].max())
        served = fluid.oldest(busy * length / np.maximum(cycle, 1e-12) * (1.0 - lost))
        if left.sum() < 1.0:
            length *= float(left.sum())  # the chance that there is another task
        amount, into_local = fluid.run(served)
        kept += into_local
        now += length
        ends[amount > 1e-9] = now
        served_by += amount
        memory_busy += (amount[:, None] * fluid.homes).sum(axis=0) * spec.costs.transfer_cycles
        lock_wait += float((amount * fluid.visits * (fluid.lock_time - fluid.lock)).sum())
        waits = fluid.memory_time - spec.costs.transfer_cycles
        memory_wait += float((amount[:, None] * fluid.homes * waits).sum())
        if busy.sum() > 0.99 * spec.cores:
            full_time, full_tasks = full_time + length, full_tasks + float(amount.sum())
    else:
        raise RuntimeError(
            f"tasks are left after {MOST_ROUNDS} rounds: {left.sum():.3g}; give fewer or shorter tasks"
        )
    pooled = spec.queues.placement == "next" and fluid.groups > 1 and spec.stealing.thieves == "none"
    late = _ring_delay(fluid, served_by) if pooled else 0.0
    usual = full_time * spec.cores / full_tasks if full_tasks else now * spec.cores / served_by.sum()
    return Rounds(
        makespan=now + late,
        ends=ends + late,
        served=served_by,
        stolen=moved,
        local=kept,
        lock_wait=lock_wait,
        memory_wait=memory_wait,
        memory_busy=memory_busy,
        cycle_time=usual,
    )
