"""
Waiting for the last of several
===============================

A job that is split into branches is done when its slowest branch is: every further branch adds less.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

branches = np.arange(1, 33)
fig, ax = plt.subplots()
for load in (0.2, 0.5, 0.8):
    found = qm.networks.fork_join(arrival_rate=load, service_rate=1.0, branches=branches)
    one = 1.0 / (1.0 - load)
    ax.plot(branches, found.mean_response_time / one, "o-", markersize=3, label=f"utilization {load:.0%}")
ax.set(xlabel="branches", ylabel="response / response of one branch", ylim=(0, None))
ax.legend()
plt.show()
