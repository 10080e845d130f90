"""The answer of the data-queueing model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from qmodels.allocator.conflict_errors import design_errors
from qmodels.answer import Answer
from qmodels.checks import FloatArray
from qmodels.systems.packets.data_queueing import DataQueueing


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DataQueueingAnswer(Answer):
    """An answer with the laws of pointer accesses.

    Parameters
    ----------
    allocation_accesses, deletion_accesses : ndarray
        Probability of 0, 1, 2, ... pointer accesses of a block's allocation and of a packet's
        deletion, along the last axis.
    """

    saved: ClassVar[tuple[str, ...]] = (*Answer.saved, "allocation_accesses", "deletion_accesses")

    allocation_accesses: FloatArray
    deletion_accesses: FloatArray


def answer_of(
    spec: DataQueueing, metrics: Any, *, load: Any, carried: Any, laws: Sequence[Any], validated: Any
) -> DataQueueingAnswer:
    """Return the answer of a design, or of a sweep, from its numbers and its laws of accesses."""
    known = "write conflicts are within 5 % of simulation in designs of another range"
    order = (
        "mean_run_length plays no part: lists are taken as used up several times, whatever their first order"
    )
    runs = np.broadcast_to(np.not_equal(spec.allocation.mean_run_length, 1.0), np.shape(load))
    return DataQueueingAnswer(
        model="data queueing, analytic",
        spec=spec,
        metrics=metrics,
        utilization={"output ports": carried},
        traffic_intensity={"output ports": load},
        bottleneck=np.full(np.shape(load), "output ports") if np.ndim(load) else "output ports",
        stable=load < 1.0,
        validated=validated,
        doubts={known: np.logical_not(validated), order: runs},
        error=design_errors(spec, validated),
        allocation_accesses=laws[0],
        deletion_accesses=laws[1],
    )


def stacked(
    spec: DataQueueing, answers: Sequence[DataQueueingAnswer], shape: tuple[int, ...]
) -> DataQueueingAnswer:
    """Return the answers of single designs as one of arrays of this shape."""

    def laws(name: str) -> FloatArray:
        each = [getattr(answer, name) for answer in answers]
        table = np.zeros((len(each), max(map(len, each), default=0)))
        for row, law in zip(table, each, strict=True):
            row[: len(law)] = law
        return table.reshape(*shape, table.shape[1])

    def column(values: Sequence[Any], kind: type) -> Any:
        return np.array(values, dtype=kind).reshape(shape)

    return answer_of(
        spec,
        {name: column([answer[name] for answer in answers], float) for name in spec.metric_names.both},
        load=column([answer.traffic_intensity["output ports"] for answer in answers], float),
        carried=column([answer.utilization["output ports"] for answer in answers], float),
        laws=(laws("allocation_accesses"), laws("deletion_accesses")),
        validated=column([answer.validated for answer in answers], bool),
    )
