"""Compute a published case anew and keep what is found: ``python -m cases.published.keep CASE``.

It takes seconds (ocmpi) to an hour (srp). While it runs, finished replications stand in ``<case>.sqlite`` in
the working directory, from which the same command resumes if it was killed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cases.published.cases import published_case
from cases.published.rows import data_folder

if __name__ == "__main__":
    (name,) = sys.argv[1:]
    unfinished = Path(f"{name}.sqlite")
    found = published_case(name).reproduce(store=unfinished)
    found.write(data_folder(name))
    unfinished.unlink(missing_ok=True)
    print(found.table())
