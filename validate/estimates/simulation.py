"""What a simulation found, the same for every kind of system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from qmodels.systems.spec.result import Result
from qmodels.systems.spec.saving import numbers, spec_of
from validate.estimates.intervals import Estimate


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Simulation(Result):
    """Estimates of a system's metrics, each with its interval.

    Where the system does not keep up, times are ``inf`` and ``stable`` is False; where the runs cannot tell,
    ``stable`` is None, times are those of the runs, and nothing is validated.
    """

    saved_as: ClassVar[str] = "simulation"

    # spec, metrics, latency_parts, utilization, bottleneck, stable: See `qmodels.systems.spec.result.Result`;
    # values are estimates
    spec: Any
    metrics: Mapping[str, Estimate]
    latency_parts: Mapping[str, Any] = field(default_factory=dict)
    utilization: Mapping[str, Any] = field(default_factory=dict)
    bottleneck: str = ""
    stable: bool | None = True
    short: bool = False  # Whether the runs were too short for their warm-up or their intervals
    # seed, replications: What was run
    seed: int
    replications: int
    # What was simulated, by its name: ``{"packets": 20000, "events": 1200000}``
    effort: Mapping[str, int] = field(default_factory=dict)
    # Wall-clock time from the start of the first run to the end of the last; 0 if all were in a store
    seconds: float
    error: Mapping[str, Any] = field(default_factory=dict, init=False)
    traffic_intensity: Mapping[str, Any] = field(default_factory=dict, init=False)

    saved: ClassVar[tuple[str, ...]] = (
        "metrics", "latency_parts", "utilization", "bottleneck", "stable", "short", "seed", "replications",
        "effort", "seconds",
    )  # fmt: skip

    @property
    def confidence(self) -> float:
        """Coverage of the intervals."""
        return next(iter(self.metrics.values())).confidence

    @property
    def validated(self) -> bool:
        """Whether nothing is known that speaks against the intervals."""
        known = self.stable is not None and not self.short
        return known and all(estimate.valid for estimate in self.metrics.values())

    @property
    def title(self) -> str:
        """What was run."""
        effort = ", ".join(f"{count} {name}" for name, count in self.effort.items())
        return (
            f"{type(self.spec).__name__}, simulated: {self.replications} replications"
            f"{', ' if effort else ''}{effort}, seed {self.seed}; {self.confidence:.4g} intervals"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What speaks against the intervals."""
        doubts = dict.fromkeys(e.doubt for e in self.metrics.values() if e.doubt)
        lines = [f"? no upper end, and a best value that is probably too low: {words}" for words in doubts]
        return (*lines, *(["too short for its warm-up or its intervals"] if self.short else []))

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Return what `save` wrote."""
        values = {name: _estimates(numbers(document[name])) for name in cls.saved}
        return cls(spec=spec_of(document), **values)


def _estimates(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"estimate"}:
        return Estimate(**value["estimate"])
    return {name: _estimates(one) for name, one in value.items()}
