"""The commands on studies: explore, show, reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cases.cli.answering import show_comparison
from cases.cli.app import (
    Columns,
    Csv,
    Interface,
    Json,
    Plot,
    Replications,
    Seed,
    Settings,
    SpecFile,
    Targets,
    TraceFile,
    TraceFiles,
    Workers,
    app,
    case_names,
    require_directory,
)  # fmt: skip
from cases.cli.console import Forms, Output, fail, interruptible, progress_bars
from cases.published import CASES
from cases.study import PACKETS

LONGEST = 60.0
"""Time for simulations unless it is given, if the choice is not simulated before. [s]"""

ENOUGH = 3
"""Designs after which simulation ends once the best is among them, unless a time is given."""


def budget_of(text: str | None) -> float:
    """Return the seconds of ``--budget``, by default the longest.

    Examples
    --------
    >>> budget_of("2min")
    120.0
    """
    from qmodels.systems.spec.conditions import seconds

    if text is None:
        return LONGEST
    try:
        return seconds(text, "--budget")
    except ValueError as error:
        if text.replace(".", "", 1).isdigit():
            raise ValueError(f"{error}; a limit of the cost is --subject-to 'cost <= {text}mm2'") from None
        raise


@app.command()
def explore(
    spec: SpecFile = None,
    trace: TraceFiles = None,
    interface: Interface = None,
    columns: Columns = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory of the study.")] = Path(
        "study"
    ),
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="FIELD=A,B", help="A field and its choices; of any kind; repeatable."),
    ] = None,
    minimize: Annotated[
        list[str] | None, typer.Option("--minimize", metavar="METRIC", help="An objective; repeatable.")
    ] = None,
    maximize: Annotated[
        list[str] | None, typer.Option("--maximize", metavar="METRIC", help="An objective; repeatable.")
    ] = None,
    targets: Targets = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Time for simulations: 60s, 2min, 0 for none; if left out, until the best "
            "design, or one as good, is simulated, at most 60s.",
        ),
    ] = None,
    seed: Seed = 0,
    packets: Annotated[
        int | None,
        typer.Option(
            "--packets",
            help="Length of each replication of any kind, in its packets, jobs, accesses or requests. If "
            f"left out: {PACKETS:,} packets of a packet processor, of others as the simulator has it. A "
            "trace is simulated whole.",
        ),
    ] = None,
    replications: Replications = 4,
    workers: Workers = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
    full: Annotated[
        bool, typer.Option("--full", help="All that was found, below the first screen's answer.")
    ] = False,
) -> int:
    """Answer which design is best, and why: all designs solved, those simulated that decide; resumes a study.

    Without objectives a packet processor is explored for its area (cost), latency p99 and throughput;
    unless --subject-to limits overflow_probability, at most 0.001 of its segments may be refused.
    A varied field that is set (--set channels=4 or --set 'channels=[2,4]') is explored over these values;
    with --vary these fields alone vary, of a system of any kind.
    """
    from cases.cli.inputs import read_specs, varied
    from cases.study.files import fronts_text, save_study, summary, whole_text
    from cases.study.plots import front_figure
    from cases.study.screen import study_text
    from cases.study.simulating import Runs
    from cases.study.study import explore_case
    from optimize.search.clock import span

    output = Output(as_json, as_csv, plot)
    if full and (as_json or as_csv):
        raise ValueError("--full is of the text: leave it out with --json and --csv, which have all of it")
    _require_study_directory(out)
    specs, given = read_specs(spec, trace, settings or (), interface, columns)
    seconds = budget_of(budget)
    asked = {
        "--seed": seed != 0,
        "--packets": packets,
        "--replications": replications != 4,
        "--workers": workers,
    }
    for name in (name for name, given_here in asked.items() if given_here and not seconds):
        raise ValueError(f"{name} is of the simulations, and --budget 0 allows none: leave one out")
    with progress_bars() as bars, interruptible():
        study = explore_case(
            specs,
            given=given,
            choices=varied(next(iter(specs.values())), vary or (), settings or ()),
            goals={"minimize": minimize or (), "maximize": maximize or (), "subject_to": targets},
            budget_seconds=seconds,
            enough=ENOUGH if budget is None else None,
            runs=Runs(packets=packets, replications=replications, seed=seed, workers=workers),
            out=out,
            progress=bars,
            then=f", then simulations for at most {span(seconds)}" if seconds else "",
        )
        paths = [*save_study(study, out), *([] if plot is None else [plot])]
    text = (
        (lambda: whole_text(study, str(out)).rstrip() + _listed(paths))
        if full
        else (lambda: study_text(study, str(out)))
    )
    forms = Forms(text, lambda: summary(study), lambda: fronts_text(study))
    output.show(forms, lambda: front_figure(study))
    return 130 if study.interrupted else 0


@app.command()
def show(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Directory of a study.")],
    design: Annotated[int, typer.Option("--design", metavar="N", help="Number of the design.")],
    workload: Annotated[
        str | None, typer.Option("--workload", help="Workload of the study; the main one if left out.")
    ] = None,
    workers: Workers = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Replay one design of a study: where its time goes, solved beside simulated, resources by load."""
    from dataclasses import replace

    from cases.study.files import load_study
    from cases.study.goals import choice_word

    output = Output(as_json, as_csv, plot)
    parts = {part.name: part for part in load_study(study)}
    chosen = next(iter(parts)) if workload is None else workload
    if chosen not in parts:
        raise ValueError(f"--workload must be one of {', '.join(parts)}, got {chosen!r}")
    part = parts[chosen]
    point = {name: choice_word(value) for name, value in part.space.point(design).items()}
    head = {"workload": chosen, "design": design, **point}
    simulated = replace(part.runs, workers=workers).simulate(part.space.spec(design))
    show_comparison(part.space.spec(design), simulated, output, head)
    return 0


