"""Markov chains, and the laws, processes and queues built on them.

>>> from qmodels.markov import CTMC
>>> CTMC(generator=[[-1, 1], [3, -3]], states=["idle", "busy"]).stationary().probability("busy")
0.25
"""

from __future__ import annotations

from qmodels.markov._structure import ChainClasses
from qmodels.markov.arrival_fit import map_from_correlation
from qmodels.markov.arrival_process import MAP, map_superposition
from qmodels.markov.birth_death import BirthDeathResult, birth_death, birth_death_infinite
from qmodels.markov.chain_results import Absorption, StationaryDistribution
from qmodels.markov.ctmc import CTMC
from qmodels.markov.dtmc import DTMC
from qmodels.markov.map_g_1_k import map_g_1_k
from qmodels.markov.map_queues import map_map_1, map_ph_1
from qmodels.markov.mean_field import (
    Occupancy,
    fluid_fixed_point,
    fluid_trajectory,
    power_of_choices,
    work_stealing,
)
from qmodels.markov.phase_type import PhaseType
from qmodels.markov.phase_type_fit import ph_from_moments, third_moment_bounds
from qmodels.markov.phase_type_operations import (
    ph_canonical,
    ph_convolution,
    ph_maximum,
    ph_minimum,
    ph_mixture,
)
from qmodels.markov.qbd import QBDResult, qbd

__all__ = [
    "CTMC",
    "DTMC",
    "MAP",
    "Absorption",
    "BirthDeathResult",
    "ChainClasses",
    "Occupancy",
    "PhaseType",
    "QBDResult",
    "StationaryDistribution",
    "birth_death",
    "birth_death_infinite",
    "fluid_fixed_point",
    "fluid_trajectory",
    "map_from_correlation",
    "map_g_1_k",
    "map_map_1",
    "map_ph_1",
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
