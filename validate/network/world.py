"""From the spec of a queueing network to the arrays its kernel runs on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from qmodels.systems.laws.times import Deterministic, Law
from qmodels.systems.stations.parts import (
    DISCIPLINES,
    INF,
    LEAVE,
    WHEN_FULL,
    Cyclic,
    Destination,
    Probabilistic,
    Rule,
    ShortestQueue,
    StateDependent,
    Station,
)
from qmodels.systems.stations.queueing_network import QueueingNetwork
from validate.engine.calendar import ENTRY, new_calendar
from validate.engine.histogram import BINS
from validate.engine.pointers import table_of
from validate.engine.sampling import law_table
from validate.engine.streams import new_streams
from validate.network.state import (
    BY_STATE,
    CLASS,
    FIFO,
    IN_TURN,
    JOB,
    NODE,
    NONE,
    QUEUE,
    RANDOM,
    RECORD,
    RULE,
    SHARING,
    SHORTEST,
    STATE,
    TALLY,
    TARGET,
    World,
)

ENDLESS = 2**62
FIRST_POOL = 256
NOTES = 512
"""Times that are noted before they are counted."""


class Sources:
    """Laws and rules, each with a stream of its own name."""

    def __init__(self) -> None:
        self.laws: list[Law] = []
        self.names: list[str] = []
        self.rule_names: list[str] = []

    def law(self, name: str, law: Law | None) -> int:
        """Add a law; return its number, or -1 for none."""
        if law is None:
            return NONE
        self.laws.append(law)
        self.names.append(name)
        return len(self.laws) - 1

    def stream(self, name: str) -> int:
        """Return the number of a stream that belongs to no law, the same for the same name."""
        if name not in self.names:
            # It gets the number of a law that is never drawn from.
            self.law(name, Deterministic(mean=1.0))
        return self.names.index(name)


def new_world(
    spec: QueueingNetwork,
    *,
    seed: int,
    replication: int,
    antithetic: bool = False,
    records: int = 0,
) -> World:
    """Return a network at time 0, with room for n records."""
    sources = Sources()
    stations, nodes, classes = len(spec.stations), len(spec.nodes), len(spec.classes)
    service = np.full((nodes, classes), NONE, dtype=np.int64)
    for node, k in sorted(spec.visited):
        if node < stations:
            name = f"service {spec.nodes[node]} {spec.class_names[k]}"
            service[node, k] = sources.law(name, spec.service_law(node, k))
    levels, level_count = _levels(spec)
    node_rows, speeds = _nodes(spec, sources, level_count)
    class_rows = _classes(spec, sources)
    rules, targets, rule_of, entries = _rules(spec, sources)
    for k, rule in entries.items():
        class_rows[k]["entry"] = rule
    branches, pairs = _branches(spec), len(spec.visited)
    rows = np.full((nodes, classes), NONE, dtype=np.int64)
    for row, pair in enumerate(sorted(spec.visited)):
        rows[pair] = row
    world = empty_world(
        sources.laws,
        new_streams(
            seed=seed,
            replication=replication,
            sources=[*sources.names, *sources.rule_names],
            antithetic=antithetic,
        ),
        nodes=node_rows,
        speeds=speeds,
        classes=class_rows,
        service=service,
        histograms=2 * pairs + classes,
        levels=levels,
        rule_of=rule_of,
        rules=rules,
        targets=targets,
        branches=branches,
        rows=rows,
        records=np.zeros(records, dtype=RECORD),
        varied=bool(records or vary(node_rows) or class_rows["population"].any())
        or any(c.batch or c.patience for c in spec.classes),
    )
    state = world.state
    state["most_new_jobs"] = 1 + branches.shape[1] * bool(spec.forks)
    state["most_rows"] = 8 + 4 * nodes + 4 * branches.shape[1]
    state["per_unit"] = 1 / time_unit(spec)
    state["responses_at"], state["passages_at"] = pairs, 2 * pairs
    return grown(world, FIRST_POOL + 2 * int(spec.populations.sum()))


def empty_world(
    laws: list[Law],
    streams: Any,
    *,
    nodes: Any,
    speeds: Any,
    classes: Any,
    service: Any,
    histograms: int,
    **others: Any,
) -> World:
    """Return a world at time 0 without room for jobs; by default nothing in it but stations is used."""
    shape, table = (nodes.size, classes.size), law_table(laws)
    queues = np.zeros((nodes.size, 2 * nodes["levels"].max(initial=1)), dtype=QUEUE)
    queues["head"] = queues["tail"] = NONE
    state, bins = np.zeros(1, dtype=STATE), np.zeros((histograms, BINS), dtype=np.int64)
    state["free"], state["per_unit"] = NONE, 1.0
    rest = {
        "levels": np.zeros(shape, dtype=np.int64),
        "rule_of": np.full(shape, NONE, dtype=np.int64),
        "rules": np.zeros(0, dtype=RULE),
        "targets": np.zeros(0, dtype=TARGET),
        "branches": np.zeros((1, 1, 1), dtype=np.int64),
        "rows": np.zeros(shape, dtype=np.int64),
        "records": np.zeros(0, dtype=RECORD),
    }
    return World(
        heap=new_calendar(sum(shape)),
        places=np.zeros(sum(shape), dtype=np.int64),
        jobs=np.zeros(0, dtype=JOB),
        nodes=nodes,
        queues=queues,
        tallies=np.zeros(shape, dtype=TALLY),
        classes=classes,
        service=service,
        laws=table.rows,
        numbers=table.numbers,
        streams=streams,
        shared=np.zeros((max(1, int((nodes["shared"] >= 0).sum())), 1), dtype=ENTRY),
        shared_places=np.zeros(0, dtype=np.int64),
        speeds=speeds,
        bins=bins.reshape(-1),
        notes=np.zeros(NOTES, dtype=np.int64),
        state=state,
        table=None,
        histograms=bins,
        **rest | others,
    )


def grown(w: World, more: int) -> World:
    """Return the world with room for n more jobs."""
    old = w.jobs.size
    jobs = np.concatenate([w.jobs, np.zeros(more, dtype=JOB)])
    jobs["next"][old:] = np.arange(old + 1, old + more + 1)
    jobs["next"][-1] = w.state["free"][0]
    w.state["free"], w.state["free_jobs"] = old, w.state["free_jobs"] + more

    def longer(array: Any, number: int) -> Any:
        return np.concatenate([array, np.zeros(number, dtype=array.dtype)])

    # A heap of a sharing station may hold every job.
    columns = 2 + old + more if np.any(w.nodes["shared"] >= 0) else 1
    shared = np.zeros((w.shared.shape[0], columns), dtype=ENTRY)
    shared[:, : w.shared.shape[1]] = w.shared
    w = w._replace(
        heap=longer(w.heap, more),
        places=longer(w.places, more),
        jobs=jobs,
        shared=shared,
        shared_places=longer(w.shared_places, more),
    )
    return w._replace(table=table_of(w))


def _nodes(spec: QueueingNetwork, sources: Sources, level_count: int) -> tuple[Any, Any]:
    """Return the places, and the speeds of stations."""
    rows = new_nodes(len(spec.nodes))
    rows["levels"] = level_count
    speeds = fill_stations(rows, [(station.name, station) for station in spec.stations], sources)
    for number in range(len(spec.forks)):
        rows[len(spec.stations) + number]["fork"] = number
    ahead = {s.name for s in spec.stations if s.when_full == "before-service" and s.capacity != INF}
    for (node, _), rule in spec.rules.items():
        if any(where in ahead and where != spec.nodes[node] for where, _ in rule.destinations):
            rows[node]["looks_ahead"] = 1
    return rows, speeds


def new_nodes(number: int) -> Any:
    """Return places where nobody waits, all alike."""
    rows = np.zeros(number, dtype=NODE)
    for name in ("setup", "vacation", "wants", "blocked_head", "blocked_tail", "shared", "fork"):
        rows[name] = NONE
    rows["capacity"] = rows["slots"] = rows["servers"] = ENDLESS
    rows["levels"] = 1
    return rows


def vary(nodes: Any) -> bool:
    """Return whether a place is more than a first-come first-served station, see `World.varied`."""
    usual = (nodes["discipline"] == FIFO) & (nodes["capacity"] == ENDLESS)
    for name in ("setup", "vacation", "shared", "fork"):
        usual &= nodes[name] == NONE
    return not usual.all()


def fill_stations(rows: Any, stations: Iterable[tuple[str, Station]], sources: Sources) -> Any:
    """Make the first places stations, whose laws' streams have their names; return the speeds of all."""
    shared, speeds = 0, list[float]()
    for row, (name, station) in zip(rows, stations, strict=False):
        sharing = station.discipline == "sharing"
        row["servers"] = ENDLESS if station.delay else station.servers
        row["slots"] = ENDLESS if sharing else row["servers"]
        row["discipline"] = SHARING if sharing else DISCIPLINES.index(station.discipline)
        if station.delay:
            row["discipline"] = 0
        if station.capacity != INF:
            row["capacity"], row["when_full"] = station.capacity, WHEN_FULL.index(station.when_full)
        if not station.delay and (sharing or station.rate_multiplier):
            row["shared"] = shared
            shared += 1
        row["speeds_at"], row["speeds"] = len(speeds), len(station.rate_multiplier)
        speeds += station.rate_multiplier
        row["setup"] = sources.law(f"setup {name}", station.setup)
        row["threshold"] = station.setup_threshold
        row["vacation"] = sources.law(f"vacation {name}", station.vacation)
        row["multiple"] = station.multiple_vacations
    return np.array(speeds or [0.0])


