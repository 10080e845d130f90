"""
A topology, drawn
=================

Every topology draws itself: routers, links and what the nodes are. This is a Spidergon, a ring with chords.
"""

import qmodels as qm

figure = qm.spidergon(16).plot()
