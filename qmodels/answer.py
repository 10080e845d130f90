"""The answer of an analytic model, the same for every kind of system."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from qmodels.systems.spec.result import Result
from qmodels.systems.spec.saving import numbers, spec_of


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answer(Result):
    """What a model says of one system, or of a sweep: then every value has the shape of the sweep.

    Overload is an answer: times are ``inf``, ``stable`` is False.

    Parameters
    ----------
    model : str
        Which model answered, and whether it is exact.
    spec : object
        What was asked.
    metrics, latency_parts, utilization, traffic_intensity, bottleneck, stable, validated, error
        See `qmodels.systems.spec.result.Result`.
    doubts : mapping of str to bool or array of bool
        What speaks against the numbers, in words; a system without any is validated.
    """

    saved_as: ClassVar[str] = "answer"

    model: str
    spec: Any
    metrics: Mapping[str, Any]
    latency_parts: Mapping[str, Any] = field(default_factory=dict)
    utilization: Mapping[str, Any] = field(default_factory=dict)
    traffic_intensity: Mapping[str, Any] = field(default_factory=dict)
    bottleneck: Any = ""
    stable: Any = True
    validated: Any = True
    error: Mapping[str, Any] = field(default_factory=dict)
    doubts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Model and, of a sweep, its size."""
        points = f", {'x'.join(map(str, self.shape))} points (least .. largest)" if self.shape else ""
        return self.model + points

    @property
    def notes(self) -> tuple[str, ...]:
        """Doubts that apply to (some of) the numbers."""
        return tuple(words for words, applies in self.doubts.items() if np.any(applies))

    @property
    def bottleneck_load(self) -> Any:
        """Traffic intensity of the resource that fills up first, or its busy fraction; 0 where none has."""
        loads = self.traffic_intensity or self.utilization
        return np.max(np.broadcast_arrays(*loads.values()), axis=0)[()] if loads else 0.0

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Return what `save` wrote."""
        values = {name: numbers(document[name]) for name in cls.saved}
        return cls(
            model=document["title"],
            spec=spec_of(document),
            doubts=dict.fromkeys(document["notes"], True),
            **values,
        )


def load(path: str | os.PathLike[str]) -> Answer:
    """Return an answer that was saved, see `Answer.load`."""
    return Answer.load(path)
