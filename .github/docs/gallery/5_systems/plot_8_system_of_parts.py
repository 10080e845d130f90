"""
A system of parts
=================

Cores of a mesh read DRAM and hold a miss register meanwhile: with few registers jobs wait for one.
"""

import matplotlib.pyplot as plt

import qmodels as qm

fig, ax = plt.subplots()
rates = [0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.12]
for count in (2, 4, 8):
    latency = []
    for rate in rates:
        chip = qm.System(
            parts={
                "mesh": qm.Noc(topology=qm.mesh(4, 4), link_width=32),
                "dram": qm.dram("DDR5-6400"),
                "mshrs": qm.Tokens(count=count),
            },
            place={"dram": "12..15", "mshrs": "0..3"},
            flows=qm.Flow(
                arrivals=qm.traffic.Poisson(),
                rate=rate,
                at="0..3",
                program="acquire mshrs; read dram; release mshrs",
            ),
        )
        latency.append(qm.solve(chip).latency)
    ax.plot(rates, latency, "o-", label=f"{count} registers a core")
ax.set(xlabel="jobs of all cores [1/ns]", ylabel="mean latency [ns]", ylim=(0, 400))
ax.legend()
plt.show()
