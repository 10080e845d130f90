"""The evidence for the models: random specs of all kinds, solved and simulated.

``python -m cases.evidence draw`` draws specs of all kinds, solves and simulates them, and adds them to
``.evidence/drawn.jsonl.xz`` up to a count; ``solve`` and ``simulate`` do so anew with those of the file,
after the models or the simulators have changed. ``test`` draws specs with a seed of its own to
``.evidence/tested.jsonl.xz``, and ``neighbours`` changes one decision of drawn systems to
``.evidence/neighbours.jsonl.xz``; ``solve`` renews the models' answers of all three. ``report`` makes the
intervals of all answers and the table of directions from them (``qmodels/evidence/intervals.json``) and
prints how well the intervals hold on the specs of the other seed. ``constants`` says what the drawn systems
tell of the constants in the models, and what each is worth.

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

from cases.evidence import record as answers
from cases.evidence.calibrate import drawn_neighbours
from cases.evidence.calibrate import report as calibration
from cases.evidence.constants import GROUPS
from cases.evidence.constants import report as constants
from cases.evidence.record import Record
from cases.evidence.record import report as differences
from qmodels.systems.spec.kind import KINDS

PLACE = Path(".evidence")
FROZEN, DRAWN = PLACE / "frozen.jsonl.xz", PLACE / "drawn.jsonl.xz"
TESTED, OTHERS = PLACE / "tested.jsonl.xz", PLACE / "neighbours.jsonl.xz"
MADE = {  # by command: file, specs, seed
    "freeze": (FROZEN, 5_000, 0),
    "draw": (DRAWN, 2_500, 1),
    "test": (TESTED, 500, 13),
    "neighbours": (OTHERS, 12, 1),
}
COMMANDS = (*MADE, "check", "solve", "simulate", "report", "constants")


def main(given: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m cases.evidence", description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("groups", nargs="*", help="constants: these groups alone")
    parser.add_argument(
        "--file", type=Path, help="specs and answers, instead of the command's own in .evidence"
    )
    parser.add_argument("--count", type=int, help="specs [5000 to freeze, 2500 to draw, 500 to test]")
    parser.add_argument("--simulations", type=int, default=300, help="of the frozen ones simulated [300]")
    parser.add_argument("--again", action="store_true", help="freeze: answer the specs of the file anew")
    parser.add_argument("--kind", choices=KINDS, action="append", help="check, report: these kinds alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes [one a processor]")
    asked = parser.parse_args(given)
    for name, least in (("count", 1), ("simulations", 0), ("workers", 1)):
        value = getattr(asked, name)
        if value is not None and value < least:
            parser.error(f"--{name} must be at least {least}, got {value}")
    unknown = [name for name in asked.groups if name not in GROUPS]
    if unknown:
        parser.error(f"groups must be of {', '.join(GROUPS)}, got {unknown[0]!r}")
    command = asked.command
    if asked.kind and command not in ("check", "report"):
        parser.error(f"--kind must be left out of {command}, got {asked.kind[0]!r}")

    def records(path: Path, *, needed: bool = True) -> list[Record]:
        if not needed and not path.exists():
            return []
        return _records(path, asked.kind, parser)

    if command in ("report", "constants"):
        drawn = records(asked.file or DRAWN)
        if command == "constants":
            print(constants(drawn, asked.groups))
        else:
            tested, others = (records(path, needed=False) for path in (TESTED, OTHERS))
            print(calibration(drawn, tested, others))
        return 0
    with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as executor:
        match command:
            case "check":
                before = records(asked.file or FROZEN)
                words, changed = differences(
                    before, list(answers.answered(before, executor, answers.renewed))
                )
                print(words)
                return int(changed > 0)
            case "neighbours":
                drawn = records(DRAWN)
                answers.write(
                    asked.file or OTHERS, drawn_neighbours(drawn, asked.count or MADE[command][1], executor)
                )
            case "freeze" if asked.again:
                file = asked.file or FROZEN
                answers.write(file, answers.answered(records(file), executor, answers.renewed))
            case "freeze" | "draw" | "test":
                file, count, seed = MADE[command]
                file = asked.file or file
                extends = command != "freeze" and file.exists()
                answers.freeze(
                    file,
                    count=asked.count or count,
                    simulations=asked.simulations if command == "freeze" else None,
                    seed=seed,
                    executor=executor,
                    effort=answers.SHORT if command == "freeze" else answers.LONG,
                    before=records(file) if extends else [],
                )
            case "solve" | "simulate":
                renew = answers.resolved if command == "solve" else answers.resimulated
                for file in [asked.file] if asked.file else filter(Path.exists, (DRAWN, TESTED, OTHERS)):
                    answers.write(file, answers.answered(records(file), executor, renew))
    return 0


def _records(file: Path, kinds: list[str] | None, parser: argparse.ArgumentParser) -> list[Record]:
    """Return the records of a file, of some kinds."""
    if not file.exists():
        parser.error(f"--file must be of freeze or draw, got {file}, which is not there")
    try:
        return [record for record in answers.read(file) if not kinds or record["kind"] in kinds]
    except (EOFError, LZMAError, ValueError, KeyError) as error:
        parser.error(f"--file must be whole and of freeze or draw, got {file}: {error!r}")


if __name__ == "__main__":
    sys.exit(main())
