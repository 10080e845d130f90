"""Banks of the pointer memory at 400 and 800 Gb/s: ``python -m cases.today.pointer_banks``.

Explores banks x ports x trials with the model, simulates the designs that decide, lists for small packets
among them, which the model of a system does not see, keeps both in ``data/pointer-banks.csv``, and prints
what it comes to. It takes some three minutes on one core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from cases.published.numbers import write_rows
from cases.tables import markdown_table, read_rows, text_table
from cases.today.processor import Design, processor
from optimize.search.explore import explore
from optimize.spaces.space import Space

FILE = Path(__file__).parent / "data" / "pointer-banks.csv"
GBPS = (400, 800)
BANKS = (1, 2, 4, 8, 16)
TRIALS = (1, 2, 3)
SMALL = 2
"""Segments of a small packet, where it has lists of its own."""
CLOCKS = (1.0, 2.0)
HEADROOM = 1.1
"""What a design carries at least, over the line rate."""
HALF = 0.5
"""Load at which the capacity is measured in the simulation, by how busy the pointer memory is."""
FIELDS = ("gbps", "banks", "clock_ghz", "trials", "small")
OPTIONS: dict[str, Any] = {"passages": 20_000, "replications": 5}
SHORT: dict[str, Any] = {"passages": 8_000, "replications": 2}
"""Enough for a busy fraction."""
Row = Mapping[str, Any]


@cache
def solved(design: Design) -> dict[str, float]:
    """Return what the model says of a design.

    ``carried`` is the largest line rate [Gb/s], ``latency`` that of a packet at line rate [ns], ``accesses``
    what the pointer memory can do [accesses/ns].
    """
    from qmodels import solve

    answer = solve(processor(design))
    carried = float(answer["saturation_factor"]) * design.gbps * design.load
    return {
        "carried": carried,
        "headroom": carried / design.gbps,
        "latency": float(answer["latency"]),
        "accesses": design.banks * design.clock_ghz,
    }


def explored(gbps: int) -> list[dict[str, Any]]:
    """Return all designs at a line rate, and which are on the front of latency against pointer memory."""
    space = Space(Design(gbps=gbps), banks=list(BANKS), clock_ghz=list(CLOCKS), trials=list(TRIALS))
    found = explore(
        space, solved, minimize=("latency", "accesses"), subject_to={"headroom": (HEADROOM, None)}
    )
    front = {int(found.table["design"][row]) for row in found.front}
    rows = []
    for number in range(space.size):
        design = space.spec(number)
        chosen = {name: getattr(design, name) for name in FIELDS}
        rows.append({**chosen, **solved(design), "front": number in front})
    return rows


def design_of(row: Row) -> Design:
    """Return the design of a row."""
    return Design(**{name: row[name] for name in FIELDS})


def deciding(rows: Sequence[Row]) -> list[Design]:
    """Return the designs that decide.

    They are the front; with one port and each number of trials the fewest banks that carry the line rate,
    and half as many, which do not; and with so many banks one trial, and lists for small packets.
    """
    chosen = [design_of(row) for row in rows if row["front"]]
    for gbps in GBPS:
        for trials in TRIALS:
            mine = [
                row for row in rows if (row["gbps"], row["trials"], row["clock_ghz"]) == (gbps, trials, 1.0)
            ]
            banks = min(row["banks"] for row in mine if row["headroom"] >= HEADROOM)
            few = Design(gbps=gbps, banks=banks, trials=trials)
            chosen += [few, replace(few, banks=banks // 2), replace(few, trials=1)]
            chosen += [replace(few, small=SMALL)] * (trials == 2)
    return list(dict.fromkeys(chosen))


def simulated(design: Design, *, store: Path | None = None) -> dict[str, Any]:
    """Return the latency at line rate with its interval, and the capacity of the pointer memory."""
    from validate import simulate

    quiet: dict[str, Any] = {"progress": lambda done, known: None, "store": store}
    full = simulate(processor(design), **quiet, **OPTIONS)
    half = simulate(processor(replace(design, load=HALF)), **quiet, **SHORT)
    busy = max(one.best for name, one in half.utilization.items() if name.startswith("pointers"))
    return {
        "simulated_latency": full["latency"].best,
        "simulated_low": full["latency"].low,
        "simulated_high": full["latency"].high,
        "simulated_stable": bool(full.stable),
        "simulated_pointer_capacity": HALF * design.gbps / busy,
    }


def study() -> list[dict[str, Any]]:
    """Return all designs, those that decide with their simulation."""
    rows = {design_of(row): row for gbps in GBPS for row in explored(gbps)}
    for design in deciding(list(rows.values())):
        chosen = {name: getattr(design, name) for name in FIELDS}
        rows.setdefault(design, {**chosen, **solved(design), "front": False}).update(simulated(design))
    return list(rows.values())


def table(rows: Iterable[Row]) -> list[list[str]]:
    """Return the designs that were simulated, in words."""
    lines = []
    for row in rows:
        if row.get("simulated_latency") is None:
            continue
        carries = "yes" if row["headroom"] >= HEADROOM else "no"
        lines.append(
            [
                f"{row['gbps']}",
                f"{row['banks']}" + (" of two ports" if row["clock_ghz"] > 1 else ""),
                f"{row['trials']}",
                "3" if row["small"] else "1",
                f"{row['carried']:.0f}",
                f"{row['simulated_pointer_capacity']:.0f}",
                carries,
                f"{row['latency']:.0f}",
                _latency(row) if row["simulated_stable"] else "grows",
                "*" if row["front"] else "",
            ]
        )
    return lines


HEADINGS = (
    "Gb/s", "banks", "trials", "lists", "carries, model", "pointer memory carries, simulated", "enough",
    "latency, model", "simulated", "front",
)  # fmt: skip


def markdown(rows: Iterable[Row]) -> str:
    """Return the guide's table."""
    return markdown_table(HEADINGS, table(rows))


