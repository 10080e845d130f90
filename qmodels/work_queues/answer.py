"""The answer of the work-queue model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from qmodels.answer import Answer
from qmodels.checks import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class WorkQueuesAnswer(Answer):
    """How long a set of tasks takes, and where the time goes; it always comes to an end."""

    # What no order of the tasks can beat: ``"work"`` over all cores, the busiest ``"memory"``, and the
    # longest ``"path"`` of tasks that find each other; the largest is the bottleneck. [ns]
    lower_bounds: Mapping[str, float]
    cluster_tasks: FloatArray  # Tasks that the cores of each cluster run

    @property
    def notes(self) -> tuple[str, ...]:
        """What no order of the tasks can beat."""
        bounds = ", ".join(f"{name} {value:.4g}" for name, value in self.lower_bounds.items())
        return (*super().notes, f"execution time at least {bounds} ns")
