"""What the simulation of a system found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from validate.estimates.simulation import Simulation
from validate.estimates.statistics import Estimate


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SystemSimulation(Simulation):
    """Estimates of the steady state of a system.

    Parameters
    ----------
    metrics : mapping of str to Estimate
        See `qmodels.systems.composed.system.System`: the whole, ``[flow]`` where there are several, and
        ``visit_latency[part]``.
    numbers : mapping of str to Estimate
        Jobs of each flow in the system and visits under way in each part, means over time.
    visit_rates : mapping of str to Estimate
        Visits to each part that end, per time. [1/ns]
    waiting_for : tuple of str
        The parts that jobs waited for when no event was left: each waited for another; empty if that
        was never so.
    overloaded : tuple of str
        The flows whose jobs piled up for as long as the runs lasted.
    """

    numbers: Mapping[str, Estimate] = field(default_factory=dict)
    visit_rates: Mapping[str, Estimate] = field(default_factory=dict)
    waiting_for: tuple[str, ...] = ()
    overloaded: tuple[str, ...] = ()

    saved: ClassVar[tuple[str, ...]] = (
        *Simulation.saved, "numbers", "visit_rates", "waiting_for", "overloaded",
    )  # fmt: skip

    @property
    def notes(self) -> tuple[str, ...]:
        """Which flows are overloaded or stuck, and what speaks against the intervals."""
        lines = [f"overloaded: jobs of {', '.join(self.overloaded)} pile up"] if self.overloaded else []
        if self.waiting_for:
            lines.append(f"stuck: every job waits for another, at {', '.join(self.waiting_for)}")
        return (*lines, *super().notes)
