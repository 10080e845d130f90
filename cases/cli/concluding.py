"""The command on what published papers conclude."""

from __future__ import annotations

from typing import Annotated

import typer

from cases.cli.app import Json, Plot, Settings, app, case_names
from cases.cli.console import Forms, Output
from cases.published import CASES


@app.command()
def conclusions(
    case: Annotated[
        str | None,
        typer.Argument(
            metavar="[CASE]",
            help=f"Published case: {', '.join(CASES)}; all if left out.",
            autocompletion=case_names,
        ),
    ] = None,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
) -> int:
    """Say whether the conclusions of published papers hold, by how much, and where they turn.

    The models' margins and flips are computed now; simulations beside them are kept, and left out where they
    are of other systems. With --set the systems of one paper are others than it has: its models alone answer.
    """
    from cases.cli.inputs import named_values
    from cases.published.conclusions import changed, conclusions_of, found_of
    from cases.published.plots import conclusions_figure
    from cases.published.words import data, text

    output = Output(as_json, False, plot)
    if plot is not None and case is None:
        raise ValueError(f"--plot needs one CASE: {', '.join(CASES)}")
    wanted = [case] if case is not None else list(CASES)
    for one in wanted:
        conclusions_of(one)
    note, left = "", dict[str, str]()
    if settings:
        if case is None:
            raise ValueError(f"--set needs one CASE: {', '.join(CASES)}")
        found, left = changed(case, named_values(settings))
        findings = {case: found}
        note = f"With {', '.join(settings)}: the paper's numbers do not apply, nothing is simulated.\n\n"
    else:
        findings = {one: found_of(one) for one in wanted}
    last = "".join(f"\n  left out: {name}: {why}" for name, why in left.items())
    output.show(
        Forms(
            text=lambda: note + text(findings) + last,
            data=lambda: data(findings) | ({"set": settings, "left_out": left} if settings else {}),
        ),
        lambda: conclusions_figure(wanted[0], findings[wanted[0]]),
    )
    return 0