def summary(rows: Sequence[Row]) -> str:
    """Return what it comes to, and the error of the model on the designs that decide."""
    seen = [row for row in rows if row.get("simulated_latency") is not None]
    most = {gbps: max(row["carried"] for row in rows if row["gbps"] == gbps) for gbps in GBPS}
    limits = [
        100 * (row["carried"] / row["simulated_pointer_capacity"] - 1)
        for row in seen
        if row["carried"] < 0.99 * most[row["gbps"]] and not row["small"]
    ]
    waits = [
        100 * (row["latency"] / row["simulated_latency"] - 1)
        for row in seen
        if row["simulated_stable"] and row["headroom"] >= HEADROOM and not row["small"]
    ]
    lines = [
        f"- Error of the model on these designs: capacity of the pointer memory {_error(limits)}; latency at "
        f"line rate {_error(waits)}."
    ]
    return "\n".join(lines + [line for gbps in GBPS for line in _at(gbps, rows)])


def _error(errors: Sequence[float]) -> str:
    sizes = [abs(error) for error in errors]
    bias = sum(errors) / len(errors)
    return (
        f"{sum(sizes) / len(sizes):.1f} % (bias {bias:+.1f}, largest {max(sizes):.1f}; {len(sizes)} designs)"
    )


def _at(gbps: int, rows: Sequence[Row]) -> list[str]:
    mine = [row for row in rows if row["gbps"] == gbps and row["clock_ghz"] == 1 and not row["small"]]
    (one,) = (row for row in mine if (row["banks"], row["trials"]) == (1, 1))
    few = {
        trials: min(row["banks"] for row in mine if row["trials"] == trials and row["headroom"] >= HEADROOM)
        for trials in TRIALS
    }
    needed = ", ".join(f"{banks} with at most {trials}" for trials, banks in few.items())
    banks = few[TRIALS[-1]]
    same = [row for row in rows if (row["gbps"], row["banks"], row["clock_ghz"]) == (gbps, banks, 1)]
    times = [_latency(row) for row in sorted(same, key=lambda row: row["trials"]) if not row["small"]]
    (lists,) = (row for row in same if row["small"])
    return [
        f"- {gbps} Gb/s: a pointer memory of one bank carries {one['carried']:.0f} Gb/s by the model. "
        f"Banks that are enough by it, by trials: {needed}. With {banks} banks a packet takes "
        f"{', '.join(times)} ns with trials up to {', '.join(map(str, TRIALS))}; with "
        f"{lists['trials']} trials and lists for packets of up to {lists['small']} segments "
        f"{_latency(lists)} ns (simulated)."
    ]


def _latency(row: Row) -> str:
    return f"{row['simulated_latency']:.0f} ± {(row['simulated_high'] - row['simulated_low']) / 2:.0f}"


if __name__ == "__main__":
    found = study()
    write_rows(FILE, found)
    print(text_table(HEADINGS, table(read_rows(FILE))))
    print(summary(read_rows(FILE)))
