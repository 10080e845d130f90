"""
What explains the spread
========================

Sobol indices: the part of the variance of the wait that a field explains alone, and with all it meets.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.optimize import sobol

found = sobol(
    qm.LlcProcessor(),
    qm.solve,
    {
        "load": (0.3, 0.8),
        "llc_rate": (5.0, 20.0),
        "popularity.exponent": (0.6, 1.0),
    },
    metric="waiting_latency",
    samples=64,
)
fig, ax = plt.subplots()
at = np.arange(len(found.fields))
ax.barh(at + 0.2, found.first, height=0.4, label="alone")
ax.barh(at - 0.2, found.total, height=0.4, label="with all it meets")
ax.set_yticks(at, found.fields)
ax.set(xlabel="part of the variance")
ax.legend()
plt.show()
