"""
The bottleneck of each load
===========================

The busy part of every resource of a packet processor by the offered data rate.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

rates = np.linspace(1, 110, 60)
processor = qm.PacketProcessor()
answer = qm.solve(replace(processor, workload=replace(processor.workload, offered_gbps=rates)))

fig, ax = plt.subplots(figsize=(7.6, 4.0))
for name, load in sorted(answer.traffic_intensity.items(), key=lambda item: -item[1][-1]):
    ax.plot(rates, load, label=name)
ax.axhline(1.0, color="0.4", linestyle=":")
ax.set(xlabel="offered data rate [Gb/s]", ylabel="traffic intensity", ylim=(0, 1.3))
ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
plt.show()
