"""Whether the model orders neighbours as the simulation does: drawn systems with one decision changed.

A neighbour is simulated with the seed of the system that it is drawn from, so that both meet the same random
numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice
from typing import Any

from cases.evidence.record import LONG, Record, simulated, solved, spec_of
from qmodels.systems.spec.fields import get_field, replace_paths
from qmodels.systems.spec.text.toml import to_toml

DECISIONS: dict[str, dict[str, Any]] = {
    "packet-processor": {
        "dram.interleaving_step": 2.0, "dram.channels": 2.0, "free_list.alloc_trial_count": 2.0,
        "noc.link_width": 2.0, "llc.slices": 2.0, "dram.page_policy": ("open", "closed"),
    },
    "noc": {"link_width": 2.0, "router.buffer_flits": 2.0, "router.virtual_channels": 2.0},
    "dram": {
        "page_policy": ("open", "closed"), "scheduler": ("fr-fcfs", "in-order"), "address_map.step": 2.0,
        "geometry.channels": 2.0,
    },
    "data-queueing": {"allocation.alloc_trial_count": 2.0},
    "llc-processor": {"slices": 2.0, "channels": 2.0},
    "system": {"parts.pool.count": 2.0},
}  # fmt: skip
"""The decisions of each kind: a factor of the number, or two words of which the other is taken."""
NOTICED = 0.01
"""Relative difference from which on a choice matters."""
FEWEST_PAIRS = 5
"""Pairs that the simulation separates, for a metric to be told of along a decision."""


def _draw(record: Record) -> tuple[str, int, int]:
    """Return kind, seed and number of the draw of a record."""
    return record["kind"], record.get("seed", 1), record["number"]


def neighbours(records: Iterable[Record], count: int) -> Iterator[Record]:
    """Yield up to so many neighbours of each decision, without answers; of drawn systems that are stable."""
    left = Counter({(kind, path): count for kind, paths in DECISIONS.items() for path in paths})
    for record in records:
        paths = DECISIONS.get(record["kind"], {})
        open_ = [path for path in paths if left[record["kind"], path] > 0]
        if not open_ or not record.get("simulation", {}).get("stable") or "recorded" in record:
            continue
        spec, path = spec_of(record), open_[record["number"] % len(open_)]
        try:
            value, change = get_field(spec, path), paths[path]
            other = change[change[0] == value] if isinstance(change, tuple) else round(change * value)
            changed = to_toml(replace_paths(spec, {path: other}), kind=True)
        except (ValueError, TypeError, KeyError, AttributeError):
            continue
        left[record["kind"], path] -= 1
        own = {name: record[name] for name in ("kind", "seed", "number") if name in record}
        yield own | {"of": path, "toml": changed}


def answered(record: Record) -> Record | None:
    """Return a neighbour with both answers; None where it has one of them not."""
    found = record | {"model": solved(record)}
    if found["model"].get("stable") and found["model"]["seconds"] < LONG.solve:
        found["simulation"] = simulated(record, LONG)
    return found if "metrics" in found.get("simulation", {}) else None


def drawn_neighbours(records: list[Record], count: int, executor: Executor) -> list[Record]:
    """Return neighbours with their answers, up to so many of each decision."""
    some = executor.map(answered, islice(neighbours(records, count), 10**6))
    return [record for record in some if record is not None]


def directions(records: Iterable[Record], others: Iterable[Record]) -> dict[str, Any]:
    """Return by kind, decision and metric how many pairs are ordered alike, of those that are separated.

    A simulation separates two whose intervals do not meet, and whose values differ by `NOTICED`. A choice to
    which the model is blind is not ordered alike.
    """
    base = {_draw(record): record for record in records}
    alike: Counter[tuple[str, str, str]] = Counter()
    separated: Counter[tuple[str, str, str]] = Counter()
    for other in others:
        one = base.get(_draw(other))
        if one is None or "metrics" not in one["model"] or "metrics" not in other["model"]:
            continue
        for name, (best, low, high) in other["simulation"]["metrics"].items():
            first = one.get("simulation", {}).get("metrics", {}).get(name)
            models = one["model"]["metrics"].get(name), other["model"]["metrics"].get(name)
            if first is None or None in models or not (low > first[2] or high < first[1]):
                continue
            if abs(best - first[0]) < NOTICED * max(abs(best), abs(first[0])):
                continue
            key = other["kind"], other["of"], name
            separated[key] += 1
            alike[key] += (models[1] - models[0]) * (best - first[0]) > 0
    found: dict[str, Any] = {}
    for (kind, path, name), count in sorted(separated.items()):
        if count >= FEWEST_PAIRS and "[" not in name:
            found.setdefault(kind, {}).setdefault(path, {})[name] = [alike[kind, path, name], count]
    return found
