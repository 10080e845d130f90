"""
Where processes spend their time
================================

Sixteen processes send their results to the first, which takes one message after the other.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.systems.programs.collectives import gather

answer = qm.solve(qm.MessageProgram(topology=qm.mesh(4, 4), processes=gather(processes=16, words=64)))

fig, ax = plt.subplots()
below = np.zeros(16)
for part in ("software", "network", "blocked"):
    times = np.array([answer.metrics[f"{part}_time[{k}]"] for k in range(16)])
    ax.bar(range(16), times, bottom=below, label=part)
    below += times
ax.set(xlabel="process", ylabel="time [ns]")
ax.legend(ncols=2)
plt.show()
