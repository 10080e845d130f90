"""Pictures of the STNoC case."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cases.plots import BLUE, GREEN, GREY, ORANGE, new_figure, save
from cases.published.stnoc.specs import WIDTHS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from cases.published.stnoc.reproduction import Reproduction

COLORS = dict(zip(WIDTHS, (ORANGE, BLUE, GREEN), strict=True))


def save_plots(result: Reproduction, out: Path) -> list[Path]:
    """Write the pictures and return their paths."""
    figures = {"stnoc-tables.png": tables_figure(result), "stnoc-steps.png": steps_figure(result)}
    for name, figure in figures.items():
        save(figure, out / name)
    return [out / name for name in figures]


def tables_figure(result: Reproduction) -> Figure:
    """Return Tables II and III over the channels: published, model and simulated."""
    figure, axes = new_figure(10, 4.4, columns=2)
    for one, table, unit in (
        (axes[0, 0], "table2", "aggregate throughput [GB/s]"),
        (axes[0, 1], "table3", "power of the routers [W]"),
    ):
        scale = 1000.0 if table == "table2" else 1.0
        for width in WIDTHS:
            mine = [cell for cell in result.cells if (cell.table, cell.width) == (table, width)]
            channels, color = range(len(mine)), COLORS[width]
            one.plot(
                channels,
                [c.published / scale for c in mine],
                "s--",
                color=color,
                label=f"{width} B published",
            )
            one.plot(channels, [c.model / scale for c in mine], "^:", color=color, label=f"{width} B model")
            one.plot(
                channels, [c.simulated / scale for c in mine], "o-", color=color, label=f"{width} B simulated"
            )
            one.set_xticks(list(channels), [str(c.channels) for c in mine])
        one.set_xlabel("memory channels")
        one.set_ylabel(unit)
        one.set_ylim(0, 1.06 * one.get_ylim()[1])
    axes[0, 0].set_title("Table II: 32 nodes, 23 engines", fontsize=10, loc="left", fontweight="bold")
    axes[0, 1].set_title("Table III: the same", fontsize=10, loc="left", fontweight="bold")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def steps_figure(result: Reproduction) -> Figure:
    """Return the rate at which simulated delays rise over the step, by channels, with 16-byte links."""
    figure, axes = new_figure(7, 4.2)
    one = axes[0, 0]
    for channels, color in zip((1, 2, 4), (GREY, BLUE, GREEN), strict=True):
        mine = [r for r in result.grid if (r["link_width"], r["channels"]) == (16, channels)]
        one.fill_between(
            [r["step"] for r in mine],
            [r["low"] for r in mine],
            [r["high"] for r in mine],
            color=color,
            alpha=0.4,
        )
        middles = [(r["low"] + r["high"]) / 2 for r in mine]
        one.plot(
            [r["step"] for r in mine], middles, "o-", color=color, label=f"channels: {channels}, simulated"
        )
        for cell in result.cells:
            if (cell.table, cell.reading, cell.channels) == ("table1", "in turn", channels):
                one.plot(
                    1,
                    cell.published,
                    "s",
                    color=color,
                    markerfacecolor="none",
                    label=f"{channels}, published (Table I)",
                )
    one.plot([32, 32], [0.04, 0.05], "-", color=ORANGE, linewidth=4, label="4, published (Fig. 3)")
    one.set_xscale("log", base=2)
    one.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    one.set_xlabel("interleaving step [packets]")
    one.set_ylabel("rate at which delays rise [packets/cycle/CPU]")
    one.set_ylim(bottom=0)
    one.set_title("8 nodes, 16-byte links", fontsize=10, loc="left", fontweight="bold")
    one.legend(frameon=False, fontsize=8, ncols=2)
    return figure
