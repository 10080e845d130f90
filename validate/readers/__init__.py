"""Readers for runs made elsewhere: each returns a `RunSet`, the table that `validate.compare` takes."""

from __future__ import annotations

from validate.readers.booksim import read_booksim
from validate.readers.dramsim import read_dramsim3
from validate.readers.gem5 import read_gem5
from validate.readers.ramulator import read_ramulator
from validate.readers.run_set import Run, RunSet
from validate.readers.table import read_table

__all__ = ["Run", "RunSet", "read_booksim", "read_dramsim3", "read_gem5", "read_ramulator", "read_table"]
