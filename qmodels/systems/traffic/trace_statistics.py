"""How steady a recorded stream is: its rate window by window, and its dispersion over time scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray, IntArray

WINDOWS = 20
"""Equal windows whose rates are laid beside the mean."""

SCALE = 4
"""Ratio of one time scale to the next."""

BLOCKS = 10
"""Least number of blocks that a dispersion is estimated from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TraceStatistics:
    r"""What of a recorded stream its mean rate hides.

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
    """Return packets and bytes of so many equal blocks of the time from 0 to an end, which is included."""
    packets = np.histogram(times_ns, bins=count, range=(0.0, end))[0]
    return packets.astype(float), np.histogram(times_ns, bins=count, range=(0.0, end), weights=sizes)[0]
