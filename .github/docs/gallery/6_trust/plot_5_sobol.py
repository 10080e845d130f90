"""
What explains the spread
========================

Sobol indices: the part of the variance of the latency that a field explains alone, and with all it meets.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.optimize import sobol

found = sobol(
    qm.PacketProcessor(),
    qm.solve,
    {
        "workload.offered_gbps": (10.0, 60.0),
        "noc.clock_ghz": (0.8, 1.6),
        "dram.access_cycles": (10.0, 30.0),
        "free_list.clock_ghz": (0.8, 1.6),
    },
    metric="packet_latency",
    samples=128,
    vectorized=True,
)
fig, ax = plt.subplots()
at = np.arange(len(found.fields))
ax.barh(at + 0.2, found.first, height=0.4, label="alone")
ax.barh(at - 0.2, found.total, height=0.4, label="with all it meets")
ax.set_yticks(at, found.fields)
ax.set(xlabel="part of the variance")
ax.legend()
plt.show()
