"""The features by which a system is compared with those that were drawn and simulated.

They are what queueing theory says an error depends on: the load of the fullest resource, what sort of
resource that is, and the dispersion of the arrivals. An answer has them, or all designs of a sweep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.fields import walk
from qmodels.systems.spec.kind import kind_of
from qmodels.systems.traffic.arrivals import OnOff, Recorded
from qmodels.systems.traffic.trace import Trace

SAID = re.compile(r"\bload\b|\bbursts?\b|dispersed|recorded|arrivals with|ordered against|percentiles:")
"""Doubts about what the other features say, or that concern the order of choices alone."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Features:
    """Features of a system, or of each design of a sweep."""

    kind: str
    load: FloatArray  # of the fullest resource
    resource: Any  # the sort of that resource, in words; of each design
    dispersion: FloatArray  # largest index of dispersion of the arrivals, 1 for Poisson
    recorded: bool  # whether the arrivals are those of a trace
    variant: str  # of the kind, where its models differ: open or closed, a topology, a method
    doubted: Any  # whether something but load, bursts and order speaks against the numbers; of each design


def features(answer: Any) -> Features:
    """Return the features of what an answer is of.

    Examples
    --------
    >>> import qmodels
    >>> found = features(qmodels.solve(qmodels.PacketProcessor()))
    >>> found.kind, found.resource, float(found.dispersion)
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
    resource = np.vectorize(sorts.__getitem__, otypes=[object])(labels)[()]
    doubts = [mask for words, mask in answer.doubts.items() if not SAID.search(words)]
    return Features(
        kind=kind_of(spec).name,
        load=np.asarray(answer.bottleneck_load, dtype=float),
        resource=resource,
        dispersion=np.asarray(dispersion, dtype=float),
        recorded=recorded,
        variant=_variant(answer, spec),
        doubted=reduce(np.logical_or, doubts, np.False_),
    )


def is_exact(answer: Any, metric: str) -> bool:
    """Return whether a metric of an answer is exact: of systems of parts all but percentiles may be."""
    if answer.details.get("kind") == "exact":
        return True
    return "exact" in answer.model and "_p99" not in metric


def _variant(answer: Any, spec: Any) -> str:
    """Return the variant of the kind that a spec is of."""
    match kind_of(spec).name:
        case "packet-processor":
            return "controllers" if isinstance(spec.dram, DramSystem) else "banks"
        case "queueing-network":
            return str(answer.model)
        case "noc":
            return str(spec.topology.kind)
        case "dram":
            return f"{type(spec.traffic).__name__}, {spec.page_policy}"
        case "system":
            closed = all(flow.closed for flow in spec.flows)
            source = "closed" if closed else "window" if any(flow.window for flow in spec.flows) else "open"
            hardware = any(isinstance(part, DramSystem | Noc) for part in spec.parts.values())
            return f"{source}, {'hardware' if hardware else 'stations'}"
        case "data-queueing":
            return str(spec.allocation.admission)
        case "llc-processor":
            return str(spec.architecture)
    return ""


def _of_trace(trace: Trace) -> float:
    """Return the largest index of dispersion of the work of recorded packets over that of Poisson ones."""
    sizes = np.asarray(trace.bytes, dtype=float)
    largest = np.max(trace.statistics.byte_dispersion, initial=1.0)
    return max(1.0, float(largest / (1.0 + sizes.var() / sizes.mean() ** 2)))


def _sort(spec: Any, label: str) -> str:
    """Return the sort of a resource: of a named part its class, of others the label without numbers."""
    parts = getattr(spec, "parts", None)
    if isinstance(parts, dict):
        for name, part in parts.items():
            if label == name or label.startswith((f"{name} ", f"{name}[")):
                return type(part).__name__
    if hasattr(spec, "stations"):
        return "station"
    if "->" in label:
        return "link"
    return re.sub(r"[\s\[\]\d]+", " ", label).strip()
