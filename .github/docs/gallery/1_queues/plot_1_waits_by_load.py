"""
Waiting by load
===============

An M/M/1 queue: half the distance to full doubles the wait, its percentiles too.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

load = np.linspace(0.01, 0.96, 200)
queue = qm.queues.mmc(arrival_rate=load, service_rate=1.0, servers=1)

fig, ax = plt.subplots()
ax.plot(load, queue.mean_waiting_time, label="mean wait")
for part in (0.9, 0.99):
    ax.plot(load, queue.waiting_time_quantile(part), "--", label=f"{part:.0%} wait less than this")
ax.set(xlabel="utilization", ylabel="wait / mean service time", ylim=(0, 40), xlim=(0, 1))
ax.legend()
plt.show()
