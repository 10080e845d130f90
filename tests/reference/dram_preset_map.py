"""Write qmodels/memory/dram/preset_error_map.csv: errors of the DRAM model on all presets.

Usage: ``python tests/reference/dram_preset_map.py`` from the repository; about five minutes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

LOADS = (0.3, 0.5, 0.7, 0.85)
METRICS = ("read_latency", "read_latency_p99", "write_latency")


def systems(preset: str, *, writes: bool) -> Iterator[Any]:
    """Yield systems of a preset: page policy, row hits, and scheduler or writes."""
    from qmodels.memory.dram.errors import MOST_HITS, WRITES
    from qmodels.systems.memory.dram_system import dram
    from qmodels.systems.memory.dram_traffic import RandomBlocks

    schedulers = ("fr-fcfs", "oldest-ready-first")
    for k, (page, hits, other) in enumerate(product(("open", "closed"), (0.0, MOST_HITS), (0, 1))):
        write = WRITES[other] if writes else 0.0
        scheduler = schedulers[(k // 2 + other) % 2 if writes else other]
        traffic = RandomBlocks(row_hit_probability=hits, write_fraction=write)
        yield dram(preset, channels=1, page_policy=page, scheduler=scheduler, traffic=traffic)


def errors(spec: Any, load: float) -> dict[str, float]:
    """Return the errors of the model at a load against our simulator, nothing of overloads. [%]."""
    from qmodels.memory.dram.solve import solve_dram
    from validate import simulate

    rate = load * solve_dram(spec).in_cycles()["saturation_rate"]
    spec = replace(spec, traffic=replace(spec.traffic, arrival_rate=rate))
    model, own = solve_dram(spec), simulate(spec, accesses=60_000, replications=4, seed=7)
    if not own.stable:
        return {}
    return {name: 100 * (model[name] / own[name].best - 1) for name in METRICS if name in model.metrics}


def main() -> None:
    """Compare all presets, reads alone and with writes."""
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from qmodels.evidence.error_map import summarize
    from qmodels.memory.dram.errors import PRESET, preset_region
    from qmodels.systems.memory.dram_presets import PRESETS

    rows: list[dict[str, Any]] = []
    for preset, writes in product(PRESETS, (False, True)):
        specs = list(systems(preset, writes=writes))
        for above, load in zip((0.0, *LOADS), LOADS, strict=False):
            found = [errors(spec, load) for spec in specs]
            where = {"unit": "%", "region": preset_region(specs[0]), "load_above": above, "load_to": load}
            where["overloaded"] = sum(not one for one in found)
            for metric in METRICS[: 2 + writes]:
                each = (one[metric] for one in found if one)
                rows.append({"metric": metric, **where, **summarize(each, decimals=2)})
    about = (
        "Random accesses with refresh against our simulator, at the upper ends of the loads: open and\n"
        "closed pages, without row hits and with half, 20 and 50 % of writes where there are any;\n"
        "overloaded: systems that are in the simulation."
    )
    PRESET.write(rows, about=about, command="python tests/reference/dram_preset_map.py")


if __name__ == "__main__":
    main()
