"""The fit of the waits of DRAM accesses."""

from __future__ import annotations

import numpy as np

from cases.fits.data import FOLDER, reference
from cases.fits.fit import Fit, Problem
from qmodels.checks import FloatArray
from qmodels.memory.dram import ready_waits
from qmodels.memory.dram.solve import solve_dram


def latencies() -> Problem:
    """Mean latencies of random reads in DRAMsim3 and Ramulator 1, closed pages of one rank, no refresh."""
    pairs = [
        pair
        for pair in reference("dram_pairs").pairs()
        if pair.spec.page_policy == "closed" and pair.spec.geometry.ranks == 1 and not pair.refresh
        if not pair.spec.traffic.write_fraction
    ]
    truth = np.array([list(pair.mean.values()) for pair in pairs])

    def errors() -> FloatArray:
        model = np.array([float(solve_dram(pair.spec).in_cycles()["read_latency"]) for pair in pairs])
        return np.ravel(model[:, None] / truth - 1)

    return Problem(errors=errors, groups=np.repeat(np.arange(len(pairs)), truth.shape[1]))


FITS = (
    Fit(
        name="memory.dram.ready",
        module=ready_waits,
        fields=("held_back",),
        data=f"{FOLDER}/dram_latency.csv",
        problem=latencies,
    ),
)
