"""Tables and records of single jobs as files, CSV and Parquet: whole or not at all."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

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
