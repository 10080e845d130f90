"""From the spec of a system to the arrays its kernel runs on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import ceil
from typing import Any, NamedTuple

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.composed.flow import Flow
from qmodels.systems.composed.parts import Service, ServingPart, Tokens
from qmodels.systems.composed.steps import Hold, all_steps
from qmodels.systems.composed.system import System
from qmodels.systems.laws.times import Empirical, Exponential, HyperExponential, Law, Replay
from qmodels.systems.memory.dram_system import SPAN
from qmodels.systems.packets.free_list import FreeList
from qmodels.systems.stations.parts import Station
from qmodels.systems.traffic.arrivals import OnOff, Poisson, Recorded
from validate.composed import state
from validate.composed.instructions import program_of
from validate.composed.kernels import (
    Kernels,
    grown_kernels,
    memories_of,
    new_kernels,
    new_network,
    server_rows,
)
from validate.composed.memories import controlled, memories, named, new_banks, new_memories
from validate.composed.state import FLOW, Core
from validate.dram.state import new_books
from validate.engine.calendar import EARLY, put
from validate.engine.pointers import table_of
from validate.engine.streams import new_streams
from validate.network.state import CLASS, NONE, World
from validate.network.world import FIRST_POOL, Sources, empty_world, fill_stations, new_nodes, vary
from validate.network.world import grown as grown_world

GOLDEN = (5.0**0.5 - 1.0) / 2.0
SETTLED_HOLDS = 5.0
"""Mean holds after which the number of jobs held is all but stationary: e**-5 are missing."""


def new_flows(spec: System, sources: Sources, entries: list[int], places: list[int]) -> tuple[Any, Any]:
    """Return the flows, their laws added to the sources, and the nodes of parts and flows."""
    rows = np.zeros(len(spec.flows), dtype=FLOW)
    places = list(places)
    for row, flow, entry in zip(rows, spec.flows, entries, strict=True):
        row["entry"] = entry
        law, row["scale"] = (flow.think, 1.0) if flow.closed else _gaps(flow)
        row["law"] = sources.law(f"{'thinking' if flow.closed else 'arrivals'} {flow.name}", law)
        row["sizes"], row["segment_bytes"] = (
            sources.law(f"sizes {flow.name}", _bytes(flow)),
            flow.segment_bytes,
        )
        row["window"], row["population"] = flow.window or 0, flow.population
        row["rounds"] = flow.rounds or 0
        row["loses"] = flow.loses
        row["places_at"], row["places"] = len(places), len(flow.at)
        row["head"] = row["tail"] = NONE
        places += flow.at
        if len(flow.at) > 1 and not flow.closed:
            row["stream"] = sources.stream(f"places {flow.name}")
    return rows, np.array([*places, NONE], dtype=np.int64)


def _gaps(flow: Flow) -> tuple[Law, float]:
    """Return the law of the times between the arrivals of an open flow, and their scale."""
    mean = 1 / float(flow.mean_rate)
    match flow.arrivals:
        case Poisson():
            return Exponential(mean=mean), 1.0
        case OnOff():
            probability, fast, slow = (float(x) for x in flow.arrivals.phases)
            means = (mean / fast, mean / slow)
            return HyperExponential(probabilities=(probability, 1 - probability), means=means), 1.0
        case Recorded():
            times = flow.arrivals.trace.times_ns
            own = 1 / flow.arrivals.trace.packet_rate
            # Played round and round, its first packet comes a mean gap after its last one.
            return Replay(values=(own, *np.diff(times).tolist())), mean / own
        case law:
            return law, mean / law.mean  # type: ignore[union-attr, return-value]


def _bytes(flow: Flow) -> Law | None:
    """Return the law of the bytes of jobs."""
    if flow.sizes is None:
        return None
    if isinstance(flow.arrivals, Recorded):
        return Replay(values=tuple(flow.arrivals.trace.bytes.tolist()))
    return Empirical(values=flow.sizes.bytes, weights=flow.sizes.probability)


def set_traces(spec: System, world: World, flows: Any, replication: int) -> None:
    """Let recorded flows begin at places that any number of replications covers evenly."""
    for flow, row in zip(spec.flows, flows, strict=True):
        if isinstance(flow.arrivals, Recorded):
            place = int((replication * GOLDEN) % 1.0 * len(flow.arrivals.trace))
            world.laws["state"][[row["law"], row["sizes"]]] = place


class Rotations(NamedTuple):
    """Rotations of a recording that a replication plays."""

    period: float  # time of one rotation [ns]
    jobs: float  # jobs that arrive in it, those of other flows included
    warm_up: int  # rotations before measuring begins
    measured: int

    @property
    def total(self) -> int:
        """Jobs of all rotations."""
        return round((self.warm_up + self.measured) * self.jobs)

    def late(self, count: int) -> FloatArray:
        """Return instants of the last fifth of the warm-up, its end included, and the same at the end."""
        before = min(self.warm_up, self.measured) * np.linspace(0.2, 0.0, count)
        ends = self.warm_up + np.array([0.0, self.measured])
        return np.asarray(((ends[:, None] - before) * self.period).ravel())


def rotations(flows: Iterable[tuple[Any, float]], jobs: int, *, hold: float) -> Rotations | None:
    """Return the rotations of the longest recording of open flows; None if there is none.

    The flows are given by their arrivals and rates [1/ns]. What is measured are the full rotations that come
    nearest to n jobs, at least one. Before it come a quarter as many, at least one, in which a queue
    that keeps up becomes stationary, and at least `SETTLED_HOLDS` mean holds [ns].
    """
    flows = list(flows)
    periods = [len(arrivals.trace) / rate for arrivals, rate in flows if isinstance(arrivals, Recorded)]
    if not periods:
        return None
    arriving = max(periods) * sum(rate for _, rate in flows)
    measured = max(1, round(jobs / arriving))
    warm_up = max(1, ceil(measured / 4), ceil(SETTLED_HOLDS * hold / max(periods)))
    return Rotations(period=max(periods), jobs=arriving, warm_up=warm_up, measured=measured)


def system_rotations(spec: System, jobs: int) -> Rotations | None:
    """Return the rotations of a system's recording, see `rotations`."""
    opened = [flow for flow in spec.flows if not flow.closed]
    holds = [
        sum(float(step.time.mean) for step in all_steps(flow.program) if isinstance(step, Hold))
        for flow in opened
    ]
    return rotations([(f.arrivals, float(f.mean_rate)) for f in opened], jobs, hold=max(holds, default=0.0))


