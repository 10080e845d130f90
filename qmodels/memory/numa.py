"""The model of a NUMA machine with DMA channels: phases of a closed network until all work is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from qmodels.checks import FloatArray
from qmodels.memory.numa_network import State, Structure, steady_state, structure_of
from qmodels.systems.memory.numa_system import NumaMachine
from qmodels.systems.spec.answer import Answer

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


_AS_BUSY = 0.01
_TOGETHER = 0.01  # cores done within this share of the time are done together


def solve_numa(machine: NumaMachine) -> Answer:
    r"""Return the analytic answer of a NUMA machine.

    Parameters
    ----------
    machine : NumaMachine
        The machine.

    Returns
    -------
    Answer
        Metrics, bounds, and busy fractions of cores, channels and controllers. A machine is closed: it
        is never overloaded.

    Raises
    ------
    RuntimeError
        If the iteration does not converge.

    Notes
    -----
    While the same cores work, the machine is a closed network in its steady state, see
    `qmodels.memory.numa_network.steady_state`; when one is done the others go on in that of those
    left. With double buffering the first fetch and the last write overlap with nothing:

    .. math:: T_i = Y + (n - 2) E[\max(C, Y)] + \max(C, Y_r) + \max(C, Y_w),

    with the times :math:`Y_r + Y_w = Y` of a block's two commands. With random computing the last of k
    cores is later than the mean by :math:`\Phi^{-1}((k - 3/8) / (k + 1/4)) \sigma \sqrt{n}` (the mean
    of the largest of k normal times, by Blom's approximation).

    Approximation, held between the bounds. Waits for channels are rougher than the execution time, since
    cores with equal blocks take turns without meeting: of the default machine 4,760 cycles instead of 2,840.
    The network between cores and memories only delays, as measured on the chip of [1]_, section 5.2.

    The simulation is that of `NumaMachine.system`, the model is not: constant accesses one after the other
    make channels and cores take turns, which streams of requests do not carry. On machines of four cores
    whose blocks take 20 accesses `solve_system` was within 5 % (this within 1 %) while cores compute most
    of the time, and found no answer in 12 s where channels are busy; it takes over a hundred times as long.

    References
    ----------
    .. [1] See `qmodels.systems.memory.numa_system.NumaChip`.

    Examples
    --------
    >>> from qmodels.systems.memory.numa_system import BlockWork
    >>> one, clustered = (
    ...     solve_numa(NumaMachine(work=BlockWork(placement=placement, compute_cycles=0.0)))
    ...     for placement in ("one", "clustered")
    ... )
    >>> round(one.execution_time / clustered.execution_time, 2), one.regime
    (3.97, 'transfer')
    """
    steps = np.array([machine.steps_of(core) for core in range(machine.chip.cores)], dtype=float)
    left, ends, now = steps.copy(), np.zeros(steps.size), 0.0
    spent = np.zeros((4, steps.size))
    late = 0.0
    while left.any():
        working = np.flatnonzero(left)
        parts = structure_of(machine, working.tolist())
        state = steady_state(machine, parts)
        spans = left[working] * state.step
        done = spans <= spans.min() + _TOGETHER * (now + spans.min())
        span = float(spans[done].max())
        blocks = np.where(done, left[working], span / state.step)
        spent[:, working] += blocks * np.array([state.transfer, state.held, state.computing, state.turns])
        ends[working] = now + spans + _edges(machine, parts, state)
        late = float((state.deviation * np.sqrt(steps[working]))[done].max())
        left[working] = np.where(done, 0.0, left[working] - blocks)
        now += span
    last = ends >= (1 - _TOGETHER) * ends.max()
    bounds = numa_bounds(machine)
    end = float(ends.max()) + _lateness(int(last.sum())) * late
    return _answer(machine, bounds, min(max(end, bounds.low), bounds.upper), ends, spent)


def placement_speedup(machine: NumaMachine) -> float:
    """Return the most that any placement of the data can gain over all of it in one memory.

    The estimated time with one memory over the least time with every block at a nearest memory and all
    memories loaded alike.
    """
    one = solve_numa(replace(machine, work=replace(machine.work, placement="one", memories=())))
    near = replace(machine, work=replace(machine.work, placement="clustered", memories=()))
    lower = dict(numa_bounds(near).lower)
    # Memories, and channels, loaded alike.
    end = one.execution_time * machine.clock_ghz
    total = one.controller_utilization * end
    lower["controllers"] = total / machine.chip.memories
    pooled = replace(near, dma=replace(near.dma, assignment="any", core_channels=()))
    lower["channels"] = numa_bounds(pooled).lower["channels"]
    return float(end / max(lower.values()))


def _edges(machine: NumaMachine, parts: Structure, state: State) -> FloatArray:
    """Return the time that the first fetch and the last write add to the steps of each core. [cycles]."""
    if not machine.work.double_buffering:
        return np.zeros_like(state.step)
    if parts.sizes.size == 1:  # nothing is written: the last block is only computed
        return np.asarray(state.transfer + state.computing - state.step)
    alone = machine.dma.setup_cycles + parts.sizes * float((parts.share * parts.alone).sum(axis=1).mean())
    fetch, write = (part * state.transfer for part in alone / alone.sum())
    ends = np.maximum(state.computing, fetch) + np.maximum(state.computing, write)
    return np.asarray(state.transfer + ends - 2 * state.step)


def _lateness(cores: int) -> float:
    """Return the mean of the largest of n standard normal numbers."""
    if cores < 2:
        return 0.0
    from scipy.special import ndtri

    return float(ndtri((cores - 0.375) / (cores + 0.25)))


def _answer(
    machine: NumaMachine, bounds: NumaBounds, end: float, ends: FloatArray, spent: FloatArray
) -> Answer:
    """Return the answer from the end, the cores' ends, and what they spent in all.

    ``spent`` has a row each for commands, channels held, computing, and turned channels.
    """
    transfer, held, computing, turned = spent
    steps = np.array([machine.steps_of(core) for core in range(machine.chip.cores)], dtype=float)
    commands = steps.sum() * len(machine.transfers)
    accesses = machine.accesses_of_memories()
    channels = np.array(machine.dma.channels_of(steps.size))
    if machine.dma.assignment == "any":
        per_channel = np.array([held.sum() / machine.dma.channels])
    else:
        per_channel = np.bincount(channels, weights=held, minlength=machine.dma.channels)
    moved = machine.work.read_bytes + machine.work.write_bytes
    working = steps > 0
    busy = {
        "core": np.minimum(computing / end, 1.0),
        "channel": np.minimum(per_channel / end, 1.0),
        "controller": np.minimum(accesses * machine.chip.controller_cycles / end, 1.0),
    }
    clock = machine.clock_ghz
    utilization = {f"{name}s": float(busy[name].max()) for name in ("core", "controller", "channel")}
    most = max(utilization.values())
    # In this order where several are as busy: a channel is also busy while it waits for a controller.
    bottleneck = next(name for name, value in utilization.items() if value >= most - _AS_BUSY)
    regime = "compute" if bottleneck == "cores" else "transfer"
    return Answer(
        model="NUMA machine, closed network",
        spec=machine,
        metrics={
            "execution_time": end / clock,
            "step_time": float((ends[working] / steps[working]).mean()) / clock,
            "transfer_time": float(transfer.sum() / commands) / clock,
            "channel_wait": max(float((transfer - held).sum() / commands), 0.0) / clock,
            "bandwidth": float(steps.sum() * moved / end) * clock,
            "controller_utilization": float(busy["controller"].max()),
            "channel_utilization": float(busy["channel"].max()),
            "core_utilization": float(busy["core"].max()),
            "switch_ratio": float(turned.sum() / commands),
        },
        utilization=utilization,
        bottleneck=bottleneck,
        details={
            "bounds": bounds,
            "regime": regime,
            "core_time": ends / clock,
            **{f"{name}_busy": of_each for name, of_each in busy.items()},
        },
        facts=(
            f"{regime} regime; execution time between {bounds.low / clock:.5g} and "
            f"{bounds.upper / clock:.5g} ns",
            f"double buffering can gain a factor of {bounds.overlap_speedup:.3g} at most",
        ),
    )
