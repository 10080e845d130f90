"""
Erlang's loss formula
=====================

How many find all servers busy and are lost: large groups can be filled far better than small ones.
"""

import matplotlib.pyplot as plt
import numpy as np

import qmodels as qm

part = np.linspace(0.05, 1.3, 200)

fig, ax = plt.subplots()
for servers in (1, 2, 5, 10, 50, 200):
    ax.semilogy(
        part,
        qm.queues.erlang_b(servers=servers, offered_load=part * servers),
        label=f"{servers} server{'s' if servers > 1 else ''}",
    )
ax.set(xlabel="offered load per server [erlangs]", ylabel="blocking probability", ylim=(1e-6, 1))
ax.legend(loc="lower right")
plt.show()
