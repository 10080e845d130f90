"""What the simulation of a packet processor found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from validate.estimates.simulation import Simulation
from validate.estimates.statistics import Estimate


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PacketSimulation(Simulation):
    """Estimates with the load of every single resource; without closed runs no saturation data rate.

    Parameters
    ----------
    saturation_utilization : mapping of str to Estimate
        Busy fraction of the busiest member of each group when packets are always waiting (empty
        without closed runs).
    resources, waiting : mapping of str to Estimate
        Busy fraction of every single resource, and mean time a job waits for it. [1, ns]
    growth : Estimate
        Packets by which the number under way grew for each that arrived; about 0 if stable.
    """

    saved: ClassVar[tuple[str, ...]] = (
        *Simulation.saved, "saturation_utilization", "resources", "waiting", "growth",
    )  # fmt: skip

    saturation_utilization: Mapping[str, Estimate]
    resources: Mapping[str, Estimate]
    waiting: Mapping[str, Estimate]
    growth: Estimate
