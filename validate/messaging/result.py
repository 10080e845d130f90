"""What the simulation of a message-passing program found."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.programs.message_network import Service
from validate.estimates.simulation import Simulation


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ProgramSimulation(Simulation):
    """Estimates of the times of a program; see `Simulation` for what all have.

    Intervals have no width where the program has no jitter: it takes the same course every time. The parts
    are those of the process that ends last.
    """

    finish: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))  # When each process ended. [ns]
    services: tuple[Service, ...] = ()  # Who sent to whom with which priority, or through a circuit
    # Packets of each service, all replications together
    packets: FloatArray = field(default_factory=lambda: np.zeros(0))
    # mean_packet_latency, max_packet_latency: Of each service, from the network interface to the other. [ns]
    mean_packet_latency: FloatArray = field(default_factory=lambda: np.zeros(0))
    max_packet_latency: FloatArray = field(default_factory=lambda: np.zeros(0))
