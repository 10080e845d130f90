"""The measured error of the wormhole model, and the range in which it was measured."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.noc.collapse import RINGS
from qmodels.systems.noc.injection import Bernoulli
from qmodels.systems.noc.memory import Interleaved, Transactions
from qmodels.systems.noc.patterns import Pattern
from qmodels.systems.noc.spec import Noc
from qmodels.systems.traffic.arrivals import OnOff

FILE = Path(__file__).with_name("measured_error.csv")


METRIC_FILE = Path(__file__).with_name("metric_error.csv")
FARTHEST = 0.7
"""Part of the saturation rate up to which bursts and priorities count as validated; errors grow fast then."""

LARGEST_PERMUTATION = 24
"""Nodes of the largest ring or Spidergon whose packets went by a permutation in the reference runs."""


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


@cache
def _rows() -> list[dict[str, str]]:
    return _read(FILE)


def error_table(column: str = "mean_error") -> dict[tuple[str, float], float]:
    """Return an error of the packet latency by family and part of saturation, its mean size or signed [%]."""
    return {(row["topology"], float(row["load"])): float(row[column]) for row in _rows()}


@cache
def metric_table(column: str = "mean_error") -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return errors by kind of packets and metric of all packets: part of saturation, error [%]."""
    table: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in _read(METRIC_FILE):
        if row["packets_of"] == "all":
            key = row["packets"], row["metric"]
            table.setdefault(key, [(0.0, 0.0)]).append((float(row["load"]), float(row[column])))
    return table


def reach() -> dict[str, tuple[float, int]]:
    """Return how early networks of a family saturate, and the most nodes that were measured.

    The first is the least simulated saturation rate as a part of the model's.
    """
    return {row["topology"]: (float(row["saturation"]), int(row["nodes"])) for row in _rows()}


def packets_of(noc: Noc) -> str:
    """Return the kind of packets that is like those of a network: alike, bursts or priorities."""
    if isinstance(noc.process, OnOff):
        return "bursts"
    return "priorities" if noc.router.arbitration == "priority" else "alike"


def measured_error(noc: Noc, loads: FloatArray, column: str = "mean_error") -> dict[str, FloatArray]:
    """Return errors of metrics at parts of the saturation rate, by linear interpolation.

    Parameters
    ----------
    noc : Noc
        The network; nothing is returned for a kind of topology that was not measured.
    loads : array
        Injection rates divided by the model's saturation rate. They are taken for parts of the rate at
        which the first networks of the family saturated in simulations.
    column : {"mean_error", "signed_error"}
        Mean size, or mean with its sign: below 0 where the model is too low.

    Returns
    -------
    dict of str to array
        By metric. Of the packet latency they are those of the kind of topology, otherwise and with
        bursts or priorities those of all networks that were measured. [% of the simulated value]
    """
    family = noc.topology.kind
    points = sorted((load, error) for (kind, load), error in error_table(column).items() if kind == family)
    if not points:
        return {}
    loads = loads / reach()[family][0]
    packets = packets_of(noc)
    curves = {metric: curve for (kind, metric), curve in metric_table(column).items() if kind == packets}
    if packets == "alike":
        curves["packet_latency"] = [(0.0, 0.0), *points]
    return {metric: np.interp(loads, *np.array(curve).T) for metric, curve in curves.items()}


def interleaved(noc: Noc) -> bool:
    """Return whether packets can share a link flit by flit, which none did in the reference runs."""
    router = noc.router
    several = router.virtual_channels > 1 and int(noc.flow_table().flits.max(initial=1)) > 1
    return several and not router.hold_switch_for_packet


def validated(noc: Noc, loads: FloatArray) -> npt.NDArray[np.bool_]:
    """Return where the error was measured: the routers, packets, traffic and loads of the reference runs."""
    router = noc.router
    least, nodes = reach().get(noc.topology.kind, (1.0, 0))
    inside = (
        noc.topology.nodes <= nodes
        and router.virtual_channels <= 4
        and (router.pipeline_cycles, router.credit_cycles) == (3, 5)
        and not interleaved(noc)
        and not any(rule.circuit for rule in noc.qos)
        and not isinstance(noc.traffic, Interleaved | Transactions)
    )
    kind = packets_of(noc)
    highest = max(load for _, load in error_table()) if kind == "alike" else FARTHEST
    known = {"alike": _alike, "bursts": _bursts, "priorities": _priorities}[kind]
    return np.asarray(inside & known(noc) & (loads <= highest * least))


def _alike(noc: Noc) -> bool:
    packets, router = noc.packet_classes, noc.router
    permuted = not isinstance(noc.traffic, Pattern) or noc.traffic.pattern not in ("uniform", "hotspot")
    ring = noc.topology.kind in RINGS and noc.topology.nodes > LARGEST_PERMUTATION
    return (
        isinstance(noc.process, Bernoulli)
        and router.arbitration == "round_robin"
        and 4 <= router.buffer_flits <= 9
        and len(packets) == 1
        and noc.class_flits(packets[0]) <= 9
        and not (ring and permuted)
    )


def _like_the_special(noc: Noc) -> bool:
    """Return whether a network is like those with bursts and priorities."""
    uniform = isinstance(noc.traffic, Pattern) and noc.traffic.pattern == "uniform"
    longest = max(noc.class_flits(packet) for packet in noc.packet_classes)
    return uniform and noc.topology.nodes <= 36 and longest <= 16 and 4 <= noc.router.buffer_flits <= 16


def _bursts(noc: Noc) -> bool:
    process = noc.process
    assert isinstance(process, OnOff)
    gentle = process.scv <= 12.01 and process.peak_to_mean <= 4
    alone = len(noc.packet_classes) == 1 and noc.router.arbitration == "round_robin"
    return gentle and alone and _like_the_special(noc)


def _priorities(noc: Noc) -> bool:
    packets = sorted(noc.packet_classes, key=lambda packet: packet.priority)
    if len(packets) != 2 or noc.qos or not isinstance(noc.process, Bernoulli):
        return False
    urgent, lazy = (noc.class_flits(packet) for packet in packets)
    return packets[0].priority < packets[1].priority and urgent <= min(5, lazy) and _like_the_special(noc)


def may_deadlock(circle: tuple[str, ...]) -> dict[str, bool]:
    """Return the doubt about packets that may wait for each other in a circle of virtual channels, if any."""
    if not circle:
        return {}
    return {f"packets may deadlock: {len(circle)} virtual channels in a circle from {circle[0]}": True}
