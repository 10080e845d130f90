"""
Where the data lie
==================

Sixteen cores with DMA and four memories: the same work with its data in one memory, in all, or close by.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

machine = qm.NumaMachine()
compute = np.array([0, 10_000, 20_000, 40_000, 60_000, 80_000])

fig, ax = plt.subplots()
for placement in ("one", "all", "clustered"):
    times = [
        qm.solve(
            replace(machine, work=replace(machine.work, placement=placement, compute_cycles=float(c)))
        ).execution_time
        for c in compute
    ]
    ax.plot(compute / 1000, np.array(times) / 1e6, "o-", label=placement)
ax.set(xlabel="computing per block [thousand cycles]", ylabel="execution time [ms]", ylim=(0, None))
ax.legend(title="placement")
plt.show()
