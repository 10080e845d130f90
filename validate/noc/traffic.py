"""From the traffic of a spec to the arrays that open and closed drivers draw from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray
from qmodels.systems.laws.kinds import scaled
from qmodels.systems.laws.times import Deterministic, Exponential, Geometric, HyperExponential, Law
from qmodels.systems.noc.flows import Bernoulli, FlowTable, InjectionProcess
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc
from qmodels.systems.traffic.arrivals import OnOff, Poisson
from validate.engine.events import new_calendar, schedule
from validate.engine.sampling import draw, law_table
from validate.engine.streams import new_streams, uniform
from validate.noc.meter import PICK
from validate.noc.open_traffic import CALENDAR, SOURCE, Open
from validate.noc.transactions import ENGINE, Closed


def alias_table(weights: FloatArray) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return for each entry the probability to keep it and the entry taken otherwise.

    References
    ----------
    .. [1] A. J. Walker, "An efficient method for generating discrete random variables with general
       distributions", ACM Transactions on Mathematical Software 3(3), 1977.

    Examples
    --------
    >>> alias_table(np.array([1.0, 3.0]))
    (array([0.5, 1. ]), array([1, 1]))
    """
    left = np.asarray(weights, dtype=float) / np.sum(weights) * weights.size
    keep, other = np.ones(weights.size), np.arange(weights.size)
    small, large = np.flatnonzero(left < 1).tolist(), np.flatnonzero(left >= 1).tolist()
    while small and large:
        one, giver = small.pop(), large[-1]
        keep[one], other[one] = left[one], giver
        left[giver] -= 1 - left[one]
        if left[giver] < 1:
            small.append(large.pop())
    return keep, other


def flow_groups(
    table: FlowTable, sources: Sequence[int], source: npt.NDArray[np.void]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Return the alias tables of flows and the groups that sources take in turn; fill in the sources."""
    pick = np.zeros(table.source.size, dtype=PICK)
    groups: list[tuple[int, int]] = []
    for row, node in zip(source, sources, strict=True):
        first, end = int(table.source_start[node]), int(table.source_start[node + 1])
        step = int(table.source_step[node])
        row["step"], row["first_group"] = max(1, step), len(groups)
        # Flows are sorted by the order of their targets.
        changes = (first + 1 + np.flatnonzero(np.diff(table.order[first:end]))).tolist() if step else []
        for begin, stop in pairwise([first, *changes, end]):
            keep, other = alias_table(table.share[begin:stop])
            pick["keep"][begin:stop], pick["other"][begin:stop] = keep, begin + other
            groups.append((begin, stop - begin))
        row["groups"] = len(groups) - row["first_group"]
    return pick, np.array(groups, dtype=np.int64).reshape(-1, 2)


def set_first_packets(
    table: FlowTable, sources: Sequence[int], source: npt.NDArray[np.void], streams: npt.NDArray[np.uint64]
) -> None:
    """Let each source begin its cycle where the table says, or at random."""
    for s, node in enumerate(sources):
        first = int(table.source_first[node])
        if first < 0:
            first = int(uniform(streams, len(sources) + s) * source["groups"][s] * source["step"][s])
        source["sent"][s] = first


def _gaps(process: InjectionProcess, rate: float) -> Law:
    match process:
        case Bernoulli():
            return Geometric(mean=1 / rate) if rate < 1 else Deterministic(mean=1.0)
        case Poisson():
            return Exponential(mean=1 / rate)
        case OnOff():
            share, fast, slow = (float(x) for x in process.phases)
            return HyperExponential(
                probabilities=(share, 1 - share), means=(1 / (fast * rate), 1 / (slow * rate))
            )
        case _:
            return scaled(process, 1 / (process.mean * rate))


def open_traffic(noc: Noc, table: FlowTable, *, seed: int, replication: int) -> Open:
    """Return the sources of a network with the randomness of one replication."""
    rates = np.bincount(table.source, weights=table.rate, minlength=table.nodes)
    sources = np.flatnonzero(rates > 0).tolist()
    bernoulli = isinstance(noc.process, Bernoulli)
    if bernoulli and rates.max(initial=0.0) > 1 + 1e-9:
        raise ValueError(
            "injection_rate must give every source of a Bernoulli process at most 1 packet/cycle, "
            f"got {float(rates.max())!r}"
        )
    source = np.zeros(len(sources), dtype=SOURCE)
    pick, group = flow_groups(table, sources, source)
    laws = law_table([_gaps(noc.process, float(rates[node])) for node in sources])
    names = [f"{what} of node {node}" for what in ("gaps", "flows") for node in sources]
    streams = new_streams(seed=seed, replication=replication, sources=names)
    set_first_packets(table, sources, source, streams)
    due = np.full(CALENDAR, -1, dtype=np.int32)
    for s in range(len(sources)):
        # A Bernoulli source can also inject in cycle 0.
        time = draw(laws.rows, laws.numbers, streams, s) - float(bernoulli)
        place = min(int(np.ceil(time)), CALENDAR - 1)
        source[s]["time"], source[s]["following"], due[place] = time, due[place], s
    return Open(
        source=source, pick=pick, group=group, rows=laws.rows, numbers=laws.numbers, streams=streams, due=due
    )


def closed_traffic(noc: Noc, table: FlowTable, *, seed: int, replication: int) -> Closed:
    """Return the engines of a network of transactions with the randomness of one replication."""
    spec = noc.traffic
    if not isinstance(spec, Transactions):
        raise TypeError(f"traffic must be Transactions, got {type(spec).__name__}")
    nodes, memories = list(spec.initiators), list(spec.channels)
    initiator = np.zeros(len(nodes), dtype=SOURCE)
    pick, group = flow_groups(table, nodes, initiator)
    sources = [f"{what} of node {node}" for what in ("starts", "flows", "thinking") for node in nodes]
    sources += [f"service of node {node}" for node in memories]
    streams = new_streams(seed=seed, replication=replication, sources=sources)
    set_first_packets(table, nodes, initiator, streams)
    engine = np.zeros(len(nodes) * spec.outstanding, dtype=ENGINE)
    engine["initiator"] = np.repeat(np.arange(len(nodes)), spec.outstanding)
    heap = new_calendar(2 * engine.size).heap
    for e, row in enumerate(engine):
        # Not all at once: somewhere in a cycle of thinking and service.
        spread = spec.think_cycles + spec.service_cycles
        schedule(heap, uniform(streams, int(row["initiator"])) * spread, e)
    place = {node: k for k, node in enumerate(memories)}
    exponential = (spec.think_law == "exponential", spec.service_law == "exponential")
    means = (spec.think_cycles, spec.service_cycles, spec.latency_cycles)
    return Closed(
        engine=engine,
        initiator=initiator,
        pick=pick,
        group=group,
        reply=np.asarray(table.reply, dtype=np.int64),
        memory=np.array([place.get(int(node), -1) for node in table.target], dtype=np.int64),
        free_at=np.zeros(len(memories)),
        times=np.array([*means, *exponential, spec.cut_through], dtype=float),
        streams=streams,
        heap=heap,
    )
