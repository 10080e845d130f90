"""Random specs of every kind: an example with some fields changed, at a load between 0.05 and 1.1.

The examples of a kind are its starter, the bundled systems, those of the published cases and, of systems of
parts, random programs. Any field may change: numbers by a factor, words to another that the field allows,
laws, arrivals, sizes, topologies and memories to another of their kind. So a new field is drawn without a
line here.
"""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import qmodels as qm
from cases.published import CASES
from cases.published.paper import designs_of
from cases.study.goals import DATA
from cases.systems import system_files
from qmodels.systems.cache.spec import CacheLevel, CacheSystem
from qmodels.systems.composed import steps
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import (
    Deterministic,
    Erlang,
    Exponential,
    HyperExponential,
    Law,
    LogNormal,
    Uniform,
)
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import DramSystem, Packets, StridedBlocks, dram
from qmodels.systems.memory.dram_timing import PRESETS
from qmodels.systems.noc.patterns import hotspot, permutation, uniform
from qmodels.systems.noc.router import PacketClass, Router
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import Topology, mesh, ring, spidergon, torus
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.spec.describe import allowed
from qmodels.systems.spec.fields import get_field, is_branch, is_spec, replace_paths, walk
from qmodels.systems.spec.kind import KINDS, kind_named, kind_of
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.stations.parts import JobClass, Station
from qmodels.systems.stations.queueing_network import QueueingNetwork
from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded
from qmodels.systems.traffic.popularity import Zipf
from qmodels.systems.traffic.sizes import SizeLaw, bimodal, fixed, heavy_tailed, imix
from qmodels.systems.traffic.trace import Trace

SOURCES = ("open", "closed", "window")
SORTS = ("stations", "hardware")
"""Stations and pools alone, or with a memory, in half of them behind a network."""

MEMORIES = ("DDR4-3200", "HBM2")
WIDE = ("two flows", "cache", "free list")  # as those with a memory, with one thing more; few of each
SCALE = 0.3  # of the services of stations beside a memory, so that it has something to do
NODES = 9
OTHERS: dict[str, dict[str, Any]] = {"open": {"rate": 1e-3}, "closed": {"population": 2}}
"""What the jobs of a second flow are, where they are not those of the first."""


