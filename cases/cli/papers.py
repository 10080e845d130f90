"""The commands on published papers: reproduce, conclusions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cases.cli import app
from cases.published import CASES


@app.command
def reproduce(
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE[/SYSTEM]",
            autocompletion=app.case_names,
            help=f"Published case: {', '.join(CASES)}; systems of it (qmodels describe CASE); or a paper of "
            "your own, a TOML file.",
        ),
    ],
    spec: Annotated[
        Path | None, typer.Argument(metavar="[SPEC.toml]", help="The one system CASE/SYSTEM, edited.")
    ] = None,
    settings: app.Settings = None,
    trace: app.TraceFile = None,
    simulate_anew: Annotated[
        bool, typer.Option("--simulate", help="Compute all anew, also what takes longer than a minute.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write text, CSV and plots there; a killed run resumes."),
    ] = None,
    as_json: app.Json = False,
    as_csv: app.Csv = False,
) -> int:
    """Print a published case's tables: published | model | simulated; what takes minutes was kept.

    With --set, or a file, its systems are solved as published and with what was changed, and simulated so
    with --simulate: qmodels reproduce llc3d/slices --set slices=14
    """
    from cases.published.paper import paper_of
    from cases.study.study import SIMULATED
    from cases.tables import csv_text
    from validate import CampaignInterrupted

    output = app.Output(as_json, as_csv)
    if settings or spec is not None or ("/" in case and not case.endswith(".toml")):
        from cases.cli.inputs import named_values
        from cases.published.paper import changed

        if trace is not None or out is not None:
            raise ValueError("--trace and --out are of a whole case: no --set, no SYSTEM and no SPEC.toml")
        values = named_values(settings or ())
        output.show(changed(case, values, other=spec, simulated=simulate_anew))
        return 0
    chosen = paper_of(case)
    if out is not None:
        app.require_directory(out)
    try:
        if trace is None and not simulate_anew:
            result = chosen.today()
        else:
            with app.interruptible():
                result = chosen.reproduce(trace, store=None if out is None else out / SIMULATED)
    except CampaignInterrupted as interrupt:
        app.fail(f"interrupted: {interrupt}", 130)
    paths = [] if out is None else result.save(out)
    output.show(
        app.Forms(
            text=lambda: result.table() + app.listed(paths),
            data=result.to_dict,
            csv=lambda: csv_text(result.columns()),
        )
    )
    return 0


@app.command
def conclusions(
    case: Annotated[
        str | None,
        typer.Argument(
            metavar="[CASE]",
            help=f"Published case: {', '.join(CASES)}; all if left out.",
            autocompletion=app.case_names,
        ),
    ] = None,
    settings: app.Settings = None,
    as_json: app.Json = False,
    plot: app.Plot = None,
) -> int:
    """Say whether the conclusions of published papers hold, by how much, and where they turn.

    The models' margins and flips are computed now; simulations beside them are kept, and left out where they
    are of other systems. With --set the systems of one paper are others than it has: its models alone answer.
    """
    from cases.cli.inputs import named_values
    from cases.published.conclusions import changed, conclusions_of, found_of
    from cases.published.plots import conclusions_figure
    from cases.published.words import data, text

    output = app.Output(as_json, False, plot)
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
        app.Forms(
            text=lambda: note + text(findings) + last,
            data=lambda: data(findings) | ({"set": settings, "left_out": left} if settings else {}),
        ),
        lambda: conclusions_figure(wanted[0], findings[wanted[0]]),
    )
    return 0
