"""
Hops by size
============

Links from a node to another, on average: a ring grows with the nodes, a mesh with their root.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

sides = np.array([2, 4, 6, 8, 10])
shapes = {
    "ring": lambda n: qm.ring(n * n),
    "spidergon": lambda n: qm.spidergon(n * n),
    "mesh": lambda n: qm.mesh(n, n),
    "torus": lambda n: qm.torus(n, n),
}

fig, ax = plt.subplots()
for name, shape in shapes.items():
    hops = []
    for side in sides:
        topology, nodes = shape(int(side)), range(side * side)
        hops.append(np.mean([len(topology.route(0, target)) - 1 for target in nodes if target]))
        if name == "mesh":  # its nodes are not alike
            hops[-1] = np.mean([len(topology.route(a, b)) - 1 for a in nodes for b in nodes if a != b])
    ax.plot(sides**2, hops, "o-", label=name)
ax.set(xlabel="nodes", ylabel="mean hops", ylim=(0, None))
ax.legend()
plt.show()
