"""
What a trace is like
====================

Rate, bursts over time scales, sizes and gaps of recorded packets, in one picture.
"""

import numpy as np

import qmodels as qm

rng = np.random.default_rng(1)
bursts = rng.exponential(40, 30_000) * np.repeat(rng.choice([0.4, 3.0], 300), 100)  # busy and quiet spells
trace = qm.traffic.Trace(
    times_ns=np.cumsum(bursts), bytes=rng.choice([64, 576, 1518], 30_000), source="made up"
)
figure = trace.description.plot()
