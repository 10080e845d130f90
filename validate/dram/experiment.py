"""The simulation of a DRAM system, command by command: its replications and their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray, IntArray
from qmodels.systems.memory.dram_system import SPAN, AddressTrace, DramSystem, Packets, RandomBlocks
from qmodels.systems.spec.estimate import Estimate, exactly
from validate.campaigns.experiment import Experiment, Job
from validate.dram import state as c
from validate.dram.kernel import run_channel
from validate.engine.histogram import INF
from validate.estimates.intervals import mean_interval, probability_interval, ratio_interval, stability, worst


@dataclass(frozen=True, kw_only=True)
class DramJob(Job):
    """A replication, with the accesses of the whole system."""

    accesses: int


class Accesses(NamedTuple):
    """Accesses of a channel: cycle of arrival, bank, row, and whether it is a write."""

    arrival: Any
    bank: Any
    row: Any
    write: Any


def draw_accesses(spec: DramSystem, *, seed: int, replication: int, accesses: int) -> list[Accesses]:
    """Return the accesses of each channel.

    Times are whole cycles, those of a Poisson process rounded down: as many accesses may arrive in one
    cycle, mean waits are those of the process itself.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(replication,)))
    traffic = spec.traffic
    if isinstance(traffic, Packets):
        return _split(spec, *_packets(spec, traffic, rng, accesses))
    arrival = np.cumsum(rng.standard_exponential(accesses))
    arrival = (arrival * (1 / traffic.arrival_rate)).astype(np.int64)
    if isinstance(traffic, AddressTrace):
        write = np.resize(np.array(traffic.writes or (0,), dtype=np.int64), accesses)
        blocks = np.resize(np.array(traffic.blocks, dtype=np.int64), accesses)
        return _split(spec, arrival, blocks, write)
    write = np.zeros(accesses, dtype=np.int64)
    if traffic.write_fraction:
        write = (rng.random(accesses) < traffic.write_fraction).astype(np.int64)
    if isinstance(traffic, RandomBlocks):
        return _random(spec, traffic, rng, arrival, write)
    blocks = np.arange(accesses, dtype=np.int64) * traffic.stride % SPAN
    return _split(spec, arrival, blocks, write)


