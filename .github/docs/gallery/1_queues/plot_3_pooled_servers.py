"""
Pooled servers
==============

The same servers at 80 % utilization behind one queue, or each with a queue of its own.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

servers = np.arange(1, 17)
pooled = qm.queues.mmc(arrival_rate=0.8 * servers, service_rate=1.0, servers=servers)
alone = qm.queues.mmc(arrival_rate=0.8, service_rate=1.0, servers=1)

fig, ax = plt.subplots()
ax.plot(servers, pooled.mean_waiting_time, "o-", label="one queue before all of them")
ax.axhline(alone.mean_waiting_time, color="C1", label="a queue each")
ax.set(xlabel="servers", ylabel="mean wait / mean service time", ylim=(0, 4.5))
ax.legend()
plt.show()
