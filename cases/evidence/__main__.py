"""The evidence for the models: random specs of all kinds, solved and simulated.

``python -m cases.evidence draw`` draws specs of all kinds, solves and simulates them, and adds them to
``.evidence/drawn.jsonl.xz`` up to a count; ``solve`` and ``simulate`` do so anew with those of the file,
after the models or the simulators have changed. ``report`` makes the intervals of all answers from them
(``qmodels/evidence/intervals.json``) and prints how well intervals from one half hold on the other; with
``--tested FILE`` on the specs of another seed.

``python -m cases.evidence freeze`` keeps what the product answers for 5,000 specs, 300 of them simulated for
a short time, in ``.evidence/frozen.jsonl.xz``; with ``--again`` for those of the file. ``check`` answers them
as the product does now and says what changed, by kind and load, by more than 1e-9 (model) or beyond the
intervals (simulation), and whether the model came nearer to the simulations; it ends with 1 if anything did.

What was stopped goes on with the same command.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from lzma import LZMAError
from multiprocessing import get_context
from pathlib import Path

from cases.evidence.calibrate import report as calibration
from cases.evidence.difference import report as differences
from cases.evidence.freezing import answered, freeze
from cases.evidence.record import LONG, SHORT, Record, read, renewed, resimulated, resolved, write
from qmodels.systems.spec.kind import KINDS

FROZEN = Path(".evidence") / "frozen.jsonl.xz"
DRAWN = Path(".evidence") / "drawn.jsonl.xz"
COMMANDS = ("freeze", "check", "draw", "solve", "simulate", "report")


def main(given: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m cases.evidence", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--file", type=Path, help=f"specs and answers [{FROZEN} or {DRAWN}]")
    parser.add_argument("--count", type=int, help="specs to freeze [5000] or draw [2500]")
    parser.add_argument("--simulations", type=int, default=300, help="of the frozen ones simulated [300]")
    parser.add_argument("--seed", type=int, help="of the draws [0 to freeze, 1 to draw]")
    parser.add_argument("--again", action="store_true", help="freeze: answer the specs of the file anew")
    parser.add_argument("--tested", type=Path, help="report: cover these instead of a half")
    parser.add_argument("--kind", choices=KINDS, action="append", help="check: these kinds alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes [one a processor]")
    asked = parser.parse_args(given)
    for name, least in (("count", 1), ("simulations", 0), ("workers", 1)):
        value = getattr(asked, name)
        if value is not None and value < least:
            parser.error(f"--{name} must be at least {least}, got {value}")
    frozen = asked.command in ("freeze", "check")
    file = asked.file or (FROZEN if frozen else DRAWN)
    makes = asked.command == "draw" or (asked.command == "freeze" and not asked.again)
    extends = asked.command == "draw" and file.exists()
    before = [] if makes and not extends else _records(file, asked.kind, parser)
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as executor:
        match asked.command:
            case "check":
                words, changed = differences(before, list(answered(before, executor, renewed)))
                print(words)
                return int(changed > 0)
            case "report":
                print(calibration(before, asked.tested and _records(asked.tested, None, parser)))
            case "freeze" | "draw" if makes:
                freeze(
                    file,
                    count=asked.count or (5_000 if frozen else 2_500),
                    simulations=asked.simulations if frozen else None,
                    seed=int(not frozen) if asked.seed is None else asked.seed,
                    executor=executor,
                    effort=SHORT if frozen else LONG,
                    before=before,
                )
            case command:
                renew = {"freeze": renewed, "solve": resolved, "simulate": resimulated}[command]
                write(file, answered(before, executor, renew))
    return 0


def _records(file: Path, kinds: list[str] | None, parser: argparse.ArgumentParser) -> list[Record]:
    """Return the records of a file, of some kinds."""
    if not file.exists():
        parser.error(f"--file must be of freeze or draw, got {file}, which is not there")
    try:
        return [record for record in read(file) if not kinds or record["kind"] in kinds]
    except (EOFError, LZMAError, ValueError, KeyError) as error:
        parser.error(f"--file must be whole and of freeze or draw, got {file}: {error!r}")


if __name__ == "__main__":
    sys.exit(main())