@app.command()
def reproduce(
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE[/SYSTEM]",
            autocompletion=case_names,
            help=f"Published case: {', '.join(CASES)}; systems of it (qmodels describe CASE); or a paper of "
            "your own, a TOML file.",
        ),
    ],
    spec: Annotated[
        Path | None, typer.Argument(metavar="[SPEC.toml]", help="The one system CASE/SYSTEM, edited.")
    ] = None,
    settings: Settings = None,
    trace: TraceFile = None,
    simulate_anew: Annotated[
        bool,
        typer.Option("--simulate", help="Compute all anew, also what takes longer than a minute."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write text, CSV and plots there; a killed run resumes."),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> int:
    """Print a published case's tables: published | model | simulated; what takes minutes was kept.

    With --set, or a file, its systems are solved as published and with what was changed, and simulated so
    with --simulate: qmodels reproduce llc3d/slices --set slices=14
    """
    from cases.published.paper import paper_of
    from cases.study.study import SIMULATED
    from cases.tables import csv_text
    from validate import CampaignInterrupted

    output = Output(as_json, as_csv)
    if settings or spec is not None or ("/" in case and not case.endswith(".toml")):
        from cases.cli.inputs import named_values
        from cases.published.changing import changed

        if trace is not None or out is not None:
            raise ValueError("--trace and --out are of a whole case: no --set, no SYSTEM and no SPEC.toml")
        values = named_values(settings or ())
        output.show(changed(case, values, other=spec, simulated=simulate_anew))
        return 0
    chosen = paper_of(case)
    if out is not None:
        require_directory(out)
    try:
        if trace is None and not simulate_anew:
            result = chosen.today()
        else:
            with interruptible():
                result = chosen.reproduce(trace, store=None if out is None else out / SIMULATED)
    except CampaignInterrupted as interrupt:
        fail(f"interrupted: {interrupt}", 130)
    paths = [] if out is None else result.save(out)
    output.show(
        Forms(
            text=lambda: result.table() + _listed(paths),
            data=result.to_dict,
            csv=lambda: csv_text(result.columns()),
        )
    )
    return 0


def _listed(paths: Sequence[Path]) -> str:
    """Return the files that were written, to stand below an answer."""
    return "\n\nFiles\n" + "\n".join(f"  {path}" for path in paths) if paths else ""


def _require_study_directory(out: Path) -> None:
    """Refuse to mix a study with other files."""
    from cases.study.files import SUMMARY
    from cases.study.study import SIMULATED, SOLVED
    from qmodels.systems.spec.whole import is_piece

    require_directory(out)
    ours = (SUMMARY, SIMULATED, SOLVED)
    others = out.is_dir() and not all(map(is_piece, out.iterdir()))
    if others and not any((out / name).exists() for name in ours):
        raise ValueError(
            f"--out must be a new or empty directory or a study, got {str(out)!r} with other files"
        )
