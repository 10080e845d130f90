"""Drawing, answering and keeping specs of all kinds, in several processes, resumable."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from pathlib import Path

from cases.evidence.record import SHORT, Effort, Record, drawn, simulated, solved, spec_of, write
from qmodels.systems.noc.memory import Transactions

SHARES = {
    "packet-processor": 0.20, "noc": 0.20, "queueing-network": 0.15, "dram": 0.135, "system": 0.065,
    "data-queueing": 0.055, "llc-processor": 0.045, "numa": 0.04, "message-program": 0.04, "cache": 0.035,
    "work-queues": 0.035,
}  # fmt: skip
"""Of the specs, by kind."""
ENDING = ("numa", "message-program", "work-queues")
"""Kinds that are never overloaded: their work ends."""
LONGEST = 8_000
"""Characters of a spec beyond which it is passed over: one with thousands of sizes or routes."""
REFUSED = 8
"""Of so many specs that are refused one is kept."""


def frozen(job: tuple[str, int, int, bool, Effort]) -> Record | None:
    """Return the record of a draw, simulated if asked for; None where that takes too long."""
    kind, number, seed, wanted, effort = job
    record = drawn(kind, number, seed=seed)
    if len(record["toml"]) > LONGEST:
        return None
    record["model"] = solved(record)
    if record["model"]["seconds"] > effort.solve or ("error" in record["model"] and number % REFUSED):
        return None
    load = record["model"].get("load", 2.0)
    if wanted and (load <= effort.load or (_closed(record) and "error" not in record["model"])):
        runs = (simulated(record, effort) for _ in range(2))  # of the first a part may be compilation
        found = next((run for run in runs if "error" in run or run["seconds"] <= effort.simulate), None)
        if found and "error" not in found:
            record["simulation"] = found
    return record


def _closed(record: Record) -> bool:
    """Return whether no load is too much for the system of a record."""
    spec = spec_of(record)
    sources = [*getattr(spec, "classes", ()), *getattr(spec, "flows", ())]
    waiting = isinstance(getattr(spec, "traffic", None), Transactions)
    return record["kind"] in ENDING or waiting or (bool(sources) and all(one.closed for one in sources))


def freeze(
    file: Path,
    *,
    count: int,
    simulations: int | None,
    seed: int,
    executor: Executor,
    effort: Effort = SHORT,
    before: Iterable[Record] = (),
) -> None:
    """Draw specs, answer them and write the file; what is finished is kept beside it until then.

    ``simulations``: of them simulated, by default all. ``before``: records that count, and stay as they are.
    """
    part = file.with_suffix(".part")
    file.parent.mkdir(parents=True, exist_ok=True)
    if not part.exists():
        part.write_text("".join(json.dumps(record) + "\n" for record in before), encoding="utf-8")
    kept: list[Record] = _finished(part)
    with part.open("a", encoding="utf-8") as log:
        for kind, share in SHARES.items():
            mine = [record for record in kept if record["kind"] == kind]
            goal, runs = round(count * share), round((count if simulations is None else simulations) * share)
            number = 1 + max((record["number"] for record in mine), default=-1)
            while len(mine) < goal:
                some = range(number, number + min(64, 2 * (goal - len(mine))))
                number = some.stop
                left = 2 * (runs - sum("simulation" in record for record in mine))
                jobs = [(kind, one, seed, k < left, effort) for k, one in enumerate(some)]
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
    whole_lines = part.read_text(encoding="utf-8").rpartition("\n")[0]
    part.write_text(whole_lines + "\n" if whole_lines else "", encoding="utf-8")
    return [json.loads(line) for line in whole_lines.splitlines()]


def answered(
    records: list[Record], executor: Executor, renew: Callable[[Record], Record]
) -> Iterator[Record]:
    """Yield the records with what the product answers now."""
    for number, record in enumerate(executor.map(renew, records, chunksize=8), 1):
        if number % 64 == 0:
            tell(f"{number} of {len(records)}")
        yield record


def tell(words: str) -> None:
    """Show progress on a terminal, nothing in a pipe."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{words}", end="", file=sys.stderr, flush=True)
