"""
Page control
============

Accesses to a page that is open do not conflict: that helps as far as a page holds a good part of the memory.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.optimize import replace_fields

pages = 2 ** np.arange(10, 19)
fig, ax = plt.subplots()
for trials in (1, 2, 3):
    found = qm.solve(
        replace_fields(
            qm.DataQueueing(), {"allocation.alloc_trial_count": trials, "data.page_segments": pages}
        )
    )
    ax.loglog(pages, 100 * found.write_conflict_probability, "o-", label=f"AllocTrialCount {trials}")
ax.set(xlabel="segments of a page (of 4,194,304 in eight banks)", ylabel="conflicts [% of the writes]")
ax.legend()
plt.show()
