"""The simulation of a network-on-chip, flit by flit: its replications and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.noc.flows import FlowTable
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.noc.spec import Noc
from qmodels.systems.spec.answer import Deferred, Later
from qmodels.systems.spec.estimate import Estimate, exactly
from validate.campaigns.experiment import Experiment, Job
from validate.engine.histogram import BINS, INF, Histogram
from validate.estimates.intervals import FEWEST_OBSERVATIONS, quantile_interval, ratio_interval
from validate.noc.kernel import quiet, step
from validate.noc.saturation import overloaded_flows, verdict
from validate.noc.state import CLOSED, IN_NETWORK, NOW, World, grown, new_world
from validate.noc.traffic import (
    FLOW_BINS,
    FULL,
    STUCK,
    Meter,
    closed_traffic,
    flow_quantiles,
    new_meter,
    open_traffic,
    restart,
    run_closed,
    run_open,
    seen,
)

MOST_PACKETS = 4_000_000
"""Packets waiting at the sources above which a run ends: far more than a network that keeps up has."""


@dataclass(frozen=True, kw_only=True)
class NocJob(Job):
    """A replication with its options, see `validate.noc.experiment.NocExperiment`."""

    packets: int
    cycles: int
    flow_quantiles: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    cycles: int  # cycles measured
    sums: IntArray  # packets delivered, sums of their latency and of the wait at the source
    # Bins of the latencies on the scale of `validate.engine.histogram`, and how many are in each.
    latencies: IntArray
    # The same for all flows' bins, counted through, see `validate.noc.traffic`; empty if not asked for.
    flow_latencies: IntArray
    channels: IntArray  # flits carried; flit-cycles in the buffers behind
    series: IntArray  # packets waiting at the end of each interval of the whole run, packets delivered in it
    # How long the first packet of each flow's source queue had waited in the middle and at the end of the
    # measurement [cycles].
    lags: IntArray
    transactions: IntArray  # transactions done, sum of their times
    deadlocked: bool  # whether packets waited for each other in a circle at the end
    full: bool  # whether the run ended because too many packets waited
    simulated: int  # cycles of the whole run


def run_replication(job: NocJob) -> Run:
    """Run one replication and return its counts."""
    table = job.spec.flow_table()
    if isinstance(job.spec.traffic, Transactions):
        return _run_closed(job, table)
    return _run_open(job, table)


def _run_open(job: NocJob, table: FlowTable) -> Run:
    rate = float(table.rate.sum())
    cycles = max(job.cycles, int(np.ceil(job.packets / rate)) if rate else 0)
    warm = cycles // 4
    world = new_world(table, job.spec.router, packets=64 * table.nodes)
    traffic = open_traffic(job.spec, table, seed=job.seed, replication=job.replication)
    meter = new_meter(table.source.size, cycles=warm + cycles, by_flow=job.flow_quantiles)
    lags: list[IntArray] = []
    begun = 0
    for until in (warm, warm + cycles // 2, warm + cycles):
        ended = FULL
        while ended == FULL and world.packet.size < MOST_PACKETS:
            ended = run_open(world, traffic, meter, until)
            if ended == FULL:
                world = grown(world, 2 * world.packet.size)
        if until == warm:
            restart(meter, world, now=int(world.clock[NOW]))
            begun = int(world.clock[NOW])
        lags.append(_lags(world))
    measured = int(world.clock[NOW]) - begun
    return _result(world, meter, np.stack(lags[1:]), np.zeros(2, dtype=np.int64), measured, ended)


def _run_closed(job: NocJob, table: FlowTable) -> Run:
    traffic = closed_traffic(job.spec, table, seed=job.seed, replication=job.replication)
    # A packet keeps its place for a cycle after its delivery, when the engine may send the next one.
    world = new_world(table, job.spec.router, packets=2 * traffic.engine.size)
    # How long it takes is not known before.
    meter = new_meter(table.source.size, cycles=job.cycles, by_flow=job.flow_quantiles)
    run_closed(world, traffic, meter, job.cycles // 4, job.packets // 4)
    begun = int(world.clock[NOW])
    restart(meter, world, now=begun)
    traffic.engine["done"] = traffic.engine["latency"] = 0
    ended = run_closed(world, traffic, meter, begun + job.cycles, job.packets)
    done = np.array([traffic.engine["done"].sum(), traffic.engine["latency"].sum()])
    lags = np.zeros((2, table.source.size), dtype=np.int64)
    return _result(world, meter, lags, done, int(world.clock[NOW]) - begun, ended)


def _lags(world: World) -> IntArray:
    first = world.queue["first"]
    lag = np.where(first >= 0, world.clock[NOW] - world.packet["created"][first], 0)
    return np.asarray(lag[world.flow["queue"]])


def _result(
    world: World, meter: Meter, lags: IntArray, transactions: IntArray, cycles: int, ended: int
) -> Run:
    now = int(world.clock[NOW])
    return Run(
        cycles=cycles,
        sums=np.stack([meter.sums[name] for name in ("packets", "latency", "queueing")]),
        latencies=_sparse(meter.counts),
        flow_latencies=_sparse(meter.flow_counts.ravel()),
        channels=np.stack(seen(world, now=now)),
        series=meter.series,
        lags=lags,
        transactions=transactions,
        deadlocked=ended == STUCK or not _drains(world),
        full=ended == FULL,
        simulated=now,
    )


def _sparse(counts: IntArray) -> IntArray:
    bins = np.flatnonzero(counts)
    return np.stack([bins, counts[bins]]).astype(np.int64)


def _drains(world: World) -> bool:
    """Return whether all flits get out of the network when the sources begin nothing new."""
    world.clock[CLOSED] = 1
    now = int(world.clock[NOW])
    while world.clock[IN_NETWORK] > 0:
        step(world, now)
        now += 1
        if quiet(world, now):
            return False
    return True


def flow_columns(
    spec: Noc, runs: Sequence[Run], verdict: str, stable: bool | None, confidence: float
) -> dict[str, Any]:
    """Return columns: source, target, packet class, path, rate [1/ns] and times [ns] with their intervals.

    Times are ``inf`` where the flow's source queue grows, or nothing of it was delivered.
    ``packet_latency_p95`` and ``packet_latency_p99`` are there if they were asked for; they are those
    of all replications together, off by up to 2 %.
    """
    table, clock = spec.flow_table(), spec.clock_ghz
    sums = np.stack([run.sums for run in runs]).astype(float)
    cycles = float(sum(run.cycles for run in runs))
    lost = np.full(table.source.size, verdict == "deadlocked")
    if stable is False and verdict != "deadlocked":
        lost = overloaded_flows([run.lags for run in runs], [run.cycles for run in runs])
    latency = _ratios(sums[:, 1], sums[:, 0], confidence, lost)
    queueing = _ratios(sums[:, 2], sums[:, 0], confidence, lost)
    times = {
        "packet_latency": np.array([one.best for one in latency]),
        "packet_latency_low": np.array([one.low for one in latency]),
        "packet_latency_high": np.array([one.high for one in latency]),
        "source_queue_delay": np.array([one.best for one in queueing]),
        **_flow_quantiles(runs, lost),
    }
    return {
        "source": table.source,
        "target": table.target,
        "packet_class": table.packet_class,
        "path": [" ".join(table.path(f)) for f in range(table.source.size)],
        "delivered_rate": sums[:, 0].sum(axis=0) / cycles * clock,
        **{name: values / clock for name, values in times.items()},
    }


def _flow_quantiles(runs: Sequence[Run], lost: npt.NDArray[np.bool_]) -> Mapping[str, FloatArray]:
    if not any(run.flow_latencies.size for run in runs):
        return {}
    counts = np.zeros(lost.size * FLOW_BINS, dtype=np.int64)
    for run in runs:
        counts[run.flow_latencies[0]] += run.flow_latencies[1]
    by_flow = counts.reshape(-1, FLOW_BINS)
    return {
        f"packet_latency_p{percent}": np.where(lost, INF, flow_quantiles(by_flow, percent / 100))
        for percent in (95, 99)
    }


def channel_columns(spec: Noc, runs: Sequence[Run], utilization: Mapping[str, Estimate]) -> dict[str, Any]:
    """Return columns: name, utilization with its interval, flits per cycle, mean occupancy of the buffer.

    The occupancy is the mean number of flits in all virtual channels of the buffer it leads to; 0
    for an ejection, whose flits leave at once. [1, flits/cycle, flits]
    """
    flits, held = np.sum([run.channels for run in runs], axis=0).astype(float)
    cycles = float(sum(run.cycles for run in runs))
    busy = list(utilization.values())
    return {
        "name": spec.flow_table().channel_names,
        "utilization": np.array([one.best for one in busy]),
        "utilization_low": np.array([one.low for one in busy]),
        "utilization_high": np.array([one.high for one in busy]),
        "flits": flits / cycles,
        "buffer_occupancy": held / cycles,
    }


def facts(spec: Noc, verdict: str, stable: bool | None) -> tuple[str, ...]:
    """Return the verdict, and whether there may be a deadlock."""
    said = [] if stable else [verdict]
    circle = spec.find_deadlock()
    if circle and verdict != "deadlocked":
        said.append(f"no deadlock in this run, but there may be one from {circle[0]} on")
    return tuple(said)


def _ratios(
    above: FloatArray, below: FloatArray, confidence: float, lost: npt.NDArray[np.bool_]
) -> Sequence[Estimate]:
    """Return the interval of each column's ratio; ``inf`` where it is lost or there is nothing."""
    return [
        exactly(INF, confidence=confidence)
        if lost[k] or not below[:, k].any()
        else ratio_interval(above[:, k], below[:, k], confidence=confidence)
        for k in range(above.shape[1])
    ]


