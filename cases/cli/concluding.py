"""The command on what published papers conclude."""

from __future__ import annotations

from typing import Annotated

import typer

from cases.cli.app import Json, Plot, app
from cases.cli.console import Forms, Output
from cases.published.cases import CASES


@app.command()
def conclusions(
    case: Annotated[
        str | None,
        typer.Argument(metavar="[CASE]", help=f"Published case: {', '.join(CASES)}; all if left out."),
    ] = None,
    as_json: Json = False,
    plot: Plot = None,
) -> int:
    """Say whether the conclusions of published papers hold, by how much, and where they turn.

    The models' margins and flips are computed now; simulations beside them are kept, and left out where they
    are of other systems.
    """
    from cases.published.conclusions.checks import found_of
    from cases.published.conclusions.papers import conclusions_of
    from cases.published.conclusions.plots import figure
    from cases.published.conclusions.words import data, text

    output = Output(as_json, False, plot)
    if plot is not None and case is None:
        raise ValueError(f"--plot needs one CASE: {', '.join(CASES)}")
    wanted = [case] if case is not None else list(CASES)
    for one in wanted:
        conclusions_of(one)
    findings = {one: found_of(one) for one in wanted}
    output.show(
        Forms(text=lambda: text(findings), data=lambda: data(findings)),
        lambda: figure(wanted[0], findings[wanted[0]]),
    )
    return 0
