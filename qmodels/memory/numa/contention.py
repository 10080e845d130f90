"""Sharing a controller, a channel and a pool of channels: the laws behind the model of a NUMA machine."""

from __future__ import annotations

from math import lcm

import numpy as np

from qmodels.checks import FloatArray
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
