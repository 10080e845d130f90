"""The measured error of the wormhole model, and the range in which it was measured."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.evidence.error_map import ErrorMap, MeasuredError
from qmodels.noc.collapse import RINGS
from qmodels.systems.noc.injection import Bernoulli
from qmodels.systems.noc.memory import Interleaved, Transactions
from qmodels.systems.noc.patterns import Pattern
from qmodels.systems.noc.spec import Noc
from qmodels.systems.traffic.arrivals import OnOff

LATENCY = ErrorMap(Path(__file__).with_name("latency_error_map.csv"))
METRICS = ErrorMap(Path(__file__).with_name("metric_error_map.csv"))
FARTHEST = 0.7
"""Part of the saturation rate up to which bursts and priorities count as validated; errors grow fast then."""

LARGEST_PERMUTATION = 24
"""Nodes of the largest ring or Spidergon whose packets went by a permutation in the reference runs."""


@cache
def reach() -> dict[str, tuple[float, int]]:
    """Return how early networks of a family saturate, and the most nodes that were measured.

    The first is the least simulated saturation rate as a part of the model's.
    """
    return {row["region"]: (row["saturation"], int(row["nodes"])) for row in LATENCY.rows}


def packets_of(noc: Noc) -> str:
    """Return the kind of packets that is like those of a network: alike, bursts or priorities."""
    if isinstance(noc.process, OnOff):
        return "bursts"
    return "priorities" if noc.router.arbitration == "priority" else "alike"


def measured_errors(noc: Noc, loads: FloatArray) -> dict[str, MeasuredError]:
    """Return errors at parts of the saturation rate, by metric and linear interpolation.

    ``loads``: injection rates divided by the model's saturation rate. They are taken for parts of the rate at
    which the first networks of the family saturated in simulations, and beyond the last that was measured for
    that one. Returns of the packet latency they are those of the kind of topology, otherwise and with bursts
    or priorities those of all networks that were measured.
    """
    family, packets = noc.topology.kind, packets_of(noc)
    if family not in reach():
        return {}
    loads = np.minimum(loads / reach()[family][0], METRICS.reach("load", region=packets))
    own = LATENCY.at(region=family, load=loads) if packets == "alike" else {}
    return METRICS.at(region=packets, load=loads) | own


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
    highest = LATENCY.reach("load") if kind == "alike" else FARTHEST
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
    found = f"packets may deadlock: {len(circle)} virtual channels in a circle from {circle[0]}"
    return {f"{found}; the numbers hold as long as they do not": True}
