"""The published cases by name, and what the command ``qmodels reproduce`` asks of each."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, cast

CASES = {
    "dqm": "cases.published.dqm.reproduction",
    "srp": "cases.published.srp.reproduction",
    "llc3d": "cases.published.llc3d.reproduction",
    "ocmpi": "cases.published.ocmpi.reproduction",
    "stnoc": "cases.published.stnoc.reproduction",
}
"""The module of each case; only the one that is asked for is imported."""


class Reproduction(Protocol):
    """A case's numbers: published, simulated and from the model."""

    def table(self) -> str:
        """Return everything as text."""

    def numbers(self) -> list[Any]:
        """Return every published number beside ours, as `cases.published.numbers.Number`."""

    def columns(self) -> dict[str, list[Any]]:
        """Return the numbers of the tables, one row each."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain dictionaries."""

    def save(self, out: Path) -> list[Path]:
        """Write text, tables and plots into a directory, which is made; return their paths."""


class Case(Protocol):
    """A module of a case."""

    def kept(self) -> Reproduction:
        """Return what was found before and is kept in ``cases/data``."""

    def reproduce(self, trace: Path | None, *, store: Path | None) -> Reproduction:
        """Compute everything anew, with the packets of a trace if one is given.

        Finished simulations are kept in the store, if there is one.
        """


def published_case(name: str) -> Case:
    """Return the module of a case.

    Raises
    ------
    ValueError
        If there is no such case; the message names the known ones.
    """
    if name not in CASES:
        # Not at the top: --help needs no NumPy.
        from qmodels import checks

        raise ValueError(f"case must be one of {', '.join(CASES)}, got {name!r}{checks.nearest(name, CASES)}")
    return cast(Case, import_module(CASES[name]))
