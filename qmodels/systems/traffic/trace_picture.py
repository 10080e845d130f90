"""The picture of a described trace: rate over time, dispersion over time scales, sizes, gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels.systems.traffic.trace_statistics import WINDOWS, blocks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FINE = 200
"""Steps of the rate over time."""

BYTES, PACKETS, PLAIN = "#1f6fb4", "#d1610e", "#8a9097"


def trace_figure(found: Any) -> Any:
    """Return the figure of a trace."""
    from qmodels.systems.spec.pictures import Shown

    figure = Shown(figsize=(11, 7), layout="constrained")
    axes = figure.subplots(2, 2)
    for one, draw in zip(axes.flat, (_rate, _dispersion, _sizes, _gaps), strict=True):
        one.spines[["top", "right"]].set_visible(False)
        one.grid(color="#e8e8e8", linewidth=0.6)
        one.set_axisbelow(True)
        draw(one, found)
    figure.suptitle(found.title, fontsize=11, x=0.01, ha="left", fontweight="bold")
    return figure


def _unit(longest: float) -> tuple[str, float]:
    """Return the unit of time that suits a longest time [ns], and its length [ns]."""
    units = (("s", 1e9), ("ms", 1e6), ("us", 1e3))
    return next(((unit, ns) for unit, ns in units if longest >= ns), ("ns", 1.0))


def _rate(axes: Axes, found: Any) -> None:
    unit, ns = _unit(found.duration_ns)
    steps = min(FINE, max(WINDOWS, found.packets // 20 // WINDOWS * WINDOWS))
    octets = blocks_of(found.times_ns, found.bytes, found.duration_ns, steps)[1]
    for values, width, color, label in (
        (octets / octets.mean(), 0.7, PLAIN, f"in {steps} steps"),
        (found.statistics.byte_share, 1.8, BYTES, f"in {WINDOWS} windows"),
    ):
        edges = np.linspace(0, found.duration_ns / ns, values.size + 1)
        axes.stairs(values * found.mean_gbps, edges, color=color, linewidth=width, label=label, baseline=None)
    axes.axhline(found.mean_gbps, color="black", linewidth=0.8, linestyle=":", label="mean")
    axes.set(xlabel=f"time [{unit}]", ylabel="bytes offered [Gb/s]", xlim=(0, found.duration_ns / ns))
    axes.set_ylim(bottom=0)
    _title(axes, f"Rate over time: peak to mean {found.statistics.peak_to_mean:.2f}")
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper right")
    axes.set_ylim(top=1.18 * axes.get_ylim()[1])


def _dispersion(axes: Axes, found: Any) -> None:
    stats = found.statistics
    if stats.scale_ns.size:
        unit, ns = _unit(stats.scale_ns[-1])
        x = stats.scale_ns / ns
        # Two standard errors of a variance from the blocks of a scale.
        blocks = np.maximum(found.duration_ns / stats.scale_ns - 1, 1)
        error = np.minimum(2 * np.sqrt(2 / blocks), 0.95)
        for values, color, marker, label in (
            (stats.byte_dispersion, BYTES, "o", "bytes"),
            (stats.packet_dispersion, PACKETS, "s", "packets"),
        ):
            axes.plot(x, values, color=color, marker=marker, markersize=4, linewidth=1.2, label=label)
            axes.fill_between(x, values * (1 - error), values * (1 + error), color=color, alpha=0.15, lw=0)
        for level, color in ((1 + found.size_scv, BYTES), (1.0, PACKETS)):
            axes.axhline(level, color=color, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(f"time scale [{unit}]")
        axes.legend(frameon=False, fontsize=8, loc="upper left", title="dotted: Poisson", title_fontsize=8)
    axes.set_ylabel("index of dispersion")
    grown = "levelled off" if np.isfinite(found.slowest_ns) else "not levelled off"
    _title(axes, f"Bursts over time scales: {grown}" if stats.scale_ns.size else "Too few packets for bursts")


def _sizes(axes: Axes, found: Any) -> None:
    sizes, counts = np.unique(found.bytes, return_counts=True)
    for weights, color, label in ((counts, PACKETS, "of packets"), (counts * sizes, BYTES, "of bytes")):
        share = np.cumsum(weights) / weights.sum()
        axes.step([0, *sizes], [0, *share], where="post", color=color, label=label)
    axes.set(xlabel="size [bytes]", ylabel="share up to a size", ylim=(0, 1.02))
    axes.legend(frameon=False, fontsize=8, loc="best")
    row = f"{found.train:.3g} of one size in a row, {found.train_alone:.3g} if independent"
    _title(axes, f"Sizes: mean {found.mean_bytes:.4g} bytes; {row}")


def _gaps(axes: Axes, found: Any) -> None:
    gaps = np.sort(np.diff(found.times_ns)) * found.packet_rate
    some = np.linspace(0, gaps.size - 1, min(gaps.size, 2000)).astype(int)
    points = np.union1d(some, np.arange(max(gaps.size - 500, 0), gaps.size))  # all of the end
    beyond = 1 - (points + 0.5) / gaps.size
    low = max(min(0.5 / gaps.size, 0.01), 1e-5)
    axes.plot(gaps[points], beyond, color=BYTES, linewidth=1.4, label="recorded")
    x = np.linspace(0, -np.log(low), 200)
    axes.plot(x, np.exp(-x), color="black", linewidth=0.8, linestyle=":", label="exponential")
    axes.set_yscale("log")
    axes.set(xlabel="gap [mean gaps]", ylabel="share of gaps beyond", ylim=(low, 1.3))
    if gaps[-1] > 20 * x[-1]:
        axes.set_xscale("log")
    else:
        axes.set_xlim(left=0)
    axes.legend(frameon=False, fontsize=8)
    _title(axes, f"Gaps: SCV {found.gap_scv:.3g}, correlation with the next {found.gap_correlation:.2f}")


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, fontsize=9, loc="left")
