"""What the simulation of a NUMA machine found."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels.checks import FloatArray
from validate.estimates.simulation import Simulation


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NumaSimulation(Simulation):
    """Estimates of a NUMA machine; without random computing times their intervals have no width.

    Parameters
    ----------
    core_time : array of float
        Mean time when each core is done; 0 for idle ones. [ns]
    core_busy, channel_busy, controller_busy : array of float
        Mean fraction of the execution time that each computes, has a command, serves an access.
    """

    core_time: FloatArray
    core_busy: FloatArray
    channel_busy: FloatArray
    controller_busy: FloatArray
