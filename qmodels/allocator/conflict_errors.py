"""How far the model's write conflicts were found to be from simulation, and where they may be relied on."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.traffic.arrivals import Poisson, Recorded

FILE = Path(__file__).with_name("conflict_errors.csv")
MOST_LOAD, MOST_SQUARE = 0.95, 3.5
"""Load, and second moment over squared mean of a packet's segments, up to which anything is validated."""
MOST_TRIALS = 2
LEAST_LOAD = 0.5
"""Load from which packets leave in an order that has nothing to do with that of their arrival."""
LEAST_MEAN, LEAST_LARGE = 5.0, 0.85
"""Mean segments of a packet, and share of the segments in VMS1. The first block of a short packet may be
on the bank of a block rejected before the packet returned, because that block was being read."""
BAR = 0.05
"""Error of the write conflicts of a validated design, at most."""


@dataclass(frozen=True, kw_only=True)
class ConflictError:
    """Signed relative errors of the write conflicts over the simulated designs of a kind.

    Parameters
    ----------
    designs : int
        How many.
    trials : int
        AllocTrialCount of these designs.
    validated : bool
        Whether they are in the range in which the model is validated.
    mean, low, high : float
        Mean, lowest and highest of model / simulation - 1.
    """

    designs: int
    trials: int
    validated: bool
    mean: float
    low: float
    high: float

    unit = "%"

    @property
    def bias(self) -> float:
        """Signed mean in %."""
        return 100.0 * self.mean

    def __str__(self) -> str:
        where = "inside" if self.validated else "outside"
        return (
            f"write conflicts {100 * self.mean:+.1f} % ({100 * self.low:+.0f} to {100 * self.high:+.0f} %) "
            f"in {self.designs} simulated designs {where} the validated range at {self.trials} trial(s)"
        )


@cache
def error_rows() -> tuple[dict[str, float], ...]:
    """Return trials, validated, simulated and model of each design (``cases.published.dqm.errors``)."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            {name: float(value) for name, value in row.items() if name != "design"}
            for row in csv.DictReader(file)
        )


@cache
def conflict_error(trials: int, validated: bool) -> ConflictError:
    """Return what was found for so many trials, or the next number of them that was tried."""
    tried = sorted({int(row["trials"]) for row in error_rows() if bool(row["validated"]) == validated})
    nearest = next((number for number in tried if number >= trials), tried[-1])
    found = [
        row["model"] / row["simulated"] - 1.0
        for row in error_rows()
        if row["trials"] == nearest and bool(row["validated"]) == validated
    ]
    return ConflictError(
        designs=len(found),
        trials=nearest,
        validated=validated,
        mean=sum(found) / len(found),
        low=min(found),
        high=max(found),
    )


def conflict_errors(trials: Any, validated: Any) -> dict[str, Any]:
    """Return what was found for so many trials by metric; of a single design."""
    return (
        {} if np.ndim(validated) else {"write_conflict_probability": conflict_error(int(trials), validated)}
    )


def is_validated(spec: DataQueueing) -> bool:
    """Return whether the design is like those whose write conflicts were found within `BAR`.

    Third and later trials, more busy accesses, overload, short packets, sizes with a heavy tail, a port
    alone at its end and bursts have shown larger errors, and so has light load, where packets return in the
    order in which they were stored.
    """
    data, traffic, trials = spec.data, spec.traffic, int(spec.allocation.alloc_trial_count)
    segments, share = traffic.segment_law(int(data.segment_bytes))
    mean, load = float(share @ segments), float(traffic.load_factor)
    if (
        int(data.busy_accesses) != 1
        or spec.allocation.policy != "lists"
        or float(share @ segments**2) > MOST_SQUARE * mean**2
        or min(traffic.input_ports, traffic.output_ports) < 2
        or load > MOST_LOAD
        or isinstance(traffic.arrivals, Recorded)
    ):
        return False
    if trials == 1:
        return True
    large = segments > spec.allocation.small_packet_segments
    return (
        trials <= MOST_TRIALS
        and isinstance(traffic.arrivals, Poisson)
        and load >= LEAST_LOAD
        and mean >= LEAST_MEAN
        and float((segments * share)[large].sum()) >= LEAST_LARGE * mean
    )
