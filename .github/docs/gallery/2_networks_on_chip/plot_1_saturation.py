"""
Mesh, spidergon, ring
=====================

The same 16 nodes and links of 16 bytes, uniform traffic: every topology has a rate that it cannot go beyond.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

shapes = {"mesh 4 x 4": qm.mesh(4, 4), "spidergon": qm.spidergon(16), "ring": qm.ring(16)}

fig, ax = plt.subplots()
for name, topology in shapes.items():
    noc = qm.Noc(topology=topology, traffic=qm.noc.uniform(nodes=16), link_width=16)
    limit = qm.solve(noc).saturation_rate
    rate = np.linspace(0.001, 0.99 * limit, 60)
    found = qm.solve(qm.Noc(topology=topology, traffic=noc.traffic, link_width=16, injection_rate=rate))
    (line,) = ax.plot(rate, found.packet_latency, label=name)
    ax.axvline(limit, color=line.get_color(), linestyle=":", linewidth=1)
ax.set(xlabel="injection rate [packets/cycle/node]", ylabel="packet latency [ns]", ylim=(0, 150))
ax.legend(loc="upper left")
plt.show()
