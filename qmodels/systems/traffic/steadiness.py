"""Whether a recorded stream has one rate: its windows and halves tested against the spread inside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qmodels.checks import FloatArray

LEVEL = 0.01
"""How often each of the two tests calls a steady stream unsteady."""

BLOCKS = 5
"""Blocks of a window, whose spread inside windows is the measure."""

LEAST = 10
"""Packets that a block must hold on average for the tests to be made."""


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
    """Test the bytes of blocks, an even number of windows of `BLOCKS` each, of so many packets in all."""
    table = blocks.reshape(-1, BLOCKS)
    windows = table.mean(axis=1)
    first, second = np.split(windows, 2)
    change = float(second.sum() / first.sum()) if first.sum() > 0 else float("inf")
    if packets < LEAST * table.size:
        return Steadiness(windows_p=None, halves_p=None, change=change)
    between = BLOCKS * float(windows.var(ddof=1))
    inside = float(table.var(axis=1, ddof=1).mean())
    spread = float(first.var(ddof=1) + second.var(ddof=1)) / 2 * (2 / first.size)
    freedom = (windows.size - 1, windows.size * (BLOCKS - 1))
    from scipy.special import fdtrc, stdtr

    return Steadiness(
        windows_p=float(fdtrc(*freedom, _ratio(between, inside))),
        halves_p=float(2 * stdtr(windows.size - 2, -np.sqrt(_ratio((first - second).mean() ** 2, spread)))),
        change=change,
    )


def _ratio(above: float, below: float) -> float:
    """Return a quotient; of a stream as regular as a clock, where nothing varies, 0."""
    return above / below if below > 0 else (np.inf if above > 0 else 0.0)