class Services(NamedTuple):
    """The copies of parts of others and their randomness, by the numbers of part and copy; names of parts."""

    copies: dict[tuple[int, int], tuple[Service, np.random.Generator]]
    names: tuple[str, ...]


def new_services(spec: System, *, seed: int, replication: int) -> Services:
    """Return the idle copies of all parts of others."""
    copies = {
        (number, copy): (part.service(), np.random.default_rng([seed, replication, number, copy]))
        for number, (name, part) in enumerate(spec.parts.items())
        if isinstance(part, ServingPart)
        for copy in range(spec.copies(name))
    }
    return Services(copies, tuple(spec.parts))


def answer(services: Services, w: World, c: Core) -> None:
    """Ask for the ends of all strands that have come to parts of others, and put them on the calendar."""
    own, now = c.state[0], float(w.state["now"][0])
    for j in c.enquiries[: own["enquiries"]].tolist():
        instruction = c.code[c.strands["at"][j] - 1]
        number = int(instruction["part"])
        service, rng = services.copies[number, _copy(c, number, j)]
        end = service.end(now, int(instruction["stream"]), rng)
        if not now <= end < np.inf:
            name = services.names[number]
            raise ValueError(f"parts.{name}: a service must end at a time from {now!r} on, got {end!r}")
        put(w.heap, w.places, w.classes.size + w.nodes.size + j, float(end), EARLY)
    own["enquiries"] = 0


def _copy(c: Core, part: int, j: int) -> Any:
    return int(c.strands["copy"][j]) if c.parts["copies"][part] > 1 else 0


class Machine(NamedTuple):
    """A system under way: its stations, its programs, and the kernels of its other parts, if it has any."""

    world: World
    core: Core
    kernels: Kernels | None
    """None in a system of stations and pools alone."""
    services: Services


