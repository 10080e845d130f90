"""Markov chains and the laws and queues built on them."""

from __future__ import annotations

from qmodels.markov.chain_results import Absorption, StationaryDistribution
from qmodels.markov.ctmc import CTMC
from qmodels.markov.dtmc import DTMC
