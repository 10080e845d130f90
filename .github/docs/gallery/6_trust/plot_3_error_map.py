"""
Model and interval
==================

What 90 % of simulations of such packet processors show, beside what the model says, along the load.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.optimize import replace_fields

limit = qm.solve(qm.PacketProcessor()).saturation_data_rate
loads = np.linspace(0.05, 0.95, 37)
answer = qm.solve(replace_fields(qm.PacketProcessor(), {"workload.offered_gbps": loads * limit}))

fig, ax = plt.subplots(figsize=(7.2, 3.6))
for name, color in (("packet_latency", "C0"), ("packet_latency_p99", "C1")):
    low, high = answer.interval(name)
    ax.fill_between(loads, low, high, color=color, alpha=0.25, linewidth=0)
    ax.plot(loads, answer.metrics[name], color=color, label=f"{name}, with 90 % interval")
ax.set_xlabel("load of the fullest resource (Poisson arrivals)")
ax.set_ylabel("latency [ns]")
ax.set_yscale("log")
ax.legend()
plt.show()