def new_machine(spec: System, *, seed: int, replication: int) -> Machine:
    """Return a system at time 0."""
    program = program_of(spec)
    sources = Sources()
    sources.laws, sources.names = list(program.sources.laws), list(program.sources.names)
    parts, places, copy_at = _parts(spec)
    flows, places = new_flows(spec, sources, program.entries, places)
    found = memories(spec)
    books = new_books(list(found.values()))
    ways = sources.stream("ways")
    network, routes, choices = new_network(spec)
    pools, tokens = _pools(spec, parts)
    stations = _stations(spec, sources, parts)
    columns = len(spec.parts) + int(state.OWN_COLUMNS)
    own = np.zeros(1, dtype=state.STATE)
    own["ready"] = own["last_ready"] = own["interconnect"] = NONE
    own["most_new_jobs"] = 1 + program.most_branches + len(named(spec, FreeList))
    own["controlled"] = controlled(found)
    own["fork_column"] = len(spec.parts)
    own["stations"], own["ways"], own["ghz"] = stations[0].size, ways, 1.0
    if spec.network is not None:
        own["ghz"] = float(spec.network.clock_ghz)
        own["connected"] = spec.network.topology.nodes
        own["interconnect"] = list(spec.parts).index(spec.interconnect)
    ops = program.code["op"]
    core = Core(
        code=program.code,
        choices=program.choices,
        strands=np.zeros(0, dtype=state.STRAND),
        times=np.zeros((0, columns)),
        worked=np.zeros((0, len(spec.parts) if program.repeats else 0)),
        slots=np.zeros((0, program.most_slots + 1), dtype=np.int64),
        holds=np.zeros((0, max(1, pools.size)), dtype=np.int64),
        parts=parts,
        places=places,
        copy_at=copy_at,
        pools=pools,
        tokens=tokens,
        free_at=np.zeros(stations[0].size),
        flows=flows,
        flow_times=np.zeros((flows.size, columns)),
        letters=np.zeros(0, dtype=state.LETTER),
        **new_memories(spec),
        stages=np.zeros(len(program.stages), dtype=state.STAGE),
        servers=server_rows(spec, sources),
        operations=np.zeros(2 * len(named(spec, FreeList)), dtype=state.DONE),
        enquiries=np.zeros(0, dtype=np.int64),
        **new_banks(spec, sources),
        map_numbers=books.numbers,
        map_images=books.images,
        sequences=_sequences(spec, program.sequences),
        routes=routes,
        ways=choices,
        state=own,
        table=None,
        varied=bool(own["controlled"][0] or vary(stations[0]) or np.isin(ops, state.VARIED).any()),
        timed=bool(own["controlled"][0]),
    )
    further = core.channels.size + core.rows.size
    world = _world(spec, sources, stations, further, seed=seed, replication=replication)
    world = world._replace(varied=core.varied)
    set_traces(spec, world, flows, replication)
    kernels = new_kernels(spec, network, seed=seed, replication=replication)
    services = new_services(spec, seed=seed, replication=replication)
    machine = Machine(world, core._replace(alone=kernels is None), kernels, services)
    populations = sum(flow.population for flow in spec.flows)
    return grown(machine, FIRST_POOL + 2 * populations + 2 * program.most_branches)


def grown(machine: Machine, more: int) -> Machine:
    """Return the system with room for n more strands."""
    w, c = grown_world(machine.world, more), machine.core

    def longer(array: Any) -> Any:
        rows = np.zeros((more, *array.shape[1:]), dtype=array.dtype)
        return np.concatenate([array, rows])

    names = ("strands", "times", "worked", "slots", "holds", "enquiries", "letters")
    c = c._replace(**{name: longer(getattr(c, name)) for name in names})
    machine = machine._replace(world=w, core=c._replace(table=table_of(c)))
    kernels = machine.kernels
    return machine if kernels is None else machine._replace(kernels=grown_kernels(kernels, w.jobs.size))


