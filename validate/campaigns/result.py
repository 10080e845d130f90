"""Results of a campaign in the order of their specs, and one tidy table of all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from qmodels.systems.spec.fields import varied_fields
from qmodels.systems.spec.saving import UNDECIDED, said
from validate.campaigns.table_files import write_csv


@dataclass(frozen=True, kw_only=True, eq=False)
class Campaign:
    """The simulations of several specs.

    It has a length, and gives its results by number and in turn.

    Parameters
    ----------
    points : tuple of int
        Which of the specs asked for these are: all, unless the campaign was interrupted.
    specs : tuple
        The specs that were simulated.
    results : tuple
        The result of each.
    restored, simulated : int
        Runs that were found in the store, and runs made now.
    seconds : float
        Wall-clock time.
    """

    points: tuple[int, ...]
    specs: tuple[Any, ...]
    results: tuple[Any, ...]
    restored: int
    simulated: int
    seconds: float

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.results)

    def __getitem__(self, number: int) -> Any:
        return self.results[number]

    def table(self) -> dict[str, list[Any]]:
        """Return columns with one row per point and metric.

        They are the point's number, a column for every number, word or truth value in which the
        specs differ (by its dotted name, after ``spec.`` if that is taken), then ``metric``, ``unit``,
        ``value``, ``low``, ``high``, ``interval_valid`` and whether the system is ``stable`` (true where none
        can be unstable, "undecided" where the runs cannot tell).
        """
        own = ("metric", "unit", "value", "low", "high", "interval_valid", "stable")
        varied = {
            f"spec.{name}" if name in ("point", *own) else name: values
            for name, values in varied_fields(self.specs).items()
        }
        columns: dict[str, list[Any]] = {name: [] for name in ("point", *varied, *own)}
        for place, (point, result) in enumerate(zip(self.points, self.results, strict=True)):
            varying = {name: values[place] for name, values in varied.items()}
            stable = said(getattr(result, "stable", True))
            for row in result.rows():
                whole = {"point": point, **varying, "interval_valid": True, **row, "stable": stable}
                for name, value in whole.items():
                    columns[name].append(value)
        return columns

    def to_pandas(self) -> Any:
        """Return the table as a DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.table())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV; the file appears whole or not at all."""
        write_csv(path, self.table())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write the table as Parquet (needs pyarrow)."""
        from validate.campaigns.table_files import write_parquet

        write_parquet(path, self.table())

    def __repr__(self) -> str:
        made = f"{self.simulated} runs made, {self.restored} restored, {self.seconds:.1f} s"
        lines = [f"Campaign of {len(self)} points: {made}"]
        for point, result in zip(self.points, self.results, strict=True):
            state = {True: "", False: ", saturated"}.get(getattr(result, "stable", True), f", {UNDECIDED}")
            lines.append(f"  {point}: {result.replications} replications{state}")
        return "\n".join(lines)


class CampaignInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a campaign; what is done is kept.

    Parameters
    ----------
    campaign : Campaign
        The points that are finished, and those whose first round is.
    message : str
        How much that is, and how to go on.
    """

    def __init__(self, campaign: Campaign, message: str) -> None:
        super().__init__(message)
        self.campaign = campaign
