"""The answer of an analytic system model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from qmodels.systems.spec.metrics import METRICS

if TYPE_CHECKING:
    from qmodels.error_map import MeasuredError


@dataclass(frozen=True, kw_only=True, eq=False)
class SystemResult:
    """Metrics of a system with where the time goes and what fills up first.

    For a spec with array fields every value is an array of the broadcast shape.

    Parameters
    ----------
    model : str
        Which model answered.
    metrics : mapping of str to float or array
        Values by metric name, see ``qmodels.systems.spec.metrics.METRICS`` for units; also
        attributes of the result (``result.packet_latency``).
    latency_parts : mapping of str to float or array
        Shares of the mean packet latency, which they add up to. [ns]
    utilization : mapping of str to float or array
        Busy fraction of the most loaded member of each group of resources, at most 1.
    traffic_intensity : mapping of str to float or array
        Share of what it can carry that each group is offered; above 1 in an overloaded design. Networks
        fill up before their links are busy all the time, DRAM is not there while it is refreshed.
    bottleneck : str or array of str
        The group that fills up first.
    stable : bool or array of bool
        Whether every resource keeps up with the offered load.
    resources : mapping of str to float
        Traffic intensity of every single resource; only for a spec without array fields.
    validated : bool or array of bool
        Whether the design is like those on which the model's error was measured, and the model orders
        the choices there as the simulation does.
    error : mapping of str to MeasuredError
        The error against simulation on designs like this, by metric: bias, mean, largest, and where
        it was measured (`qmodels.error_map.MeasuredError`).
    doubts : mapping of str to bool or array of bool
        What speaks against it, in words; a design without any is validated.
    """

    model: str
    metrics: Mapping[str, Any]
    latency_parts: Mapping[str, Any]
    utilization: Mapping[str, Any]
    traffic_intensity: Mapping[str, Any]
    bottleneck: Any
    stable: Any
    resources: Mapping[str, float]
    validated: Any
    error: Mapping[str, MeasuredError]
    doubts: Mapping[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["metrics"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    @property
    def bottleneck_load(self) -> Any:
        """Traffic intensity of the resource that fills up first."""
        return np.max(np.broadcast_arrays(*self.traffic_intensity.values()), axis=0)[()]

    def to_pandas(self) -> Any:
        """Return the metrics as a tidy DataFrame, one row per design (needs pandas)."""
        import pandas as pd

        columns = {name: np.ravel(value) for name, value in self.metrics.items()}
        columns |= {"bottleneck": np.ravel(self.bottleneck), "stable": np.ravel(self.stable)}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        if np.ndim(self.stable):
            return f"<{self.model}: {np.size(self.stable)} designs, {int(np.sum(self.stable))} stable>"
        lines = [f"{self.model}"]
        for name, value in self.metrics.items():
            unit, error = METRICS[name].unit, self.error.get(name)
            stated = f" error {error}" if error and self.stable and error.known else ""
            lines.append(f"  {name:<36} {float(value):>12.5g} {'' if unit == '1' else unit:<5}{stated}")
        state = "stable" if self.stable else "saturated"
        load = self.traffic_intensity[str(self.bottleneck)]
        lines.append(f"  {state}; fills up first: {self.bottleneck} (load {load:.3f})")
        if self.stable and self.error:
            error = next(iter(self.error.values()))
            where = f"on {error.where}" if error.known else "is not known for such arrivals or loads"
            lines.append(f"  error: mean size, signed mean and largest against simulation {where}")
        if not self.validated:
            lines.append("  outside the range in which the model's error was measured:")
            lines += [f"    {words}" for words, applies in self.doubts.items() if applies]
        return "\n".join(lines)
