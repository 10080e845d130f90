"""What the LLC-slice paper says about its figures, beside what our simulation and the model find."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from cases.published.cell import Cell, only, select
from cases.published.claim import Claim, compared, ratio
from cases.published.llc3d.specs import BASE, EXPONENTS, FEWER, NAMES, readings
from cases.published.rows import published

SLICES, NONE, SHARED = (NAMES[name] for name in ("slices", "none", "shared"))
BLOCKING, WAITING, THROUGHPUT = "blocking_probability", "waiting_latency", "data_rate"
Pairs = list[tuple[Cell, Cell]]
"""Of each pair the first should not be above the second."""


def check_claims(cells: Sequence[Cell]) -> list[Claim]:
    """Return the claims of sec. V-D."""
    return [*_headlines(cells), *_trends(cells), *_little_effect(cells), *_fewer(cells), *_crossing(cells)]


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
            options = {"group": "headline", "form": "{:.0f}", "points": True, "published": percent}
            gain = partial(_gain, ours, theirs, sign)
            found.append(compared(f"{text} {NAMES[other]}, %", gain, **options))
    return found


def _gain(ours: Cell, theirs: Cell, sign: int, which: str) -> int:
    """Return a share gained, in percent, rounded as the paper's."""
    return round(sign * 100 * (getattr(ours, which) / getattr(theirs, which) - 1))


def _trends(cells: Sequence[Cell]) -> list[Claim]:
    """Return how the curves run; what intervals do not tell apart counts as equal."""
    claims = []
    for one in published("llc3d")["trends"]:
        pairs = RULES[one["rule"]](cells, one["figures"], one["curves"], *one.get("x", ()))
        model = all((b.model or 0) - (a.model or 0) >= -1e-3 * abs(a.model or 0) for a, b in pairs)
        simulated = all((b.high or 0) >= (a.low or 0) for a, b in pairs)
        claims.append(Claim(text=one["text"], published=True, model=model, simulated=simulated))
    return claims


def _worse(cells: Sequence[Cell], figures: str, names: Sequence[str]) -> Pairs:
    """Return that along curves all becomes worse."""
    return [
        (after, before) if metric == THROUGHPUT else (before, after)
        for name in names
        for metric in (BLOCKING, WAITING, THROUGHPUT)
        for before, after in pairwise(select(cells, figures=figures, curve=name, metric=metric))
    ]


def _better(cells: Sequence[Cell], figures: str, names: Sequence[str]) -> Pairs:
    """Return that along curves all becomes better."""
    return [(after, before) for before, after in _worse(cells, figures, names)]


def _waits_less(
    cells: Sequence[Cell], figures: str, names: Sequence[str], least: float = 0, most: float = float("inf")
) -> Pairs:
    """Return that each curve waits less than the next, from the least to the most x."""
    curves = [select(cells, figures=figures, curve=name, metric=WAITING) for name in names]
    pairs = [pair for two in pairwise(curves) for pair in zip(*two, strict=True)]
    return [(a, b) for a, b in pairs if least <= a["x"] <= most]


RULES = {"worse": _worse, "better": _better, "waits less": _waits_less}


def _little_effect(cells: Sequence[Cell]) -> list[Claim]:
    """Return what slices beyond half still gain; it is little if the abstract's gain over no LLC is more."""
    said, claims = published("llc3d"), []
    half, every = said["little_effect"]["slices"]
    for name, metric, text, sign in (
        ("waiting_saved", WAITING, "waiting time saved", -1),
        ("throughput_gained", THROUGHPUT, "throughput gained", 1),
    ):
        for exponent in EXPONENTS:
            few, all_ = (
                only(cells, figures="16-18", curve=f"exponent {exponent}", metric=metric, x=x)
                for x in (half, every)
            )
            gain: dict[str, Any] = {
                of: sign * 100 * (ratio(all_, few)(of) - 1) for of in ("model", "simulated")
            }
            claims.append(
                Claim(
                    text=f"{text} from {half} to {every} slices, exponent {exponent}, %",
                    form="{:.1f}",
                    said="little",
                    holds=gain["simulated"] < said["headline"][name]["none"],
                    **gain,
                )
            )
    return claims


def _fewer(cells: Sequence[Cell]) -> list[Claim]:
    """Return whether 16 slices wait less than no LLC, by reading of the text: how much longer, in percent."""
    claims = []
    for reading, specs in readings().items():
        ours = only(cells, figures=reading, curve=FEWER, metric=WAITING)
        other = reading if NAMES["none"] in specs else BASE
        without = only(cells, figures=other, curve=NONE, metric=WAITING)
        more: dict[str, Any] = {of: 100 * (ratio(ours, without)(of) - 1) for of in ("model", "simulated")}
        apart = (ours.low or 0) > (without.high or 0) or (ours.high or 0) < (without.low or 0)
        claims.append(
            Claim(
                text=f"16 slices wait longer than no LLC, {reading}, %",
                form="{:.1f}",
                said="< 0",
                holds=more["simulated"] < 0 if apart else None,
                **more,
            )
        )
    return claims


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
    beyond = "entries beyond which no LLC is better"
    skip = "skip rule: LLC miss ratio beyond which to skip it"
    return [
        Claim(text=beyond, form="{:.0f}", published=20_000.0, said="> 20000", **entries),
        Claim(text="LLC miss ratio there", form="{:.3f}", **misses),
        Claim(text=skip, form="{:.3f}", model=rule),
    ]
