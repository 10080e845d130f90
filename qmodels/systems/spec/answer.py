"""The answer to a spec: one class for every kind of system and both verbs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.systems.spec.metrics import DETAILS, full_name
from qmodels.systems.spec.result import SAVED, Result
from qmodels.systems.spec.store import numbers, read, spec_of

RUN = ("short", "seed", "replications", "effort", "seconds")
"""Fields saved of the runs of a simulation."""


class Metrics(dict[str, Any]):
    """Metrics by name; the end of a name that only one has is enough, see `full_name`.

    >>> Metrics({"packet_latency": 300.0, "packet_latency_p99": 700.0})["latency_p99"]
    700.0
    """

    def __missing__(self, name: str) -> Any:
        if (full := full_name(name, self)) in self:
            return self[full]
        raise KeyError(name)


class Later(Mapping[str, Any]):
    """Values by name, each of which a function returns when it is first read.

    >>> squares = Later(("one", "two"), {"one": 1, "two": 4}.get)
    >>> squares["two"], squares
    (4, {'one': 1, 'two': 4})
    """

    def __init__(self, names: Iterable[str], value: Callable[[str], Any]) -> None:
        self._found: dict[str, Any] = dict.fromkeys(names, self)
        self._value: Callable[[str], Any] | None = value

    def __getitem__(self, name: str) -> Any:
        name = name if name in self._found else full_name(name, self._found)
        if self._found[name] is self and self._value is not None:
            self._found[name] = self._value(name)
            if not any(found is self for found in self._found.values()):
                self._value = None  # nor what it needs
        return self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return Metrics, (dict(self),)


@dataclass(frozen=True)
class Deferred:
    """A field of an answer that a function computes when it is first read."""

    value: Callable[[], Any]


def _no_quantile(*_: Any, **__: Any) -> Any:
    raise ValueError("quantile needs an answer that knows the law of its times, got none or one from a file")


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answer(Result):
    """Answer of a model or a simulation to one system; of a sweep every value has its shape.

    Overload is an answer: times are ``inf``, ``stable`` is False. Where the runs of a simulation cannot tell,
    ``stable`` is None, times are those of the runs, and nothing is validated. Any field may be given as
    `Deferred`, and any mapping as `Later`.

    Parameters
    ----------
    spec : object
        What was asked.
    metrics : mapping of str to float, array or Estimate
        Of a simulation each with its interval.
    model : str
        Which model answered, and whether it is exact; "simulation" of one.
    latency_parts, utilization, traffic_intensity, bottleneck, stable, validated, error
        See `qmodels.systems.spec.result.Result`. `qmodels.solve` validates an answer without doubts, of a
        system like those that were drawn and simulated, and says the error; a simulation is validated if
        nothing is known that speaks against its intervals.
    doubts : mapping of str to bool or array of bool
        What speaks against the numbers, in words.
    facts : tuple of str
        What else a reader must know, a line each.
    details : mapping of str
        What the kind says beside its metrics, by the names of `qmodels.systems.spec.metrics.DETAILS`; each is
        an attribute, too.
    quantile : callable
        Returns a quantile of the main time from its order, where the law is known. [ns]
    picture : callable, optional
        Returns the figure of `plot` if the kind has one of its own.
    run : mapping of str
        How it was simulated, see `of_runs`; empty of a model. Each is an attribute, too.
    evidence : optional
        What says the interval of a metric, or why it has none (`qmodels.evidence.intervals.Evidence`); None
        of a simulation, or an answer from a file.
    """

    spec: Any
    metrics: Mapping[str, Any]
    model: str = ""
    latency_parts: Mapping[str, Any] = field(default_factory=dict)
    utilization: Mapping[str, Any] = field(default_factory=dict)
    traffic_intensity: Mapping[str, Any] = field(default_factory=dict)
    bottleneck: Any = field(default_factory=str)
    stable: Any = field(default_factory=lambda: True)
    validated: Any = field(default_factory=lambda: None)  # by default where there are no doubts
    error: Mapping[str, Any] = field(default_factory=dict)
    doubts: Mapping[str, Any] = field(default_factory=dict)
    facts: Any = field(default_factory=tuple)
    details: Mapping[str, Any] = field(default_factory=dict)
    quantile: Any = field(default_factory=lambda: _no_quantile)
    picture: Any = None
    run: Mapping[str, Any] = field(default_factory=dict)
    evidence: Any = None

    def __post_init__(self) -> None:
        if type(self.metrics) is dict:
            self.__dict__["metrics"] = Metrics(self.metrics)
        late = {name: value for name, value in vars(self).items() if isinstance(value, Deferred)}
        for name in late:
            del self.__dict__[name]
        if self.__dict__.get("validated", True) is None:
            del self.__dict__["validated"]
            late["validated"] = Deferred(lambda: self.undoubted())
        self.__dict__["_late"] = late

    @classmethod
    def of_runs(
        cls,
        *,
        seed: int,
        replications: int,
        effort: Mapping[str, int] | None = None,
        seconds: float,
        short: bool = False,
        metrics: Mapping[str, Any],
        stable: bool | None = True,
        **fields: Any,
    ) -> Answer:
        """Return the answer of a simulation.

        Parameters
        ----------
        seed, replications : int
            What was run.
        effort : mapping of str to int
            How much, by its name: ``{"packets": 20000, "events": 1200000}``.
        seconds : float
            Wall-clock time from the start of the first run to the end of the last; 0 if all were in a store.
        short : bool
            Whether the runs were too short for their warm-up or their intervals.
        metrics, stable, **fields
            The fields of the answer.
        """
        run = {"seed": seed, "replications": replications, "effort": effort or {}, "seconds": seconds}
        run |= {"short": short, "confidence": next(iter(metrics.values())).confidence}
        known = stable is not None and not short
        validated = known and all(one.valid for one in metrics.values())
        return cls(model="simulation", metrics=metrics, stable=stable, validated=validated, run=run, **fields)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_late", ()):
            self.__dict__[name] = self._late.pop(name).value()
            return self.__dict__[name]
        for place in ("details", "run"):
            if name in self.__dict__.get(place, ()):
                return self.__dict__[place][name]
        return super().__getattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__dataclass_fields__, *self.details, *self.run})

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)} | {"_late": {}}

    @property
    def title(self) -> str:
        """Model and, of a sweep, its size; or what was run."""
        if self.run:
            effort = "".join(f", {count} {name}" for name, count in self.effort.items())
            return (
                f"{type(self.spec).__name__}, simulated: {self.replications} replications{effort}, "
                f"seed {self.seed}; {self.confidence:.4g} intervals"
            )
        kind = f" ({self.details['kind']})" if "kind" in self.details else ""
        points = f", {'x'.join(map(str, self.shape))} points (least .. largest)" if self.shape else ""
        return self.model + kind + points

    @property
    def notes(self) -> tuple[str, ...]:
        """Doubts that apply to (some of) the numbers, what was not measured, facts, what intervals lack."""
        lines = [words for words, applies in self.against.items() if np.any(applies)]
        lines += self.facts
        if self.run:
            against = dict.fromkeys(e.doubt for e in self.metrics.values() if e.doubt)
            lines += [f"? no upper end, and a best value that is probably too low: {one}" for one in against]
            lines += ["too short for its warm-up or its intervals"] if self.short else []
        return tuple(dict.fromkeys(lines))

    @property
    def against(self) -> dict[str, Any]:
        """Return doubts, what was not measured, and wrong directions of a sweep, with the designs of each."""
        found = dict(self.doubts)
        if self.evidence is not None:
            found |= self.evidence.outside(self)
            found |= dict.fromkeys(self.evidence.wrong_directions(self), np.True_)
        return found

    def undoubted(self, *against: Any) -> Any:
        """Return where no doubt applies, nor any of what else speaks ``against`` the numbers."""
        every = np.zeros(np.shape(self.stable), dtype=bool)
        found = ~np.any(np.broadcast_arrays(every, *self.doubts.values(), *against), axis=0)
        return found if found.ndim else bool(found)

    @property
    def bottleneck_load(self) -> Any:
        """Traffic intensity of the bottleneck, or its busy fraction; 0 where none has."""
        loads = self.traffic_intensity or self.utilization
        values = np.broadcast_arrays(*(getattr(load, "best", load) for load in loads.values()))
        return np.max(values, axis=0)[()] if loads else 0.0

    def interval(self, metric: str, level: float = 0.9) -> tuple[Any, Any]:
        """Return the interval of a metric: of a model what simulations of systems like this show.

        Parameters
        ----------
        metric : str
            One of ``metrics``.
        level : {0.5, 0.8, 0.9, 0.95}
            Probability that the interval holds the simulated value of a system drawn alike; of a simulation
            its own confidence, whatever is given.

        Returns
        -------
        low, high : float or array
            In the unit of the metric. NaN where no system like this was simulated; both the value where the
            model is exact.

        Raises
        ------
        ValueError
            If the level is none of these, or the answer was read from a file.
        """
        value = self[metric]
        if hasattr(value, "best"):
            return value.low, value.high
        if self.evidence is None:
            raise ValueError("interval needs an answer of qmodels.solve, got one from a file: solve its spec")
        low, high = self.evidence.interval(self, metric, level)
        return low, high

    def plot(self) -> Any:
        """Return a matplotlib figure: the kind's own, else the main metric of a sweep or where time goes."""
        return super().plot() if self.picture is None else self.picture()

    @property
    def saved_as(self) -> str:
        """Origin: an ``answer`` of a model or a ``simulation``."""
        return "simulation" if self.run else "answer"

    @property
    def saved(self) -> tuple[str, ...]:
        """Names of the attributes that are saved."""
        kept = (name for name in self.details if name in DETAILS and DETAILS[name].kept)
        return (*_saved(self.saved_as), *kept)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Answer:
        """Return a result that was saved: its numbers and its spec, not what they were computed from.

        Raises
        ------
        ValueError
            If the file is none of ours, of another format, or damaged.
        """
        return read(Path(path), cls._from_document)

    @classmethod
    def _from_document(cls, document: Mapping[str, Any]) -> Answer:
        given = {name: numbers(document[name]) for name in _saved(document["result"])}
        given |= {
            "spec": spec_of(document),
            "doubts": dict.fromkeys(document["notes"], True),
            "details": {
                name: numbers(document[name])
                for name, one in DETAILS.items()
                if one.kept and name in document
            },
        }
        if document["result"] == "simulation":
            return cls.of_runs(**given)
        return cls(model=document["title"], **given)


def _saved(kind: str) -> tuple[str, ...]:
    """Return the attributes that all results of a verb save."""
    if kind == "answer":
        return SAVED
    return (*(name for name in SAVED if name not in ("traffic_intensity", "validated")), *RUN)


def load(path: str | os.PathLike[str]) -> Answer:
    """Return an answer that was saved, see `Answer.load`."""
    return Answer.load(path)
