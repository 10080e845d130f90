"""
Hit ratio by size
=================

Lookups in a table of a million entries: popular entries make small caches good.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

lines = np.unique(np.logspace(1, 6, 16).astype(int))
fig, ax = plt.subplots()
for exponent in (0.6, 0.8, 1.0, 1.2):
    popularity = qm.traffic.Zipf(entries=1_000_000, exponent=exponent)
    hits = [
        qm.solve(qm.CacheSystem(popularity=popularity, shared=qm.CacheLevel(lines=int(n)))).hit_ratio
        for n in lines
    ]
    ax.semilogx(lines, hits, label=f"Zipf exponent {exponent}")
ax.set(xlabel="lines", ylabel="hit ratio", ylim=(0, 1))
ax.legend()
plt.show()
