"""Asymptotic bounds of a NUMA machine: what no contention can make shorter or longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from qmodels.systems.memory.numa_system import NumaMachine

RESOURCES = ("computing", "commands", "channels", "controllers")


@dataclass(frozen=True, kw_only=True)
class NumaBounds:
    """Bounds of the execution time."""

    # Least time because of the busiest core's computing, the commands of one core that meet no others, the
    # busiest channel, and the busiest controller [cycles].
    lower: Mapping[str, float]
    upper: float  # most time: a core's own work and once all that others may make it wait for [cycles]
    # Most that double buffering can gain: (C + Y) / max(C, Y) of the core with the longest computing C and
    # commands Y without contention.
    overlap_speedup: float

    @property
    def low(self) -> float:
        """The largest of the lower bounds. [cycles]."""
        return max(self.lower.values())

    @property
    def limit(self) -> str:
        """Cause of the largest of the lower bounds."""
        return max(self.lower, key=lambda name: self.lower[name])


def numa_bounds(machine: NumaMachine) -> NumaBounds:
    r"""Return bounds of the mean execution time.

    With steps :math:`n_i`, computing :math:`C_i`, commands :math:`Y_i` of a block without any wait or
    turning, accesses :math:`A_{im}` and the controller's time s:

    - computing: :math:`\max_i n_i C_i`, and with double buffering the first fetch and the last write;
    - commands: :math:`\max_i n_i Y_i`, without double buffering :math:`n_i (C_i + Y_i)`;
    - channels: the sum of :math:`n_i Y_i` of the cores of a channel (of all cores over the number of
      channels, where any will do);
    - controllers: :math:`\max_m s \sum_i n_i A_{im}`;
    - upper: while core i is not done, it computes, or one of its commands or loads proceeds, or that
      waits for a controller, which then serves somebody else, or for its channel, where somebody
      else's command does one of these. Each of these times is spent once. With random computing the
      mean of the largest of k sums exceeds the largest mean by at most
      :math:`\sqrt{(k - 1) / k \sum_i n_i \sigma^2}` [1]_.

    Bounds, for the machine as `NumaMachine` describes it.

    References
    ----------
    .. [1] T. Aven, "Upper (lower) bounds on the mean of the maximum (minimum) of a number of random
       variables", *Journal of Applied Probability* 22(3), 1985 (the inequality derived again here, by
       Cauchy and Schwarz).
    """
    chip, dma, work = machine.chip, machine.dma, machine.work
    cores = range(chip.cores)
    steps = np.array([machine.steps_of(core) for core in cores], dtype=float)
    share = np.zeros((chip.cores, chip.memories))
    for core in cores:
        for memory in machine.memories_of(core):
            share[core, memory] += 1 / len(machine.memories_of(core))
    way = np.array([[chip.way_cycles(core, memory) for memory in range(chip.memories)] for core in cores])
    alone = (share * (way + chip.controller_cycles)).sum(axis=1)
    sizes = np.array(machine.transfers, dtype=float)
    computing = machine.own_cycles + work.global_loads * alone
    commands = sizes.size * dma.setup_cycles + sizes.sum() * alone
    least = (way + chip.controller_cycles).min(axis=1)
    edge = sizes.size * dma.setup_cycles + sizes.sum() * least  # the first fetch and the last write
    # A core need not go round its memories a whole number of times: its commands at least at the nearest.
    whole = np.array(
        [not machine.steps_of(core) % len(machine.memories_of(core)) for core in cores], dtype=bool
    )
    computing = np.where(whole, computing, machine.own_cycles + work.global_loads * least)
    commands = np.where(whole, commands, edge)
    working = steps > 0
    overlaps = work.double_buffering
    first = np.where(working & overlaps, edge, 0.0)
    channels = np.maximum(np.array(dma.channels_of(chip.cores)), 0)
    per_channel = np.asarray(np.bincount(channels, weights=steps * commands), dtype=float)
    if dma.assignment == "any":
        per_channel = per_channel / min(dma.channels, int(working.sum()))
    accesses = machine.accesses_of_memories()
    lower = {
        "computing": float((steps * computing + first).max()),
        "commands": float((steps * (commands if overlaps else commands + computing)).max()),
        "channels": float(per_channel.max()),
        "controllers": float(accesses.max() * chip.controller_cycles),
    }
    together = (channels[:, None] == channels[None, :]) & working[:, None] & working[None, :]
    far = (way * (share > 0)).max(axis=1)
    beside = steps * (sizes.size * (dma.setup_cycles + dma.switch_cycles) + sizes.sum() * far)
    own = steps * (machine.own_cycles + work.global_loads * far)
    path = np.where(working, own + together @ beside, 0.0)
    spread = work.compute_scv * work.compute_cycles**2 * steps.sum() * (1 - 1 / int(working.sum()))
    core = int(np.argmax(steps * (computing + commands)))
    return NumaBounds(
        lower=lower,
        upper=float(path.max() + accesses.sum() * chip.controller_cycles + np.sqrt(spread)),
        overlap_speedup=float(
            (computing[core] + commands[core]) / max(float(computing[core]), float(commands[core]))
        ),
    )
