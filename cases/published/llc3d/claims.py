"""What the LLC-slice paper says about its figures, beside what our simulation and the model find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from cases.published.cell import Cell, only, select
from cases.published.claim import Claim
from cases.published.llc3d.specs import EXPONENTS, NAMES
from cases.published.rows import published

SLICES, NONE, SHARED = (NAMES[name] for name in ("slices", "none", "shared"))
BLOCKING, WAITING, THROUGHPUT = "blocking_probability", "waiting_latency", "throughput_gbps"
Pairs = list[tuple[Cell, Cell]]
"""Of each pair the first should not be above the second."""


def check_claims(cells: Sequence[Cell]) -> list[Claim]:
    """Return the claims of sec. V-D."""
    return [*_headlines(cells), *_trends(cells), *_crossing(cells)]


def _headlines(cells: Sequence[Cell]) -> list[Claim]:
    """Return the ratios of the abstract."""
    found = []
    for name, metric, text, sign in (
        ("waiting_saved", WAITING, "waiting time saved against", -1),
        ("throughput_gained", THROUGHPUT, "throughput gained against", 1),
        ("blocking_saved", BLOCKING, "blocking saved against", -1),
    ):
        for other, percent in published("llc3d")["headline"][name].items():
            ours, theirs = (
                only(cells, figures="13-15", curve=curve, metric=metric, x=32)
                for curve in (SLICES, NAMES[other])
            )
            gains = {
                which: round(sign * 100 * (getattr(ours, which) / getattr(theirs, which) - 1))
                for which in ("model", "simulated")
            }
            text_of = f"{text} {NAMES[other]}, %"
            found.append(
                Claim(text=text_of, group="headline", form="{:.0f}", points=True, published=percent, **gains)
            )
    return found


def _trends(cells: Sequence[Cell]) -> list[Claim]:
    """Return how the curves run; what intervals do not tell apart counts as equal."""

    def curve(figures: str, name: str, metric: str = WAITING) -> list[Cell]:
        return select(cells, figures=figures, curve=name, metric=metric)

    def worse(figures: str, names: Iterable[str]) -> Pairs:
        return [
            (after, before) if metric == THROUGHPUT else (before, after)
            for name in names
            for metric in (BLOCKING, WAITING, THROUGHPUT)
            for before, after in pairwise(curve(figures, name, metric))
        ]

    def better(figures: str, names: Iterable[str]) -> Pairs:
        return [(after, before) for before, after in worse(figures, names)]

    def waits_less(
        figures: str, first: str, second: str, where: Callable[[float], bool] = lambda x: True
    ) -> Pairs:
        pairs = zip(curve(figures, first), curve(figures, second), strict=True)
        return [(a, b) for a, b in pairs if where(a["x"])]

    architectures = (SLICES, NONE, SHARED)
    by_exponent = [f"exponent {exponent}" for exponent in EXPONENTS]
    by_cores = ["4 slices", "16 slices", "28 slices", NONE, SHARED]
    trends = {
        "more entries per line: all worse": worse("13-15", architectures),
        "LLC slices wait less than no LLC at any line": waits_less("13-15", SLICES, NONE),
        "LLC slices wait less than the shared LLC at any line": waits_less("13-15", SLICES, SHARED),
        "more slices: all better": better("16-18", by_exponent),
        "a larger exponent waits less at any number of slices": [
            pair for before, after in pairwise(by_exponent) for pair in waits_less("16-18", after, before)
        ],
        "more cores: all better": better("19-21", by_cores),
        "no LLC waits less than 4 slices": waits_less("19-21", NONE, "4 slices"),
        "16 slices wait less than no LLC": waits_less("19-21", "16 slices", NONE),
        "28 slices wait less than no LLC": waits_less("19-21", "28 slices", NONE),
        "more entries in all: all worse": worse("22-25", architectures),
        "LLC slices wait much less than no LLC up to 10 000 entries": waits_less(
            "22-25", SLICES, NONE, lambda x: x <= 10_000
        ),
        "no LLC waits less than LLC slices at 60 000 entries": waits_less(
            "22-25", NONE, SLICES, lambda x: x >= 60_000
        ),
    }
    return [
        Claim(
            text=text,
            published=True,
            model=all((b.model or 0) - (a.model or 0) >= -1e-3 * abs(a.model or 0) for a, b in pairs),
            simulated=all((b.high or 0) >= (a.low or 0) for a, b in pairs),
        )
        for text, pairs in trends.items()
    ]


def _crossing(cells: Sequence[Cell]) -> list[Claim]:
    """Return where no LLC becomes better, and the skip rule that follows."""
    from qmodels.llc.solve_processor import llc_skip_threshold
    from qmodels.systems.cache.llc_processor import LlcProcessor

    entries: dict[str, Any] = {}
    misses: dict[str, Any] = {}
    for which in ("model", "simulated"):
        with_llc, without, hits = (
            [(cell["x"], getattr(cell, which)) for cell in select(cells, figures="22-25", **place)]
            for place in (
                {"curve": SLICES, "metric": WAITING},
                {"curve": NONE, "metric": WAITING},
                {"curve": SLICES, "metric": "llc_hit_ratio"},
            )
        )
        entries[which] = misses[which] = None
        gains = [(x, b - a) for (x, a), (_, b) in zip(with_llc, without, strict=True)]
        for ((left, gain), (right, loss)), ((_, high), (_, low)) in zip(
            pairwise(gains), pairwise(hits), strict=True
        ):
            if gain > 0 >= loss:
                share = gain / (gain - loss)
                entries[which] = left + share * (right - left)
                misses[which] = 1 - high - share * (low - high)
    rule = llc_skip_threshold(LlcProcessor())
    skip = "skip rule: LLC miss ratio beyond which to skip it"
    return [
        Claim(
            text="entries beyond which no LLC is better",
            form="{:.0f}",
            published=20_000.0,
            said="> 20000",
            **entries,
        ),
        Claim(text="LLC miss ratio there", form="{:.3f}", **misses),
        Claim(text=skip, form="{:.3f}", model=rule),
    ]
