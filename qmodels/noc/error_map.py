"""The measured error of the wormhole model, and the range in which it was measured."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qmodels._check import FloatArray
from qmodels.systems.injection import Bernoulli
from qmodels.systems.noc import Noc
from qmodels.systems.noc_memory import Interleaved, Transactions

FILE = Path(__file__).with_name("measured_error.csv")


@cache
def _rows() -> list[dict[str, str]]:
    with FILE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def error_table() -> dict[tuple[str, float], float]:
    """Return the mean size of the error of the packet latency by family and part of saturation [%]."""
    return {(row["topology"], float(row["load"])): float(row["mean_error"]) for row in _rows()}


def reach() -> dict[str, tuple[float, int]]:
    """Return how early networks of a family saturate, and the most nodes that were measured.

    The first is the least simulated saturation rate as a part of the model's.
    """
    return {row["topology"]: (float(row["saturation"]), int(row["nodes"])) for row in _rows()}


def measured_error(family: str, loads: FloatArray) -> dict[str, FloatArray]:
    """Return the error of the packet latency at parts of the saturation rate, by linear interpolation.

    Parameters
    ----------
    family : str
        Kind of topology; nothing is returned for one that was not measured.
    loads : array
        Injection rates divided by the model's saturation rate. They are taken for parts of the rate at
        which the first networks of the family saturated in simulations.
    """
    points = sorted((load, error) for (kind, load), error in error_table().items() if kind == family)
    if not points:
        return {}
    at, error = np.array([(0.0, 0.0), *points]).T
    return {"packet_latency": np.interp(loads / reach()[family][0], at, error)}


def validated(noc: Noc, loads: FloatArray) -> npt.NDArray[np.bool_]:
    """Return where the error was measured: the routers, packets, traffic and loads of the reference runs.

    Routes in which packets may wait for each other in a circle are outside: the model has no deadlocks.
    """
    router = noc.router
    flits = [noc.class_flits(packet) for packet in noc.packet_classes]
    least, nodes = reach().get(noc.topology.kind, (1.0, 0))
    inside = (
        noc.topology.nodes <= nodes
        and router.virtual_channels <= 4
        and 4 <= router.buffer_flits <= 9
        and (router.pipeline_cycles, router.credit_cycles) == (3, 5)
        and router.arbitration == "round_robin"
        and len(flits) == 1
        and flits[0] <= 9
        and not any(rule.circuit for rule in noc.qos)
        and isinstance(noc.process, Bernoulli)
        and not isinstance(noc.traffic, Interleaved | Transactions)
        and noc.find_deadlock() is None
    )
    highest = max((load for _, load in error_table()), default=0.0)
    return np.asarray(inside & (loads <= highest * least))
