"""The answer of the data-queueing model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.allocator.conflict_errors import conflict_errors
from qmodels.checks import FloatArray
from qmodels.error_map import MeasuredError
from qmodels.systems.packets.data_queueing import DATA_QUEUEING_METRICS


@dataclass(frozen=True, kw_only=True, eq=False)
class DataQueueingAnswer:
    """Metrics of a data-queueing module; for a spec with array fields all of the broadcast shape.

    Parameters
    ----------
    metrics : mapping of str to float or array
        Values by the names of `qmodels.systems.packets.data_queueing.DATA_QUEUEING_METRICS`, which has
        their units; also attributes of the answer.
    allocation_accesses, deletion_accesses : ndarray
        Probability of 0, 1, 2, ... pointer accesses of a block's allocation and of a packet's
        deletion, along the last axis.
    stable : bool or array of bool
        Whether the load is below what the output ports drain.
    validated : bool or array of bool
        Whether the design lies in the range in which the model was compared with simulation, and found good.
    error : mapping of str to MeasuredError
        By metric, those of designs inside that range, or outside where this one is, with as many trials.
    """

    metrics: Mapping[str, Any]
    allocation_accesses: FloatArray
    deletion_accesses: FloatArray
    stable: Any
    validated: Any
    error: Mapping[str, MeasuredError]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["metrics"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no metric {name!r}") from None

    def __repr__(self) -> str:
        if np.ndim(self.stable):
            return f"<data queueing: {np.size(self.stable)} designs, {int(np.sum(self.stable))} stable>"
        lines = ["data queueing"]
        for name, value in self.metrics.items():
            unit = DATA_QUEUEING_METRICS[name].unit
            stated = f"  error {self.error[name]}" if name in self.error else ""
            lines.append(f"  {name:<36} {float(value):>12.5g} {'' if unit == '1' else unit}{stated}".rstrip())
        lines.append("  stable" if self.stable else "  overloaded")
        if not self.validated:
            lines.append("  outside the range in which the model is validated")
        lines += [f"  error: against simulation, {error.where}" for error in self.error.values()]
        return "\n".join(lines)

    def to_pandas(self) -> Any:
        """Return the metrics as a tidy DataFrame, one row per design (needs pandas)."""
        import pandas as pd

        columns = {name: np.ravel(value) for name, value in self.metrics.items()}
        return pd.DataFrame(
            columns | {"stable": np.ravel(self.stable), "validated": np.ravel(self.validated)}
        )


def stacked(
    answers: Sequence[DataQueueingAnswer], shape: tuple[int, ...], *, trials: Any
) -> DataQueueingAnswer:
    """Return the answers of single designs, with so many trials, as one of arrays of this shape."""

    def laws(each: list[FloatArray]) -> FloatArray:
        table = np.zeros((len(each), max((len(law) for law in each), default=0)))
        for row, law in zip(table, each, strict=True):
            row[: len(law)] = law
        return table.reshape(*shape, -1) if each else table.reshape(*shape, 0)

    validated = np.array([answer.validated for answer in answers], dtype=bool).reshape(shape)
    return DataQueueingAnswer(
        metrics={
            name: np.array([answer.metrics[name] for answer in answers], dtype=float).reshape(shape)
            for name in DATA_QUEUEING_METRICS
        },
        allocation_accesses=laws([answer.allocation_accesses for answer in answers]),
        deletion_accesses=laws([answer.deletion_accesses for answer in answers]),
        stable=np.array([answer.stable for answer in answers], dtype=bool).reshape(shape),
        validated=validated,
        error=conflict_errors(trials, validated),
    )
