"""
Variable service
================

M/G/1: the wait is proportional to 1 + SCV, the squared coefficient of variation of the service time.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

load = np.linspace(0.01, 0.95, 200)
kinds = {0: "constant", 0.5: "Erlang-2", 1: "exponential", 4: "bursts of long jobs"}

fig, ax = plt.subplots()
for scv, name in kinds.items():
    queue = qm.queues.mg1(arrival_rate=load, service_rate=1.0, service_scv=scv)
    ax.plot(load, queue.mean_waiting_time, label=f"SCV {scv:g}: {name}")
ax.set(xlabel="utilization", ylabel="mean wait / mean service time", ylim=(0, 20), xlim=(0, 1))
ax.legend()
plt.show()
