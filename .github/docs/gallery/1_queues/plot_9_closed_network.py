"""
More jobs, and no more throughput
=================================

A closed network of a processor and two disks: exact throughput between its asymptotic bounds.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

network = {"mean_service_time": [0.5, 1.0, 0.7], "think_time": 5.0}
jobs = np.arange(1, 26)
exact = qm.networks.throughput_curve(population=25, **network)
bounds = [qm.networks.asymptotic_bounds(population=int(n), **network) for n in jobs]

fig, ax = plt.subplots()
ax.fill_between(
    jobs,
    [float(np.squeeze(b.throughput_lower)) for b in bounds],
    [float(np.squeeze(b.throughput_upper)) for b in bounds],
    alpha=0.2,
    label="bounds",
)
ax.plot(jobs, np.ravel(exact)[-len(jobs) :], "o-", markersize=3, label="exact (mean value analysis)")
ax.set(xlabel="jobs", ylabel="throughput [jobs/time]", ylim=(0, 1.1))
ax.legend()
plt.show()
