"""Pictures of the data-queueing case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.plots import BLUE, GREEN, GREY, ORANGE, new_figure
from cases.published.cell import only, select
from cases.published.dqm.specs import PUBLISHED_SEGMENTS
from cases.published.plots import draw_curves, head, legend_below
from cases.published.reproduction import Reproduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures(found: Reproduction) -> dict[str, Figure]:
    """Return the pictures there is data for."""
    pictures = {"trials": trials_figure(found)}
    if "techniques" in found.tables:
        pictures["techniques"] = techniques_figure(found.tables["techniques"])
    if "causes" in found.tables:
        pictures["causes"] = causes_figure(found)
    return pictures


def trials_figure(found: Reproduction) -> Figure:
    """Return conflicts over the number of trials: published, simulated and solved."""
    figure, axes = new_figure(10, 4, columns=3)
    panels = {
        "write_wo": "writes, without page control",
        "write_with": "writes, with page control",
        "read_with": "reads, with page control",
    }
    for one, (column, title) in zip(axes[0], panels.items(), strict=True):
        cells = select(found.cells, table="table1", column=column)
        trials = [cell["trials"] for cell in cells]
        draw_curves(one, trials, cells)
        head(one, title)
        one.set_xlabel("AllocTrialCount")
        one.set_xticks(trials)
        one.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("bank conflicts [%]")
    legend_below(figure, axes[0, 0])
    return figure


def techniques_figure(techniques: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the techniques: failed allocations against the worst-case overhead, the optimal ones marked."""
    figure, axes = new_figure(8, 5)
    one = axes[0, 0]
    table = {name: np.array([row[name] for row in techniques]) for name in techniques[0]}
    failures, overhead = 100 * table["allocation_failure_probability"], table["enqueue_overhead"]

    def draw(rows: Any, **style: Any) -> None:
        one.scatter(failures[rows], overhead[rows], **style)

    single = table["vms1_size"] == PUBLISHED_SEGMENTS
    draw(single, marker="*", s=60, color="black", zorder=3, label="single list")
    for small, marker, color in zip(range(1, 5), "osD^", (GREY, BLUE, GREEN, ORANGE), strict=True):
        rows = (table["small_packet_segments"] == small) & ~single
        draw(rows, marker=marker, s=28, color=color, label=f"SmallPktSize {small}")
    label = "optimal in failures\nand both worst cases"
    draw(table["optimal_overall"], s=110, facecolors="none", edgecolors="black", label=label)
    one.set_xlabel("failed allocations [%]")
    one.set_ylabel("overhead of a worst-case segment write [SRAM cycles]")
    head(one, f"{failures.size} techniques, simulated")
    one.legend(frameon=False, fontsize=9)
    return figure


def causes_figure(found: Reproduction) -> Figure:
    """Return write and read conflicts with 3 trials for every change, beside the published ones."""
    rows = [row for row in reversed(found.tables["causes"]) if row["trials"] == 3]
    figure, axes = new_figure(10, 0.4 * len(rows) + 1.8, columns=2)
    places = np.arange(len(rows))
    writes, reads = axes[0]
    for shift, column, color, label in (
        (0.2, "write_wo", GREY, "without page control"),
        (-0.2, "write_with", BLUE, "with page control"),
    ):
        writes.barh(places + shift, [row[column] for row in rows], 0.38, color=color, label=label)
    reads.barh(places, [row["read_with"] for row in rows], 0.6, color=BLUE)
    said = {
        column: only(found.cells, table="table1", trials=3, column=column).published
        for column in ("write_wo", "write_with", "read_with")
    }
    writes.axvline(said["write_wo"], color=GREY, linestyle="--", label="published, without")
    for one, column, title in ((writes, "write_with", "writes"), (reads, "read_with", "reads")):
        one.axvline(said[column], color=ORANGE, linestyle="--", label="published, with")
        one.set_xlabel("bank conflicts, simulated [%]")
        head(one, f"{title}, 3 trials")
        one.set_ylim(-0.7, len(rows) - 0.3)
    writes.set_yticks(places, [row["change"] for row in rows], fontsize=9)
    reads.set_yticks(places, [""] * len(rows))
    legend_below(figure, writes, columns=4)
    return figure
