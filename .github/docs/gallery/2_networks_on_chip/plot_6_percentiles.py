"""
Mean and percentiles of a network
=================================

What most packets take and what the slowest of a hundred take drift apart long before saturation.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

mesh = qm.mesh(4, 4)
limit = qm.solve(qm.Noc(topology=mesh)).saturation_rate
rate = np.linspace(0.001, 0.9 * limit, 60)
found = qm.solve(qm.Noc(topology=mesh, injection_rate=rate))

fig, ax = plt.subplots()
ax.plot(rate / limit, found.packet_latency_p99, label="99th percentile")
ax.plot(rate / limit, found.packet_latency_p95, label="95th percentile")
ax.plot(rate / limit, found.packet_latency, label="mean")
ax.set(xlabel="part of the saturation rate", ylabel="packet latency [ns]", ylim=(0, None))
ax.legend()
plt.show()
