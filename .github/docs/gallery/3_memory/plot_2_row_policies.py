"""
Open or closed rows
===================

Leaving a row open is a bet that the next access is to the same row: where it wins depends on how often it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

hits = np.linspace(0.0, 0.95, 20)
fig, ax = plt.subplots()
for policy in ("open", "closed"):
    latency = [
        qm.solve(
            qm.dram("DDR4-3200", page_policy=policy, row_hit_probability=float(hit), arrival_rate=0.05)
        ).read_latency
        for hit in hits
    ]
    ax.plot(hits, latency, "o-", markersize=3, label=f"{policy} rows")
ax.set(
    xlabel="part of the accesses to the row of the last one", ylabel="mean read latency [ns]", ylim=(0, None)
)
ax.legend()
plt.show()
