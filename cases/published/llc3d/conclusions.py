"""What the LLC-slice paper concludes (Korikawa et al., IEEE Access 2020), as margins of its own systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cases.published.conclusions.conclusion import Parameter, Reading, gained, same, saved, stated
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.spec.fields import replace_fields

BASE = LlcProcessor()
OPTIONS = {"requests": 75_000, "replications": 24}
WAITING, RATE, BLOCKED = "waiting_latency", "data_rate", "blocking_probability"
SLICES = (4, 8, 12, 14, 16, 20, 24, 28)
ENTRIES = (2_000.0, 5_000.0, 10_000.0, 20_000.0, 40_000.0, 60_000.0)
LOADS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def against(other: str, metric: str, **changes: Any) -> list[Reading]:
    """Return what is read with slices and in another architecture."""
    one = replace_fields(BASE, changes)
    return same([one, replace(one, architecture=other)], metric)


conclusion = stated("llc3d", options=OPTIONS)

CONCLUSIONS = (
    conclusion(
        "shared",
        margin="waiting saved against a shared LLC of the same size [%]",
        parameter=Parameter(
            name="rate of the LLC over that of a bank", value=10.0,
            values=(5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 280.0),
        ),
        readings=lambda rate: against("shared", WAITING, llc_rate=rate),
        of=saved,
    ),
    conclusion(
        "none",
        margin="waiting saved against no LLC [%]",
        parameter=Parameter(name="entries of the table", value=20_000.0, values=ENTRIES),
        readings=lambda entries: against("none", WAITING, entries=round(entries)),
        of=saved,
    ),
    conclusion(
        "doubled",
        margin="throughput gained over a shared LLC, beyond 100 [points]",
        parameter=Parameter(name="load", value=0.7, values=LOADS),
        readings=lambda load: against("shared", RATE, load=load),
        of=lambda ours, theirs: gained(ours, theirs) - 100,
    ),
    conclusion(
        "blocking",
        margin="share of the blocking that is saved against no LLC, beyond 40 [points]",
        parameter=Parameter(name="load", value=0.7, values=(0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)),
        readings=lambda load: against("none", BLOCKED, load=load),
        of=lambda ours, theirs: saved(ours, theirs) - 40,
    ),
    conclusion(
        "line",
        margin="waiting saved against the better of the two others [%]",
        parameter=Parameter(name="entries in a line", value=32, values=(1, 2, 4, 16, 32, 64), whole=True),
        readings=lambda entries: [
            *against("none", WAITING, line_bytes=round(2 * entries)),
            against("shared", WAITING, line_bytes=round(2 * entries))[1],
        ],
        of=lambda ours, *others: saved(ours, min(others)),
    ),
    conclusion(
        "half",
        margin="10 less what waiting is longer than with all 28 slices [%]",
        parameter=Parameter(name="slices", value=16, values=SLICES, whole=True),
        readings=lambda slices: same([replace(BASE, slices=round(slices)), BASE], WAITING),
        of=lambda some, every: 10 - gained(some, every),
    ),
    conclusion(
        "sixteen",
        margin="waiting saved against no LLC [%]",
        parameter=Parameter(name="slices", value=16, values=SLICES, whole=True),
        readings=lambda slices: against("none", WAITING, slices=round(slices)),
        of=saved,
    ),
    conclusion(
        "popular",
        margin="waiting saved by an exponent of 0.95 against 0.64 [%]",
        parameter=Parameter(name="slices", value=28, values=(1, 2, 4, 8, 16, 28), whole=True),
        readings=lambda slices: same(
            [
                replace_fields(BASE, {"slices": round(slices), "exponent": exponent})
                for exponent in (0.95, 0.64)
            ],
            WAITING,
        ),
        of=saved,
    ),
)  # fmt: skip

CONTRADICTIONS: tuple[str, ...] = (
    "Sec. V-C: 28 slices of 146 bytes are 4088 bytes, as the shared LLC has, but a line has 64 bytes: 2.28 "
    "lines in a slice cannot be; 2 whole lines waste 12 % of the LLC, and the text does not say which it "
    "is.",
)
