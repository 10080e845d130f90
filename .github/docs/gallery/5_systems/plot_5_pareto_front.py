"""
A Pareto front
==============

Every design of a space, and those that nothing beats in both latency and cost.
"""

import matplotlib.pyplot as plt

import qmodels as qm
from qmodels.optimize import Space, explore

processor = qm.PacketProcessor()
space = Space(
    processor,
    interleaving_step=[1, 2, 4, 8, 16],
    channels=[2, 4, 8],
    alloc_trial_count=[1, 2, 3],
    link_width=[8, 16, 32],
    slices=[2, 4, 8],
)
front = explore(space, qm.solve, vectorized=True, minimize=["packet_latency", "cost"])

fig, ax = plt.subplots()
front.plot(ax)
ax.set_xlim(150, 700)
plt.show()
