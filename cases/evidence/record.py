"""Answers to a spec as plain numbers and words that are kept and compared, in a table over many."""

from __future__ import annotations

import json
import lzma
import math
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import qmodels as qm
from cases.evidence.draw import ABOUT, DRAWN, draw, recorded
from cases.tables import text_table
from qmodels.evidence.features import features, is_exact
from qmodels.systems.noc.memory import Transactions
from qmodels.systems.spec.fields import replace_paths
from qmodels.systems.spec.text.toml import spec_from_toml, to_toml
from qmodels.systems.spec.whole import whole
from qmodels.systems.traffic.arrivals import Poisson, Recorded
from qmodels.systems.traffic.sizes import imix

Record = dict[str, Any]
"""kind, number and seed of the draw, toml, ``model`` (an outcome) and, of some, ``recorded`` (seed of the
packets that arrive instead of those of the toml) and ``simulation`` (an outcome)."""

LATE = 60  # seconds of processor time after which a call is given up
SEED, REPLICATIONS = 1, 4


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Lengths of simulations, and the time after which one is given up."""

    factor: int  # of the lengths of a check
    solve: float  # seconds of processor time beyond which a spec is passed over
    simulate: float  # and beyond which its simulation is
    load: float  # of the fullest resource, up to which specs are simulated


SHORT = Effort(factor=1, solve=1.0, simulate=4.0, load=0.9)  # for a check that takes minutes
LONG = Effort(factor=10, solve=20.0, simulate=60.0, load=0.97)
"""For errors: the interval of a simulated mean is some 1 % wide."""


class LateError(Exception):
    """A call took more than `LATE` seconds of processor time."""


def outcome(function: Callable[[], Any], describe: Callable[[Any], Record], late: float = LATE) -> Record:
    """Return the numbers that a call gives, or the error that it ends in, and its processor time."""

    def give_up(*_: object) -> None:
        raise LateError(f"more than {late:g} s")

    before = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, late)
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


def spec_of(record: Record) -> Any:
    """Return the spec of a record."""
    spec = spec_from_toml(record["toml"])
    if "recorded" not in record:
        return spec
    arrivals = recorded(record["recorded"])
    return replace_paths(spec, {"workload.arrivals": arrivals, "workload.sizes": arrivals.sizes})


def drawn(kind: str, number: int, *, seed: int) -> Record:
    """Return the record of a draw, without answers."""
    spec, own = draw(kind, number, seed=seed), {}
    arrivals = getattr(getattr(spec, "workload", None), "arrivals", None)
    if isinstance(arrivals, Recorded):
        own = {"recorded": int(arrivals.trace.source.removeprefix(DRAWN))}
        spec = replace_paths(spec, {"workload.arrivals": Poisson(), "workload.sizes": imix()})
    return {"kind": kind, "number": number, "seed": seed, "toml": to_toml(spec, kind=True)} | own


def solved(record: Record) -> Record:
    """Solve the spec of a record."""

    def describe(answer: Any) -> Record:
        found = features(answer)
        return {
            "metrics": {name: float(value) for name, value in answer.metrics.items() if np.ndim(value) == 0},
            "load": float(answer.bottleneck_load),
            "stable": bool(answer.stable),
            "validated": bool(answer.validated),
            "bottleneck": str(answer.bottleneck),
            "doubts": [words for words, applies in answer.doubts.items() if applies],
            "exact": [name for name in answer.metrics if is_exact(answer, name)],
            "features": {
                "resource": str(found.resource),
                "numbers": {name: float(value) for name, value in found.numbers.items()},
                "words": list(found.words),
                "doubted": bool(found.doubted),
            },
        }

    return outcome(lambda: qm.solve(spec_of(record)), describe)


def simulated(record: Record, effort: Effort = SHORT) -> Record:
    """Return the simulator's estimates for a spec, with a fixed seed: best, low and high of each metric."""
    from validate import simulate

    def describe(result: Any) -> Record:
        estimates = {
            name: [float(one.best), float(one.low), float(one.high)] for name, one in result.metrics.items()
        }
        return {"metrics": estimates, "stable": None if result.stable is None else bool(result.stable)}

    lengths = dict(ABOUT[record["kind"]].get("length", {}))
    for name, value in lengths.items():
        lengths[name] = effort.factor > 1 if name == "saturation" else value * effort.factor
    options: dict[str, Any] = {"seed": SEED, "replications": REPLICATIONS} | lengths
    late = max(LATE, 2 * effort.simulate)  # of the first a part may be compilation
    return outcome(lambda: simulate(spec_of(record), **options), describe, late)


