"""Drawing, answering and keeping specs of all kinds, in several processes, resumable."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

from cases.evidence.draw import draw
from cases.evidence.record import Record, renewed, simulated, solved, write
from qmodels.systems.spec.text.toml import to_toml

SHARES = {
    "packet-processor": 0.30, "queueing-network": 0.14, "noc": 0.12, "dram": 0.10, "system": 0.10,
    "data-queueing": 0.06, "cache": 0.05, "llc-processor": 0.05, "numa": 0.03, "message-program": 0.03,
    "work-queues": 0.02,
}  # fmt: skip
"""Of the specs, by kind."""
SLOW, SLOW_SIMULATION = 1.0, 4.0
"""Seconds of processor time beyond which a spec is passed over: a check takes minutes, not hours."""
LONGEST = 8_000
"""Characters of a spec beyond which it is passed over: one with thousands of sizes or routes."""
REFUSED = 8
"""Of so many specs that are refused one is kept."""
SIMULATED_LOAD = 0.9
"""Load up to which specs are simulated."""


def frozen(job: tuple[str, int, int, bool]) -> Record | None:
    """Return the record of a draw, simulated if asked for; None where that takes too long."""
    kind, number, seed, wanted = job
    toml = to_toml(draw(kind, number, seed=seed), kind=True)
    if len(toml) > LONGEST:
        return None
    record: Record = {"kind": kind, "number": number, "toml": toml, "model": solved(toml)}
    if record["model"]["seconds"] > SLOW or ("error" in record["model"] and number % REFUSED):
        return None
    if wanted and record["model"].get("load", 2.0) <= SIMULATED_LOAD:
        runs = (simulated(kind, toml) for _ in range(2))  # of the first a part may be compilation
        found = next((run for run in runs if "error" in run or run["seconds"] <= SLOW_SIMULATION), None)
        if found and "error" not in found:
            record["simulation"] = found
    return record


def freeze(file: Path, *, count: int, simulations: int, seed: int, executor: Executor) -> None:
    """Draw specs, answer them and write the file; what is finished is kept beside it until then."""
    part = file.with_suffix(".part")
    kept: list[Record] = _finished(part)
    file.parent.mkdir(parents=True, exist_ok=True)
    with part.open("a", encoding="utf-8") as log:
        for kind, share in SHARES.items():
            mine = [record for record in kept if record["kind"] == kind]
            goal, runs = round(count * share), round(simulations * share)
            number = 1 + max((record["number"] for record in mine), default=-1)
            while len(mine) < goal:
                some = range(number, number + min(64, 2 * (goal - len(mine))))
                number = some.stop
                left = 2 * (runs - sum("simulation" in record for record in mine))
                jobs = [(kind, one, seed, k < left) for k, one in enumerate(some)]
                for record in executor.map(frozen, jobs):
                    if record and len(mine) < goal:
                        mine.append(record)
                        log.write(json.dumps(record) + "\n")
                log.flush()
                tell(f"{kind}: {len(mine)} of {goal}")
    write(file, [json.loads(line) for line in part.read_text().splitlines()])
    part.unlink()


def _finished(part: Path) -> list[Record]:
    """Return the records of a freeze that was stopped; a line that was not written to its end is cut off."""
    if not part.exists():
        return []
    whole_lines = part.read_text(encoding="utf-8").rpartition("\n")[0]
    part.write_text(whole_lines + "\n" if whole_lines else "", encoding="utf-8")
    return [json.loads(line) for line in whole_lines.splitlines()]


def answered(records: list[Record], executor: Executor) -> Iterator[Record]:
    """Yield the records with what the product answers now."""
    for number, record in enumerate(executor.map(renewed, records, chunksize=8), 1):
        if number % 64 == 0:
            tell(f"{number} of {len(records)}")
        yield record


def tell(words: str) -> None:
    """Show progress on a terminal, nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
