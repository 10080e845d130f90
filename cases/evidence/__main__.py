"""Freeze what the product answers for random specs of all kinds, and check it against that later.

``python -m cases.evidence freeze`` draws 5,000 specs, solves all and simulates 300 of them with a fixed seed,
and keeps specs and answers in one file (``.evidence/frozen.jsonl.xz``); with ``--again`` those of the file
are answered anew. ``python -m cases.evidence check`` answers them as the product does now and says what
changed, by kind and load, by more than 1e-9 (model) or beyond the intervals (simulation), and whether the
model came nearer to the simulations; it ends with 1 if anything did. A freeze that was stopped goes on with
the same command.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from lzma import LZMAError
from multiprocessing import get_context
from pathlib import Path

from cases.evidence.difference import report
from cases.evidence.freezing import answered, freeze
from cases.evidence.record import read, write
from qmodels.systems.spec.kind import KINDS

FILE = Path(".evidence") / "frozen.jsonl.xz"


def main(given: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m cases.evidence", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=("freeze", "check"))
    parser.add_argument("--file", type=Path, default=FILE, help=f"the specs and answers [{FILE}]")
    parser.add_argument("--count", type=int, default=5_000, help="specs that freeze draws [5000]")
    parser.add_argument("--simulations", type=int, default=300, help="of them simulated [300]")
    parser.add_argument("--seed", type=int, default=0, help="of the draws [0]")
    parser.add_argument("--again", action="store_true", help="freeze: answer the specs of the file anew")
    parser.add_argument("--kind", choices=KINDS, action="append", help="check: these kinds alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes [one a processor]")
    asked = parser.parse_args(given)
    for name in ("count", "simulations", "workers"):
        if getattr(asked, name) < (name != "simulations"):
            parser.error(
                f"--{name} must be at least {int(name != 'simulations')}, got {getattr(asked, name)}"
            )
    before = []
    if not asked.file.exists() and (asked.command == "check" or asked.again):
        parser.error(f"--file must be of a freeze, got {asked.file}, which is not there")
    if asked.command == "check" or asked.again:
        try:
            before = [record for record in read(asked.file) if not asked.kind or record["kind"] in asked.kind]
        except (EOFError, LZMAError, ValueError, KeyError) as error:
            parser.error(f"--file must be whole and of a freeze, got {asked.file}: {error!r}")
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as executor:
        if asked.command == "check":
            words, changed = report(before, list(answered(before, executor)))
            print(words)
            return int(changed > 0)
        if asked.again:
            write(asked.file, answered(before, executor))
        else:
            freeze(
                asked.file,
                count=asked.count,
                simulations=asked.simulations,
                seed=asked.seed,
                executor=executor,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
