"""How far the model's write conflicts were found to be from simulation, and where they may be relied on."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.evidence.error_map import ErrorMap, MeasuredError
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.packets.data_queueing_traffic import LineRate
from qmodels.systems.traffic.arrivals import Poisson, Recorded

ERRORS = ErrorMap(Path(__file__).with_name("error_map.csv"))
LOSSY_ERRORS = ErrorMap(Path(__file__).with_name("lossy_map.csv"))
MOST_LOAD, MOST_SQUARE = 0.95, 3.5
"""Load, and second moment over squared mean of a packet's segments, up to which anything is validated."""
MOST_LOSSY_LOAD, MOST_LOSSY_SEGMENTS, MOST_LOSSY_SPEED = 1.06, 24, 3.0
"""Load, largest packet and, with two trials, speed of one input up to which lost segments are validated."""
MOST_TRIALS = 2
LEAST_LOAD = 0.5
"""Load from which packets leave in an order that has nothing to do with that of their arrival."""
LEAST_MEAN, LEAST_LARGE = 5.0, 0.85
"""Mean segments of a packet, and share of the segments in VMS1. The first block of a short packet may be
on the bank of a block rejected before the packet returned, because that block was being read."""
BAR = 0.05
"""Error of the write conflicts of a validated design, at most."""


REGIONS = ("outside the validated range", "in the validated range")


LOSSY_REGIONS = (
    "segments lost alone, below overload",
    "segments lost alone, overload",
    "segments lost alone, several ports",
)


def design_errors(spec: DataQueueing, validated: Any) -> dict[str, MeasuredError]:
    """Return the errors of designs, some of them validated, by how packets are admitted."""
    trials = spec.allocation.alloc_trial_count
    if spec.traffic.operations == "packet":
        return {}
    if spec.allocation.admission != "lossy":
        return conflict_errors(trials, validated)
    return LOSSY_ERRORS.at(region=lossy_region(spec, np.shape(validated)), trials=trials)


def lossy_region(spec: DataQueueing, shape: tuple[int, ...] = ()) -> Any:
    """Return which of `LOSSY_REGIONS` designs are in whose segments are lost alone, "" for none."""
    below, above, several = LOSSY_REGIONS
    region = np.where(np.asarray(spec.traffic.load_factor) > 1.0, above, below)
    if max(spec.traffic.input_ports, spec.traffic.output_ports) > 1:
        region = np.full_like(region, several)
    one_list = np.asarray(spec.allocation.small_packet_segments) == 0
    measured = (np.asarray(spec.data.busy_accesses) == 1) & one_list & (spec.allocation.policy == "lists")
    return np.broadcast_to(np.where(measured, region, ""), shape)[()]


def conflict_errors(trials: Any, validated: Any) -> dict[str, MeasuredError]:
    """Return the errors of designs with so many trials, or the next number of them that was tried."""
    one = np.ndim(trials) == np.ndim(validated) == 0
    return dict(_of_one(int(trials), bool(validated))) if one else _errors(trials, validated)


def _errors(trials: Any, validated: Any) -> dict[str, MeasuredError]:
    return ERRORS.at(region=np.where(validated, REGIONS[1], REGIONS[0])[()], trials=trials)


_of_one = cache(_errors)


def rows_are_measured(spec: DataQueueing) -> bool:
    """Return whether short lists under operations of whole packets are those of `packet_list`."""
    traffic, allocation = spec.traffic, spec.allocation
    return (
        allocation.admission == "lossy"
        and allocation.policy == "lists"
        and isinstance(traffic.arrivals, LineRate)
        and traffic.input_ports == traffic.output_ports == 1
        and traffic.service != "arrival-order"
        and bool(np.all(np.asarray(spec.data.busy_accesses) == 1))
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
    if int(data.busy_accesses) != 1 or spec.allocation.policy != "lists" or traffic.operations == "packet":
        return False
    if spec.allocation.admission == "lossy":
        return (
            trials <= MOST_TRIALS
            and (trials == 1 or float(traffic.input_speed) <= MOST_LOSSY_SPEED)
            and max(traffic.input_ports, traffic.output_ports) == 1
            and isinstance(traffic.arrivals, Poisson)
            and load <= MOST_LOSSY_LOAD
            and segments.max() <= MOST_LOSSY_SEGMENTS
            and int(spec.allocation.small_packet_segments) == 0
        )
    if (
        float(share @ segments**2) > MOST_SQUARE * mean**2
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
