"""
Load of every link
==================

A mesh with one memory at its edge: dimension-order routing fills the links towards it.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

mesh = qm.mesh(5, 5)
traffic = qm.noc.hotspot(nodes=25, spots=[2], fraction=0.3)
answer = qm.solve(qm.Noc(topology=mesh, traffic=traffic, injection_rate=0.012))

fig, ax = plt.subplots(figsize=(6.0, 5.0))
place = np.array([(node % 5, -(node // 5)) for node in range(25)])
links = [
    (*map(int, name.split("->")), load)
    for name, load in zip(answer.channels["name"], answer.channels["utilization"], strict=True)
    if "->" in name
]
colours = plt.cm.viridis_r
for u, v, load in links:
    across = 0.09 * np.array([[0, 1], [-1, 0]]) @ (place[v] - place[u])  # both directions side by side
    look = {"arrowstyle": "-|>", "lw": 2.5, "color": colours(load), "shrinkA": 10, "shrinkB": 10}
    ax.annotate("", place[v] + across, place[u] + across, arrowprops=look)
ax.scatter(*place.T, s=260, color=["C1" if node == 2 else "0.85" for node in range(25)])
for node in range(25):
    ax.text(*place[node], str(node), ha="center", va="center", fontsize=8)
fig.colorbar(plt.cm.ScalarMappable(norm=plt.Normalize(0, 1), cmap=colours), ax=ax, label="utilization")
ax.set(aspect="equal", xlim=(-0.5, 4.5), ylim=(-4.5, 0.5))
ax.axis("off")
plt.show()
