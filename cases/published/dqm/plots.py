"""Pictures of the data-queueing case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cases.plots import BLUE, GREEN, GREY, ORANGE, new_figure, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cases.published.dqm.reproduction import Reproduction


def save_plots(result: Reproduction, out: Path) -> list[Path]:
    """Write the pictures there is data for and return their paths."""
    figures = {"dqm-trials.png": trials_figure(result)}
    if result.techniques is not None:
        figures["dqm-techniques.png"] = techniques_figure(result)
    if result.causes:
        figures["dqm-causes.png"] = causes_figure(result)
    for name, figure in figures.items():
        save(figure, out / name)
    return [out / name for name in figures]


def trials_figure(result: Reproduction) -> Figure:
    """Return conflicts over the number of trials: published, simulated and solved."""
    figure, axes = new_figure(10, 4, columns=3)
    panels = {
        "write_wo": "writes, without page control",
        "write_with": "writes, with page control",
        "read_with": "reads, with page control",
    }
    for one, (column, title) in zip(axes[0], panels.items(), strict=True):
        cells = [cell for cell in result.cells if cell.table == "table1" and cell.column == column]
        trials = [cell.trials for cell in cells]
        one.plot(trials, [cell.published for cell in cells], "s--", color=ORANGE, label="published")
        one.errorbar(
            trials,
            [cell.simulated for cell in cells],
            yerr=np.abs([[c.simulated - c.low, c.high - c.simulated] for c in cells]).T,
            fmt="o-",
            color=BLUE,
            label="simulated (95 % interval)",
        )
        one.plot(trials, [cell.model for cell in cells], "^:", color=GREEN, label="model")
        one.set_title(title, fontsize=10, loc="left", fontweight="bold")
        one.set_xlabel("AllocTrialCount")
        one.set_xticks(trials)
        one.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("bank conflicts [%]")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def techniques_figure(result: Reproduction) -> Figure:
    """Return the techniques: failed allocations against the worst-case overhead, the optimal ones marked."""
    assert result.techniques is not None
    found, table = result.techniques, result.techniques.exhaustive.table
    figure, axes = new_figure(8, 5)
    one = axes[0, 0]
    failures = 100 * table["allocation_failure_probability"]
    single = table["vms1_size"] == int(found.exhaustive.space.base.data.segments)
    one.scatter(
        failures[single],
        table["enqueue_overhead"][single],
        marker="*",
        s=60,
        color="black",
        zorder=3,
        label="single list",
    )
    overall = np.isin(table["design"], found.overall)
    for small, marker, color in zip(range(1, 5), "osD^", (GREY, BLUE, GREEN, ORANGE), strict=True):
        rows = (table["small_packet_segments"] == small) & ~single
        one.scatter(
            failures[rows], table["enqueue_overhead"][rows], marker=marker, s=28, color=color,
            label=f"SmallPktSize {small}",
        )  # fmt: skip
    one.scatter(
        failures[overall], table["enqueue_overhead"][overall], s=110, facecolors="none", edgecolors="black",
        label="optimal in failures\nand both worst cases",
    )  # fmt: skip
    one.set_xlabel("failed allocations [%]")
    one.set_ylabel("overhead of a worst-case segment write [SRAM cycles]")
    one.set_title(f"{failures.size} techniques, simulated", fontsize=10, loc="left", fontweight="bold")
    one.legend(frameon=False, fontsize=9)
    return figure


def causes_figure(result: Reproduction) -> Figure:
    """Return write and read conflicts with 3 trials for every change, beside the published ones."""
    figure, axes = new_figure(10, 0.4 * len(result.causes) + 1.8, columns=2)
    rows = list(reversed(result.causes))
    places = np.arange(len(rows))
    writes, reads = axes[0]
    writes.barh(places + 0.2, [c.write_wo[3] for c in rows], 0.38, color=GREY, label="without page control")
    writes.barh(places - 0.2, [c.write_with[3] for c in rows], 0.38, color=BLUE, label="with page control")
    reads.barh(places, [c.read_with[3] for c in rows], 0.6, color=BLUE)
    said = {c.column: c.published for c in result.cells if c.table == "table1" and c.trials == 3}
    writes.axvline(said["write_wo"], color=GREY, linestyle="--", label="published, without")
    for one, column in ((writes, "write_with"), (reads, "read_with")):
        one.axvline(said[column], color=ORANGE, linestyle="--", label="published, with")
        one.set_xlabel("bank conflicts, simulated [%]")
    writes.set_title("writes, 3 trials", fontsize=10, loc="left", fontweight="bold")
    reads.set_title("reads, 3 trials", fontsize=10, loc="left", fontweight="bold")
    writes.set_yticks(places, [c.name for c in rows], fontsize=9)
    reads.set_yticks(places, [""] * len(rows))
    for one in (writes, reads):
        one.set_ylim(-0.7, len(rows) - 0.3)
    figure.legend(*writes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
