"""Numbers of a recorded stream: rate by window, dispersion over time scales, steadiness, sizes and gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels.checks import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


WINDOWS = 20
"""Equal windows whose rates are laid beside the mean."""

SCALE = 4
"""Ratio of one time scale to the next."""

BLOCKS = 10
"""Least number of blocks that a dispersion is estimated from."""


LEVEL = 0.01
"""How often each of the two tests calls a steady stream unsteady."""

WINDOW_BLOCKS = 5
"""Blocks of a window, whose spread inside windows is the measure."""

LEAST_PACKETS = 10
"""Packets that a block must hold on average for the tests to be made."""

GROWTH = 2.5
"""Standard errors by which a dispersion must be larger to count as grown."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceStatistics:
    r"""Statistics of a recorded stream beyond its mean rate.

    With :math:`N(t)` packets and :math:`Y(t)` bytes that arrive in :math:`t`, and sizes :math:`V`,
    the indices of dispersion are

    .. math:: I(t) = \frac{\mathrm{Var}\, N(t)}{\mathrm E\, N(t)}, \qquad
              I_w(t) = \frac{\mathrm{Var}\, Y(t)}{\mathrm E[V]\, \mathrm E\, Y(t)}

    [1]_, estimated from blocks side by side. Independent packets (Poisson) have 1 and
    :math:`1 + c_V^2` at every scale; an index that keeps growing says that bursts, or a changing
    rate, outlast the scale.

    References
    ----------
    .. [1] K. W. Fendick, W. Whitt, "Measurements and approximations to describe the offered traffic
       and predict the average workload in a single-server queue", Proc. IEEE 77(1), 1989 (recalled,
       equation numbers not checked).
    """

    window_ns: float  # length of a window, a twentieth of the recording [ns]
    # packet_share, byte_share: packets and bytes of each window over the mean of all windows: 1 in a steady
    # stream.
    packet_share: FloatArray
    byte_share: FloatArray
    scale_ns: FloatArray  # time scales, from the mean gap in steps of 4 up to a tenth of the recording [ns]
    # packet_dispersion, byte_dispersion: index of dispersion at each scale.
    packet_dispersion: FloatArray
    byte_dispersion: FloatArray

    @property
    def peak_to_mean(self) -> float:
        """Bytes of the busiest window over the mean of all windows."""
        return float(self.byte_share.max())


