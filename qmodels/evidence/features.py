"""The features by which a system is compared with those that were drawn and simulated.

They are what queueing theory says an error depends on: the load of the fullest resource, what sort of
resource that is, the dispersion of the arrivals, and what a kind has of its own. An answer has them, or all
designs of a sweep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from qmodels.systems.cache.spec import CacheSystem
from qmodels.systems.composed.parts import ServingPart, Tokens
from qmodels.systems.laws.times import Law
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.memory.memory_map import BankedChannels
from qmodels.systems.noc.spec import Noc
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.spec.fields import walk
from qmodels.systems.spec.kind import kind_of
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import OnOff, Recorded
from qmodels.systems.traffic.trace import Trace

UPWARDS = ("load", "dispersion", "scv")
"""Features whose small values are easy, so that only the largest drawn is an end of what was measured."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """Features of a system, or of each design of a sweep."""

    kind: str
    resource: Any  # the sort of the fullest resource, in words; of each design
    # numbers: "load" of that resource, "dispersion" of the arrivals, 1 for Poisson, and what the kind adds.
    numbers: Mapping[str, Any]
    # words: the variant of the kind, where its models differ, and what else it has that few have.
    words: tuple[str, ...] = ()
    doubted: Any = field(default=False)  # whether something speaks against the numbers; of each design

    @property
    def recorded(self) -> bool:
        """Whether arrivals are those of a trace."""
        return "recorded" in self.words


def features(answer: Any) -> Features:
    """Return the features of what an answer is of.

    Examples
    --------
    >>> import qmodels
    >>> found = features(qmodels.solve(qmodels.PacketProcessor()))
    >>> found.kind, found.resource, float(found.numbers["dispersion"])
    ('packet-processor', 'dram buses', 1.0)
    """
    spec = answer.spec
    dispersion, recorded = 1.0, False
    for _, value, _ in walk(spec):
        if isinstance(value, Recorded):
            recorded = True
            dispersion = np.maximum(dispersion, _of_trace(value.trace))
        elif isinstance(value, OnOff):
            dispersion = np.maximum(dispersion, value.scv)
        elif hasattr(value, "arrivals") and hasattr(value.arrivals, "scv"):
            dispersion = np.maximum(dispersion, value.arrivals.scv)
    labels = np.asarray(answer.bottleneck, dtype=object)
    sorts = {label: _sort(spec, str(label)) for label in set(labels.ravel().tolist())}
    words, numbers = _of_kind(answer, spec)
    return Features(
        kind=kind_of(spec).name,
        resource=np.vectorize(sorts.__getitem__, otypes=[object])(labels)[()],
        numbers={"load": answer.bottleneck_load, "dispersion": dispersion, **numbers},
        words=(*words, "recorded") if recorded else words,
        doubted=reduce(np.logical_or, answer.doubts.values(), np.False_),
    )


def is_exact(answer: Any, metric: str) -> bool:
    """Return whether a metric of an answer is exact: of systems of parts all but percentiles may be."""
    if answer.details.get("kind") == "exact":
        return True
    return "exact" in answer.model and "_p99" not in metric


def _of_kind(answer: Any, spec: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the words and the numbers of a kind: its variant first."""
    words: tuple[str, ...]
    match kind_of(spec).name:
        case "packet-processor":
            variant = "controllers" if isinstance(spec.dram, DramSystem) else "banks"
            links = np.char.endswith(np.asarray(answer.bottleneck, dtype=str), "links")
            flits = np.where(links, spec.segment_flits, 1)  # of a segment, where they queue for links
            return (variant,), {"flits": flits, "alloc_trial_count": spec.free_list.alloc_trial_count}
        case "queueing-network":
            return (str(answer.model),), {"scv": _largest_scv(spec)}
        case "noc":
            flits = max(spec.class_flits(packet) for packet in spec.packet_classes)
            words = ("priorities",) if spec.router.arbitration == "priority" else ()
            shape = "rings" if spec.topology.kind in ("ring", "spidergon") else "meshes"
            return (type(spec.traffic).__name__, shape, *words), {"flits": flits}
        case "dram":
            traffic = spec.traffic
            words = (f"{type(traffic).__name__}, {spec.page_policy}", spec.scheduler)
            return words, {
                "write_fraction": traffic.write_fraction,
                "blocks": getattr(traffic, "blocks", 1),
                "banks": spec.geometry.channel_banks,
            }
        case "cache":
            lines = min(level.lines // level.slices for level in spec.levels)
            return (spec.inclusion if len(spec.levels) > 1 else "one level",), {"lines": lines}
        case "data-queueing":
            words = () if spec.allocation.policy == "lists" else (spec.allocation.policy,)
            trials = spec.allocation.alloc_trial_count
            return (spec.allocation.admission, *words), {"alloc_trial_count": trials}
        case "llc-processor":
            return (spec.architecture,), {}
        case "numa":
            buffers = "double buffers" if spec.work.double_buffering else "single buffers"
            words = ("global loads",) if spec.work.global_loads else ()
            return (buffers, *words), {"scv": spec.work.compute_scv}
        case "work-queues":
            return (spec.stealing.thieves,), {"tasks_per_core": spec.task_count / spec.cores}
        case "system":
            return _of_system(spec)
    return (), {}


def _of_system(spec: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    parts = list(spec.parts.values())
    closed = all(flow.closed for flow in spec.flows)
    source = "closed" if closed else "window" if any(flow.window for flow in spec.flows) else "open"
    hardware = any(isinstance(part, DramSystem | Noc) for part in parts)
    has = {
        "caches": any(isinstance(part, CacheSystem) for part in parts),
        "free lists": any(isinstance(part, FreeList) for part in parts),
        "pools": any(isinstance(part, Tokens) for part in parts),
        "several flows": len(spec.flows) > 1,
        "jobs that are lost": any(flow.loses for flow in spec.flows),
        "parts of others": any(isinstance(part, BankedChannels | ServingPart) for part in parts),
    }
    variant = f"{source}, {'hardware' if hardware else 'stations'}"
    return (variant, *(name for name, there in has.items() if there)), {"scv": _largest_scv(spec)}


def _largest_scv(spec: Any) -> float:
    """Return the largest SCV of the services and other times of a spec, 1 for exponential ones."""
    return max((float(value.scv) for _, value, _ in walk(spec) if isinstance(value, Law)), default=0.0)


def _of_trace(trace: Trace) -> float:
    """Return the largest index of dispersion of the work of recorded packets over that of Poisson ones."""
    if not trace.statistics.byte_dispersion.size:
        return np.inf  # too few packets to tell
    sizes = np.asarray(trace.bytes, dtype=float)
    largest = np.max(trace.statistics.byte_dispersion)
    return max(1.0, float(largest / (1.0 + sizes.var() / sizes.mean() ** 2)))


def _sort(spec: Any, label: str) -> str:
    """Return the sort of a resource: of a named part its class, of others the label without numbers."""
    parts = getattr(spec, "parts", None)
    if isinstance(parts, Mapping):
        for name, part in parts.items():
            if label == name or label.startswith((f"{name} ", f"{name}[")):
                return "station" if isinstance(part, Station) else type(part).__name__
    if hasattr(spec, "stations"):
        return "station"
    if "->" in label:
        return "link"
    return re.sub(r"[\s\[\]\d]+", " ", label).strip()
