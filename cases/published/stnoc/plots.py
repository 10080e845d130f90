"""Pictures of the STNoC case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cases.plots import BLUE, GREEN, GREY, ORANGE, new_figure
from cases.published.cell import select
from cases.published.plots import draw_curves, head, legend_below
from cases.published.reproduction import Reproduction
from cases.published.stnoc.specs import TRANSFERS, WIDTHS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = dict(zip(WIDTHS, (ORANGE, BLUE, GREEN), strict=True))


def figures(found: Reproduction) -> dict[str, Figure]:
    """Return the pictures."""
    return {
        "tables": tables_figure(found),
        "transfers": transfers_figure(found),
        "steps": steps_figure(found),
    }


def tables_figure(found: Reproduction) -> Figure:
    """Return Tables II and III over the channels: published, model and simulated."""
    figure, axes = new_figure(10, 4.4, columns=2)
    for one, table, scale, title, unit in (
        (axes[0, 0], "table2", 1e-3, "Table II: 32 nodes, 23 engines", "aggregate throughput [GB/s]"),
        (axes[0, 1], "table3", 1.0, "Table III: the same", "power of the routers [W]"),
    ):
        for width in WIDTHS:
            mine = select(found.cells, table=table, width=width)
            draw_curves(one, range(len(mine)), mine, scale=scale, color=COLORS[width], label=f"{width} B ")
            one.set_xticks(range(len(mine)), [str(cell["channels"]) for cell in mine])
        one.set_xlabel("memory channels")
        one.set_ylabel(unit)
        one.set_ylim(0, 1.06 * one.get_ylim()[1])
        head(one, title)
    legend_below(figure, axes[0, 0])
    return figure


def transfers_figure(found: Reproduction) -> Figure:
    """Return Figure 4: throughput over the channels for every length of a transfer."""
    figure, axes = new_figure(12, 4, columns=len(TRANSFERS))
    for one, transfer in zip(axes[0], TRANSFERS, strict=True):
        for width in WIDTHS:
            mine = [
                cell
                for cell in select(found.cells, transfer=transfer, width=width)
                if cell["table"] in ("table2", "figure4")
            ]
            draw_curves(one, range(len(mine)), mine, scale=1e-3, color=COLORS[width], label=f"{width} B ")
            one.set_xticks(range(len(mine)), [str(cell["channels"]) for cell in mine])
        one.set_xlabel("memory channels")
        one.set_ylim(0, 1.06 * one.get_ylim()[1])
        head(one, f"transfers of {transfer} bytes")
    axes[0, 0].set_ylabel("aggregate throughput [GB/s]")
    legend_below(figure, axes[0, -1])
    return figure


def steps_figure(found: Reproduction) -> Figure:
    """Return the rate at which simulated delays rise over the step, by channels, with 16-byte links."""
    figure, axes = new_figure(7, 4.2)
    one = axes[0, 0]
    for channels, color in zip((1, 2, 4), (GREY, BLUE, GREEN), strict=True):
        mine = [r for r in found.tables["grid"] if (r["link_width"], r["channels"]) == (16, channels)]
        steps, low, high = ([row[name] for row in mine] for name in ("step", "low", "high"))
        middles = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        one.fill_between(steps, low, high, color=color, alpha=0.4)
        one.plot(steps, middles, "o-", color=color, label=f"channels: {channels}, simulated")
        for cell in select(found.cells, table="table1", reading="in turn", channels=channels):
            label = f"{channels}, published (Table I)"
            one.plot(1, cell.published, "s", color=color, markerfacecolor="none", label=label)
    one.plot([32, 32], [0.04, 0.05], "-", color=ORANGE, linewidth=4, label="4, published (Fig. 3)")
    one.set_xscale("log", base=2)
    one.set_xticks(steps, [str(step) for step in steps])
    one.set_xlabel("interleaving step [packets]")
    one.set_ylabel("rate at which delays rise [packets/cycle/CPU]")
    one.set_ylim(bottom=0)
    head(one, "8 nodes, 16-byte links")
    one.legend(frameon=False, fontsize=8, ncols=2)
    return figure
