"""
What trials cost
================

Pointer accesses for an allocation: the mean stays close to one, the worst grows with the trials.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.optimize import replace_fields

trials = np.arange(1, 7)
found = [
    qm.solve(replace_fields(qm.DataQueueing(), {"allocation.alloc_trial_count": int(n)})) for n in trials
]

fig, ax = plt.subplots()
ax.bar(trials, [one.max_pointer_accesses_per_allocation for one in found], color="0.85", label="worst")
ax.bar(trials, [one.pointer_accesses_per_allocation for one in found], width=0.5, label="mean")
ax.set(xlabel="AllocTrialCount", ylabel="pointer accesses per allocation")
ax.legend()
plt.show()
