"""The commands that answer for one system of any kind: solve, simulate, compare, size, serve."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cases.cli.app import (
    Forms,
    FullOutput,
    Json,
    Output,
    Reading,
    Settings,
    Simulation,
    System,
    command,
    given_options,
    interruptible,
    put,
)

LONGEST = 12  # runs made elsewhere of which each has a line; all are in the CSV


@command
def solve(system: System, output: FullOutput) -> int:
    """Solve a system with the analytic model, or a sweep: --set 'load_factor=[0.5, 1.0, 1.5]'.

    Of several swept fields all combinations are solved. Every answer states its error.
    """
    from cases.cli.answers import one_answer, swept_answer
    from cases.study.goals import along_axes
    from qmodels import solve as solve_spec
    from qmodels.systems.spec.fields import array_fields

    design = along_axes(system.sweep())
    swept = array_fields(design)
    if output.plot is not None and len(swept) > 2:
        raise ValueError(f"--plot needs one design, or one or two swept fields, got {', '.join(swept)}")
    if output.full and not swept:
        raise ValueError("--full is of the text of a sweep: the answer for one system is shown whole")
    result = solve_spec(design)
    shown = swept_answer(swept, result, full=output.full) if swept else one_answer(result)
    output.show(shown, result.plot)
    return 0


@command
def simulate(system: System, simulation: Simulation, output: Output) -> int:
    """Simulate one system: estimates with 95 % confidence intervals."""
    from cases.cli.answers import one_answer

    result = simulation.of(system.one())
    output.show(one_answer(result), result.plot)
    return 0


@command
def compare(
    context: typer.Context,
    *,
    system: System,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            metavar="RUNS.csv",
            help="Runs made elsewhere, a row each: columns are fields and metrics, with a unit such as "
            "packet_latency_us or 'packet_latency [us]'; METRIC_low and METRIC_high are the ends of an "
            "interval. Nothing is simulated.",
        ),
    ] = None,
    simulation: Simulation,
    output: FullOutput,
) -> int:
    """Lay the analytic answer for one system beside the simulated one, or beside runs made elsewhere."""
    design = system.one()
    if reference is None:
        show_comparison(design, simulation.of(design), output, {})
        return 0
    if named := given_options(context, Simulation):
        raise ValueError(f"{', '.join(named)} must be left out with --reference: nothing is simulated")
    show_runs(design, reference, system.reading.settings or (), output)
    return 0


@command
def size(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[SPEC.toml] FIELD", help="The system; the field whose value is asked."),
    ],
    until: Annotated[
        list[str] | None,
        typer.Option("--until", metavar="CONDITION", help='Such as "packet_latency_p99 < 2us"; repeatable.'),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option("--within", metavar="LOW,HIGH", help="Values to look at; by default as far as it goes."),
    ] = None,
    largest: Annotated[bool, typer.Option("--largest", help="The largest value, not the smallest.")] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> int:
    """Find the smallest or largest value of a field with which conditions are met, and why not another."""
    from cases.cli.sizing import sized

    if len(words) > 2:
        raise ValueError(f"size takes [SPEC.toml] FIELD, got {' '.join(words)!r}")
    spec = Path(words[0]) if len(words) == 2 else None
    design = System(spec, reading=Reading(settings=settings)).one()
    found = sized(design, words[-1], until or (), within=within, which="largest" if largest else "smallest")
    Output(as_json).show(found)
    return 0


@command
def serve(
    system: System,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open it in the browser.")] = True,
) -> int:
    """Open a page on this machine where every field of a system is changed by hand, its answer beside it.

    It runs until Ctrl-C, also while no page is open, and keeps the design as it was left.
    """
    import os
    import sys
    import webbrowser

    from cases.what_if.server import Server
    from cases.what_if.session import Session

    session = Session(system.one())
    try:
        with interruptible(), Server(session, port) as server:
            put(f"{server.url}\nOnly for this machine; Ctrl-C ends it.\n")
            if browser:
                webbrowser.open(server.url)
            server.serve_forever()
    except KeyboardInterrupt:
        pass
    if session.simulating:  # what compiles or simulates cannot be interrupted
        sys.stdout.flush()
        os._exit(0)
    return 0


def show_comparison(design: Any, simulated: Any, output: FullOutput, head: Mapping[str, Any]) -> None:
    """Print a system solved beside simulated, below what identifies it."""
    from cases.cli.answers import compared_answer
    from validate import compare as compare_spec

    found = compare_spec(design, reference=simulated)
    output.show(compared_answer(found, head, full=output.full), found.plot)


def show_runs(design: Any, path: Path, changed: Iterable[str], output: Output) -> None:
    """Print a system solved at the settings of runs made elsewhere, beside them."""
    from cases.tables import csv_text, heading, text_table
    from qmodels.systems.spec.fields import replace_fields
    from validate import compare as compare_runs
    from validate import read_table

    runs = read_table(path)
    runs = replace(runs, runs=tuple(replace(run, settings=_in_fields(design, run)) for run in runs))
    for name in (word.partition("=")[0].strip() for word in changed):
        if any(f".{name}".endswith(f".{one}") for one in runs.runs[0].settings):
            raise ValueError(f"{name} is set by --set and is a column of {path.name}: leave one out")
    always = {name: value for name, value in runs.runs[0].settings.items() if name not in runs.varied}
    found = compare_runs(replace_fields(design, always), reference=runs)
    first = found.metrics[0]

    def text() -> str:
        heads = [*(heading(name) for name in runs.varied), f"{heading(first)}: model", path.name, "error"]
        rows = [
            [
                *(settings.get(name, "") for name in runs.varied),
                f"{one.rows[first].model:.4g}",
                f"{one.rows[first].reference.best:.4g}",
                f"{one.rows[first].relative_error:+.1%}",
            ]
            for settings, one in zip(found.settings, found.points, strict=True)
            if first in one.rows
        ]
        more = [f"  ... {len(rows) - LONGEST} more: --csv"] if len(rows) > LONGEST else []
        return "\n".join([text_table(heads, rows[:LONGEST]), *more, "", found.table()])

    columns = found.to_dict()
    output.show(Forms(text, lambda: columns, lambda: csv_text(columns)), found.plot)


def _in_fields(design: Any, run: Any) -> dict[str, Any]:
    """Return the settings of a run made elsewhere by field, those with a unit in their fields' units."""
    from qmodels.systems.spec.conditions import in_field_unit
    from qmodels.systems.spec.fields import find_field

    found = {}
    for name, value in run.settings.items():
        field, bracket, unit = name.partition(" [")
        said = f"{value} {unit.removesuffix(']')}" if bracket else value
        found[field] = in_field_unit(design, find_field(design, field), said)
    return found
