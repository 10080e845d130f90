"""The analytic answer for a DRAM system."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.error_map import MeasuredError
from qmodels.systems.memory.dram_system import DRAM_METRICS, DramSystem


@dataclass(frozen=True, kw_only=True, eq=False)
class DramAnswer:
    """Latency, bandwidth and limits of a DRAM system; arrays where the arrival rate is one.

    Parameters
    ----------
    spec : DramSystem
        What was asked.
    metrics : mapping of str to float or array
        By name, see `DRAM_METRICS`; also attributes of the answer.
    latency_parts : mapping of str to float or array
        Shares of the mean read latency, which they add up to: ``fixed`` (controller, column access,
        burst), ``row`` (opening it), waiting for the ``bank``, for the rank's row commands
        (``activation``: tFAW, tRRD), for the ``bus``, for ``refresh`` while it lasts, and behind
        batches of writes (``queue``). In order, ``bank`` is what the banks add to the wait for the bus
        alone. [cycles]
    limits : mapping of str to float
        Accesses per cycle that each resource of a channel can sustain; ``refresh`` is the smallest of
        the others less what refreshes take. [blocks/cycle]
    limited_by : str
        The smallest of them, refresh aside.
    saturation_rate : float
        Accesses of the whole system at which its most loaded channel is full. [blocks/cycle]
    channel_share : array
        Share of the accesses of each channel.
    stable : bool or array of bool
        Whether all channels keep up.
    validated : bool or array of bool
        Whether the point lies in the range in which the model's error was measured.
    error : mapping of str to MeasuredError
        By metric, the error at such loads: of random reads of DDR4-3200 against our simulator and two others,
        otherwise of a sample of systems against ours, the largest beyond what the simulation leaves open;
        empty or NaN where nothing was measured.
    laws : callable
        Of a point by its number: probabilities of the read latencies 0, 1, 2, ... cells, and their width in
        cycles.
    """

    spec: DramSystem
    metrics: Mapping[str, Any]
    latency_parts: Mapping[str, Any]
    limits: Mapping[str, float]
    limited_by: str
    saturation_rate: float
    channel_share: FloatArray
    stable: Any
    validated: Any
    error: Mapping[str, MeasuredError]
    laws: Callable[[int], tuple[FloatArray, int]] = field(repr=False)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["metrics"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    def quantile(self, probability: float) -> Any:
        """Return a quantile of the read latency; ``inf`` where a channel is overloaded. [cycles].

        Parameters
        ----------
        probability : float
            Its order, in [0, 1).

        Raises
        ------
        ValueError
            If the probability is not in that range.
        """
        checks.probability("probability", probability)
        if probability == 1:
            raise ValueError("probability must be below 1, got 1")
        return quantiles(self.laws, self.stable, (probability,))[0]

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each metric and part of the latency of a single point."""
        rows = [
            {"metric": name, "unit": DRAM_METRICS[name].unit, "value": float(value)}
            for name, value in self.metrics.items()
        ]
        rows += [
            {"metric": f"latency part {name}", "unit": "cycles", "value": float(value)}
            for name, value in self.latency_parts.items()
        ]
        return rows

    def to_pandas(self) -> Any:
        """Return metrics and parts as a tidy DataFrame, one row per load (needs pandas)."""
        import pandas as pd

        columns = {"arrival_rate": np.ravel(np.asarray(self.spec.arrival_rate, dtype=float))}
        columns |= {name: np.ravel(value) for name, value in self.metrics.items()}
        columns |= {f"latency_{name}": np.ravel(value) for name, value in self.latency_parts.items()}
        columns |= {"stable": np.ravel(self.stable), "validated": np.ravel(self.validated)}
        return pd.DataFrame(columns)

    def __repr__(self) -> str:
        limit = f"limited by {self.limited_by} to {self.spec.gbytes(self.saturation_rate):.4g} GB/s"
        if np.ndim(self.stable):
            return f"<DRAM model: {np.size(self.stable)} loads, {int(np.sum(self.stable))} stable; {limit}>"
        lines = ["DRAM model"]
        for row in self.rows():
            unit = "" if row["unit"] == "1" else f" {row['unit']}"
            error = self.error.get(row["metric"])
            shown = f"  error {error}" if error and self.stable and error.known else ""
            lines.append(f"  {row['metric']:<28} {row['value']:>12.5g}{unit}{shown}")
        lines.append(f"  {'stable' if self.stable else 'overloaded'}; {limit}")
        if not self.validated:
            lines.append("  outside the range in which the model's error was measured")
        return "\n".join(lines)


def quantiles(
    laws: Callable[[int], tuple[FloatArray, int]], stable: Any, probabilities: tuple[float, ...]
) -> list[Any]:
    """Return quantiles of the latencies of all points, each of the shape of ``stable``."""
    shape = np.shape(stable)
    values = np.full((len(probabilities), int(np.prod(shape))), np.inf)
    for k in np.flatnonzero(stable):
        law, cell = laws(int(k))
        below = np.cumsum(law)
        values[:, k] = cell * np.searchsorted(below, np.multiply(probabilities, below[-1]))
    return [row.reshape(shape)[()] for row in values]
