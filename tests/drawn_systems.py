"""Systems drawn at random of all that the model takes, at a given load, and what no answer to one may be.

Parts of all kinds, on an interconnect or without; open, closed and windowed flows; steps in one another. Each
draw follows from its seed alone: `wrong` says what is wrong with it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import qmodels as qm
from cases.evidence.draw import MEMORIES, Drawing
from qmodels import (
    CacheLevel,
    CacheSystem,
    Flow,
    Noc,
    Station,
    System,
    Tokens,
    crossbar,
    dram,
    mesh,
    ring,
    torus,
)
from qmodels.laws import Exponential
from qmodels.noc import uniform
from qmodels.packets import FreeList
from qmodels.parts import BankedChannels
from qmodels.steps import (
    Acquire,
    Allocate,
    Branch,
    Each,
    Fork,
    Free,
    Hold,
    Lookup,
    Read,
    Release,
    Repeat,
    Send,
    Visit,
    Write,
)
from qmodels.systems.composed.steps import all_steps
from qmodels.systems.spec.named import Named
from qmodels.traffic import Zipf, bimodal

LOADS = (0.3, 1.3)
"""Of the rates at which the first resource is full."""
TOLERANCE = 1e-3
"""Relative size of what a saturation may differ by, asked at another rate."""
SLOW = 1e-7
"""Rate at which saturation is asked first. [1/ns]"""
NETWORKS = (mesh(2, 2), mesh(3, 2), ring(5), torus(2, 3), crossbar(4))
DEPTH = 2
"""Of steps in one another, at most."""
FORMS = (Branch, Repeat, Fork, Each, Acquire)
SIZES = bimodal(small=64, large=192, small_fraction=0.5)


@dataclass
class Drawn:
    """One system while it is drawn.

    ``rng``: where all of it comes from.
    """

    rng: np.random.Generator
    parts: dict[str, Any] = field(default_factory=dict)
    place: dict[str, Any] = field(default_factory=dict)
    nodes: int = 0

    def system(self) -> System:
        """Return parts and flows; open ones so slow that they say nothing yet."""
        rng, drawing = self.rng, Drawing(self.rng)
        if self.chance(0.35):
            topology = NETWORKS[int(rng.integers(len(NETWORKS)))]
            self.nodes = int(topology.nodes)
            traffic = uniform(nodes=self.nodes)
            self.parts["noc"] = Noc(topology=topology, link_width=16, traffic=traffic, injection_rate=0.0)
        scale = float(rng.choice([0.3, 1.0]))
        for k in range(int(rng.integers(1, 4))):
            self.add(f"s{k}", drawing.station(scale), copies=True)
        if self.chance(0.25):
            memory = dram(str(rng.choice(MEMORIES)), channels=int(rng.choice([1, 2, 4])))
            self.add("dram", memory)
        if self.chance(0.08):
            self.add("banks", BankedChannels(service=Exponential(mean=20.0), channels=2, speeds=(1.0, 0.7)))
        if self.chance(0.25):
            cache = self.cache() if self.chance(0.5) else drawing.cache()
            self.add("cache", cache)
        if self.chance(0.25):
            self.parts["list"] = FreeList(segments=4096, alloc_trial_count=int(rng.integers(1, 4)))
        for k in range(int(rng.choice([0, 0, 1, 1, 2]))):
            self.add(f"pool{k}", Tokens(count=int(rng.integers(1, 12))), copies=True)
        flows = tuple(self.flow(drawing, k) for k in range(int(rng.choice([1, 1, 1, 2]))))
        steps = (step for flow in flows for step in all_steps(flow.program))
        used = {getattr(step, "part", getattr(step, "to", "")) for step in steps}
        parts = {name: part for name, part in self.parts.items() if name in used or name == "noc"}
        place = {name: at for name, at in self.place.items() if name in used}
        return System(parts=Named(parts), place=Named(place), flows=flows)

    def chance(self, share: float) -> bool:
        """Return true for a share of the draws."""
        return bool(self.rng.random() < share)

    def add(self, name: str, part: Any, *, copies: bool = False) -> None:
        """Add a part, in some cases at nodes; of some kinds each node has a copy."""
        self.parts[name] = part
        if self.nodes and self.chance(0.6):
            everywhere = copies and self.chance(0.3)
            count = self.nodes if everywhere else int(self.rng.integers(1, self.nodes + 1))
            self.place[name] = tuple(self.rng.permutation(self.nodes)[:count].tolist())

    def cache(self) -> CacheSystem:
        """Return a cache with a private level."""
        entries = int(self.rng.integers(500, 4000))
        return CacheSystem(
            popularity=Zipf(entries=entries, exponent=float(self.rng.uniform(0.6, 1.0))),
            cores=2,
            private=(CacheLevel(lines=entries // 50),),
            shared=CacheLevel(lines=entries // 4, slices=2),
        )

    def flow(self, drawing: Drawing, number: int) -> Flow:
        """Return a flow: open, with a window before which jobs wait or are lost, or closed."""
        rng = self.rng
        at = tuple(rng.permutation(self.nodes)[: 1 + int(rng.integers(max(self.nodes, 1)))].tolist())
        program = self.program(drawing, number)
        shared = {"name": f"f{number}", "program": program, "at": at, "sizes": SIZES}
        source = str(rng.choice(["open", "open", "closed", "closed", "wait", "loss"]))
        if source == "closed":
            think = drawing.law(float(rng.uniform(20.0, 300.0))) if self.chance(0.7) else None
            return Flow(population=int(rng.choice([1, 2, 4, 8, 16])), think=think, **shared)
        if source == "open":
            return Flow(arrivals=drawing.arrivals(), rate=SLOW, **shared)
        window = int(rng.choice([1, 2, 4, 8, 16, 32]))
        return Flow(arrivals=drawing.arrivals(), rate=SLOW, window=window, when_full=source, **shared)

    def program(self, drawing: Drawing, number: int) -> tuple[Any, ...]:
        """Return steps that take time."""
        pools = [name for name in self.parts if name.startswith("pool")]
        steps = (
            (*self.steps(drawing, DEPTH, pools), Visit("s0"))
            if number == 0
            else self.steps(drawing, DEPTH, pools)
        )
        if "list" in self.parts and self.chance(0.5):
            blocks: Any = "segments" if self.chance(0.3) else int(self.rng.integers(1, 4))
            steps = (Allocate("list", blocks), *steps, Free("list"))
        return steps

    def steps(self, drawing: Drawing, depth: int, pools: list[str]) -> tuple[Any, ...]:
        """Return one or two steps; tokens of the pools may be acquired, in their order."""
        found: list[Any] = []
        for _ in range(int(self.rng.integers(1, 3))):
            if depth == 0 or self.chance(0.5):
                found.append(self.leaf(drawing))
                continue
            form = FORMS[int(self.rng.integers(len(FORMS)))]
            if form is Acquire and pools:
                first = int(self.rng.integers(len(pools)))
                some = int(self.rng.integers(1, min(3, self.parts[pools[first]].count) + 1))
                inside = self.steps(drawing, depth - 1, pools[first + 1 :])
                found += [Acquire(pools[first], some), *inside, Release(pools[first], some)]
            elif form is Branch:
                share = round(float(self.rng.uniform(0.1, 0.9)), 3)
                other = self.steps(drawing, depth - 1, pools) if self.chance(0.5) else ()
                found.append(Branch((self.steps(drawing, depth - 1, pools), other), (share, 1 - share)))
            elif form is Repeat:
                found.append(Repeat(self.steps(drawing, depth - 1, pools), self.count()))
            elif form is Fork:
                one, two = (self.steps(drawing, depth - 1, pools) for _ in range(2))
                found.append(Fork((one, one if self.chance(0.3) else two)))
            else:
                found.append(Each(self.steps(drawing, depth - 1, pools), self.count()))
        return tuple(found)

    def count(self) -> int | str:
        """Return how often something is done."""
        return "segments" if self.chance(0.2) else int(self.rng.integers(1, 5))

    def leaf(self, drawing: Drawing) -> Any:
        """Return a step that holds no others, but for those of a look-up."""
        kinds = [name for name, part in self.parts.items() if not isinstance(part, Tokens | Noc | FreeList)]
        name = str(self.rng.choice([*kinds, "hold"]))
        match self.parts.get(name):
            case Station() | BankedChannels():
                sizes = {"bytes": 64, "reply_bytes": 32} if self.chance(0.5) else {}
                return Visit(name, **sizes)
            case CacheSystem():
                look = Hold(drawing.law(5.0))
                return Lookup(name, hit=(look,), miss=(look, Visit("s0")), reply_bytes=64)
            case None:
                return Hold(drawing.law(float(self.rng.uniform(5.0, 30.0))))
        if name in self.place and self.chance(0.15):
            return Send(name, bytes=64)
        kind = Write if self.chance(0.3) else Read
        return kind(name, self.count(), "sequential" if self.chance(0.3) else "random")


def draw(seed: int) -> System:
    """Return a system of a seed."""
    return Drawn(np.random.default_rng(seed)).system()


def at_rates(system: System, factor: float) -> System:
    """Return a system with the rates of all open flows multiplied by a factor."""
    flows = (flow if flow.closed else replace(flow, rate=flow.rate * factor) for flow in system.flows)
    return replace(system, flows=tuple(flows))


def contradictions(answer: Any) -> Iterator[str]:
    """Yield what an answer says that cannot be, or that another of its figures denies."""
    system, stable = answer.spec, bool(answer.stable)
    opened = [flow for flow in system.flows if not flow.closed]
    for table in ("metrics", "latency_parts", "utilization", "traffic_intensity"):
        for name, value in getattr(answer, table).items():
            number = float(value)
            if np.isnan(number) or number < 0:
                yield f"{table} {name} is {number}"
            if stable and np.isinf(number) and name != "saturation_factor":
                yield f"{table} {name} is {number} beside stable"
    for name, load in answer.traffic_intensity.items():
        if stable and load > 1 + 1e-9:
            yield f"load of {name} is {load} beside stable"
    for name, value in answer.metrics.items():
        if name.startswith(("blocking_probability", "hit_ratio")) and value > 1 + 1e-9:
            yield f"{name} is {value}"
    factor = float(answer.metrics.get("saturation_factor", np.inf))
    if stable and factor < 1 - TOLERANCE and not any(flow.loses for flow in opened):
        yield f"saturation_factor is {factor} beside stable"
    if not stable and factor > 1 + TOLERANCE:
        yield f"saturation_factor is {factor} beside unstable"
    if not stable and np.isfinite(answer.metrics["latency"]):
        yield f"latency is {answer.metrics['latency']} beside unstable"
    for flow in opened:
        through = float(
            answer.metrics[f"flow_throughput[{flow.name}]" if system.flows[1:] else "flow_throughput"]
        )
        lossless = "list" not in system.parts and not flow.loses
        if through > flow.rate * (1 + 1e-6) or (stable and lossless and through < flow.rate * (1 - 1e-6)):
            yield f"throughput of {flow.name} is {through} at a rate of {flow.rate}"


def saturation(answer: Any) -> float:
    """Return the factor of the slow rates at which the first resource is full."""
    rates = [flow.rate / SLOW for flow in answer.spec.flows if not flow.closed]
    return float(answer.metrics.get("saturation_factor", np.inf)) * (rates[0] if rates else 1.0)


def wrong(seed: int) -> Iterator[str]:
    """Yield what is wrong with the answers to the system of a seed, at two loads."""
    system = draw(seed)
    try:
        slow = qm.solve(system)
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
        return
    yield from contradictions(slow)
    most = saturation(slow)
    if not 0 < most < np.inf:
        return
    for load in np.random.default_rng([seed, 1]).uniform(*LOADS, 2):
        try:
            answer = qm.solve(at_rates(system, most * load))
        except Exception as error:
            yield f"at {load:.3g}: {type(error).__name__}: {error}"
            continue
        yield from (f"at {load:.3g}: {one}" for one in contradictions(answer))
        if abs(saturation(answer) / most - 1) > TOLERANCE:
            yield f"at {load:.3g}: saturation is {saturation(answer) / most:.6g} of what it is at a low rate"
