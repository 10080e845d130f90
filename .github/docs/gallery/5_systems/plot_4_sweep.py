"""
A sweep draws itself
====================

A field that holds an array is a sweep, solved in one call.
"""

from dataclasses import replace

import numpy as np

import qmodels as qm

processor = qm.PacketProcessor()
rates = np.linspace(5, 90, 40)
figure = qm.solve(replace(processor, workload=replace(processor.workload, offered_gbps=rates))).plot()
