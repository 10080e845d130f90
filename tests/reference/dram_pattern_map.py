"""Write qmodels/memory/dram/pattern_error_map.csv: errors of the DRAM model over streams and schedulers.

Usage: ``python tests/reference/dram_pattern_map.py`` from the repository; about ten minutes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.memory.dram.errors import SAMPLED
from qmodels.systems.memory.dram_map import DramGeometry, Interleaved
from qmodels.systems.memory.dram_system import DramSystem, dram
from qmodels.systems.memory.dram_timing import abstract
from qmodels.systems.memory.dram_traffic import AddressTrace, Packets, RandomBlocks, StridedBlocks

LOADS = (0.3, 0.6, 0.85)


def traffic_of(kind: str, draw: random.Random) -> Any:
    """Return a traffic of a kind of `qmodels.memory.dram.errors.kind_of`."""
    if kind == "random":
        return RandomBlocks(row_hit_probability=draw.choice([0.0, 0.6]))
    if kind == "packets":
        return Packets(blocks=draw.choice([1, 2, 3, 5, 8, 16, 24]))
    if kind == "spread packets":
        return Packets(blocks=draw.choice([3, 8, 24]), spacing=draw.choice([2, 6]))
    if kind == "stream":
        return StridedBlocks(stride=draw.choice([1, 1, 3, 5, 16]))
    blocks = np.random.default_rng(draw.randrange(1000)).integers(1 << draw.choice([8, 20]), size=2000)
    return AddressTrace(blocks=tuple(int(x) for x in blocks))


def systems(scheduler: str, kind: str, refresh: bool, count: int, seed: int) -> Iterator[DramSystem]:
    """Return random systems of one scheduler, kind of traffic, with refresh or without."""
    draw = random.Random(f"{scheduler} {kind} {refresh} {seed}")
    for _ in range(count):
        plan = Interleaved(
            step=draw.choice([1, 2, 4, 8]),
            bank_step=draw.choice([1, 1, 2, 4, 32]),
            permute=draw.choice(["none", "none", "none", "xor"]),
        )
        common: dict[str, Any] = {
            "page_policy": draw.choice(["open", "closed"]),
            "scheduler": draw.choice(["oldest-ready-first", "fr-fcfs"])
            if scheduler == "ready"
            else scheduler,
            "address_map": plan,
            "traffic": traffic_of(kind, draw),
        }
        channels = draw.choice([1, 1, 2, 4])
        if not refresh and draw.random() < 0.4:
            geometry = DramGeometry(channels=channels, groups=1, banks=8)
            yield DramSystem(
                timing=abstract(burst=4, bank_busy=draw.choice([8, 12, 20])), geometry=geometry, **common
            )
        else:
            if not refresh:
                common |= {"t_refi": 0, "t_rfc": 0}
            preset = draw.choice(["DDR4-3200", *SAMPLED])
            yield dram(preset, channels=channels, ranks=1, **common)


def accesses(spec: DramSystem) -> int:
    """Return the accesses of a replication: packets vary more, the more blocks they have."""
    blocks = spec.traffic.blocks if isinstance(spec.traffic, Packets) else 1
    return 100_000 * min(4, max(1, blocks // 4))


def errors(spec: DramSystem, load: float, *, accesses: int, replications: int) -> dict[str, float]:
    """Return the errors of the model at a load against our simulator, those of times in %."""
    from qmodels.memory.dram.solve import solve_dram
    from validate import simulate

    rate = load * solve_dram(spec).in_cycles()["saturation_rate"]
    spec = replace(spec, traffic=replace(spec.traffic, arrival_rate=rate))
    model, own = solve_dram(spec), simulate(spec, accesses=accesses, replications=replications, seed=7)
    if not own.stable:
        return {"stable": 0.0}
    fixed = float(model.latency_parts["fixed"]) + own.latency_parts["row"].best
    wait = own.read_latency.best - fixed
    return {
        "stable": 1.0,
        "read_latency": 100 * (model.read_latency / own.read_latency.best - 1),
        "read_latency_p99": 100 * (model.read_latency_p99 / own.read_latency_p99.best - 1),
        "wait": 100 * ((model.read_latency - fixed) / wait - 1) if wait > 0.01 * fixed else 0.0,
        "read_conflict_probability": 100
        * (model.read_conflict_probability - own.read_conflict_probability.best),
        # What the simulation leaves open: half its 95 % interval.
        "noise read_latency": 100 * own.read_latency.half_width / own.read_latency.best,
        "noise wait": 100 * own.read_latency.half_width / max(wait, 0.01 * fixed),
    }


METRICS = {"read_latency": "%", "read_latency_p99": "%", "wait": "%", "read_conflict_probability": "points"}


def rows_of(scheduler: str, kind: str, refresh: bool) -> Iterator[dict[str, Any]]:
    """Yield the rows of a region of the map: by load and metric."""
    from qmodels.evidence.error_map import NAN, summarize
    from qmodels.memory.dram.errors import SYSTEMS, refreshing

    region = f"{scheduler}, {kind}, {refreshing(refresh)}"
    specs = list(systems(scheduler, kind, refresh, SYSTEMS, seed=0))
    for above, load in zip((0.0, *LOADS), LOADS, strict=False):
        found = [errors(spec, load, accesses=accesses(spec), replications=8) for spec in specs]
        kept = [x for x in found if x["stable"]]
        for metric, unit in METRICS.items():
            row = summarize((x[metric] for x in kept), decimals=2)
            beyond = [abs(x[metric]) - x.get(f"noise {metric}", 0.0) for x in kept]
            # The largest is beyond the interval, so that a mean size of all of the error may exceed it.
            row |= {"mean": NAN, "largest": round(max(*beyond, 0.0), 2), "overloaded": len(found) - len(kept)}
            yield {
                "metric": metric,
                "unit": unit,
                "region": region,
                "load_above": above,
                "load_to": load,
                **row,
            }


def main() -> None:
    """Compare random systems of every kind; what is done is written after each."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from qmodels.memory.dram.errors import KINDS, PATTERNS

    about = (
        "Random systems against our simulator, at the upper ends of the loads: the largest beyond the\n"
        "simulation's interval; overloaded: systems that are in the simulation."
    )
    rows: list[dict[str, Any]] = []
    for scheduler, kind, refresh in product(("in-order", "ready"), KINDS, (False, True)):
        rows += rows_of(scheduler, kind, refresh)
        PATTERNS.write(rows, about=about, command="python tests/reference/dram_pattern_map.py")


if __name__ == "__main__":
    main()
