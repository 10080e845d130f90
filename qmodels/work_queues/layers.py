"""Tasks of a run by their distance from the first and by where their data are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.programs.region import Growth, grow
from qmodels.systems.programs.work_queues import WorkQueues


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