def trace_statistics(times_ns: FloatArray, sizes: IntArray) -> TraceStatistics:
    """Describe a stream of packets, see `TraceStatistics`.

    ``times_ns``: arrival times from 0, nondecreasing, the last above 0 [ns]; ``sizes``: sizes [bytes].
    """
    duration = float(times_ns[-1])
    packets, octets = blocks_of(times_ns, sizes, duration, WINDOWS)
    mean_gap = duration / (times_ns.size - 1)
    steps = int(np.log(max((times_ns.size - 1) / BLOCKS, 0.5)) // np.log(SCALE)) + 1
    scales: FloatArray = mean_gap * np.power(float(SCALE), np.arange(steps))
    dispersion = np.empty((2, steps))
    for k, scale in enumerate(scales):
        count = int((times_ns.size - 1) / SCALE**k)
        number, work = blocks_of(times_ns, sizes, count * scale, count)
        dispersion[:, k] = number.var(ddof=1) / number.mean(), work.var(ddof=1) / work.mean() / sizes.mean()
    return TraceStatistics(
        window_ns=duration / WINDOWS,
        packet_share=packets / packets.mean(),
        byte_share=octets / octets.mean(),
        scale_ns=scales,
        packet_dispersion=dispersion[0],
        byte_dispersion=dispersion[1],
    )


def blocks_of(times_ns: FloatArray, sizes: IntArray, end: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Return packets and bytes of n equal blocks of the time from 0 to an end, which is included."""
    packets, _ = np.histogram(times_ns, bins=count, range=(0.0, end))
    octets, _ = np.histogram(times_ns, bins=count, range=(0.0, end), weights=sizes)
    return packets.astype(float), octets.astype(float)


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    r"""Two tests of whether the bytes of a stream come at one rate.

    Of K windows of m blocks each, with mean squares between windows and inside them, F = MSB / MSW has under
    one rate, blocks being independent and about normal, the distribution F(K - 1, K (m - 1)); of the windows
    of the two halves, the difference of their means has Student's t with K - 2 degrees of freedom. The spread
    is the stream's own, so bursts shorter than a block do not look like a change. Bursts that outlast a
    block do: on the scale of the windows they are one.

    >>> Steadiness(windows_p=0.4, halves_p=0.002, change=0.5).steady
    False
    """

    # Probability, were the rate one, that windows differ as much; None for too few packets.
    windows_p: float | None
    halves_p: float | None  # the same of the two halves
    change: float  # bytes of the second half over those of the first

    @property
    def steady(self) -> bool | None:
        """Whether both tests accept one rate at the `LEVEL`; None where they cannot tell."""
        if self.windows_p is None or self.halves_p is None:
            return None
        return min(self.windows_p, self.halves_p) >= LEVEL


def steadiness(blocks: FloatArray, packets: int) -> Steadiness:
    """Test the bytes of blocks, `WINDOW_BLOCKS` to each of an even number of windows, of n packets."""
    table = blocks.reshape(-1, WINDOW_BLOCKS)
    windows = table.mean(axis=1)
    first, second = np.split(windows, 2)
    change = float(second.sum() / first.sum()) if first.sum() > 0 else float("inf")
    if packets < LEAST_PACKETS * table.size:
        return Steadiness(windows_p=None, halves_p=None, change=change)
    between = WINDOW_BLOCKS * float(windows.var(ddof=1))
    inside = float(table.var(axis=1, ddof=1).mean())
    spread = float(first.var(ddof=1) + second.var(ddof=1)) / 2 * (2 / first.size)
    freedom = (windows.size - 1, windows.size * (WINDOW_BLOCKS - 1))
    from scipy.special import fdtrc, stdtr

    return Steadiness(
        windows_p=float(fdtrc(*freedom, _ratio(between, inside))),
        halves_p=float(2 * stdtr(windows.size - 2, -np.sqrt(_ratio((first - second).mean() ** 2, spread)))),
        change=change,
    )


def _ratio(above: float, below: float) -> float:
    """Return a quotient; of a stream as regular as a clock, where nothing varies, 0."""
    return above / below if below > 0 else (np.inf if above > 0 else 0.0)


def correlation(values: FloatArray, lag: int) -> float:
    """Return the correlation of values at a distance."""
    if values.size < lag + 2:
        return float("nan")
    around = values - values.mean()
    whole = float(around @ around)
    return float(around[:-lag] @ around[lag:]) / whole if whole > 0 else 0.0


def rate_error(found: TraceStatistics, packets: int) -> float:
    """Return half of the 95 % interval of the byte rate over the rate."""
    if not found.byte_dispersion.size:
        return float("inf")
    return float(1.96 * np.sqrt(found.byte_dispersion[-2:].max() / packets))


def slowest(found: TraceStatistics, duration: float) -> float:
    """Return the scale from which on the dispersion of bytes grows no more; infinite for the last two."""
    values = found.byte_dispersion
    most = np.exp(GROWTH * np.sqrt(2 / np.maximum(duration / found.scale_ns - 1, 1)))
    for k in range(values.size - 2):
        if np.all(values[k + 1 :] <= most[k + 1 :] * values[k]):
            return float(found.scale_ns[k])
    return float("inf")


def exponential_distance(gaps: FloatArray) -> float:
    """Return the Kolmogorov distance of gaps from the exponential law of their mean."""
    law = -np.expm1(-np.sort(gaps) / gaps.mean())
    steps = np.arange(gaps.size + 1) / gaps.size
    return float(max((law - steps[:-1]).max(), (steps[1:] - law).max()))


def resolution(times: FloatArray) -> float:
    """Return the largest power of ten, from 1 s to 1 ps, of which all times [ns] are multiples."""
    for power in range(9, -4, -1):
        step = 10.0**power
        for some in (times[:100], times):
            # Times of a float are this good, however far from the first.
            if np.any(np.abs(some - np.rint(some / step) * step) > 1e-5 + 1e-13 * some):
                break
        else:
            return step
    return 0.0


def time_text(ns: float) -> str:
    """Return a time in a unit that suits it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f"{ns / size:.4g} {unit}"
    return f"{ns:.4g} ns"


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
