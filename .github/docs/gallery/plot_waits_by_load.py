"""
Waiting grows without bound
===========================

Mean wait of M/M/1 by load, in units of the mean service time: half as much load left means twice the wait.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

load = np.linspace(0.01, 0.97, 200)
queue = qm.queues.mmc(arrival_rate=load, service_rate=1.0, servers=1)

fig, ax = plt.subplots()
ax.plot(load, queue.mean_waiting_time)
ax.set(xlabel="utilization", ylabel="mean wait / mean service time", ylim=(0, 20))
ax.grid(alpha=0.3)
plt.show()