def renewed(record: Record) -> Record:
    """Return a record with what the product answers now; simulated where it was."""
    found = resolved({name: value for name, value in record.items() if name != "simulation"})
    return found | {"simulation": simulated(record)} if "simulation" in record else found


def resolved(record: Record) -> Record:
    """Return a record with what the model answers now, and the simulation that it has."""
    return record | {"model": solved(record)}


def resimulated(record: Record) -> Record:
    """Return a record with a long simulation of now, where it had one."""
    return record | {"simulation": simulated(record, LONG)} if "simulation" in record else record


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


SHARES = {kind: one["share"] for kind, one in ABOUT.items()}  # of the specs
LONGEST = 8_000  # characters of a spec beyond which it is passed over: one with thousands of sizes or routes
REFUSED = 8  # of so many specs that are refused one is kept


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
    waits = "ends" in ABOUT[record["kind"]] or isinstance(getattr(spec, "traffic", None), Transactions)
    return waits or (bool(sources) and all(one.closed for one in sources))


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


TOLERANCE = 1e-9  # relative difference up to which two values of the model are the same
BANDS = (0.3, 0.6, 0.8, 0.95)
"""Upper ends of the regions of load; what is above the last is overload, or near it."""
SHOWN = 12  # differences that are listed one by one


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One value that is another now."""

    kind: str
    number: int
    region: str  # load of the fullest resource, by the model of before
    what: str  # "model" or "simulation", and the name of the value
    before: Any
    now: Any

    @property
    def size(self) -> float:
        """Relative difference of two numbers; infinite where one of the two is not a finite number."""
        if not (_finite(self.before) and _finite(self.now)):
            return math.inf
        return abs(self.now - self.before) / max(abs(self.before), abs(self.now), 1e-300)


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def region_of(record: Record) -> str:
    """Return the region of load of a record."""
    load = record["model"].get("load")
    if load is None:
        return "refused"
    upper = next((band for band in BANDS if load <= band), None)
    return f"to {upper:.0%}" if upper else "above"


def differences(before: Record, now: Record) -> list[Difference]:
    """Return the differences: values of the model beyond `TOLERANCE`, estimates beyond their intervals."""
    place = {"kind": before["kind"], "number": before["number"], "region": region_of(before)}
    found = [
        Difference(**place, what=f"model {name}", before=old, now=new)
        for name, old, new in _pairs(before["model"], now["model"])
        if not _same(old, new)
    ]
    if "simulation" in before:
        found += [
            Difference(**place, what=f"simulation {name}", before=_best(old), now=_best(new))
            for name, old, new in _pairs(before["simulation"], now["simulation"])
            if not _compatible(old, new)
        ]
    return found


def _pairs(before: Record, now: Record) -> Iterable[tuple[str, Any, Any]]:
    """Yield the name and both values of everything that one of two outcomes has."""
    for name in dict.fromkeys([*before, *now]):
        if name == "metrics":
            old, new = before.get(name, {}), now.get(name, {})
            yield from ((metric, old.get(metric), new.get(metric)) for metric in dict.fromkeys([*old, *new]))
        elif name not in ("seconds", "load", "features", "exact"):
            yield name, before.get(name), now.get(name)


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=TOLERANCE, abs_tol=1e-300) or (
            math.isnan(old) and math.isnan(new)
        )
    return bool(old == new)


def _best(estimate: Any) -> Any:
    return estimate[0] if isinstance(estimate, list) else estimate


def _compatible(old: Any, new: Any) -> bool:
    """Return whether two estimates are equal, or their intervals meet."""
    if not (isinstance(old, list) and isinstance(new, list)):
        return bool(old == new)
    if all(_same(a, b) for a, b in zip(old, new, strict=True)):
        return True
    return bool(old[1] <= new[2] and new[1] <= old[2])


def errors(records: Iterable[Record]) -> dict[str, list[tuple[tuple[str, int, str], float]]]:
    """Return the size of the model's error against the kept simulation by kind: of each spec and metric.

    As the size of the logarithm of simulated to modelled value, of stable specs and times and rates above 0.
    """
    found = defaultdict(list)
    for record in records:
        simulation = record.get("simulation", {})
        if not (simulation.get("stable") and record["model"].get("stable")):
            continue
        for name, (best, *_) in simulation["metrics"].items():
            value = record["model"]["metrics"].get(name)
            if value is not None and best > 0 and value > 0 and math.isfinite(best) and math.isfinite(value):
                found[record["kind"]].append(
                    ((record["kind"], record["number"], name), abs(math.log(best / value)))
                )
    return found


def report(before: list[Record], now: list[Record]) -> tuple[str, int]:
    """Return the differences by kind and region of load in words, and how many specs differ."""
    found = [each for old, new in zip(before, now, strict=True) for each in differences(old, new)]
    totals = Counter((record["kind"], region_of(record)) for record in before)
    groups = defaultdict(list)
    for each in found:
        groups[each.kind, each.region].append(each)
    rows = []
    for (kind, region), total in sorted(totals.items()):
        group = groups.get((kind, region), [])
        if group:
            sizes = [each.size for each in group if math.isfinite(each.size)]
            names = Counter(each.what for each in group)
            rows.append(
                [
                    kind, region, total, len({each.number for each in group}),
                    f"{np.median(sizes):.2g}" if sizes else "-", f"{max(sizes):.2g}" if sizes else "-",
                    ", ".join(f"{name} ({count})" for name, count in names.most_common(3)),
                ]
            )  # fmt: skip
    changed = len({(each.kind, each.number) for each in found})
    lines = [f"{changed} of {len(before)} specs differ"]
    if rows:
        heads = ["kind", "load", "specs", "differ", "median", "largest", "what (specs)"]
        lines += ["", text_table(heads, [list(map(str, row)) for row in rows])]
        numbers = [each for each in found if isinstance(each.before, float)]
        worst = sorted(numbers, key=lambda each: -each.size)[:SHOWN]
        heads = ["kind", "draw", "what", "before", "now"]
        shown = [[e.kind, str(e.number), e.what, _short(e.before), _short(e.now)] for e in worst]
        lines += ["", "The largest:", text_table(heads, shown)]
    return "\n".join([*lines, *_better(before, now)]), changed


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]


def _better(before: list[Record], now: list[Record]) -> list[str]:
    """Return a table of the model's error against the kept simulations, before and now, where it changed."""
    kept = [
        new | {"simulation": old["simulation"]}
        for old, new in zip(before, now, strict=True)
        if "simulation" in old
    ]
    then, today, rows = errors(before), errors(kept), []
    for kind in sorted(then):
        old, new = dict(then[kind]), dict(today.get(kind, []))
        both = [(old[key], new[key]) for key in old if key in new]
        better = sum(b < a - TOLERANCE for a, b in both)
        worse = sum(b > a + TOLERANCE for a, b in both)
        if better or worse:
            a, b = np.array(both).T
            rows.append(
                [kind, str(len(both)), f"{np.mean(a):.1%}", f"{np.mean(b):.1%}", str(better), str(worse)]
            )
    if not rows:
        return []
    heads = ["kind", "values", "error before", "now", "better", "worse"]
    return ["", "Against the simulations of before:", text_table(heads, rows)]
