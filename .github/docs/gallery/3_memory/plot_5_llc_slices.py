"""
LLC slices
==========

Table lookups of a packet processor with an LLC in slices, one shared LLC, or none: how long a request waits.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

fig, ax = plt.subplots()
for name in ("none", "shared", "slices"):
    processor = qm.LlcProcessor(architecture=name)
    found = [qm.solve(replace(processor, load=float(x))) for x in np.linspace(0.1, 1.1, 41)]
    ax.plot([one.data_rate for one in found], [one.waiting_latency for one in found], label=name)
ax.set(xlabel="data rate [Gb/s]", ylabel="mean wait for a core [ns]", ylim=(0, 1000))
ax.legend(title="last-level cache")
plt.show()
