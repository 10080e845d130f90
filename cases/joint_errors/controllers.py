"""The measured error of the packet processor model with a memory behind controllers.

``python -m cases.joint_errors.controllers`` simulates processors with a `DramSystem`, drawn by a seed:
devices, channels, steps, page policies, trials, links, pointer memories and two packet mixes, at loads from
20 % to 85 % of what the model says they sustain. Every run is kept in ``cases/data/controllers.csv``, the
error by load in the map that answers show (``qmodels/packet_processor/controllers/error_map.csv``). Ten
minutes on a core; ``--summary`` makes the map from the kept runs alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from cases.joint_errors.accuracy import GUIDE, METRICS
from cases.joint_errors.measured import at_load, compared, within
from cases.study.packet_processor import DATA
from cases.tables import Table, as_columns, load_table, markdown_table, with_table, write_table
from qmodels.evidence.error_map import summarize
from qmodels.packet_processor.controllers.errors import ERRORS, PAGES
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_system import dram
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.traffic.sizes import SizeLaw, bimodal, imix

FILE = DATA / "controllers.csv"
COMMAND = "python -m cases.joint_errors.controllers"
ABOUT = """\
Model minus simulation of packet processors with a DramSystem, by load of the fullest resource, for Poisson
packets; of probabilities in percentage points."""

MIXES: dict[str, SizeLaw] = {"imix": imix(), "large": bimodal(small=64, large=1518, small_fraction=0.3)}
LOADS = (0.2, 0.35, 0.5, 0.6, 0.7, 0.85)
MEMORIES = (
    *(("DDR4-3200", channels) for channels in (1, 2, 4)),
    *(("DDR5-6400", channels) for channels in (2, 4, 8)),
)
CHOICES: dict[str, tuple[Any, ...]] = {
    "step": (1, 4, 16),
    "rows_first": (False, True),
    "policy": ("open", "open", "open", "closed"),
    "trials": (1, 2, 4),
    "width": (16, 32, 64),
    "pointer_ghz": (1.0, 2.0, 4.0),
}
"""What is drawn besides memories, mixes and loads; ``rows_first`` fills a row before the next bank."""
REGIONS = ((0.0, 0.4), (0.4, 0.55), (0.55, 0.75), (0.75, 1.0))
SHOWN = METRICS[:9]
"""Metrics in the guide."""
DESIGNS, SEED = 36, 3
PACKETS, REPLICATIONS = 10_000, 3


def cases(count: int = DESIGNS, seed: int = SEED) -> Iterator[tuple[dict[str, Any], PacketProcessor]]:
    """Yield processors: memories, mixes and loads in turn, all else drawn evenly from `CHOICES`.

    Examples
    --------
    >>> sorted({what["device"] for what, _ in cases(2)}), [what["load"] for what, _ in cases(2)]
    (['DDR4-3200', 'DDR5-6400'], [0.2, 0.35])
    """
    rng = np.random.default_rng(seed)
    for number in range(count):
        device, channels = MEMORIES[(number * 3 + number // len(MEMORIES)) % len(MEMORIES)]
        mix, load = list(MIXES)[number // len(LOADS) % len(MIXES)], LOADS[number % len(LOADS)]
        drawn = {name: choices[int(rng.integers(len(choices)))] for name, choices in CHOICES.items()}
        if drawn["policy"] == "closed":
            drawn["trials"] = 1  # the model takes no others
        memory = dram(device, channels=channels, page_policy=drawn["policy"])
        filled = memory.geometry.row_blocks if drawn["rows_first"] else 1
        fields = {
            "workload.sizes": MIXES[mix],
            "dram": replace(memory, address_map=Interleaved(step=drawn["step"], bank_step=filled)),
            "free_list.alloc_trial_count": drawn["trials"],
            "free_list.clock_ghz": drawn["pointer_ghz"],
            "noc.link_width": drawn["width"],
            "noc.initiators": 8,
        }
        what = {"device": device, "channels": channels, "mix": mix, "load": load, **drawn}
        yield what, at_load(replace_fields(PacketProcessor(), fields), load)


def measure(count: int = DESIGNS, seed: int = SEED, **options: Any) -> Table:
    """Return a table with a row per design and metric, simulated with options of `validate.simulate`."""
    usual = {"packets": PACKETS, "replications": REPLICATIONS, "seed": seed}
    return as_columns(compared(cases(count, seed), METRICS, **usual | options))


def summary(table: Table) -> list[dict[str, Any]]:
    """Return the rows of the error map: the errors of each metric by region of load; stable runs only."""
    good = table["stable"] & np.isfinite(table["error"])
    lines = []
    for name, closed, (above, to) in product(METRICS, (False, True), REGIONS):
        mine = (table["metric"] == name) & good & within(table["load"], above, to)
        mine &= (table["policy"] == "closed") == closed
        where = {"region": PAGES[closed], "load_above": above, "load_to": to}
        unit = "%" if is_relative(name) else "points"
        lines.append({"metric": name, "unit": unit, **where, **summarize(table["error"][mine])})
    return lines


def markdown(lines: list[dict[str, Any]]) -> str:
    """Return the summary with a row per metric and a column per region of load."""
    rows = []
    for name, pages in product(SHOWN, PAGES):
        found = [line for line in lines if (line["metric"], line["region"]) == (name, pages)]
        cells = [
            f"{line['bias']:+.1f} / {line['mean']:.1f} / {line['largest']:.1f}" if line["designs"] else "–"
            for line in found
        ]
        rows.append([name.replace("_", " "), pages.split()[0], found[0]["unit"], *cells])
    return markdown_table(
        ["metric", "pages", "unit", *(f"{low:.0%} to {high:.0%}" for low, high in REGIONS)], rows
    )


def main() -> None:
    """Measure, write the table and the map, bring the guide up to date and print the summary."""
    if "--summary" not in sys.argv:
        write_table(FILE, measure())
    lines = summary(load_table(FILE))
    ERRORS.write(lines, about=ABOUT, command=COMMAND)
    table = markdown(lines)
    print(table)
    GUIDE.write_text(with_table(GUIDE.read_text(encoding="utf-8"), table), encoding="utf-8")


if __name__ == "__main__":
    main()
