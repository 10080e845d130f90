"""Conclusions in words, as plain numbers, and as the guide's page.

The page: ``python -m cases.published.words > .github/docs/papers/conclusions.md``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from cases.published import CASES
from cases.published.conclusions import Check, Found, found_of
from cases.published.paper import published_case

COMMAND = "python -m cases.published.conclusions"
FINDINGS = Mapping[str, Sequence[Found]]  # what is found of each paper's conclusions, by the name of its case


def interval(check: Check | None) -> str:
    """Return a simulated margin with its interval.

    >>> interval(Check(value=1.0, margin=2.13, half_width=0.042)), interval(None)
    ('2.13 ± 0.042', 'not simulated')
    """
    if check is None:
        return "not simulated"
    return f"{check.margin:.3g} ± {check.half_width:.2g}" if check.half_width else f"{check.margin:.3g}"


def flip_text(found: Found) -> str:
    """Return at which value of the parameter the conclusion turns, and what the simulation says of that."""
    parameter = found.conclusion.parameter
    unit = f" {parameter.unit}" if parameter.unit else ""
    words = []
    for low, high, times in found.turns:
        at = f"at {_digits(low)}" if low == high else f"between {_digits(low)} and {_digits(high)}"
        words.append(f"{at}{unit}" if times == 1 else f"{times} times {at}{unit}")
    turn = f"flips {' and '.join(words)}"
    if not words:
        turn = f"does not flip from {parameter.grid[0]:g} to {parameter.grid[-1]:g}{unit}"
    return f"{turn}; {_simulated_flip(found)}"


def _digits(value: float, digits: int = 4) -> str:
    return f"{float(f'{value:.{digits}g}'):g}"


def _simulated_flip(found: Found) -> str:
    if found.flip_confirmed is None:
        return "not simulated"
    if found.simulated_flip is None:
        return "nor simulated" if found.flip is None else "simulated: no turn is decided"
    where = "between {} and {}".format(*(_digits(one, 3) for one in found.simulated_flip))
    return f"simulated{'' if found.flip_confirmed else ' otherwise'}: {where}"


def readings_text(found: Found) -> str:
    """Return the margins in other readings of what the text leaves open."""
    return "; ".join(
        f"{name}: {margin:.3g} / {interval(check)}" for name, (margin, check) in found.others.items()
    )


def tag_of(case: str, found: Found) -> str:
    """Return the tags of the published numbers behind a conclusion."""
    group = found.conclusion.group
    return published_case(case).tags[group]["tag"] if group else "no number"


def text(findings: FINDINGS) -> str:
    """Return conclusions as text, a block each."""
    blocks = []
    for case, mine in findings.items():
        blocks.append(f"{case}: {counted(mine)}")
        for one in mine:
            asked = one.conclusion
            lines = [
                f"{one.verdict}; margin {one.margin:.3g} by the model, {'simulated ' * bool(one.simulated)}"
                f"{interval(one.simulated)}: {asked.margin}",
                f"hangs on {asked.assumption}",
                f"{asked.parameter.name} {asked.parameter.value:g}: {flip_text(one)}",
                *([f"other readings, model / simulated: {readings_text(one)}"] if one.others else []),
                f"published numbers: {tag_of(case, one)}",
            ]
            if one.stale:
                lines.append(f"{one.stale} kept simulations are of other systems and left out: {COMMAND}")
            head = _filled(f'"{asked.words}" ({asked.section})', "  ", "   ")
            blocks.append("\n".join([head, *(_filled(line, "    ", "      ") for line in lines)]))
        said = published_case(case).contradictions
        if said:
            lines = [_filled(f"- {words}", "    ", "      ") for words in said]
            blocks.append("\n".join(["  Where the paper contradicts itself", *lines]))
    return "\n\n".join(blocks)


def counted(found: Sequence[Found]) -> str:
    """Count the conclusions by verdict."""
    verdicts = [one.verdict for one in found]
    return ", ".join(f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts))


def _filled(words: str, first: str, further: str) -> str:
    return fill(words, 110, initial_indent=first, subsequent_indent=further, break_on_hyphens=False)


def markdown(findings: FINDINGS) -> str:
    """Return conclusions as tables of the guide."""
    parts = []
    for case, mine in findings.items():
        lines = [
            f"## `{case}`: {counted(mine)}",
            "",
            "| conclusion | verdict | margin: model / simulated | hangs on | flips | numbers |",
            "|---|---|---|---|---|---|",
        ]
        for one in mine:
            asked = one.conclusion
            value = f"{asked.parameter.name} ({asked.parameter.value:g})"
            margin = f"{one.margin:.3g} / {interval(one.simulated)}: {asked.margin}"
            margin += f". Other readings: {readings_text(one)}" if one.others else ""
            cells = [
                f'"{asked.words}" ({asked.section})', f"**{one.verdict}**", margin,
                f"{value}; {asked.assumption}", flip_text(one), tag_of(case, one),
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
        said = published_case(case).contradictions
        if said:
            lines += ["", "Where the paper contradicts itself:", "", *(f"- {words}" for words in said)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def data(findings: FINDINGS) -> dict[str, Any]:
    """Return conclusions as plain numbers and words."""
    return {
        case: {
            "conclusions": [_row(case, one) for one in mine],
            "contradictions": list(published_case(case).contradictions),
        }
        for case, mine in findings.items()
    }


def _row(case: str, found: Found) -> dict[str, Any]:
    asked, parameter = found.conclusion, found.conclusion.parameter
    return {
        **{name: getattr(asked, name) for name in ("name", "words", "section", "margin", "assumption")},
        "verdict": found.verdict,
        "tag": tag_of(case, found),
        "model_margin": found.margin,
        "simulated": found.simulated,
        "parameter": {"name": parameter.name, "unit": parameter.unit, "value": parameter.value},
        "open": parameter.open,
        "flip": found.flip,
        "flips": found.turns,
        "readings": found.others,
        "simulated_flip": found.simulated_flip,
        "flip_confirmed": found.flip_confirmed,
        "curve": found.curve,
        "checks": found.checks,
        "stale": found.stale,
    }


if __name__ == "__main__":
    head = Path(__file__).with_name("conclusions.md").read_text(encoding="utf-8")
    print(head, markdown({case: found_of(case) for case in CASES}), sep="\n")
