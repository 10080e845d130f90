"""
Who is served next
==================

M/G/1 with long jobs among many short ones: sharing the server, and serving the shortest rest first.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

service = qm.laws.HyperExponential(probabilities=(0.95, 0.05), means=(0.5, 10.5))  # mean 1
load = np.linspace(0.05, 0.95, 30)

fig, ax = plt.subplots()
first = qm.queues.mg1_fcfs(arrival_rate=load, service=service)
ax.plot(load, first.mean_response_time, label="first come, first served")
ax.plot(load, qm.queues.mg1_ps(arrival_rate=load, service_rate=1.0).mean_response_time, label="all share")
shortest = [qm.queues.mg1_srpt(arrival_rate=x, service=service).mean_response_time for x in load]
ax.plot(load, shortest, label="shortest rest first")
ax.set(xlabel="utilization", ylabel="mean response / mean service time", ylim=(0, 40), xlim=(0, 1))
ax.legend()
plt.show()
