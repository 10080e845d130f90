"""What the LLC-slice paper says about its figures, beside what our simulation and the model find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cases.published.llc3d.specs import EXPONENTS, NAMES, published
from cases.published.llc3d.tables import Cell
from cases.tables import text_table

SLICES, NONE, SHARED = (NAMES[name] for name in ("slices", "none", "shared"))
BLOCKING, WAITING, THROUGHPUT = "blocking_probability", "waiting_latency", "data_rate"
Curves = dict[tuple[str, str, str], list[Cell]]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One claim.

    Parameters
    ----------
    text : str
        What is claimed, with its unit.
    published, model, simulated : str
        The paper's number and ours, or whether it is so.
    """

    text: str
    published: str
    model: str
    simulated: str


def check_claims(cells: Sequence[Cell]) -> list[Claim]:
    """Return the claims of sec. V-D."""
    curves: Curves = {}
    for cell in cells:
        curves.setdefault((cell.figures, cell.curve, cell.metric), []).append(cell)
    return [*_headlines(curves), *_trends(curves), *_crossing(curves)]


def _headlines(curves: Curves) -> list[Claim]:
    """Return the ratios of the abstract."""
    said = published()["headline"]
    found = []
    for name, metric, text in (
        ("waiting_saved", WAITING, "waiting time saved against"),
        ("throughput_gained", THROUGHPUT, "throughput gained against"),
        ("blocking_saved", BLOCKING, "blocking saved against"),
    ):
        for other, percent in said[name].items():
            ours, theirs = (_at(curves, "13-15", curve, metric, 32) for curve in (SLICES, NAMES[other]))
            sign = 1 if name == "throughput_gained" else -1
            simulated, model = (
                f"{sign * 100 * (getattr(ours, column) / getattr(theirs, column) - 1):.0f}"
                for column in ("simulated", "model")
            )
            found.append(
                Claim(
                    text=f"{text} {NAMES[other]}, %",
                    published=f"{percent:.0f}",
                    simulated=simulated,
                    model=model,
                )
            )
    return found


def _trends(curves: Curves) -> list[Claim]:
    """Return how the curves run; what intervals do not tell apart counts as equal."""
    architectures = (SLICES, NONE, SHARED)
    by_exponent = [f"exponent {exponent}" for exponent in EXPONENTS]
    by_cores = ["4 slices", "16 slices", "28 slices", NONE, SHARED]

    def rising(figures: str, names: Iterable[str], sign: int) -> Callable[[str], bool]:
        def holds(column: str) -> bool:
            return all(
                _ordered(before, after, sign * (-1 if metric == THROUGHPUT else 1), column)
                for name in names
                for metric in (BLOCKING, WAITING, THROUGHPUT)
                for before, after in pairwise(curves[figures, name, metric])
            )

        return holds

    def better(
        figures: str, first: str, second: str, where: Callable[[float], bool]
    ) -> Callable[[str], bool]:
        def holds(column: str) -> bool:
            return all(
                _ordered(a, b, 1, column)
                for a, b in zip(
                    curves[figures, first, WAITING], curves[figures, second, WAITING], strict=True
                )
                if where(a.x)
            )

        return holds

    def always(_: float) -> bool:
        return True

    trends = {
        "more entries per line: all worse": rising("13-15", architectures, 1),
        "LLC slices wait less than no LLC at any line": better("13-15", SLICES, NONE, always),
        "LLC slices wait less than the shared LLC at any line": better("13-15", SLICES, SHARED, always),
        "more slices: all better": rising("16-18", by_exponent, -1),
        "a larger exponent waits less at any number of slices": lambda column: all(
            better("16-18", after, before, always)(column) for before, after in pairwise(by_exponent)
        ),
        "more cores: all better": rising("19-21", by_cores, -1),
        "no LLC waits less than 4 slices": better("19-21", NONE, "4 slices", always),
        "16 slices wait less than no LLC": better("19-21", "16 slices", NONE, always),
        "28 slices wait less than no LLC": better("19-21", "28 slices", NONE, always),
        "more entries in all: all worse": rising("22-25", architectures, 1),
        "LLC slices wait much less than no LLC up to 10 000 entries": better(
            "22-25", SLICES, NONE, lambda x: x <= 10_000
        ),
        "no LLC waits less than LLC slices at 60 000 entries": better(
            "22-25", NONE, SLICES, lambda x: x >= 60_000
        ),
    }
    return [
        Claim(text=text, published="yes", simulated=_said(holds("simulated")), model=_said(holds("model")))
        for text, holds in trends.items()
    ]


def _crossing(curves: Curves) -> list[Claim]:
    """Return where no LLC becomes better, and the skip rule that follows."""
    from qmodels.llc.solve_processor import llc_skip_threshold
    from qmodels.systems.cache.llc_processor import LlcProcessor

    entries, misses = {}, {}
    for column in ("simulated", "model"):
        with_llc, without, hits = (
            [(cell.x, getattr(cell, column)) for cell in curves["22-25", name, metric]]
            for name, metric in ((SLICES, WAITING), (NONE, WAITING), (SLICES, "llc_hit_ratio"))
        )
        entries[column], misses[column] = "never", "-"
        gains = [(x, b - a) for (x, a), (_, b) in zip(with_llc, without, strict=True)]
        for (left, gain), (right, loss), (_, high), (_, low) in zip(
            gains, gains[1:], hits, hits[1:], strict=False
        ):
            if gain > 0 >= loss:
                share = gain / (gain - loss)
                entries[column] = f"{left + share * (right - left):.0f}"
                misses[column] = f"{1 - high - share * (low - high):.3f}"
    rule = f"{llc_skip_threshold(LlcProcessor()):.3f}"
    return [
        Claim(text="entries beyond which no LLC is better", published="> 20000", **entries),
        Claim(text="LLC miss ratio there", published="-", **misses),
        Claim(
            text="skip rule: LLC miss ratio beyond which to skip it", published="-", simulated="-", model=rule
        ),
    ]


def _at(curves: Curves, figures: str, curve: str, metric: str, x: float) -> Cell:
    return next(cell for cell in curves[figures, curve, metric] if cell.x == x)


def _ordered(small: Cell, large: Cell, sign: int, column: str) -> bool:
    """Return whether a cell is not above another (for sign -1: not below), as far as can be told."""
    if column == "model":
        return sign * (large.model - small.model) >= -1e-3 * abs(small.model)
    return large.high >= small.low if sign > 0 else large.low <= small.high


def _said(holds: bool) -> str:
    return "yes" if holds else "no"


def claims_text(claims: Iterable[Claim]) -> str:
    """Return the claims as a table."""
    rows = [[claim.text, claim.published, claim.model, claim.simulated] for claim in claims]
    return "Claims\n" + text_table(["claim", "published", "model", "simulated"], rows)