def _levels(spec: QueueingNetwork) -> tuple[Any, int]:
    """Return the level of each class at each node, and how many there are."""
    ranks = sorted({c.priority for c in spec.classes})
    levels = np.zeros((len(spec.nodes), len(spec.classes)), dtype=np.int64)
    for node, station in enumerate(spec.stations):
        if station.discipline.startswith("priority"):
            levels[node] = [ranks.index(c.priority) for c in spec.classes]
    return levels, int(levels.max()) + 1


def _classes(spec: QueueingNetwork, sources: Sources) -> Any:
    rows = np.zeros(len(spec.classes), dtype=CLASS)
    for row, c in zip(rows, spec.classes, strict=True):
        row["law"] = sources.law(f"arrivals {c.name}", c.arrivals)
        row["batch"] = sources.law(f"batch {c.name}", c.batch)
        row["patience"] = sources.law(f"patience {c.name}", c.patience)
        row["reference"] = NONE
        if c.closed:
            row["reference"] = spec.nodes.index(c.reference) if c.reference else 0
            row["population"] = c.population
            row["thinks"] = spec.stations[row["reference"]].delay
    return rows


def _rules(spec: QueueingNetwork, sources: Sources) -> tuple[Any, Any, Any, dict[int, int]]:
    rules: list[tuple[int, int, int, int, int, int]] = []
    targets: list[tuple[int, int, float, int]] = []
    first_stream = len(sources.laws)

    def target(place: Destination, below: float) -> tuple[int, int, float, int]:
        node, job_class = place
        return (
            NONE if node == LEAVE else spec.nodes.index(node),
            spec.class_names.index(job_class) if job_class else NONE,
            below,
            NONE,
        )

    def add(rule: Rule, stream: int) -> int:
        if isinstance(rule, StateDependent):
            inner = [add(part, stream) for part in rule.rules]
            at = len(targets)
            targets.extend((NONE, NONE, 1.0, number) for number in inner)
            rules.append((BY_STATE, at, len(inner), 0, stream, spec.nodes.index(rule.station)))
            return len(rules) - 1
        kind = RANDOM
        at = len(targets)
        if isinstance(rule, Probabilistic):
            sums = np.cumsum([share for _, share in rule.probabilities])
            sums[-1] = 1.0
            targets.extend(
                target(where, below) for (where, _), below in zip(rule.probabilities, sums, strict=True)
            )
        else:
            kind = IN_TURN if isinstance(rule, Cyclic) else SHORTEST
            targets.extend(target(where, 1.0) for where in rule.destinations)
        assert isinstance(rule, Probabilistic | Cyclic | ShortestQueue)  # noqa: S101
        rules.append((kind, at, len(targets) - at, 0, stream, NONE))
        return len(rules) - 1

    def named(name: str, rule: Rule) -> int:
        sources.rule_names.append(name)
        return add(rule, first_stream + len(sources.rule_names) - 1)

    rule_of = np.full((len(spec.nodes), len(spec.classes)), NONE, dtype=np.int64)
    for (node, k), rule in sorted(spec.rules.items(), key=lambda item: item[0]):
        rule_of[node, k] = named(f"routing {spec.nodes[node]} {spec.class_names[k]}", rule)
    entries = {k: named(f"entry {spec.class_names[k]}", rule) for k, rule in spec.entries.items()}
    return np.array(rules, dtype=RULE), np.array(targets, dtype=TARGET), rule_of, entries


def _branches(spec: QueueingNetwork) -> Any:
    """Return the stations of each step of each branch of each fork, -1 beyond the last."""
    width = max((len(f.branches) for f in spec.forks), default=1)
    depth = max((len(b) for f in spec.forks for b in f.branches), default=1)
    table = np.full((max(1, len(spec.forks)), width, depth), NONE, dtype=np.int64)
    for row, fork in zip(table, spec.forks, strict=False):
        for steps, branch in zip(row, fork.branches, strict=False):
            steps[: len(branch)] = [spec.nodes.index(name) for name in branch]
    return table


def time_unit(spec: QueueingNetwork) -> float:
    """Return the unit of the histograms: the shortest mean service time that is not 0, a power of 2.

    A change of a rate then rarely changes the bins.
    """
    laws = [spec.service_law(node, k) for node, k in spec.visited if node < len(spec.stations)]
    means = [law.mean for law in laws if law is not None and law.mean > 0]
    return float(2.0 ** np.floor(np.log2(min(means, default=1.0))))