TIMES = (
    "packet_latency",
    "source_queue_delay",
    "traversal_delay",
    "packet_latency_p95",
    "packet_latency_p99",
)


@dataclass(frozen=True, kw_only=True)
class NocExperiment(Experiment):
    """The simulation of one network; made by `validate.simulate`.

    Networks whose nodes have the same numbers meet the same random numbers at each.

    Every cycle is simulated, but only what is active in it; stretches without a flit are skipped. A
    replication begins with an empty network. At its end it is found out whether all flits can get
    out: a deadlock is reported, also one of a part of the network.

    The simulator agrees with BookSim2 [1]_ on 77 kept points, 52 of networks in which packets hold the
    switch and 25 in which each flit competes for it: within their joint intervals, and below half of
    saturation within 1 %. How far the model is from it: ``qmodels.solve(noc).error``, or
    `validate.compare` for this network.

    Zero-load latency is exactly that of BookSim2's one-stage router [1]_: per router its pipeline,
    2 cycles at the ends, and a cycle per further flit.

    References
    ----------
    .. [1] N. Jiang et al., "A detailed and flexible cycle-accurate network-on-chip simulator",
       ISPASS 2013.

    Examples
    --------
    >>> from qmodels.systems.noc.patterns import uniform
    >>> from qmodels.systems.noc.topology import spidergon
    >>> from validate import simulate
    >>> noc = Noc(topology=spidergon(16), link_width=16, traffic=uniform(nodes=16), injection_rate=0.02)
    >>> result = simulate(noc, packets=2000, replications=4)
    >>> result.verdict, 20 < result.packet_latency.best < 25
    ('stable', True)
    """

    # Packets of each replication to be measured, about. Before that, as a warm-up, run a quarter.
    packets: int = 20_000
    # Cycles of each replication to be measured, at least, however many packets that is [cycles].
    cycles: int = 10_000
    # Whether the latencies of each flow are counted for its 95 % and 99 % quantile. It costs memory (2 KB per
    # flow) and a quarter of the speed.
    flow_quantiles: bool = False

    job_type = NocJob
    run_type = Run
    precise = ("packet_latency",)
    run_replication = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse too few packets or cycles."""
        checks.count("packets", self.packets, minimum=100)
        checks.count("cycles", self.cycles, minimum=1000)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        each = tuple(runs)
        table = self.spec.flow_table()
        found = verdict(
            [run.series for run in each],
            deadlocked=any(run.deadlocked for run in each),
            full=any(run.full for run in each),
            closed=isinstance(self.spec.traffic, Transactions),
        )
        stable = None if found == "undecided" else found == "stable"
        flits = np.array([run.channels[0] for run in each]) * table.channel_cycles_per_flit
        busiest = table.channel_names[int(np.argmax(flits.sum(axis=0)))]
        cycles = np.array([run.cycles for run in each], dtype=float)
        utilization = {
            name: ratio_interval(mine, cycles, confidence=self.confidence)
            for name, mine in zip(table.channel_names, flits.T, strict=True)
        }
        packets = [int(run.sums[0].sum()) for run in each]
        metrics = self._metrics(each, table, stable=stable is not False)
        details: dict[str, Callable[[], Any]] = {
            "verdict": lambda: found,
            "runs": lambda: each,
            "flows": lambda: flow_columns(self.spec, each, found, stable, self.confidence),
            "channels": lambda: channel_columns(self.spec, each, utilization),
        }
        return dict(
            metrics={**metrics, "max_utilization": utilization[busiest]},
            latency_parts={
                "source queue": metrics["source_queue_delay"],
                "network": metrics["traversal_delay"],
            },
            utilization=utilization,
            bottleneck=busiest,
            stable=stable,
            facts=Deferred(lambda: facts(self.spec, found, stable)),
            details=Later(details, lambda name: details[name]()),
            short=min(packets) < FEWEST_OBSERVATIONS,
            effort={"packets": sum(packets), "cycles": sum(run.simulated for run in each)},
        )

    def _metrics(self, runs: Sequence[Run], table: FlowTable, *, stable: bool) -> dict[str, Estimate]:
        sums = np.array([run.sums.sum(axis=1) for run in runs], dtype=float)
        cycles = np.array([run.cycles for run in runs], dtype=float)
        packets, latency, queueing = sums.T
        clock = self.spec.clock_ghz

        def ratio(above: FloatArray, below: FloatArray, unit: float) -> Estimate:
            return ratio_interval(above, below, confidence=self.confidence).scaled(unit)

        metrics = {name: exactly(INF, confidence=self.confidence) for name in TIMES}
        if stable and packets.any():
            metrics = {
                "packet_latency": ratio(latency, packets, 1 / clock),
                "source_queue_delay": ratio(queueing, packets, 1 / clock),
                "traversal_delay": ratio(latency - queueing, packets, 1 / clock),
            }
            histograms = [_histogram(run) for run in runs]
            for percent in (95, 99):
                metrics[f"packet_latency_p{percent}"] = quantile_interval(
                    histograms, percent / 100, confidence=self.confidence
                ).scaled(1 / clock)
        metrics["delivered_rate"] = ratio(packets, cycles, clock)
        bytes_ = np.array([run.sums[0] @ _payload(self.spec, table) for run in runs])
        metrics["bandwidth"] = ratio(bytes_ * clock, cycles, 1.0)
        if isinstance(self.spec.traffic, Transactions):
            done, times = np.array([run.transactions for run in runs], dtype=float).T
            metrics["transaction_rate"] = ratio(done, cycles, clock)
            metrics["transaction_latency"] = (
                ratio(times, done, 1 / clock) if stable else exactly(INF, confidence=self.confidence)
            )
        return metrics


def _histogram(run: Run) -> Histogram:
    counts = np.zeros(BINS, dtype=np.int64)
    counts[run.latencies[0]] = run.latencies[1]
    return Histogram(counts=counts)


def _payload(noc: Noc, table: FlowTable) -> FloatArray:
    """Return the bytes of payload of a packet of each flow."""
    if isinstance(noc.traffic, Transactions):
        sizes = np.array([noc.traffic.request_bytes, noc.traffic.response_bytes], dtype=float)
        # Of a read the request is short and the response long.
        return np.asarray(sizes[np.where(table.reply >= 0, table.packet_class, 1 - table.packet_class)])
    return np.array([noc.class_payload(one) for one in noc.packet_classes], dtype=float)[table.packet_class]
