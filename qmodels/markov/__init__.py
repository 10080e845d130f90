"""Markov chains, and the laws, processes and queues built on them.

>>> from qmodels.markov import CTMC
>>> CTMC(generator=[[-1, 1], [3, -3]], states=["idle", "busy"]).stationary().probability("busy")
0.25
"""

from __future__ import annotations

from qmodels.markov.chains.birth_death import BirthDeathResult, birth_death, birth_death_infinite
from qmodels.markov.chains.chain import Absorption, StationaryDistribution
from qmodels.markov.chains.ctmc import CTMC
from qmodels.markov.chains.dtmc import DTMC
from qmodels.markov.chains.mean_field import (
    Occupancy,
    fluid_fixed_point,
    fluid_trajectory,
    power_of_choices,
    work_stealing,
)
from qmodels.markov.chains.stationary import ChainClasses
from qmodels.markov.processes.arrival_process import index_of_dispersion, lag_correlation, map_superposition
from qmodels.markov.processes.map_g_1 import gi_ph_1, map_g_1, map_g_1_k
from qmodels.markov.processes.map_queues import map_map_1, map_ph_1, map_ph_c
from qmodels.markov.processes.moment_fits import (
    map_from_correlation,
    ph_canonical,
    ph_convolution,
    ph_from_moments,
    ph_maximum,
    ph_minimum,
    ph_mixture,
    third_moment_bounds,
)
from qmodels.markov.processes.qbd import QBDResult, qbd

__all__ = [
    "CTMC",
    "DTMC",
    "Absorption",
    "BirthDeathResult",
    "ChainClasses",
    "Occupancy",
    "QBDResult",
    "StationaryDistribution",
    "birth_death",
    "birth_death_infinite",
    "fluid_fixed_point",
    "fluid_trajectory",
    "gi_ph_1",
    "index_of_dispersion",
    "lag_correlation",
    "map_from_correlation",
    "map_g_1",
    "map_g_1_k",
    "map_map_1",
    "map_ph_1",
    "map_ph_c",
    "map_superposition",
    "ph_canonical",
    "ph_convolution",
    "ph_from_moments",
    "ph_maximum",
    "ph_minimum",
    "ph_mixture",
    "power_of_choices",
    "qbd",
    "third_moment_bounds",
    "work_stealing",
]
