"""
Blocking in a line
==================

Stations one after the other behind an endless supply: one that cannot pass its job on stands still.
"""

import matplotlib.pyplot as plt

import qmodels as qm

places = (1, 2, 3, 5, 8, 12, 20)
fig, ax = plt.subplots()
for stations in (2, 3, 5):
    rate = [
        qm.networks.tandem_blocking(
            arrival_rate=float("inf"), service_rate=[1.0] * stations, capacity=k
        ).system_throughput
        for k in places
    ]
    ax.plot(places, rate, "o-", markersize=3, label=f"{stations} stations")
ax.set(
    xlabel="places per station", ylabel="throughput / rate of a station", ylim=(0, 1), xticks=range(0, 21, 5)
)
ax.legend()
plt.show()
