"""The answer of the NUMA model."""

from __future__ import annotations

from dataclasses import dataclass

from qmodels.answer import Answer
from qmodels.checks import FloatArray
from qmodels.memory.numa.bounds import NumaBounds


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NumaAnswer(Answer):
    """Metrics of a NUMA machine, with its bounds and where it is busy."""

    bounds: NumaBounds  # Bounds of the execution time, in cycles
    core_time: FloatArray  # When each core is done; 0 for idle ones. [ns]
    # core_busy, channel_busy, controller_busy: Fraction of the execution time that each computes, has a
    # command, serves an access. Where any channel will do, all channels together
    core_busy: FloatArray
    channel_busy: FloatArray
    controller_busy: FloatArray

    @property
    def regime(self) -> str:
        """Return "compute" if the cores are the bottleneck, otherwise "transfer"."""
        return "compute" if self.bottleneck == "cores" else "transfer"

    @property
    def notes(self) -> tuple[str, ...]:
        """What bounds the execution time."""
        low, upper = (value / self.spec.clock_ghz for value in (self.bounds.low, self.bounds.upper))
        return (
            *super().notes,
            f"{self.regime} regime; execution time between {low:.5g} and {upper:.5g} ns",
            f"double buffering can gain a factor of {self.bounds.overlap_speedup:.3g} at most",
        )
