"""
Model and simulation
====================

A mesh solved and simulated: points with their 95 % intervals over the model's curve.
"""

from dataclasses import replace

import numpy as np

import qmodels as qm
from qmodels.validate import compare

noc = qm.Noc(topology=qm.mesh(4, 4), injection_rate=0.02)
limit = qm.solve(noc).saturation_rate
points = [replace(noc, injection_rate=float(x)) for x in np.linspace(0.1, 0.85, 6) * limit]
found = compare(points, packets=4000, replications=4)
figure = found.plot("packet_latency")
