"""Finished replications in a result store: the key that names one, and its numbers without loss."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from qmodels import systems
from qmodels.systems.spec.fields import is_spec, parts, stable_hash
from qmodels.systems.spec.nested import held
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
