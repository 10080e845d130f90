"""
Trials against bank conflicts
=============================

A free list that may look at more than one block finds one whose bank is idle: the second trial helps most.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

trials = np.arange(1, 7)
fig, ax = plt.subplots()
for banks in (4, 8, 16):
    spec = qm.DataQueueing()
    conflicts = [
        qm.solve(
            qm.DataQueueing(
                data=type(spec.data)(banks=banks),
                allocation=type(spec.allocation)(alloc_trial_count=int(count)),
            )
        ).write_conflict_probability
        for count in trials
    ]
    ax.semilogy(trials, conflicts, "o-", label=f"{banks} banks")
ax.set(xlabel="AllocTrialCount", ylabel="write conflict probability")
ax.legend()
plt.show()
