"""The closed network of a NUMA machine: cores whose computing overlaps with what they wait for."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.memory.numa_system import NumaMachine


def number_of_others(activity: FloatArray) -> FloatArray:
    r"""Return the law of how many *other* agents are active, agents being active independently.

    ``activity``: probability that an agent is active at a place. Returns probability of 0, 1, ... others at
    the place.
    """
    agents, places = activity.shape
    law = np.zeros((agents, places, agents))
    law[:, :, 0] = 1.0
    for k in np.flatnonzero(activity.any(axis=1)):
        other = np.broadcast_to(activity[k], (agents, places)).copy()
        other[k] = 0.0
        more = law[:, :, :-1] * other[:, :, None]
        law *= 1 - other[:, :, None]
        law[:, :, 1:] += more
    return law


def access_time(law: FloatArray, alone: FloatArray, service: float) -> FloatArray:
    r"""Return the mean time of an access while others have accesses at the controller.

    ``law``: probability of 0, 1, ... others, as seen by who begins; ``alone``: time of an access that meets
    no other [cycles]; ``service``: time at the controller [cycles].

    Agents with one access under way each, sent again when it is back: with n of them and constant
    times each has one back every :math:`\max(u, n s)` cycles, exact as soon as they have found
    their order. So a controller is a station that n blocks share, at a rate that grows until it is
    busy, and by the arrival theorem a block takes the mean of these times over the numbers that it
    finds. A controller is never more than busy, as that is at least :math:`s (1 + E[others])`.
    """
    together = service * np.arange(1, law.shape[-1] + 1)
    return np.asarray((law * np.maximum(alone[..., None], together)).sum(axis=-1))


def in_phase(machine: NumaMachine, cores: list[int]) -> list[list[tuple[int, int, int]]]:
    """Return the commands that cores give their channel while they take turns: core, kind, memory.

    Every core issues its first command of a step, then every core its second, and all go on to
    the next step together: the order in which a channel that is always busy finds them. One list
    per step, for the steps after which the order begins anew.
    """
    places = {core: machine.memories_of(core) for core in cores}
    blocks = (1, -1) if machine.work.double_buffering else (0, 0)
    return [
        [
            (core, kind, places[core][(step + blocks[kind]) % len(places[core])])
            for kind in range(len(machine.transfers))
            for core in cores
        ]
        for step in range(lcm(*map(len, places.values())))
    ]


def turns(machine: NumaMachine, cores: list[int]) -> FloatArray:
    """Return the frequency with which the commands of cores in phase turn their channel to another memory.

    Returns probability, over the steps.
    """
    order = in_phase(machine, cores)
    found = np.zeros((len(cores), len(machine.transfers)))
    last = order[-1][-1][2]
    for core, kind, memory in (command for step in order for command in step):
        found[cores.index(core), kind] += memory != last
        last = memory
    return found / len(order)


def rotation_time(machine: NumaMachine, groups: list[list[int]]) -> FloatArray:
    """Return the mean time of an access of each core if all channels go round the memories in step.

    ``groups``: the working cores of each channel. Returns infinite for idle cores, and where no such rotation
    exists, as channels have more commands than others [cycles].

    Where a rotation has fewer channels at a memory at once than chance would, it keeps itself up:
    who is late meets fewer. Where it has more, it falls apart.
    """
    chip = machine.chip
    time = np.full(chip.cores, np.inf)
    orders = [[command for step in in_phase(machine, group) for command in step] for group in groups]
    if len({len(group) for group in groups}) != 1:
        return time
    rounds = lcm(*map(len, orders))
    spent, moved = np.zeros(chip.cores), np.zeros(chip.cores)
    sizes = machine.transfers
    for k in range(rounds):
        commands = [order[k % len(order)] for order in orders]
        crowd = np.bincount([memory for _, _, memory in commands], minlength=chip.memories)
        for core, kind, memory in commands:
            spent[core] += sizes[kind] * max(
                chip.access_cycles(core, memory), crowd[memory] * chip.controller_cycles
            )
            moved[core] += sizes[kind]
    return np.asarray(np.divide(spent, moved, out=time, where=moved > 0))


_TOLERANCE = 1e-5
_ITERATIONS = 2000
_DAMPING = 0.5
_SLOWER = 50  # iterations after which the steps are half as long, as some machines swing


@dataclass(frozen=True, kw_only=True, eq=False)
class Structure:
    """Numbers of a machine before any contention, as arrays over the working cores."""

    # own, load_count, scv: computing of a block [cycles], its loads from global memory, its squared
    # coefficient of variation.
    own: float
    load_count: int
    scv: float
    share: FloatArray  # blocks of a core in each memory
    alone: FloatArray  # time of an access that meets no other [cycles]
    sizes: FloatArray  # accesses of the commands of a block
    # Channel of each core; where any will do, its own number, as its commands are told apart then.
    mover: IntArray
    pool: int  # channels where any will do, otherwise 0
    # turning, turning_alone: how often a command turns its channel in phase with the others, and without
    # them.
    turning: FloatArray
    turning_alone: FloatArray
    # Time of an access if all channels go round the memories in step, infinite if they cannot [cycles].
    rotation: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """The steady state while some cores work, as arrays over those."""

    # step, deviation: mean time of a block, and its standard deviation from the computing [cycles].
    step: FloatArray
    deviation: FloatArray
    computing: FloatArray  # mean time that a core computes per block, its own loads included [cycles]
    # transfer, held: mean time of all commands of a block, and of a channel with them [cycles].
    transfer: FloatArray
    held: FloatArray
    turns: FloatArray  # mean number of them that turn the channel


def structure_of(machine: NumaMachine, working: list[int]) -> Structure:
    """Return the arrays of a machine while only some of its cores work."""
    chip, work = machine.chip, machine.work
    share = np.zeros((len(working), chip.memories))
    for k, core in enumerate(working):
        for memory in machine.memories_of(core):
            share[k, memory] += 1 / len(machine.memories_of(core))
    alone = np.array([[chip.access_cycles(core, m) for m in range(chip.memories)] for core in working])
    channel_of = [machine.dma.channels_of(chip.cores)[core] for core in working]
    pool = machine.dma.channels if machine.dma.assignment == "any" else 0
    turning = np.zeros((len(working), len(machine.transfers)))
    rotation = np.full(len(working), np.inf)
    if not pool:
        groups = [[k for k, mine in enumerate(channel_of) if mine == channel] for channel in set(channel_of)]
        for group in groups:
            turning[group] = turns(machine, [working[k] for k in group])
        times = rotation_time(machine, [[working[k] for k in group] for group in groups])
        rotation = times[working]
    mean = machine.own_cycles
    return Structure(
        own=mean,
        load_count=work.global_loads,
        scv=work.compute_scv * (work.compute_cycles / mean) ** 2 if mean else 0.0,
        share=share,
        alone=alone,
        sizes=np.array(machine.transfers, dtype=float),
        mover=np.arange(len(working)) if pool else np.array(channel_of),
        pool=pool,
        turning=turning,
        turning_alone=np.array([turns(machine, [core])[0] for core in working]),
        rotation=rotation,
    )


def steady_state(machine: NumaMachine, parts: Structure) -> State:
    r"""Return the steady state of a closed network with one customer for each working core.

    Found by iteration over three kinds of sharing:

    - controllers, `access_time`: what a command finds are the probabilities that other channels (of a
      pool: the commands of other cores) move data there, and that cores wait for loads of their own;
    - channels: a command finds each of the others that use its channel there with the probability b
      that it has a command issued, and waits for half of one of its commands if that is rare, for a
      whole one if it is always so, as they then take turns: :math:`b (1 + b) / 2` of its time. Of a
      pool of c channels it waits for (n - c + 1) / c commands where n >= c others are there;
    - the core: a block takes :math:`E[\max(C, Y)]` of a gamma computing time C and the mean time Y
      of its commands with double buffering, and C + Y without.

    Approximation: agents are independent, and of Y only the mean is known. Where constant times let
    the channels rotate in step, `rotation_time` holds instead of chance.
    """
    cores, setup = len(parts.share), machine.dma.setup_cycles
    service, kinds, sizes = machine.chip.controller_cycles, parts.sizes.size, parts.sizes.sum()
    same = (parts.mover[:, None] == parts.mover[None, :]) & ~np.eye(cores, dtype=bool)
    differs = 1.0 - parts.share @ parts.share.T  # two cores out of phase meet another memory
    # Of a pool one channel is one's own: the others' commands have one less.
    crowding = (parts.pool - 1) / parts.pool * cores / (cores - 1) if 0 < parts.pool < cores else 1.0
    own_places = (parts.share * parts.alone).sum(axis=1)
    step = np.maximum(parts.own + parts.load_count * own_places, sizes * own_places + kinds * setup)
    present = np.minimum(sizes * own_places / step, 1.0)
    transfer = present * step
    steady = 1.0
    active = np.zeros((cores + int(parts.mover.max()) + 1, parts.share.shape[1]))
    for iteration in range(_ITERATIONS):
        damping = _DAMPING / (1 + iteration / _SLOWER)
        law = number_of_others(np.minimum(active, 1.0))
        time = access_time(law[cores + parts.mover], parts.alone, service)
        loading = access_time(law[:cores], parts.alone, service)
        computing = parts.own + parts.load_count * (parts.share * loading).sum(axis=1)
        # In step transfers are shorter, which lets computing outlast them: small changes, or it swings.
        steady += damping / 10 * (_stays_in_step(machine, parts, computing, transfer) - steady)
        move = (parts.share * time).sum(axis=1)
        move = steady * np.minimum(move, parts.rotation) + (1 - steady) * move
        turning = _turning(parts, same, present, differs).sum(axis=1)
        held = kinds * setup + machine.dma.switch_cycles * turning + sizes * move
        transfer = held + _wait(machine, parts, same, computing, held, present)
        following, deviation = _block(machine, parts, computing, transfer)
        change = np.abs(following / step - 1).max()
        step = step * (following / step) ** damping
        goal = np.minimum(transfer / step, 1.0)
        flow = parts.share / step[:, None]
        aim = np.zeros_like(active)
        aim[:cores] = flow * parts.load_count * loading
        np.add.at(aim, cores + parts.mover, flow * sizes * time * crowding)
        change = max(change, np.abs(goal - present).max(), np.abs(aim - active).max())
        present = present + damping * (goal - present)
        active = active + damping * (aim - active)
        if change < _TOLERANCE:
            return State(
                step=step,
                deviation=deviation,
                computing=computing,
                transfer=transfer,
                held=held,
                turns=turning,
            )
    raise RuntimeError(
        f"the NUMA model did not converge in {_ITERATIONS} iterations (change {change:.3g}); "
        "change a size or a time slightly"
    )


def _wait(
    machine: NumaMachine,
    parts: Structure,
    same: FloatArray,
    computing: FloatArray,
    held: FloatArray,
    present: FloatArray,
) -> FloatArray:
    """Return the mean time per block that the commands of each core wait for a channel. [cycles]."""
    if parts.pool:
        others = number_of_others(present[:, None])[:, 0]
        behind = np.maximum(np.arange(len(present)) - parts.pool + 1, 0) / parts.pool
        return np.asarray(others @ behind * (held @ present) / present.sum())
    if not parts.scv and not machine.work.double_buffering:
        # Constant times: who waited once does so no more, unless the channel is always busy.
        return np.maximum(same @ held - computing, 0.0)
    return np.asarray(same @ (held * present * (1 + present) / 2))


def _stays_in_step(
    machine: NumaMachine, parts: Structure, computing: FloatArray, transfer: FloatArray
) -> float:
    """Return the probability that in a round no core computes for longer than its commands take."""
    if not parts.scv:
        return 1.0
    if not machine.work.double_buffering:
        return 0.0
    from scipy.special import gammainc

    shape = (computing / (np.sqrt(parts.scv) * parts.own)) ** 2
    return float(np.prod(gammainc(shape, shape * transfer / computing)))


def _turning(parts: Structure, same: FloatArray, present: FloatArray, differs: FloatArray) -> FloatArray:
    """Return the frequency with which each command of each core turns its channel to another memory."""
    if parts.pool:
        mix = present @ parts.share / present.sum()
        free = max(parts.pool - present.sum(), 0.0)
        none = np.maximum(1 - mix, 0.0) ** (1 + free) @ parts.share.T
        return np.repeat(none[:, None], parts.sizes.size, axis=1)
    weight = same * present
    total = weight.sum(axis=1)
    drifted = np.divide((weight * differs).sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
    meets = np.minimum(total, 1.0)[:, None]
    together = meets * parts.turning + (1 - meets) * drifted[:, None]
    # Between two steps of a core the others that share its channel always come; within one if present.
    between = np.ones_like(parts.turning)
    between[:, 1:] = meets
    mixed = between * together + (1 - between) * parts.turning_alone
    shared = np.asarray(same.any(axis=1))
    return np.where(shared[:, None], mixed, parts.turning_alone)


def _block(
    machine: NumaMachine, parts: Structure, computing: FloatArray, transfer: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of the time of a block."""
    deviation = np.sqrt(parts.scv) * parts.own
    if not machine.work.double_buffering:
        return computing + transfer, np.full_like(computing, deviation)
    if not deviation:
        return np.maximum(computing, transfer), np.zeros_like(computing)
    from scipy.special import gammainc

    shape = (computing / deviation) ** 2
    at = shape * transfer / computing
    below, first, second = (gammainc(shape + k, at) for k in range(3))
    mean = transfer * below + computing * (1 - first)
    square = transfer**2 * below + computing**2 * (1 + 1 / shape) * (1 - second)
    return mean, np.sqrt(np.maximum(square - mean**2, 0.0))
