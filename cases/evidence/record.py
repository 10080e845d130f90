"""What the product answers for a spec, as plain numbers and words that can be kept and compared."""

from __future__ import annotations

import json
import lzma
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import qmodels as qm
from qmodels.systems.spec.text.toml import spec_from_toml
from qmodels.systems.spec.whole import whole

Record = dict[str, Any]
"""kind, number, toml, ``model`` (an outcome) and, of some, ``simulation`` (an outcome)."""

LATE = 60
"""Seconds of processor time after which a call is given up."""
SEED, REPLICATIONS = 1, 4
LENGTHS: dict[str, dict[str, Any]] = {
    "packet-processor": {"packets": 2_000, "saturation": False},
    "queueing-network": {"passages": 10_000},
    "data-queueing": {"packets": 10_000},
    "noc": {"packets": 2_000, "cycles": 2_000},
    "dram": {"accesses": 10_000},
    "cache": {"requests": 50_000},
    "llc-processor": {"requests": 10_000},
    "system": {"passages": 4_000},
}
"""How long each kind is simulated, short: a change of the simulator shows in the first jobs."""


class LateError(Exception):
    """A call took more than `LATE` seconds of processor time."""


def outcome(function: Callable[[], Any], describe: Callable[[Any], Record]) -> Record:
    """Return what a call gives as numbers, or the error that it ends in, and its processor time."""

    def give_up(*_: object) -> None:
        raise LateError(f"more than {LATE} s")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, LATE)
    began = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = describe(function())
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return found | {"seconds": round(time.process_time() - began, 4)}


def solved(toml: str) -> Record:
    """Return what the model answers for a spec."""

    def describe(answer: Any) -> Record:
        return {
            "metrics": {name: float(value) for name, value in answer.metrics.items() if np.ndim(value) == 0},
            "load": float(answer.bottleneck_load),
            "stable": bool(answer.stable),
            "validated": bool(answer.validated),
            "bottleneck": str(answer.bottleneck),
            "doubts": list(answer.notes),
        }

    return outcome(lambda: qm.solve(spec_from_toml(toml)), describe)


def simulated(kind: str, toml: str) -> Record:
    """Return the simulator's estimates for a spec, with a fixed seed: best, low and high of each metric."""
    from validate import simulate

    def describe(result: Any) -> Record:
        estimates = {
            name: [float(one.best), float(one.low), float(one.high)] for name, one in result.metrics.items()
        }
        return {"metrics": estimates, "stable": None if result.stable is None else bool(result.stable)}

    options = {"seed": SEED, "replications": REPLICATIONS} | LENGTHS.get(kind, {})
    return outcome(lambda: simulate(spec_from_toml(toml), **options), describe)


def renewed(record: Record) -> Record:
    """Return a record with what the product answers now; simulated where it was."""
    found = {name: record[name] for name in ("kind", "number", "toml")}
    found["model"] = solved(record["toml"])
    if "simulation" in record:
        found["simulation"] = simulated(record["kind"], record["toml"])
    return found


def write(path: Path, records: Iterable[Record]) -> None:
    """Write records to a compressed file, one a line, whole or not at all."""
    lines = "".join(json.dumps(record) + "\n" for record in records)
    with whole(path) as part:
        part.write_bytes(lzma.compress(lines.encode()))


def read(path: Path) -> Iterator[Record]:
    """Yield the records of a file."""
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)
