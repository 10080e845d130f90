"""The answer of the data-queueing model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.systems.packets.data_queueing import DataQueueing
from qmodels.systems.packets.data_queueing_traffic import LineRate
from qmodels.systems.spec.answer import Answer

LAWS = ("allocation_accesses", "deletion_accesses")


def answer_of(spec: DataQueueing, metrics: Any, *, load: Any, carried: Any, laws: Sequence[Any]) -> Answer:
    """Return the answer of a design, or of a sweep, from its numbers and its laws of accesses."""
    order = (
        "mean_run_length plays no part: lists are taken as used up several times, whatever their first order"
    )
    rows = "short lists of operations of whole packets are modelled for one input at line rate and one output"
    overloaded = (spec.traffic.operations == "packet") & (np.asarray(load) > 1.0)
    rows = "short lists of operations of whole packets are modelled for one input at line rate and one output"
    overloaded = (spec.traffic.operations == "packet") & (np.asarray(load) > 1.0)
    runs = np.broadcast_to(np.not_equal(spec.allocation.mean_run_length, 1.0), np.shape(load))
    return Answer(
        model="data queueing, analytic",
        spec=spec,
        metrics=metrics,
        utilization={"output ports": carried},
        traffic_intensity={"output ports": load},
        bottleneck=np.full(np.shape(load), "output ports") if np.ndim(load) else "output ports",
        stable=load < 1.0,
        doubts={
            order: runs,
            rows: np.broadcast_to(overloaded & (not rows_are_modelled(spec)), np.shape(load)),
        },
        details=dict(zip(LAWS, laws, strict=True)),
    )


def rows_are_modelled(spec: DataQueueing) -> bool:
    """Return whether short lists under operations of whole packets are those of `packet_list`."""
    traffic, allocation = spec.traffic, spec.allocation
    return (
        allocation.admission == "lossy"
        and allocation.policy == "lists"
        and isinstance(traffic.arrivals, LineRate)
        and traffic.input_ports == traffic.output_ports == 1
        and traffic.service != "arrival-order"
        and bool(np.all(np.asarray(spec.data.busy_accesses) == 1))
    )


def stacked(spec: DataQueueing, answers: Sequence[Answer], shape: tuple[int, ...]) -> Answer:
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
        laws=[laws(name) for name in LAWS],
    )
