"""How often the intervals of `simulate` hold the truth, system by system.

``python -m cases.coverage.study`` simulates every system with up to 300 seeds, 8 replications each as
`simulate` does by itself, and keeps the table; words choose the systems whose names or groups hold one. Ten
minutes on one core.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cases.coverage.hardware import hardware, recorded
from cases.coverage.more_known import all_known
from cases.study.packet_processor import DATA
from cases.tables import columns_of, read_rows, text_table, write_table
from validate import simulate
from validate.estimates.statistics import Estimate
from validate.network.recursions import applies

FILE = DATA / "coverage.csv"
CONFIDENCE = 0.95
BAR = 0.925, 0.975
"""Coverage of 95 % intervals that is as good as nominal."""
SURE = 0.01
"""A system misses the bar if so few or so many covers had less than this probability at its ends."""
SEEDS = {True: 300, False: 300}
"""Seeds of systems run by recursion, and event by event."""
REPLICATIONS = 8
PASSAGES = {True: 20_000, False: 3000}
"""Length of runs: by recursion, and event by event."""
LONG = {"high load": 50_000, "bursts": 30_000}
"""Groups whose runs by recursion have half of the default length, or a third."""


class Trial(NamedTuple):
    """A system to be simulated, its truth by metric, and the standard error of that."""

    group: str
    name: str
    spec: Any
    options: Mapping[str, Any]
    seeds: int
    truth: Callable[[], dict[str, tuple[float, float]]]


class _Here(Executor):
    """Runs what it is given at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def run(spec: Any, seed: int, *, replications: int = REPLICATIONS, **options: Any) -> Any:
    """Simulate one system in this thread, quietly."""
    return simulate(
        spec,
        seed=seed,
        replications=replications,
        confidence=CONFIDENCE,
        executor=_Here(),
        progress=lambda *_: None,
        **options,
    )


def trials() -> Iterator[Trial]:
    """Yield every system of the table."""
    for group, systems in all_known().items():
        for one in systems:
            fast = applies(one.spec)
            passages = LONG.get(group, PASSAGES[True]) if fast else PASSAGES[False]
            exact = partial(
                dict[str, tuple[float, float]], {m: (value, 0.0) for m, value in one.exact.items()}
            )
            name = f"{one.name} at {one.load:.2g}"
            yield Trial(group, name, one.spec, {"passages": passages}, SEEDS[fast], exact)
    for group, measured in (("traces", recorded()), ("hardware", hardware())):
        for case in measured:
            extra = {"saturation": False} if case.name.startswith("packet-processor") else {}

            def truth(case: Any = case, extra: Any = extra) -> dict[str, tuple[float, float]]:
                # Other seeds, longer runs: a bias of the start that short runs have would show as misses.
                length = {name: case.longer * value for name, value in case.length.items()}
                found = run(case.spec, 2**31, replications=16 if length else 200, **length, **extra)
                estimate = found[case.metric]
                return {case.metric: (estimate.best, (estimate.high - estimate.low) / 4)}

            yield Trial(group, case.name, case.spec, {**case.length, **extra}, case.seeds, truth)


def observe(trial: Trial) -> list[dict[str, Any]]:
    """Return what the intervals of a system cover, a row for each metric."""
    truth = trial.truth()
    # No two systems share their random numbers, so that they are not wrong together.
    first = 1000 * (zlib.crc32(trial.name.encode()) % 2**20)
    results = [run(trial.spec, seed, **trial.options) for seed in range(first, first + trial.seeds)]
    return [_row(trial, metric, value, error, results) for metric, (value, error) in truth.items()]


def _row(trial: Trial, metric: str, value: float, error: float, results: Sequence[Any]) -> dict[str, Any]:
    good = [r[metric].valid and r.stable and not r.short for r in results]
    said = [r[metric] for r, well in zip(results, good, strict=True) if not well]
    trusted = [r[metric] for r, well in zip(results, good, strict=True) if well]
    return {
        "group": trial.group,
        "system": trial.name,
        "metric": metric,
        "truth": value,
        "truth_error": error,
        "length": next((n for name, n in trial.options.items() if name != "saturation"), None),
        "seeds": trial.seeds,
        "said": len(said),
        "said_covered": sum(_miss(e, value, error) == 0 for e in said),
        "trusted": len(trusted),
        "covered": sum(_miss(e, value, error) == 0 for e in trusted),
        "below": sum(_miss(e, value, error) < 0 for e in trusted),
        "above": sum(_miss(e, value, error) > 0 for e in trusted),
        "half_width": float(np.median([e.half_width for e in trusted])) / abs(value) if trusted else None,
    }


def _miss(estimate: Estimate, value: float, error: float) -> int:
    """Return -1 or 1 where the interval lies below or above a truth known to a standard error, else 0."""
    if value > estimate.best:
        return -int(value > estimate.best + np.hypot(estimate.high - estimate.best, 2 * error))
    return int(value < estimate.best - np.hypot(estimate.best - estimate.low, 2 * error))


def verdict(row: Mapping[str, Any]) -> str:
    """Return ``covers``, ``says so`` or ``misses``.

    A system says so where at least half of its results carry a doubt or are called too short. Of the others
    those without are held to `BAR`: they miss it if their count lies where a coverage at the nearer end of
    the bar has a probability below `SURE`.

    Examples
    --------
    >>> row = {"seeds": 300, "trusted": 300, "covered": 270}
    >>> verdict(row), verdict(row | {"covered": 260}), verdict(row | {"trusted": 2, "covered": 0})
    ('covers', 'misses', 'says so')
    """
    from scipy.stats import binom

    trusted, covered = row["trusted"], row["covered"]
    if 2 * trusted <= row["seeds"]:
        return "says so"
    few = binom.cdf(covered, trusted, BAR[0]) < SURE
    many = binom.sf(covered - 1, trusted, BAR[1]) < SURE
    return "misses" if few or many else "covers"


def main(words: Sequence[str]) -> None:
    """Observe the systems of these words, or all, and keep the table."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in read_rows(FILE) if FILE.exists() else []:
        rows.setdefault(row["system"], []).append(row)
    known = list(trials())
    for trial in known:
        if not words or any(word in f"{trial.group}: {trial.name}" for word in words):
            rows[trial.name] = observe(trial)
            for row in rows[trial.name]:
                print(f"{trial.name}: {row['covered']} of {row['trusted']}, {verdict(row)}", flush=True)
            flat = [row for trial in known for row in rows.get(trial.name, [])]
            write_table(FILE, columns_of(flat))
    print(summary(read_rows(FILE)))


def summary(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return systems by group, verdicts of their first metrics and coverage of those trusted, and counts."""
    first = {row["system"]: row for row in reversed(rows)}.values()
    lines = []
    for group in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in first if row["group"] == group]
        counts = [sum(verdict(row) == word for row in mine) for word in ("covers", "says so", "misses")]
        covered, trusted = (sum(row[name] for row in mine) for name in ("covered", "trusted"))
        lines.append([group, len(mine), *counts, trusted, 100 * covered / max(trusted, 1)])
    share = [row["covered"] / row["trusted"] for row in first if verdict(row) != "says so"]
    inside = sum(BAR[0] <= one <= BAR[1] for one in share)
    said, outside = len(first) - len(share), len(share) - inside
    last = f"{inside} within {BAR[0]:.1%} to {BAR[1]:.1%}, {said} say so, {outside} outside"
    headings = ["group", "systems", "covers", "says so", "misses", "intervals", "covered %"]
    return f"{text_table(headings, lines)}\n{last}"


if __name__ == "__main__":
    main(sys.argv[1:])
