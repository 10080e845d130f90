"""
What moves the latency
======================

Every field from a low to a high value, the others as they are: a tornado, the longest bar first.
"""

import matplotlib.pyplot as plt

import qmodels as qm
from qmodels.optimize import tornado

found = tornado(
    qm.PacketProcessor(),
    qm.solve,
    {
        "dram.channels": (2, 8),
        "dram.interleaving_step": (1, 16),
        "noc.link_width": (8, 32),
        "free_list.alloc_trial_count": (1, 4),
        "llc.slices": (2, 8),
        "workload.offered_gbps": (20.0, 60.0),
    },
    metric="packet_latency",
)
found.plot()
plt.show()
