"""The measured errors of the models: every map that the code reads, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import qmodels
from qmodels.evidence.error_map import ErrorMap

MAPS = {
    "Networks-on-chip: latency against BookSim2": "noc/latency_error_map.csv",
    "Networks-on-chip: all metrics": "noc/metric_error_map.csv",
    "Message programs": "noc/message_error_map.csv",
    "DRAM: random reads": "memory/dram/random_error_map.csv",
    "DRAM: presets": "memory/dram/preset_error_map.csv",
    "DRAM: patterns and schedulers": "memory/dram/pattern_error_map.csv",
    "Caches": "llc/cache_error_map.csv",
    "LLC processors": "llc/processor_error_map.csv",
    "Free lists: write conflicts": "allocator/error_map.csv",
    "NUMA machines": "memory/numa/error_map.csv",
    "Work queues": "work_queues/error_map.csv",
}
"""Title of each map, and where its file is in `qmodels`."""

COLUMNS = {"designs": "systems", "bias": "bias", "mean": "mean size", "largest": "largest"}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of all maps."""
    lines = [
        "---",
        "html_theme.sidebar_secondary.remove: true",
        "---",
        "",
        "# Measured errors",
        "",
        "Model minus simulation, by metric and region: the maps that answers look their error up in",
        "(`answer.error`), as they stand beside the models. An empty cell is not known.",
        "",
    ]
    for title, place in MAPS.items():
        path = Path(qmodels.__file__).parent / place
        about = [
            line[1:].strip() for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == "#"
        ]
        lines += [f"## {title}", "", *about[:-1], "", f"{about[-1].replace('Made by: ', 'Made by: `')}`", ""]
        lines += ["| metric | region | load | " + " | ".join(COLUMNS.values()) + " |", "|---" * 7 + "|"]
        for row in ErrorMap(path).rows:
            cells = [
                f"`{row['metric']}` [{row['unit']}]",
                row["region"],
                _load(row["load_above"], row["load_to"]),
            ]
            cells += [_number(row[name], sign="+" if name == "bias" else "") for name in COLUMNS]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    yield "errors.md", "\n".join(lines) + "\n"


def _load(above: float, to: float) -> str:
    if math.isnan(to):
        return ""
    return f"{to:.3g}" if above == to else f"{above:.3g}\u2013{to:.3g}"


def _number(value: float, *, sign: str) -> str:
    return "" if math.isnan(value) else f"{value:{sign}.3g}"
