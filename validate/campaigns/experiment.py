"""Base of all simulators: an experiment is one spec with options, its replications are jobs; keys of runs."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from qmodels import checks, systems
from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.cost import afford
from qmodels.systems.spec.fields import is_spec, parts, stable_hash, swept_fields, varied_fields
from qmodels.systems.spec.kind import kind_of
from qmodels.systems.spec.nested import held
from qmodels.systems.spec.store import UNDECIDED, said
from qmodels.systems.spec.whole import whole

Block = Mapping[str, Any] | np.ndarray[Any, Any]
"""Columns by name, or a structured array with a column per field."""


def write_csv(path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns of one length; the file appears whole or not at all."""
    with whole(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def write_parquet(path: str | os.PathLike[str], blocks: Block | Iterable[Block]) -> None:
    """Write one block of rows or many as Parquet (needs pyarrow), whole or not at all.

    Parameters
    ----------
    path : path
        The file; one that exists is replaced at the end.
    blocks : mapping, structured array, or iterable of them
        All with the same columns. Only one is in memory at a time, so that the records of the jobs of
        a long run fit, see `validate.network.replication.visit_records`.

    Raises
    ------
    ImportError
        If pyarrow is missing.
    ValueError
        If there is no block, or one has other columns than the first.

    Examples
    --------
    >>> import tempfile
    >>> from qmodels.systems.laws.times import Deterministic, Exponential
    >>> from qmodels.systems.stations.queueing_network import single_station
    >>> from validate.network.replication import visit_records
    >>> md1 = single_station(arrivals=Exponential(mean=2.0), service=Deterministic(mean=1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_parquet(Path(folder) / "visits.parquet", visit_records(md1, passages=5000, rows=1000))
    ...     os.listdir(folder)
    ['visits.parquet']
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'qmodels-toolkit[parquet]'") from error
    with whole(path) as part:
        _write(part, blocks, pa, pq)


def _write(part: Path, blocks: Block | Iterable[Block], pa: Any, pq: Any) -> None:
    writer: Any = None
    try:
        for block in [blocks] if isinstance(blocks, Mapping | np.ndarray) else blocks:
            table = pa.table(_columns(block))
            if writer is None:
                writer = pq.ParquetWriter(part, table.schema)
            elif table.schema != writer.schema:
                raise ValueError(
                    f"blocks must have the columns {', '.join(writer.schema.names)} of the first and "
                    f"their types, got {', '.join(table.schema.names)}"
                )
            writer.write_table(table)
        if writer is None:
            raise ValueError("blocks must have at least one member, got none")
    finally:
        if writer is not None:
            writer.close()


def _columns(block: Block) -> dict[str, Any]:
    if isinstance(block, np.ndarray):
        return {name: np.ascontiguousarray(block[name]) for name in block.dtype.names or ()}
    return dict(block)


def keys_of(run_replication: Callable[[Any], Any], jobs: Sequence[Any]) -> list[str]:
    """Return the keys of replications: what runs them, the simulators' state, and all of their jobs.

    ``run_replication``: the function of a module that runs a job; ``jobs``: the one ``spec`` of all, hashed
    once, and the seed, the number of the replication and all options that change its numbers.
    """
    if not jobs:
        return []
    name = f"{run_replication.__module__}.{run_replication.__qualname__}"
    prefix = f"{simulators()}\n{name}\n{stable_hash(jobs[0].spec)}"
    return [
        hashlib.sha256(f"{prefix}\n{stable_hash(replace(job, spec=None))}".encode()).hexdigest()
        for job in jobs
    ]


@cache
def simulators() -> str:
    """Return a hash of everything that turns a job into numbers, so that an edit orphans old results.

    That is the source of the simulators and of the specs, and the versions of the libraries that draw
    random numbers and compile the kernels.
    """
    digest = hashlib.sha256(f"{version('numpy')} {version('numba')}".encode())
    for package in (Path(__file__).parents[1], Path(systems.__file__).parent):
        for path in sorted(package.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


def encode(value: Any) -> Any:
    """Return a run in JSON's types such that `decode` gives it back to the last bit.

    A run is a dataclass of numbers, words, arrays, other such dataclasses, and tuples, lists and
    mappings (with words as keys) of these.
    """
    if isinstance(value, np.ndarray):
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return {"array": b64encode(zlib.compress(file.getvalue(), 1)).decode()}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_spec(value):
        return {"fields": {name: encode(part) for name, part in parts(value).items()}}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"mapping": {key: encode(item) for key, item in value.items()}}
    raise TypeError(f"a run to store must hold numbers, words and arrays, got a {type(value).__name__}")


def decode(record: Any, kind: Any) -> Any:
    """Decode a value; `kind` is its class if it is a dataclass."""
    if isinstance(record, list):
        return [decode(item, object) for item in record]
    if not isinstance(record, dict):
        return record
    ((form, content),) = record.items()
    if form == "array":
        return np.load(io.BytesIO(zlib.decompress(b64decode(content))), allow_pickle=False)
    if form == "tuple":
        return tuple(decode(item, object) for item in content)
    if form == "mapping":
        return {key: decode(item, object) for key, item in content.items()}
    return kind(**{name: decode(item, held(kind)[name]) for name, item in content.items()})


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
