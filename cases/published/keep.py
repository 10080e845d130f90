"""Compute a published case anew and keep what is found: ``python -m cases.published.keep CASE``.

It takes seconds (ocmpi) to an hour (srp). While it runs, finished replications stand in ``<case>.sqlite`` in
the working directory, from which the same command resumes if it was killed. With ``--today`` it computes only
what takes less than a minute, and keeps the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path

from cases.published.cases import published_case
from cases.published.rows import data_folder

if __name__ == "__main__":
    quick = "--today" in sys.argv
    (name,) = (word for word in sys.argv[1:] if word != "--today")
    unfinished = Path(f"{name}.sqlite")
    paper = published_case(name)
    found = paper.today() if quick else paper.reproduce(store=unfinished)
    found.write(data_folder(name))
    if not quick:
        unfinished.unlink(missing_ok=True)
    print(found.table())
