"""The measured error of the wormhole model, and the range in which it was measured."""

from __future__ import annotations

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
BANDS = (0.2, 0.4, 0.6, 0.75, 0.85, 0.95)
"""Loads up to which errors were measured together, in parts of the model's saturation rate."""
FARTHEST = {"alike": 0.85, "bursts": 0.75, "priorities": 0.75}
"""Up to which of them an answer counts as validated; errors grow fast then."""
NODES = {"mesh": 36, "ring": 64, "spidergon": 64, "torus": 64}
"""Kinds of topologies that were measured, with the most nodes."""
SCV, PEAK = 12.01, 4.0
"""Of the strongest bursts that were measured."""

LARGEST_PERMUTATION = 24
"""Nodes of the largest ring or Spidergon whose packets went by a permutation in the reference runs."""


def packets_of(noc: Noc) -> str:
    """Return the kind of packets that is like those of a network: alike, bursts or priorities."""
    if isinstance(noc.process, OnOff):
        return "bursts"
    return "priorities" if noc.router.arbitration == "priority" else "alike"


def region_of(noc: Noc) -> str:
    """Return the region of the error maps in which a network lies, whether or not it was measured."""
    kind = packets_of(noc)
    if kind != "alike":
        return kind
    longest = max(noc.class_flits(packet) for packet in noc.packet_classes)
    size = "longer than buffers" if longest > noc.router.buffer_flits else "that fit buffers"
    packets = "single flits" if longest == 1 else f"packets {size}"
    return f"{'rings and Spidergons' if noc.topology.kind in RINGS else 'meshes and tori'}, {packets}"


def measured_errors(noc: Noc, loads: FloatArray) -> dict[str, MeasuredError]:
    """Return errors at parts of the model's saturation rate, by metric; none of other networks than measured.

    Those of the packet latency are from BookSim2 as well, but for bursts and priorities.
    """
    if not _measured(noc):
        return {}
    region = region_of(noc)
    return METRICS.at(region=region, load=loads) | LATENCY.at(region=region, load=loads)


def validated(noc: Noc, loads: FloatArray) -> npt.NDArray[np.bool_]:
    """Return where the error was measured: the routers, packets, traffic and loads of the reference runs."""
    return np.asarray(_measured(noc) & (loads <= FARTHEST[packets_of(noc)]))


def _measured(noc: Noc) -> bool:
    router = noc.router
    inside = (
        noc.topology.nodes <= NODES.get(noc.topology.kind, 0)
        and router.virtual_channels <= 4
        and (router.pipeline_cycles, router.credit_cycles) == (3, 5)
        and not any(rule.circuit for rule in noc.qos)
        and not isinstance(noc.traffic, Interleaved | Transactions)
    )
    known = {"alike": _alike, "bursts": _bursts, "priorities": _priorities}[packets_of(noc)]
    return inside and known(noc)


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
    alone = len(noc.packet_classes) == 1 and noc.router.arbitration == "round_robin"
    return not strong(noc) and alone and _like_the_special(noc)


def strong(noc: Noc) -> bool:
    """Return whether bursts are stronger than those that were measured."""
    process = noc.process
    return isinstance(process, OnOff) and bool(
        np.any(process.scv > SCV) or np.any(process.peak_to_mean > PEAK)
    )


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
