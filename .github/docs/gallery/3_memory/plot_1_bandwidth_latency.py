"""
Bandwidth and latency of DRAM
=============================

Random reads of a burst each, one channel: what a memory can carry, and what the last of it costs in latency.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

fig, ax = plt.subplots()
for name in ("DDR4-3200", "DDR5-6400", "LPDDR5-6400", "HBM2"):
    alone = qm.dram(name, channels=1)
    limit = qm.solve(alone).in_cycles()["saturation_rate"]
    rate = np.linspace(0.02, 0.97, 50) * limit
    found = qm.solve(qm.dram(name, channels=1, arrival_rate=rate))
    ax.plot(found.bandwidth, found.read_latency, label=name)
ax.set(xlabel="bandwidth [GB/s]", ylabel="mean read latency [ns]", ylim=(0, 400))
ax.legend()
plt.show()