def _random(
    spec: DramSystem, traffic: RandomBlocks, rng: np.random.Generator, arrival: Any, write: Any
) -> list[Accesses]:
    g = spec.geometry
    bank = rng.integers(g.channels * g.channel_banks, size=arrival.size)
    if traffic.row_hit_probability:
        # Within each bank the row changes with every access that is no hit.
        changes = rng.random(arrival.size) >= traffic.row_hit_probability
        order = np.argsort(bank, kind="stable")
        row = np.empty(arrival.size, dtype=np.int64)
        row[order] = np.cumsum(changes[order])
    else:
        row = np.arange(arrival.size, dtype=np.int64)
    if g.channels == 1:
        return [Accesses(arrival, bank, row, write)]
    return _by_channel(bank // g.channel_banks, g.channels, arrival, bank % g.channel_banks, row, write)


def _packets(
    spec: DramSystem, traffic: Packets, rng: np.random.Generator, accesses: int
) -> tuple[Any, Any, Any]:
    count = -(-accesses // traffic.blocks)
    start = np.cumsum(rng.standard_exponential(count)) * (traffic.blocks / traffic.arrival_rate)
    each = np.arange(traffic.blocks)
    arrival = (start.astype(np.int64)[:, None] + each * traffic.spacing).ravel()
    blocks = (rng.integers(SPAN, size=count)[:, None] + each).ravel()
    write = np.repeat((rng.random(count) < traffic.write_fraction).astype(np.int64), traffic.blocks)
    if traffic.spacing:
        order = np.argsort(arrival, kind="stable")
        return arrival[order], blocks[order], write[order]
    return arrival, blocks, write


def _split(spec: DramSystem, arrival: Any, blocks: Any, write: Any) -> list[Accesses]:
    place = spec.address_map.locate(blocks, spec.geometry)
    return _by_channel(
        np.broadcast_to(place.channel, arrival.shape),
        spec.geometry.channels,
        arrival,
        *(
            np.ascontiguousarray(np.broadcast_to(x, arrival.shape), dtype=np.int64)
            for x in (place.bank, place.row)
        ),
        write,
    )


def _by_channel(channel: Any, channels: int, *columns: Any) -> list[Accesses]:
    order = np.argsort(channel, kind="stable")
    ends = np.cumsum(np.bincount(channel, minlength=channels))[:-1]
    parts = [np.split(column[order], ends) for column in columns]
    return [Accesses(*(np.ascontiguousarray(part[k]) for part in parts)) for k in range(channels)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Result of a replication."""

    sums: IntArray  # of each channel and direction, see `validate.dram.state`; the warm-up is left out
    counts: IntArray  # reads and writes of all channels by their latency without the controller's time
    served: int  # accesses, the warm-up included
    cycles: IntArray  # of each channel until its last command
    last_arrival: int  # when the last access came
    latencies: tuple[FloatArray, ...]  # mean of each channel in each batch, the warm-up left out


def run_replication(job: DramJob) -> Run:
    """Run one replication."""
    accesses = draw_accesses(job.spec, seed=job.seed, replication=job.replication, accesses=job.accesses)
    start = np.random.default_rng(np.random.SeedSequence(job.seed, spawn_key=(job.replication, 1))).random()
    sums, counts, cycles, latencies = [], np.zeros((2, c.LONGEST + 1), dtype=np.int64), [], []
    last = 0
    for one in accesses:
        channel = c.new_channel(job.spec, **one._asdict(), start=start)
        cycles.append(int(run_channel(channel)) if one.arrival.size else 0)
        last = max(last, int(one.arrival[-1]) if one.arrival.size else 0)
        sums.append(channel.sums[:, 1:].sum(axis=1))
        counts += channel.counts
        both = channel.sums.sum(axis=0)
        full = both[1:-1] if len(both) > c.BATCHES else both[1:]
        latencies.append(full[:, c.LATENCY] / np.maximum(full[:, c.COUNT], 1))
    used = np.flatnonzero(counts.any(axis=0))
    return Run(
        sums=np.array(sums),
        counts=counts[:, : int(used[-1]) + 1 if used.size else 1],
        served=sum(one.arrival.size for one in accesses),
        cycles=np.array(cycles),
        last_arrival=last,
        latencies=tuple(latencies),
    )


PARTS = {
    "row": c.ROWS,
    "bank": c.BANK_WAIT,
    "activation": c.SLOT_WAIT,
    "bus": c.BUS_WAIT,
    "refresh": c.REFRESH_WAIT,
}
FEWEST_BATCHES = 5
"""Batches of a channel below which its accesses are too few to wait for each other for long."""
LAG = 0.03
"""Share of the time by which an overloaded channel finishes after the last arrival."""


@dataclass(frozen=True, kw_only=True)
class DramExperiment(Experiment):
    """The simulation of one DRAM system; made by `validate.simulate`.

    Designs with one seed and the same traffic meet the same accesses.

    Latency parts are those of the model, but for its wait behind batches of writes, which is in the others.

    Commands are given one per cycle, each as early as the timings allow, to the oldest access that is
    ready; a rank due for refresh first serves the accesses whose rows it has opened. Random reads agree
    with DRAMsim3 and Ramulator within the difference of these two, see ``tests/validate/dram``.
    """

    # Accesses of each replication, at least 1000; between a 16th and a 32nd of those of each channel are the
    # warm-up.
    accesses: int = 100_000

    job_type = DramJob
    run_type = Run
    precise = ("read_latency",)
    run_replication = staticmethod(run_replication)

    def check(self) -> None:
        """Refuse too few accesses, and systems that are asked for nothing."""
        checks.count("accesses", self.accesses, minimum=1000)
        checks.positive("traffic.arrival_rate", self.spec.traffic.arrival_rate)

    def found(self, runs: list[Run]) -> dict[str, Any]:
        """Return the estimates of finished replications."""
        keeps_up = self._keep_up(runs)
        overloaded = tuple(channel for channel, known in enumerate(keeps_up) if known is False)
        by_channel = np.sum([run.sums[:, :, c.COUNT] for run in runs], axis=(0, 2))
        share = tuple(float(x) for x in by_channel / max(1, by_channel.sum()))
        rate = mean_interval([run.served / run.cycles.max() for run in runs], confidence=self.confidence)
        metrics, parts = self._estimates(runs, rate, stable=not overloaded)
        return dict(
            metrics=metrics,
            latency_parts=parts,
            utilization={"bus": rate.scaled(max(share) * self.spec.timing.burst)},
            stable=worst(keeps_up),
            facts=(f"overloaded channels: {', '.join(map(str, overloaded))}",) if overloaded else (),
            details={"overloaded": overloaded, "channel_share": share},
            quantile=partial(
                _quantile, self.spec, [run.counts for run in runs], worst(keeps_up), self.confidence
            ),
            effort={"accesses": sum(run.served for run in runs)},
        )

    def _keep_up(self, runs: Sequence[Run]) -> list[bool | None]:
        """Return of each channel whether it keeps up.

        It does not where its latency kept growing, or where it finished late in every run. A short run is
        late only if it took more than twice as long as its arrivals, and longer than a refresh and what has
        gathered meanwhile.
        """
        timing = self.spec.timing
        least = 2 * (timing.t_rfc + 10 * timing.read_cycle)
        far = [(run.cycles - run.last_arrival) > np.maximum(run.last_arrival, least) for run in runs]
        late = [(run.cycles - run.last_arrival) > LAG * run.last_arrival for run in runs]
        long = [run.cycles > 1000 * timing.read_cycle for run in runs]
        always = [
            all((x[channel] and y[channel]) or z[channel] for x, y, z in zip(late, long, far, strict=True))
            for channel in range(self.spec.geometry.channels)
        ]
        series = zip(*(run.latencies for run in runs), strict=True)
        return [
            False if behind else stability(each) if min(one.size for one in each) >= FEWEST_BATCHES else True
            for behind, each in zip(always, series, strict=True)
        ]

    def _estimates(
        self, runs: Sequence[Run], rate: Estimate, *, stable: bool
    ) -> tuple[dict[str, Estimate], dict[str, Estimate]]:
        """Return the metrics, and the parts of the read latency."""
        spec, level = self.spec, self.confidence
        sums = np.array([run.sums.sum(axis=0) for run in runs])
        both = sums.sum(axis=1)
        added, period = spec.controller_cycles, 1 / spec.clock_ghz

        def latency(direction: int, column: int, added: int = 0) -> Estimate:
            counts = sums[:, direction, c.COUNT]
            found = ratio_interval(sums[:, direction, column] + added * counts, counts, confidence=level)
            return found.scaled(period) if stable else exactly(INF, confidence=level)

        def late(order: float) -> Estimate:
            if not stable:
                return exactly(INF, confidence=level)
            rows = [run.counts[0] for run in runs]
            return latency_quantile(rows, order, added=added, confidence=level).scaled(period)

        metrics = {
            "read_latency": latency(0, c.LATENCY, added),
            "read_latency_p50": late(0.5),
            "read_latency_p99": late(0.99),
            "delivered_rate": rate.scaled(spec.clock_ghz),
            "bandwidth": rate.scaled(spec.gbytes(1.0)),
            "bus_utilization": rate.scaled(spec.timing.burst / spec.geometry.channels),
            "row_hit_ratio": probability_interval(
                both[:, c.COUNT] - both[:, c.OPENED], both[:, c.COUNT], confidence=level
            ),
        }
        for direction, name in enumerate(("read", "write")):
            if sums[:, direction, c.COUNT].sum():
                metrics[f"{name}_conflict_probability"] = probability_interval(
                    sums[:, direction, c.CONFLICTS], sums[:, direction, c.COUNT], confidence=level
                )
        if sums[:, 1, c.COUNT].sum():
            metrics["write_latency"] = latency(1, c.LATENCY, added)
        fixed = exactly((added + spec.timing.cl + spec.timing.burst) * period, confidence=level)
        return metrics, {"fixed": fixed} | {name: latency(0, column) for name, column in PARTS.items()}


def _quantile(
    spec: DramSystem,
    counts: Sequence[IntArray],
    stable: bool | None,
    confidence: float,
    probability: float,
    *,
    write: bool = False,
) -> Estimate:
    """Return a quantile of the read (or write) latency; ``inf`` where overloaded or none counted. [ns]."""
    if not stable:
        return exactly(INF, confidence=confidence)
    rows, added = [count[int(write)] for count in counts], spec.controller_cycles
    found = latency_quantile(rows, probability, added=added, confidence=confidence)
    return found.scaled(1 / spec.clock_ghz)


def latency_quantile(
    rows: Sequence[IntArray], probability: float, *, added: int, confidence: float
) -> Estimate:
    """Return a quantile of latencies counted by cycle, ``inf`` where there are none. [cycles].

    It is that of all replications together, its interval from how much the share of latencies below it
    varies between them (see `validate.estimates.intervals.quantile_interval`).
    """
    checks.probability("probability", probability)
    size = max(row.size for row in rows)
    below = np.cumsum([np.pad(row, (0, size - row.size)) for row in rows], axis=1)
    together = below.sum(axis=0)
    if together[-1] == 0:
        return exactly(INF, confidence=confidence)

    def at(order: float) -> float:
        wanted = min(max(order, 0.0), 1.0) * together[-1]
        return float(np.searchsorted(together, max(wanted, 1)) + added)

    best = at(probability)
    share = ratio_interval(below[:, int(best) - added], below[:, -1], confidence=confidence).half_width
    return Estimate(
        low=min(at(probability - share), best),
        best=best,
        high=max(at(probability + share), best),
        confidence=confidence,
    )
