"""The papers' conclusions asked again on today's parts: ``python -m cases.today.papers``.

Each system behind a conclusion is built as for the paper, then its parts are replaced, and its margin is
simulated. It is asked where the paper's system has the part: memories under data queueing and under the
STNoC, a chip of 64 cores under LLC slices. Keeps ``data/papers.csv``; it takes some two minutes on one core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from cases.published.conclusions import Check, Conclusion, conclusions_of, kept, simulated
from cases.published.numbers import write_rows
from cases.tables import markdown_table, read_rows, text_table
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.memory.dram_presets import PRESETS
from qmodels.systems.spec.fields import replace_fields

FILE = Path(__file__).parent / "data" / "papers.csv"
MEMORIES = ("DDR5-6400", "HBM3", "LPDDR5-6400")
SEGMENT_BYTES, TRANSFER_BYTES = 64, 128
CORES = 64


@dataclass(frozen=True, kw_only=True)
class Today:
    """Today's parts in a paper's systems."""

    # case, part: the paper and what is replaced, in words.
    case: str
    part: str
    changes: Mapping[str, Any]  # fields of its systems
    asked: tuple[str, ...]  # the conclusions that can be asked


def queueing(memory: str) -> Today:
    """Return data queueing over one channel of a memory that is never idle.

    A bank stays busy for its row cycle, counted in accesses of 64 bytes.
    """
    timing, geometry = PRESETS[memory].timing, PRESETS[memory].geometry
    access = timing.burst * SEGMENT_BYTES / geometry.block_bytes
    banks = geometry.groups * geometry.banks
    busy = ceil(timing.t_rc / access) - 1
    asked = ("two trials", "three trials", "average", "reads", "ninety", "lists")
    return Today(
        case="dqm",
        part=f"{memory}: {busy} accesses while one of {banks} banks is busy",
        changes={"banks": banks, "busy_accesses": busy},
        asked=asked,
    )


def interleaving(memory: str) -> Today:
    """Return the STNoC over controllers of a memory: one channel's time for a transfer, in ns."""
    timing, geometry = PRESETS[memory].timing, PRESETS[memory].geometry
    bursts = TRANSFER_BYTES / geometry.block_bytes
    service = round(timing.burst * bursts / timing.clock_ghz, 3)
    latency = round((timing.t_rcd + timing.cl) / timing.clock_ghz, 1)
    return Today(
        case="stnoc",
        part=f"{memory}: {service:g} ns a transfer on a channel, {latency:g} ns to the row",
        changes={"traffic.service_cycles": service, "traffic.latency_cycles": latency},
        asked=("gain", "narrow", "close", "transfers", "saturates", "sixteen"),
    )


def slices() -> Today:
    """Return LLC slices of 64 cores over one stack of HBM3, everything else in proportion to the cores.

    A bank's row cycle is the unit of time; L1 answers in 1.25 ns, L2 in 4 and a slice in 15 (our choice).
    Next to nothing is blocked there, so that blocking is not asked.
    """
    timing, geometry = PRESETS["HBM3"].timing, PRESETS["HBM3"].geometry
    unit = timing.t_rc / timing.clock_ghz
    base = LlcProcessor()

    def grown(number: int) -> int:
        return round(number * CORES / base.cores)

    return Today(
        case="llc3d",
        part=f"{CORES} cores and slices, {geometry.channels} pseudo channels of HBM3",
        changes={
            "cores": CORES, "slices": CORES, "capacity": grown(base.capacity), "channels": geometry.channels,
            "llc_bytes": grown(base.llc_bytes), "time_unit_ns": unit, "l1_rate": unit / 1.25,
            "l2_rate": unit / 4, "llc_rate": unit / 15, "popularity.entries": grown(base.popularity.entries),
        },
        asked=("shared", "none", "doubled", "line", "popular"),
    )  # fmt: skip


def today() -> Iterator[tuple[Today, Conclusion]]:
    """Yield the parts and the conclusions asked of them, with the systems of today."""
    for one in [*map(queueing, MEMORIES), *map(interleaving, MEMORIES), slices()]:
        known = {conclusion.name: conclusion for conclusion in conclusions_of(one.case)}
        for name in one.asked:
            yield one, known[name].on(partial(replace_fields, values=one.changes))


def study(*, store: Path | None = None) -> list[dict[str, Any]]:
    """Return the simulated margins then and now."""
    rows = []
    for parts, conclusion in today():
        value = conclusion.parameter.value
        name = conclusion.name
        (paper,) = (one for one in conclusions_of(parts.case) if one.name == name)
        (then,) = (check for check in kept(parts.case, paper)[0] if check.value == value)
        now = simulated(conclusion, value, store=store)
        rows.append(
            {
                "case": parts.case, "part": parts.part, "conclusion": name,
                "then": then.margin, "then_half_width": then.half_width,
                "now": now.margin, "now_half_width": now.half_width,
            }
        )  # fmt: skip
    return rows


def verdict(then: Check, now: Check) -> str:
    """Return what becomes of a conclusion.

    Examples
    --------
    >>> holds, fails = (Check(value=0.0, margin=margin, half_width=0.1) for margin in (1.0, -1.0))
    >>> verdict(holds, fails), verdict(fails, fails)
    ('turns: no longer holds', 'still does not hold')
    """
    if now.holds is None or then.holds is None:
        return "not decided"
    if now.holds == then.holds:
        return "still holds" if now.holds else "still does not hold"
    return "turns: holds now" if now.holds else "turns: no longer holds"


def table(rows: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the conclusions then and now, in words."""
    lines = []
    for row in rows:
        then, now = (
            Check(value=0.0, margin=row[name], half_width=row[f"{name}_half_width"])
            for name in ("then", "now")
        )
        shown = (f"{check.margin:.3g} ± {check.half_width:.2g}" for check in (then, now))
        lines.append([row["case"], row["part"], row["conclusion"], *shown, verdict(then, now)])
    return lines


HEADINGS = ("paper", "today's part", "conclusion", "margin in the paper's system", "today", "verdict")


def markdown(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the guide's table."""
    return markdown_table(HEADINGS, table(rows))


if __name__ == "__main__":
    write_rows(FILE, study())
    print(text_table(HEADINGS, table(read_rows(FILE))))
