"""
Where the time goes
===================

The latency of a packet taken apart: an answer draws it itself.
"""

import qmodels as qm

answer = qm.solve(qm.PacketProcessor())
figure = answer.plot()
