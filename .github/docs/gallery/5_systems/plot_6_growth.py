"""
How long a design lasts
=======================

What each number of channels carries, and in which year traffic that grows by 30 % a year reaches it.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm
from qmodels.optimize import replace_fields

years = np.arange(2026, 2037)
traffic = 20 * 1.3 ** (years - years[0])

fig, ax = plt.subplots()
ax.semilogy(years, traffic, "k-", label="traffic, 30 % more a year")
for at, channels in enumerate((1, 2, 4, 8)):
    spec = replace_fields(qm.PacketProcessor(), {"dram.channels": channels, "noc.link_width": 32})
    limit = qm.solve(spec).saturation_data_rate
    ax.axhline(limit, color=f"C{at}", linestyle="--")
    words = f"{channels} channel{'s' if channels > 1 else ''}: {limit:.0f} Gb/s"
    ax.text(1.01, limit, words, transform=ax.get_yaxis_transform(), color=f"C{at}", va="center")
ax.set(xlabel="year", ylabel="data rate [Gb/s]", ylim=(15, 300))
ax.set_yticks([20, 50, 100, 200], ["20", "50", "100", "200"])
ax.minorticks_off()
ax.legend(loc="upper left")
plt.show()
