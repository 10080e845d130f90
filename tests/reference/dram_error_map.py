"""Write qmodels/memory/dram_error_map.csv: errors of the DRAM model against three simulators.

Usage: ``python tests/reference/dram_error_map.py`` from the repository.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path


def main() -> None:
    """Compare at the measured points of random reads."""
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]
    from dram_pairs import pairs

    from qmodels.memory.dram.errors import TABLE
    from qmodels.memory.dram.solve import solve_dram
    from validate import simulate

    rows = []
    for pair in pairs():
        traffic = pair.spec.traffic
        if traffic.write_fraction or traffic.row_hit_probability:
            continue
        model = solve_dram(pair.spec)
        cycles = model.in_cycles()
        own = simulate(pair.spec, accesses=300_000, replications=8).in_cycles()
        means = [own["read_latency"].best, *pair.mean.values()]
        late = [own["read_latency_p99"].best, *pair.p99.values()]
        rows.append(
            [
                pair.spec.page_policy,
                pair.spec.geometry.ranks,
                int(pair.refresh),
                round(traffic.arrival_rate / model.saturation_rate, 4),
                round(max(abs(100 * (cycles["read_latency"] / x - 1)) for x in means), 2),
                round(max(abs(100 * (cycles["read_latency_p99"] / x - 1)) for x in late), 2),
                round(sum(100 * (cycles["read_latency"] / x - 1) for x in means) / len(means), 2),
                round(sum(100 * (cycles["read_latency_p99"] / x - 1) for x in late) / len(late), 2),
            ]
        )
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        file.write(
            "# Largest error [%] against our simulator, DRAMsim3 and Ramulator 1, and signed means; random "
            "reads, DDR4-3200.\n"
            "# Made by: python tests/reference/dram_error_map.py\n"
        )
        writer = csv.writer(file, lineterminator="\n")
        signed = ["mean_read_latency", "mean_read_latency_p99"]
        writer.writerow(
            ["page_policy", "ranks", "refresh", "load", "read_latency", "read_latency_p99", *signed]
        )
        writer.writerows(sorted(rows))


if __name__ == "__main__":
    main()
