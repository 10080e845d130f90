"""The spec of run queues: derived numbers, files, and errors."""

from dataclasses import replace

import numpy as np

from qmodels import WorkQueues
from qmodels.systems.programs.work_queues import Bag, Cube, Growth, RunQueues, TaskCosts


def test_parts_of_the_image():
    spec = WorkQueues(tasks=Growth(grid=(5, 5, 3), block_side=1, body=Cube(side=5)))
    # The middle column and row belong to the lower part: 3 x 3, 3 x 2, 2 x 3 and 2 x 2 in each layer.
    assert np.bincount(spec.homes).tolist() == [27, 18, 18, 12]
    assert spec.task_count == 75


def test_queues_of_tasks():
    bag = WorkQueues(tasks=Bag(tasks=(3, 0, 2, 1)))
    assert bag.homes.tolist() == [0, 0, 0, 2, 2, 3]
    assert bag.queue_of.tolist() == bag.homes.tolist()
    each = replace(bag, queues=RunQueues(organisation="distributed"))
    assert each.queue_of.tolist() == [0, 1, 2, 11, 8, 13]
    assert each.groups == 16 and each.group_cores == 1
    assert each.queue_memory.tolist() == sorted([0, 1, 2, 3] * 4)
    central = replace(bag, queues=RunQueues(organisation="central"))
    assert (central.groups, central.group_cores) == (1, 16)
    assert replace(bag, data="one").queue_memory.tolist() == [0, 0, 0, 0]


def test_serial_time():
    spec = WorkQueues(
        tasks=Bag(tasks=(1, 2, 0, 0)), costs=TaskCosts(block_cycles=10, task_cycles=5, transfer_cycles=7)
    )
    assert spec.serial_time == 3 * 22
