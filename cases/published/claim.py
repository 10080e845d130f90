"""What a paper states in words beside what we find."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cases.published.cell import Number
from cases.tables import text_table


@dataclass(frozen=True, kw_only=True)
class Claim(Number):
    """One statement; numbers that are True or False say whether it is so."""

    text: str  # what is stated, with its unit
    heading: str = "Claims"  # of the table in which it is shown
    form: str = "{:.3g}"  # of a number that is shown
    said: str = ""  # how the paper puts it, if not as a number of this form
    holds: bool | None = None  # whether the simulation agrees; None where that is not a question of yes or no

    def shown(self, which: str) -> str:
        """Return ``"published"``, ``"model"``, ``"simulated"`` or ``"holds"`` as text.

        Examples
        --------
        >>> claim = Claim(text="gain, %", published=2.0, said="below 2", model=2.5, holds=False)
        >>> [claim.shown(name) for name in ("published", "model", "simulated", "holds")]
        ['below 2', '2.5', '-', 'no']
        """
        value = getattr(self, which)
        if which == "published" and self.said:
            return self.said
        if value is None or isinstance(value, bool):
            return "-" if value is None else "yes" if value else "no"
        return self.form.format(value)


def claims_text(claims: Iterable[Claim]) -> str:
    """Return the claims as tables, one for each heading."""
    headed: dict[str, list[Claim]] = {}
    for claim in claims:
        headed.setdefault(claim.heading, []).append(claim)
    tables = []
    for heading, mine in headed.items():
        columns = ["published", "model", "simulated"]
        columns += ["holds"] * any(claim.holds is not None for claim in mine)
        rows = [[claim.text, *map(claim.shown, columns)] for claim in mine]
        tables.append(f"{heading}\n{text_table(['claim', *columns], rows)}")
    return "\n\n".join(tables)


Value = Callable[[str], float]
"""What is found for one of "published", "model" and "simulated"."""


def ratio(one: Any, other: Any) -> Value:
    """Return one over another: of cells, or whatever has ``model`` and ``simulated``."""
    return lambda which: float(getattr(one, which) / getattr(other, which))


def compared(text: str, value: Value, **options: Any) -> Claim:
    """Return a claim of which ``value("model")`` and ``value("simulated")`` are ours."""
    return Claim(text=text, model=value("model"), simulated=value("simulated"), **options)
