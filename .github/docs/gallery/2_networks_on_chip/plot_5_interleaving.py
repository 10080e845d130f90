"""
Interleaving addresses over channels
====================================

Eight cores of a Spidergon write to memory: what they can send, by the channels their addresses are on.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

channels = (1, 2, 4, 8)
fig, ax = plt.subplots()
for shift, width in ((-0.2, 8), (0.2, 16)):
    limits = []
    for count in channels:
        traffic = qm.noc.interleaved(initiators=range(8), channels=range(8, 8 + count), step=1)
        limits.append(
            qm.solve(qm.Noc(topology=qm.spidergon(16), traffic=traffic, link_width=width)).saturation_rate
        )
    ax.bar(np.arange(4) + shift, limits, width=0.4, label=f"links of {width} bytes")
ax.set_xticks(range(4), channels)
ax.set(xlabel="channels", ylabel="saturation rate [packets/cycle/core]")
ax.legend()
plt.show()
