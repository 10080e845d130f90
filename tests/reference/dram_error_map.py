"""Write qmodels/memory/dram/random_error_map.csv: errors of the DRAM model against three simulators.

Usage: ``python tests/reference/dram_error_map.py`` from the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Compare at the measured points of random reads."""
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    from dram_pairs import pairs

    from qmodels.evidence.error_map import summarize
    from qmodels.memory.dram.errors import RANDOM, random_region
    from qmodels.memory.dram.solve import solve_dram
    from validate import simulate

    found: dict[str, list[dict[str, Any]]] = {}
    for pair in pairs():
        traffic = pair.spec.traffic
        if traffic.write_fraction or traffic.row_hit_probability:
            continue
        model = solve_dram(pair.spec)
        cycles = model.in_cycles()
        own = simulate(pair.spec, accesses=300_000, replications=8).in_cycles()
        load = round(traffic.arrival_rate / model.in_cycles()["saturation_rate"], 4)
        for metric, others in (("read_latency", pair.mean), ("read_latency_p99", pair.p99)):
            each = [own[metric].best, *others.values()]
            errors = summarize((100 * (cycles[metric] / x - 1) for x in each), decimals=2)
            region = found.setdefault(random_region(pair.spec), [])
            region.append({"metric": metric, "unit": "%", "load_to": load, **errors, "designs": 1})
    rows = []
    for region, points in sorted(found.items()):
        ends = sorted({point["load_to"] for point in points})
        above = dict(zip(ends, (0.0, *ends), strict=False))
        for point in sorted(points, key=lambda point: point["load_to"]):
            rows.append({**point, "region": region, "load_above": above[point["load_to"]]})
    about = (
        "Random reads of DDR4-3200 against our simulator, DRAMsim3 and Ramulator 1, at the upper ends of the "
        "loads:\nmean over the simulators, and the largest."
    )
    RANDOM.write(rows, about=about, command="python tests/reference/dram_error_map.py")


if __name__ == "__main__":
    main()
