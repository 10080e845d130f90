"""What the LLC-slice paper concludes (Korikawa et al., IEEE Access 2020), as margins of its own systems."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cases.published.conclusions.conclusion import Conclusion, Parameter, Reading, gained, same, saved
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


CONCLUSIONS = (
    Conclusion(
        name="shared",
        words="the proposed architecture reduces the memory access latency by 62 % ... compared to the "
        "architecture with on-chip shared LLC",
        section="abstract",
        margin="waiting saved against a shared LLC of the same size [%]",
        assumption="one server of the rate of a slice stands for the whole shared LLC",
        group="headline",
        parameter=Parameter(
            name="rate of the LLC over that of a bank", value=10.0,
            values=(5.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0, 280.0),
        ),
        readings=lambda rate: against("shared", WAITING, llc_rate=rate),
        of=saved,
        options=OPTIONS,
    ),
    Conclusion(
        name="none",
        words="the proposed architecture reduces the memory access latency by ... 12 % ... compared to ... "
        "that without on-chip LLC",
        section="abstract; sec. V-D: 'the architecture without LLC slightly outperforms' beyond one point",
        margin="waiting saved against no LLC [%]",
        assumption="which entries share a line and how many lines a slice holds",
        group="headline",
        parameter=Parameter(name="entries of the table", value=20_000.0, values=ENTRIES),
        readings=lambda entries: against("none", WAITING, entries=round(entries)),
        of=saved,
        options=OPTIONS,
    ),
    Conclusion(
        name="doubled",
        words="increases the throughput by 108 % ... compared to the architecture with on-chip shared LLC",
        section="abstract",
        margin="throughput gained over a shared LLC, beyond 100 [points]",
        assumption="both are offered the same load, which the shared LLC cannot carry",
        group="headline",
        parameter=Parameter(name="load", value=0.7, values=LOADS),
        readings=lambda load: against("shared", RATE, load=load),
        of=lambda ours, theirs: gained(ours, theirs) - 100,
        options=OPTIONS,
    ),
    Conclusion(
        name="blocking",
        words="reducing blocking probability of memory requests ... 50 % compared to ... that without "
        "on-chip LLC",
        section="abstract",
        margin="share of the blocking that is saved against no LLC, beyond 40 [points]",
        assumption="the load: what is blocked is a small difference of large numbers",
        group="headline",
        parameter=Parameter(name="load", value=0.7, values=(0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)),
        readings=lambda load: against("none", BLOCKED, load=load),
        of=lambda ours, theirs: saved(ours, theirs) - 40,
        options=OPTIONS,
    ),
    Conclusion(
        name="line",
        words="the proposed architecture outperforms the other two architectures in terms of each "
        "considered aspect",
        section="sec. V-D, figs. 13 to 15",
        margin="waiting saved against the better of the two others [%]",
        assumption="which entries share a line: any",
        group="headline",
        parameter=Parameter(name="entries in a line", value=32, values=(1, 2, 4, 16, 32, 64), whole=True),
        readings=lambda entries: [
            *against("none", WAITING, line_bytes=round(2 * entries)),
            against("shared", WAITING, line_bytes=round(2 * entries))[1],
        ],
        of=lambda ours, *others: saved(ours, min(others)),
        options=OPTIONS,
    ),
    Conclusion(
        name="half",
        words="the number of assigned LLC slices does not significantly affect the system performance if "
        "more than half of the total number of LLC slices are assigned",
        section="sec. VIII",
        margin="10 less what waiting is longer than with all 28 slices [%]",
        assumption="16 slices, the first point above half; 'not significantly' taken for 10 %; a slice of "
        "146 bytes holds whole lines",
        parameter=Parameter(name="slices", value=16, values=SLICES, whole=True),
        readings=lambda slices: same([replace(BASE, slices=round(slices)), BASE], WAITING),
        of=lambda some, every: 10 - gained(some, every),
        options=OPTIONS,
    ),
    Conclusion(
        name="sixteen",
        words="when L is set to 16 and 28, the proposed architecture outperforms the architecture without "
        "LLC",
        section="sec. V-D, figs. 19 to 21",
        margin="waiting saved against no LLC [%]",
        assumption="a slice of 146 bytes holds whole lines of 64",
        parameter=Parameter(name="slices", value=16, values=SLICES, whole=True),
        readings=lambda slices: against("none", WAITING, slices=round(slices)),
        of=saved,
        options=OPTIONS,
    ),
    Conclusion(
        name="popular",
        words="The on-chip cache memories become more effective for larger alpha",
        section="sec. V-D, figs. 16 to 18",
        margin="waiting saved by an exponent of 0.95 against 0.64 [%]",
        assumption="the exponents, which stand in the pictures alone; hot lines do not meet in a slice",
        parameter=Parameter(name="slices", value=28, values=(1, 2, 4, 8, 16, 28), whole=True),
        readings=lambda slices: same(
            [
                replace_fields(BASE, {"slices": round(slices), "exponent": exponent})
                for exponent in (0.95, 0.64)
            ],
            WAITING,
        ),
        of=saved,
        options=OPTIONS,
    ),
)  # fmt: skip

CONTRADICTIONS: tuple[str, ...] = (
    "Sec. V-C: 28 slices of 146 bytes are 4088 bytes, as the shared LLC has, but a line has 64 bytes: 2.28 "
    "lines in a slice cannot be; 2 whole lines waste 12 % of the LLC, and the text does not say which it "
    "is.",
)
