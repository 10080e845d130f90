"""Base of all simulators: an experiment is one spec with options, its replications are jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from qmodels import checks
from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.fields import swept_fields, varied_fields
from qmodels.systems.spec.kind import kind_of
from qmodels.systems.spec.store import UNDECIDED, said
from validate.campaigns.store import write_csv


@dataclass(frozen=True, kw_only=True, eq=False)
class Campaign:
    """The simulations of several specs.

    It has a length, and gives its results by number and in turn.

    Parameters
    ----------
    points : tuple of int
        Which of the specs asked for these are: all, unless the campaign was interrupted.
    specs : tuple
        The specs that were simulated.
    results : tuple
        The result of each.
    restored, simulated : int
        Runs that were found in the store, and runs made now.
    seconds : float
        Wall-clock time.
    """

    points: tuple[int, ...]
    specs: tuple[Any, ...]
    results: tuple[Any, ...]
    restored: int
    simulated: int
    seconds: float

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __getitem__(self, number: int) -> Any:
        return self.results[number]

    def table(self) -> dict[str, list[Any]]:
        """Return columns with one row per point and metric.

        They are the point's number, a column for every number, word or truth value in which the
        specs differ (by its dotted name, after ``spec.`` if that is taken), then ``metric``, ``unit``,
        ``value``, ``low``, ``high``, ``interval_valid`` and whether the system is ``stable`` (true where none
        can be unstable, "undecided" where the runs cannot tell).
        """
        own = ("metric", "unit", "value", "low", "high", "interval_valid", "stable")
        varied = {
            f"spec.{name}" if name in ("point", *own) else name: values
            for name, values in varied_fields(self.specs).items()
        }
        columns: dict[str, list[Any]] = {name: [] for name in ("point", *varied, *own)}
        for place, (point, result) in enumerate(zip(self.points, self.results, strict=True)):
            varying = {name: values[place] for name, values in varied.items()}
            stable = said(getattr(result, "stable", True))
            for row in result.rows():
                whole = {"point": point, **varying, "interval_valid": True, **row, "stable": stable}
                for name, value in whole.items():
                    columns[name].append(value)
        return columns

    def to_pandas(self) -> Any:
        """Return the table as a DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV; the file appears whole or not at all."""
        write_csv(path, self.table())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet (needs pyarrow)."""
        from validate.campaigns.store import write_parquet

        write_parquet(path, self.table())

    def __repr__(self) -> str:
        made = f"{self.simulated} runs made, {self.restored} restored, {self.seconds:.1f} s"
        lines = [f"Campaign of {len(self)} points: {made}"]
        for point, result in zip(self.points, self.results, strict=True):
            state = {True: "", False: ", saturated"}.get(getattr(result, "stable", True), f", {UNDECIDED}")
            lines.append(f"  {point}: {result.replications} replications{state}")
        return "\n".join(lines)


class CampaignInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a campaign; what is done is kept.

    Parameters
    ----------
    campaign : Campaign
        The points that are finished, and those whose first round is.
    message : str
        How much that is, and how to go on.
    """

    def __init__(self, campaign: Campaign, message: str) -> None:
        super().__init__(message)
        self.campaign = campaign


UNITS = ("packets", "passages", "accesses", "requests")
"""Options that say how many of a system's units a replication simulates; the first stands for all of them."""

LENGTHS = (*UNITS, "warm_up", "cycles")
"""Options of simulators that say how much a replication simulates."""

BYTES = 64
"""Memory of a replication for each packet, passage or access: measured, at most 56."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One replication, or a part of one; a subclass adds the options that its numbers depend on."""

    spec: Any  # The system; None where only the rest names the job in a store
    # seed, replication: All randomness follows from these
    seed: int
    replication: int


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The simulation of one system; made by `validate.simulate`.

    A subclass adds its options as fields, says what its jobs and runs are, and sums them up.
    """

    spec: Any  # One system, no array fields
    seed: int = 0  # Everything random follows from it
    confidence: float = 0.95  # Coverage of the intervals (Student's, over the replications)

    job_type: ClassVar[type[Job]] = Job
    """Class of a job: its fields beside `Job`'s are options of the experiment by the same name."""
    run_type: ClassVar[type]
    """Class of a run: a small dataclass of numbers, words and arrays."""
    precise: ClassVar[tuple[str, ...]]
    """The metrics that a precision given as one number is about."""
    run_replication: ClassVar[staticmethod[[Any], Any]]
    """The function of a module that turns a job into its run."""

    def __post_init__(self) -> None:
        checks.seed(self.seed)
        if not 0 < self.confidence < 1:
            raise ValueError(f"confidence must be between 0 and 1, got {self.confidence!r}")
        check_one(self.spec)
        self.check()
        for name, number in self.lengths():
            afford(name, number, bytes=number * BYTES)

    def check(self) -> None:
        """Refuse what the simulator cannot run; called once spec, seed and confidence are known good."""

    def lengths(self) -> list[tuple[str, float]]:
        """Return the options that say how much one replication simulates, the longest first."""
        given = [(name, getattr(self, name)) for name in LENGTHS if hasattr(self, name)]
        return sorted(((name, n) for name, n in given if n is not None), key=lambda one: -one[1])

    def work(self) -> tuple[str, float, float]:
        """Return the field that drives the work of one replication, its value, and the jobs it asks for."""
        name, number = next(iter(self.lengths()), ("replications", 1.0))
        return name, number, number

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the names of the options beside spec, seed and confidence."""
        common = {field.name for field in fields(Experiment)}
        return tuple(field.name for field in fields(cls) if field.init and field.name not in common)

    def jobs(self, start: int, stop: int) -> Sequence[Any]:
        """Return the jobs of replications `start` to `stop` - 1; the first round starts with 0."""
        names = [field.name for field in fields(self.job_type) if field.name != "replication"]
        own = {name: getattr(self, name) for name in names}
        return [self.job_type(replication=k, **own) for k in range(start, stop)]

    def summarize(self, runs: Sequence[tuple[Any, Any]], *, replications: int, seconds: float) -> Answer:
        """Return the result of all (job, run) so far."""
        found = self.found([run for _, run in runs])
        given: dict[str, Any] = {"replications": replications, **found}
        return Answer.of_runs(spec=self.spec, seed=self.seed, seconds=seconds, **given)

    def found(self, runs: list[Any]) -> dict[str, Any]:
        """Return the fields of a result that are the simulator's own, from all runs so far."""
        raise NotImplementedError

    @property
    def kind(self) -> str:
        """The name of the spec's kind."""
        return kind_of(self.spec).name


def check_one(spec: Any) -> None:
    """Refuse a sweep: what is simulated is one system."""
    for name, values in swept_fields(spec).items():
        raise ValueError(
            f"{name} must be one number to be simulated, got {values.size}: "
            "simulate a list of specs, one for each"
        )
