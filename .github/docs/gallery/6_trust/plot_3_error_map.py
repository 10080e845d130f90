"""
An error map
============

What the model of the packet processor was measured to be off by, by load: it flags every answer.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.optimize import replace_fields

metrics = ["packet_latency", "packet_latency_p99", "write_latency", "read_latency", "saturation_data_rate"]
loads = [0.15, 0.4, 0.57, 0.72, 0.9]
limit = qm.solve(qm.PacketProcessor()).saturation_data_rate
bias = []
for load in loads:
    answer = qm.solve(replace_fields(qm.PacketProcessor(), {"workload.offered_gbps": load * limit}))
    bias.append([answer.error[name].bias for name in metrics])

fig, ax = plt.subplots(figsize=(7.2, 3.6))
image = ax.imshow(np.transpose(bias), cmap="RdBu", vmin=-40, vmax=40, aspect="auto")
for x, column in enumerate(bias):
    for y, value in enumerate(column):
        ax.text(
            x, y, f"{value:+.1f}", ha="center", va="center", color="white" if abs(value) > 25 else "black"
        )
ax.set_xticks(range(len(loads)), [f"{load:.0%}" for load in loads])
ax.set_yticks(range(len(metrics)), metrics)
ax.set_xlabel("load of the fullest resource (Poisson arrivals)")
ax.grid(False)
fig.colorbar(image, label="model too low | too high [%]")
plt.show()
