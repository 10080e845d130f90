"""Systems drawn at random: parts, and programs over them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from qmodels.systems.cache.spec import CacheLevel, CacheSystem
from qmodels.systems.composed import steps
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Tokens
from qmodels.systems.composed.system import System
from qmodels.systems.laws.phases import HyperExponential
from qmodels.systems.laws.times import Deterministic, Erlang, Exponential, Law, LogNormal, Uniform
from qmodels.systems.memory.dram_system import dram
from qmodels.systems.noc.patterns import uniform
from qmodels.systems.noc.spec import Noc
from qmodels.systems.noc.topology import mesh
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.spec.named import Named
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import OnOff, Poisson
from qmodels.systems.traffic.popularity import Zipf

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


def draw(seed: int, source: str, sort: str) -> System:
    """Return a system, with a rate or a population that says nothing yet.

    >>> system = draw(1, "open", "stations")
    >>> len(system.parts) >= 3, system == draw(1, "open", "stations")
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