class Drawing:
    """Draws the pieces of one system; all of it comes from ``rng``."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def law(self, mean: float) -> Law:
        """Return a law of times of a mean."""
        match int(self.rng.integers(7)):
            case 0 | 1:
                return Exponential(mean=mean)
            case 2:
                return Deterministic(mean=mean)
            case 3:
                return Erlang(mean=mean, phases=int(self.rng.integers(2, 5)))
            case 4:
                return HyperExponential.balanced(mean=mean, scv=float(self.rng.uniform(1.5, 4.0)))
            case 5:
                return LogNormal(mean=mean, scv=float(self.rng.uniform(0.3, 2.0)))
        return Uniform(low=0.0, high=2 * mean)

    def station(self, scale: float = 1.0) -> Station:
        """Return a station."""
        servers = int(self.rng.choice([1, 1, 1, 2, 3, 4]))
        sharing = bool(self.rng.random() < 0.2)
        mean = float(self.rng.uniform(5.0, 40.0)) * servers * scale
        return Station(service=self.law(mean), servers=servers, discipline="sharing" if sharing else "fifo")

    def arrivals(self) -> Any:
        """Return when jobs come."""
        match int(self.rng.integers(4)):
            case 0:
                return OnOff(
                    on_packets=float(self.rng.uniform(2, 6)), peak_to_mean=float(self.rng.uniform(1.5, 3))
                )
            case 1:
                return Erlang(mean=1.0, phases=2)
        return Poisson()

    def cache(self) -> CacheSystem:
        """Return a cache without private levels."""
        entries = int(self.rng.integers(500, 4000))
        return CacheSystem(
            popularity=Zipf(entries=entries, exponent=float(self.rng.uniform(0.6, 1.0))),
            shared=CacheLevel(lines=int(entries * self.rng.uniform(0.05, 0.5))),
        )

    def steps(self, visits: list[Any], depth: int = 2) -> tuple[Any, ...]:
        """Return a program that makes some visits, in order."""
        found: list[Any] = []
        left = list(visits)
        while left:
            take = int(self.rng.integers(1, min(len(left), 3) + 1))
            some, left = left[:take], left[take:]
            found += self._form(some, depth)
            if self.rng.random() < 0.15:
                found.append(steps.Hold(self.law(float(self.rng.uniform(5.0, 30.0)))))
        return tuple(found)

    def _form(self, visits: list[Any], depth: int) -> list[Any]:
        form = self.rng.random()
        if depth == 0 or form < 0.45:
            return visits
        inside = self.steps(visits, depth - 1)
        if form < 0.6:
            share = round(float(self.rng.uniform(0.2, 0.8)), 3)
            return [steps.Branch((inside, ()), (share, 1 - share))]
        if form < 0.72:
            return [steps.Repeat(inside, int(self.rng.integers(2, 4)))]
        if form < 0.86 and len(visits) > 1:
            return [steps.Fork(tuple(self.steps([visit], depth - 1) for visit in visits))]
        return [steps.Each(inside, int(self.rng.integers(2, 4)))]


def draw_system(seed: int, source: str, sort: str) -> System:
    """Return a system, with a rate or a population that says nothing yet.

    >>> system = draw_system(1, "open", "stations")
    >>> len(system.parts) >= 3, system == draw_system(1, "open", "stations")
    (True, True)
    """
    rng = np.random.default_rng([seed, SOURCES.index(source), (*SORTS, *WIDE).index(sort)])
    drawing = Drawing(rng)
    scale = 1.0 if sort == "stations" else SCALE
    stations = {f"s{k}": drawing.station(scale) for k in range(int(rng.integers(2, 5)))}
    parts: dict[str, Any] = dict(stations)
    visits: list[Any] = [steps.Visit(name) for name in rng.permutation(list(stations)).tolist()]
    place: dict[str, Any] = {}
    at: tuple[int, ...] = ()
    if sort != "stations":
        preset = str(rng.choice(MEMORIES))
        parts["dram"] = dram(preset, channels=int(rng.choice([1, 2, 4])))
        kind = steps.Write if rng.random() < 0.3 else steps.Read
        visits.insert(int(rng.integers(len(visits) + 1)), kind("dram", blocks=int(rng.choice([1, 1, 2, 4]))))
        if rng.random() < 0.5:
            parts["noc"] = Noc(
                topology=mesh(3, 3), link_width=16, traffic=uniform(nodes=NODES), injection_rate=0.0
            )
            at = tuple(rng.permutation(NODES)[:3].tolist())
            place = {"dram": tuple(rng.permutation(NODES)[:2].tolist())}
    if sort == "cache":
        parts["cache"] = drawing.cache()
        look = steps.Hold(Deterministic(mean=8.0))
        visits.append(steps.Lookup("cache", hit=(look,), miss=(look, steps.Read("dram"))))
    program = drawing.steps(visits)
    if rng.random() < 0.5 or len(parts) < 3:
        parts["pool"] = Tokens(count=int(rng.integers(2, 12)))
        first = int(rng.integers(len(program)))
        last = int(rng.integers(first, len(program)))
        held = (steps.Acquire("pool"), *program[first : last + 1], steps.Release("pool"))
        program = (*program[:first], *held, *program[last + 1 :])
    if sort == "free list":
        parts["list"] = FreeList(segments=4096, alloc_trial_count=int(rng.integers(1, 4)))
        program = (steps.Allocate("list"), *program, steps.Free("list"))
    flows = [_flow(drawing, source, program, at)]
    if sort == "two flows":
        other = drawing.steps([steps.Visit(name) for name in rng.permutation(list(stations)).tolist()])
        second = SOURCES[int(rng.integers(2))]
        flows.append(replace(_flow(drawing, second, other, at), name="others", **OTHERS[second]))
    return System(parts=Named(parts), flows=tuple(flows), place=Named(place))


def _flow(drawing: Drawing, source: str, program: tuple[Any, ...], at: tuple[int, ...]) -> Flow:
    if source == "closed":
        think = drawing.law(float(drawing.rng.uniform(20.0, 300.0)))
        return Flow(program=program, population=1, think=think, at=at)
    window = int(drawing.rng.integers(3, 24)) if source == "window" else None
    return Flow(program=program, arrivals=drawing.arrivals(), rate=1e-6, window=window, at=at)


TRIES = 200  # changes tried for one spec; most that are refused are of fields that others bound
MOST_CHANGES = 6
FACTOR = 2.0  # numbers change by up to two to this power, either way
LOADS = (0.05, 1.1)  # of the fullest resource, by the model of the day
PARTS_DRAWN = 0.8  # share of the systems of parts that are random programs, not changed examples
FIXED = re.compile(
    r"(^|\.)(name|kind|edges?|edge_.*|nodes|shape|routes|roles|program|routing\..*|longest|to|place)(\.|$)"
)
"""Fields that only make sense together with others, which are left as they are."""
CONTROLLED = 0.15  # share of the packet processors whose memory is behind controllers
OPEN_NOCS = 0.7  # share of the networks-on-chip whose packets nobody waits for, on any topology
DEVICES = ("DDR4-3200", "DDR5-6400", "HBM2", "DDR3-1600")
BURSTY, RECORDED = 0.3, 0.12  # shares of the specs whose arrivals come in bursts, and are as recorded
RECORDED_PACKETS = 20_000
DRAWN = "drawn packets "  # what the source of a drawn recording begins with; its seed follows
ABOUT = tomllib.loads(Path(__file__).with_name("kinds.toml").read_text(encoding="utf-8"))


@cache
def examples(kind: str) -> tuple[Any, ...]:
    """Return the specs of a kind that draws start from."""
    found = [kind_named(kind).starter()]
    files = [*system_files().values(), *(DATA / f"{name}-packets.toml" for name in ("small", "large"))]
    found += [spec_from_toml(path) for path in files]
    found += [design.spec for case in CASES for design in designs_of(case)]
    found += [dram(preset) for preset in sorted(PRESETS)]
    return tuple(spec for spec in found if kind_of(spec).name == kind and not _recorded(spec))


def _recorded(spec: Any) -> bool:
    return any(isinstance(value, Recorded) for _, value, _ in walk(spec))


def draw(kind: str, number: int, *, seed: int = 0) -> Any:
    """Return a spec of a kind; the same for the same number and seed.

    >>> draw("dram", 3) == draw("dram", 3), type(draw("dram", 4)).__name__
    (True, 'DramSystem')
    """
    rng = np.random.default_rng((seed, KINDS.index(kind), number))
    if kind == "system" and rng.random() < PARTS_DRAWN:
        spec = _with_jobs(
            draw_system(
                int(rng.integers(1 << 30)), str(rng.choice(SOURCES)), str(rng.choice((*SORTS, *WIDE)))
            ),
            rng,
        )
    elif kind == "queueing-network":
        spec = _changed(_network(rng), int(rng.integers(3)), rng)
    else:
        known = examples(kind)
        spec = known[int(rng.integers(len(known)))]
        if kind == "noc" and rng.random() < OPEN_NOCS:
            spec = _noc(rng)
        spec = _changed(spec, int(rng.integers(1, MOST_CHANGES + 1)), rng)
    if kind == "dram":
        spec = _with_accesses(spec, rng)
    if kind == "packet-processor" and rng.random() < CONTROLLED:
        spec = _with_controllers(spec, rng)
    spec = _with_bursts(spec, kind, rng)
    with suppress(
        Exception
    ):  # a spec that the model refuses is drawn as it is: the refusal is an answer, too
        spec = _loaded(spec, kind, float(rng.uniform(*LOADS)))
    return spec


def _with_controllers(spec: Any, rng: np.random.Generator) -> Any:
    """Return a packet processor whose memory is behind controllers."""
    policy = "open" if rng.random() < 0.75 else "closed"
    device = dram(str(rng.choice(DEVICES)), channels=int(2 ** rng.integers(0, 4)), page_policy=policy)
    step = int(2 ** rng.integers(0, 6))
    filled = device.geometry.row_blocks if rng.random() < 0.5 else step
    changes: dict[str, Any] = {"dram": replace(device, address_map=Interleaved(step=step, bank_step=filled))}
    if policy == "closed":
        changes["free_list.alloc_trial_count"] = 1  # the model takes no others
    with suppress(ValueError):
        return replace_paths(spec, changes)
    return spec


def _noc(rng: np.random.Generator) -> Noc:
    """Return a network of 4 to 36 nodes, of any topology, into which packets are injected."""
    rows, columns = int(rng.integers(2, 7)), int(rng.integers(2, 7))
    nodes = rows * columns
    topologies = [mesh(rows, columns), ring(nodes), torus(rows, columns)]
    topologies += [spidergon(nodes)] if nodes % 4 == 0 and nodes >= 8 else []
    targets = [int(node) for node in rng.permutation(nodes)]
    mixed = int(rng.integers(1, 4))
    urgent = PacketClass(payload_bytes=int(rng.integers(0, 65)), priority=0)
    lazy = PacketClass(payload_bytes=int(rng.integers(64, 257)), priority=int(rng.integers(2)))
    return Noc(
        topology=topologies[int(rng.integers(len(topologies)))],
        traffic=(
            uniform(nodes=nodes)
            if rng.random() < 0.5
            else hotspot(nodes=nodes, spots=targets[:mixed], fraction=float(rng.uniform(0.1, 0.6)))
            if rng.random() < 0.5
            else permutation(targets)
        ),
        router=Router(
            virtual_channels=int(rng.choice([2, 2, 4])),
            buffer_flits=int(2 ** rng.integers(2, 5)),
            arbitration=str(rng.choice(["round_robin", "round_robin", "priority"])),
        ),
        mix=(urgent, lazy) if rng.random() < 0.25 else (),
        packet_bytes=int(2 ** rng.integers(3, 9)),
        injection_rate=0.01,
    )


def _with_accesses(spec: Any, rng: np.random.Generator) -> Any:
    """Return a memory with another address map, half of them with other accesses than random blocks."""
    plan = Interleaved(step=int(2 ** rng.integers(0, 4)), bank_step=int(2 ** rng.integers(0, 6)))
    writes = spec.traffic.write_fraction if rng.random() < 0.5 else 0.0
    spacing = int(rng.choice([0, 0, 2, 6]))
    accesses = (
        spec.traffic,
        spec.traffic,
        Packets(blocks=int(2 ** rng.uniform(0, 5)), spacing=spacing, write_fraction=writes),
        StridedBlocks(stride=int(rng.choice([1, 1, 3, 5, 16])), write_fraction=writes),
    )
    return replace(spec, address_map=plan, traffic=accesses[int(rng.integers(4))])


def _with_bursts(spec: Any, kind: str, rng: np.random.Generator) -> Any:
    """Return a spec, some with arrivals in bursts, or recorded ones, where its kind has arrivals."""
    chosen = rng.random()
    bursts = OnOff(
        on_packets=float(2 ** rng.uniform(1.0, 6.0)), peak_to_mean=float(2 ** rng.uniform(0.5, 3.0))
    )
    recording = recorded(int(rng.integers(1 << 30)))
    if kind == "system" and chosen < BURSTY:
        flows = tuple(flow if flow.closed else replace(flow, arrivals=bursts) for flow in spec.flows)
        return replace(spec, flows=flows)
    if "arrivals" not in ABOUT[kind] or chosen >= BURSTY + RECORDED:
        return spec
    arrivals = bursts if chosen < BURSTY or kind != "packet-processor" else recording
    changes: dict[str, Any] = {ABOUT[kind]["arrivals"]: arrivals}
    if arrivals is recording:
        changes["workload.sizes"] = recording.sizes
    with suppress(ValueError):
        return replace_paths(spec, changes)
    return spec


def recorded(seed: int) -> Recorded:
    """Return random packets as if recorded: rates that change on three time scales, and sizes with them.

    >>> recorded(3).trace == recorded(3).trace
    True
    """
    rng = np.random.default_rng(seed)
    rate, fast = np.ones(RECORDED_PACKETS), np.zeros(RECORDED_PACKETS, dtype=bool)
    for scale in (10, 100, 1000):
        fast = rng.random(RECORDED_PACKETS) < 1.0 / (scale * rng.uniform(0.5, 2.0))
        fast = (np.cumsum(fast) + rng.integers(2)) % 2 == 0
        rate *= np.where(fast, 2 ** rng.uniform(0.0, 1.0), 2 ** rng.uniform(-1.0, 0.0))
    times = np.cumsum(rng.exponential(size=RECORDED_PACKETS) / rate) * 100.0
    small = np.where(fast, rng.random(), rng.random())  # the slow changes move the sizes as well
    bytes_ = np.where(rng.random(RECORDED_PACKETS) < small, 64, rng.choice([594, 1518], RECORDED_PACKETS))
    return Recorded(trace=Trace(times_ns=times, bytes=bytes_, source=f"{DRAWN}{seed}"))


def _network(rng: np.random.Generator) -> QueueingNetwork:
    """Return a network of one to four stations through which one or two classes pass, open or closed."""
    drawing = Drawing(rng)
    stations = [replace(drawing.station(), name=f"s{k}") for k in range(int(rng.integers(1, 5)))]
    if rng.random() < 0.3:
        places = int(rng.integers(1, 20))
        stations[0] = replace(stations[0], discipline="fifo", capacity=stations[0].servers + places)
    closed = len(stations) > 1 and stations[0].capacity == np.inf and rng.random() < 0.4
    classes, routing = [], {}
    for name, priority in (("a", 0), ("b", int(rng.integers(2))))[: 1 + (rng.random() < 0.3)]:
        way = [station.name for station in rng.permutation(np.array(stations, dtype=object))]
        way = way[: int(rng.integers(2 if closed else 1, len(way) + 1))]
        kind = {"population": int(2 ** rng.uniform(0, 5)), "reference": way[0]}
        if not closed:
            law = Exponential(mean=100.0) if rng.random() < 0.6 else drawing.law(100.0)
            kind = {"arrivals": law, "entry": way[0], "priority": priority}
        classes.append(JobClass(name=name, **kind))
        routing[name] = way
    return QueueingNetwork(
        stations=stations,
        classes=classes,
        routing={
            (here, name): there
            for name, way in routing.items()
            for here, there in zip(way, [*way[1:], way[0]] if closed else way[1:], strict=False)
        },
    )


def _changed(spec: Any, changes: int, rng: np.random.Generator) -> Any:
    """Return a spec with some fields changed, each change one that the spec takes."""
    for _ in range(TRIES):
        places = [(path, value) for path, value, _ in walk(spec) if not FIXED.search(path)]
        path, value = places[int(rng.integers(len(places)))]
        try:
            new = replace_paths(spec, {path: _other(spec, path, value, rng)})
            spec_from_toml(to_toml(new, kind=True))
        except (ValueError, TypeError, OverflowError):
            continue
        if new != spec:
            spec, changes = new, changes - 1
        if not changes:
            break
    return spec


def _other(spec: Any, path: str, value: Any, rng: np.random.Generator) -> Any:
    """Return another value for a field."""
    if isinstance(value, Law):
        return Drawing(rng).law(float(value.mean))
    match value:
        case bool():
            return not value
        case int():
            return round(value * 2 ** rng.uniform(-FACTOR, FACTOR)) if value else int(rng.integers(3))
        case float():
            return float(value * 2 ** rng.uniform(-FACTOR, FACTOR)) if value else float(rng.random())
        case str():
            outer, _, last = path.rpartition(".")
            owner = get_field(spec, outer) if outer else spec
            rule = allowed(type(owner), owner, last) if is_spec(owner) else ""
            words = (
                re.findall(r"[a-z][a-z0-9_-]*", rule.removeprefix("one of "))
                if rule.startswith("one of ")
                else []
            )
            return str(rng.choice(words)) if words else value
        case SizeLaw():
            mean = int(rng.integers(64, 1519))
            laws = (
                imix(),
                fixed(bytes=mean),
                bimodal(small=64, large=1518, small_fraction=float(rng.random())),
            )
            return (*laws, heavy_tailed(shape=float(rng.uniform(1.1, 2.5)), maximum=9000))[
                int(rng.integers(4))
            ]
        case Poisson() | OnOff():
            bursts = OnOff(on_packets=float(rng.uniform(2, 40)), peak_to_mean=float(rng.uniform(1.5, 8)))
            return bursts if rng.random() < 0.7 else Poisson()
        case Topology():
            nodes = value.nodes
            side = next(k for k in range(int(nodes**0.5), 0, -1) if nodes % k == 0)
            kinds = [ring(nodes), mesh(side, nodes // side), torus(side, nodes // side)]
            kinds += [spidergon(nodes)] if nodes % 4 == 0 and nodes >= 8 else []
            return kinds[int(rng.integers(len(kinds)))]
        case DramSystem():
            device = dram(str(rng.choice(sorted(PRESETS))))
            return replace(device, traffic=value.traffic)
    return value


def _loaded(spec: Any, kind: str, load: float) -> Any:
    """Return a spec whose fullest resource has a load, where its kind has a rate."""
    if kind == "queueing-network":
        return _network_loaded(spec, load)
    path = ABOUT[kind].get("rate")
    if path is None:
        return spec
    rate = get_field(spec, path)
    if rate is None or is_branch(rate):
        return spec
    return replace_paths(spec, {path: float(rate) * load / float(qm.solve(spec).bottleneck_load)})


def _network_loaded(spec: Any, load: float) -> Any:
    """Return a network whose open classes come so often that its fullest station has a load."""
    factor = float(qm.solve(spec).bottleneck_load) / load
    classes = tuple(
        replace(one, arrivals=replace(one.arrivals, mean=one.arrivals.mean * factor))
        if hasattr(one.arrivals, "mean")
        else one
        for one in spec.classes
    )
    return replace(spec, classes=classes)


def _with_jobs(system: Any, rng: np.random.Generator) -> Any:
    """Return a system of parts with random populations, or at a random load where its first flow is open."""
    load, jobs = float(rng.uniform(*LOADS)), int(2 ** rng.uniform(0, 6))
    flows = tuple(replace(flow, population=jobs) if flow.closed else flow for flow in system.flows)
    system = replace(system, flows=flows)
    if flows[0].closed:
        return system
    with suppress(Exception):
        factor = float(qm.solve(system).metrics["saturation_factor"]) * load
        flows = tuple(
            flow if flow.closed else replace(flow, rate=float(flow.rate) * factor) for flow in flows
        )
        system = replace(system, flows=flows)
    return system
