"""
What grows with the load
========================

The parts of the mean latency of a packet, one upon the other: where they run into the limit.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

rates = np.linspace(2, 90, 45)
processor = qm.PacketProcessor()
answer = qm.solve(replace(processor, workload=replace(processor.workload, offered_gbps=rates)))
total = sum(answer.latency_parts.values())

fig, ax = plt.subplots(figsize=(7.2, 4.2))
ax.stackplot(rates, *answer.latency_parts.values(), labels=answer.latency_parts)
ax.set(xlabel="offered data rate [Gb/s]", ylabel="sum of the mean parts [ns]", ylim=(0, 1.05 * total[-1]))
handles, labels = ax.get_legend_handles_labels()
ax.legend(handles[::-1], labels[::-1], loc="upper left")
plt.show()
