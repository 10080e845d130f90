"""
Priorities
==========

A tenth of the jobs goes first (M/G/1, without preemption): it hardly waits, and the others pay little for it.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

load = np.linspace(0.02, 0.95, 100)
waits = np.array(
    [
        qm.queues.mg1_nonpreemptive(
            arrival_rate=[0.1 * x, 0.9 * x], mean_service_time=[1.0, 1.0], service_scv=[1.0, 1.0]
        ).mean_waiting_time
        for x in load
    ]
)
alike = qm.queues.mg1(arrival_rate=load, service_rate=1.0, service_scv=1.0)

fig, ax = plt.subplots()
ax.plot(load, waits[:, 0], label="the tenth that goes first")
ax.plot(load, waits[:, 1], label="all others")
ax.plot(load, alike.mean_waiting_time, ":", color="0.4", label="without priorities")
ax.set(xlabel="utilization", ylabel="mean wait / mean service time", ylim=(0, 20), xlim=(0, 1))
ax.legend()
plt.show()