def _sequences(spec: System, names: list[tuple[str, str]]) -> Any:
    """Return the first blocks of streams of addresses, evenly spread."""
    return np.array([k * SPAN // max(1, len(names)) for k in range(len(names))] or [0], dtype=np.int64)


def _parts(spec: System) -> tuple[Any, list[int], Any]:
    """Return the parts, the nodes of their copies, and which copy is at each node."""
    rows = np.zeros(len(spec.parts), dtype=state.PART)
    copy_at = np.full((rows.size, max(spec.places, 1)), NONE, dtype=np.int64)
    places: list[int] = []
    firsts: dict[Any, int] = {Station: 0, Tokens: 0, FreeList: 0}
    number_of = {name: number for number, name in enumerate(memories(spec))}
    channels = new_memories(spec)["memories"]["first"]
    scored = {memory for name in named(spec, FreeList) for memory in memories_of(spec, name)}
    members: Counter[type[Any]] = Counter()
    for number, (name, part) in enumerate(spec.parts.items()):
        row = rows[number]
        row["member"] = members[type(part)]
        members[type(part)] += 1
        row["copies"] = spec.copies(name)
        row["scored"] = name in scored
        row["pools"] = isinstance(part, Tokens)
        if type(part) in firsts:
            row["first"] = firsts[type(part)]
            firsts[type(part)] += spec.copies(name)
        if name in number_of:
            row["member"] = number_of[name]
            row["first"] = channels[row["member"]]
        row["places_at"] = len(places) if spec.place.get(name) else NONE
        row["places"] = len(spec.place.get(name, ()))
        for copy, node in reversed(list(enumerate(spec.place.get(name, ())))):
            copy_at[number, node] = copy
        places += spec.place.get(name, ())
    return rows, places, copy_at


def _pools(spec: System, parts: Any) -> tuple[Any, Any]:
    """Return the pools, and those of their tokens that have uses."""
    uses = spec.turning
    rows = []
    count = 0
    for (name, part), row in zip(spec.parts.items(), parts, strict=True):
        if isinstance(part, Tokens):
            for _ in range(row["copies"]):
                rows.append((part.count, part.turning, count if name in uses else NONE))
                count += part.count if name in uses else 0
    pools = np.zeros(len(rows), dtype=state.POOL)
    for pool, (number, turning, at) in zip(pools, rows, strict=True):
        pool["tokens"] = pool["free"] = number
        pool["turning"], pool["tokens_at"] = turning, at
    pools["head"] = pools["tail"] = NONE
    tokens = np.zeros(count, dtype=state.TOKEN)
    tokens["use"] = tokens["holder"] = NONE
    return pools, tokens


def _stations(spec: System, sources: Sources, parts: Any) -> tuple[Any, Any, Any]:
    """Return the copies of all stations, the laws of their services, and their speeds."""
    copies = [
        (name, copy, part)
        for (name, part), row in zip(spec.parts.items(), parts, strict=True)
        if isinstance(part, Station)
        for copy in range(row["copies"])
    ]
    nodes = new_nodes(len(copies))
    service = np.full((len(copies), len(spec.flows)), NONE, dtype=np.int64)
    speeds = fill_stations(nodes, [(f"{name} {copy}", station) for name, copy, station in copies], sources)
    for row, (name, copy, station) in zip(service, copies, strict=True):
        for k, flow in enumerate(spec.flows):
            row[k] = sources.law(f"service {name} {copy} {flow.name}", station.service_law(flow.name))
    return nodes, service, speeds


def _world(
    spec: System,
    sources: Sources,
    stations: tuple[Any, Any, Any],
    further: int,
    *,
    seed: int,
    replication: int,
) -> World:
    """Return the stations of a system as those of a network, whose jobs an interpreter moves.

    Behind them are places for the events of channels and banks of memories, n of them.
    """
    nodes, service, speeds = stations
    nodes = np.concatenate([nodes, new_nodes(further)])
    service = np.concatenate([service, np.full((further, service.shape[1]), NONE, dtype=np.int64)])
    classes = np.zeros(len(spec.flows), dtype=CLASS)
    classes["patience"] = NONE
    # All times at stations go to the first histogram; the others are of the flows' latencies.
    return empty_world(
        sources.laws,
        new_streams(seed=seed, replication=replication, sources=sources.names),
        nodes=nodes,
        speeds=speeds,
        classes=classes,
        service=service,
        histograms=1 + classes.size,
    )
