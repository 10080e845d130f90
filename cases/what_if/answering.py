"""A design's answer for the page, as plain values: metrics, shares, loads and the drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

import numpy as np

from cases.tables import plain
from qmodels.systems.noc.picture import positions
from qmodels.systems.noc.topology import Topology
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import parts, walk
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.store import said
from qmodels.systems.stations.queueing_network import QueueingNetwork

MOST_ROUTERS = 256
"""Routers of a network that is drawn."""


def _plain(value: Any) -> Any:
    """Return a value that JSON has: a simulated one by its best; nothing for what is not finite."""
    return plain(float(getattr(value, "best", value)))


def answer_data(answer: Any, spec: Any) -> dict[str, Any]:
    """Return an answer, or a simulation, for a page."""
    shares = answer.latency_parts or _jobs(answer)
    busy = answer.utilization if isinstance(answer.utilization, Mapping) else {}
    offered = answer.traffic_intensity
    first = main_metric(answer, spec)
    return {
        "main": first,
        "title": answer.title,
        "stable": said(None if answer.stable is None else bool(np.all(answer.stable))),
        "bottleneck": str(answer.bottleneck or ""),
        "remarks": answer.remarks(),
        "metrics": {name: _metric(answer, spec, name) for name in answer.metrics},
        "parts": {str(name): _plain(value) for name, value in shares.items()},
        "share": f"time [{metric_of(spec, first).unit}]"
        if answer.latency_parts
        else "mean jobs there, in the ratio of the times",
        "loads": {str(name): _plain(value) for name, value in {**offered, **busy}.items()},
    }


def main_metric(answer: Any, spec: Any) -> str:
    """Return the metric to look at first: of many places one of the whole."""
    whole = [name for name in answer.metrics if "[" not in name and metric_of(spec, name).better == "down"]
    return whole[0] if "[" in answer.main and whole else answer.main


def _jobs(answer: Any) -> dict[str, Any]:
    """Return the jobs at each station of a network of queues: as the times of a passage, by Little's law."""
    places = {name.partition("[")[2].rstrip("]"): value for name, value in answer.metrics.items()
              if name.startswith("mean_number_in_system[")}  # fmt: skip
    return {place: value for place, value in places.items() if ", " not in place} or places


def _metric(answer: Any, spec: Any, name: str) -> dict[str, Any]:
    value, about = answer.metrics[name], metric_of(spec, name)
    found = {
        "value": _plain(value),
        "endless": bool(np.isinf(getattr(value, "best", value))),
        "unit": about.unit,
        "meaning": about.meaning,
        "better": about.better,
    }
    if hasattr(value, "best"):
        return {**found, "low": _plain(value.low), "high": _plain(value.high)}
    error = getattr(answer, "error", {}).get(name)
    return {**found, "error": str(error) if error is not None and answer.stable and error.known else ""}


def picture(spec: Any) -> dict[str, Any]:
    """Return the data of a system's drawing: its network, or the connections of its stations."""
    if isinstance(spec, PacketProcessor):
        return {"processor": system(spec)}
    for path, part, _ in walk(spec):
        if isinstance(part, Topology) and part.routers <= MOST_ROUTERS:
            inside = path.split(".")[:-1]
            network = {
                "title": f"{part.kind}, {part.nodes} nodes",
                "prefix": f"{inside[-1]} " if inside else "",  # of the names of its links among the loads
                "places": positions(part).round(4).tolist(),
                "links": sorted(set(part.links)),
            }
            return {"network": network}
    return {"joined": sorted(set(_routes(spec)))} if isinstance(spec, QueueingNetwork) else {}


def system(base: PacketProcessor) -> dict[str, Any]:
    """Return the parts of a packet processor, for its drawing."""
    topology = base.noc.topology
    return {
        "initiators": int(base.noc.initiators),
        "network": f"{topology.kind}, {topology.nodes} nodes",
        "places": positions(topology).round(4).tolist(),
        "links": [list(link) for link in topology.links],
        "routers": [int(topology.injects_into(node)) for node in range(topology.nodes)],
        "channels": int(base.channels),
        "slices": int(base.llc.slices),
        "link_width": int(base.noc.link_width),
    }


def _routes(spec: QueueingNetwork) -> Iterator[tuple[str, str]]:
    """Yield the pairs of stations between which jobs go."""
    names = [station.name for station in spec.stations]
    for source, _, rule in spec.routing:
        for target in _words(rule):
            if source in names and target in names:
                yield source, target


def _words(rule: Any) -> Iterator[str]:
    if isinstance(rule, str):
        yield rule
    for part in parts(rule).values():
        yield from _words(part)


def comparison(now: Mapping[str, Any], pinned: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the differences of the metrics from the pinned design's, in words and in percent."""
    found = []
    for name, one in now["metrics"].items():
        known = pinned["metrics"].get(name)
        if known is None or (one["value"], one["endless"]) == (known["value"], known["endless"]):
            continue
        before, value = (inf if metric["endless"] else metric["value"] for metric in (known, one))
        if before is None or value is None:
            continue
        higher = value > before
        verdict = ("better" if higher == (one["better"] == "up") else "worse") if one["better"] else ""
        size = f" by {abs(100 * (value / before - 1)):.3g} %" if before and value < inf else ""
        size = " without end" if value == inf else " from without end" if before == inf else size
        words = f"{name.replace('_', ' ')} {'rises' if higher else 'falls'}{size}"
        found.append({"name": name, "words": words + (f" ({verdict})" if verdict else "")})
    return found
