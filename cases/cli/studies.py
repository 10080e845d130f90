"""The commands on studies and on recorded traces: explore, show, trace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cases.cli import app
from cases.cli.answering import show_comparison

if TYPE_CHECKING:
    from qmodels.systems.traffic.description import TraceDescription

LONGEST = 120.0  # time for simulations unless it is given, if the choice is not simulated before. [s]
Objectives = Annotated[list[str] | None, typer.Option(metavar="METRIC", help="An objective; repeatable.")]
ENOUGH = 3  # designs after which simulation ends once none could lead the best, unless a time is given


def budget_of(text: str | None) -> float:
    """Return the seconds of ``--budget``, by default the longest.

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


@app.command
def explore(
    context: typer.Context,
    *,
    spec: app.SpecFile = None,
    trace: app.TraceFiles = None,
    reading: app.Reading,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory of the study.")] = Path(
        "study"
    ),
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", metavar="FIELD=A,B", help="A field and its choices; of any kind; repeatable."),
    ] = None,
    minimize: Objectives = None,
    maximize: Objectives = None,
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--subject-to",
            metavar="CONDITION",
            help='Limit of a metric or field, such as "packet_latency_p99 < 2us"; repeatable.',
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Time for simulations: 60s, 2min, 0 for none; if left out, until the best "
            "design, or one as good, is simulated, at most 2min.",
        ),
    ] = None,
    runs: app.Runs,
    replications: app.Replications = 4,
    output: app.FullOutput,
) -> int:
    """Answer which design is best, and why: all designs solved, those simulated that decide; resumes a study.

    Without objectives a packet processor is explored for its area (cost), latency p99 and throughput;
    unless --subject-to limits overflow_probability, at most 0.001 of its segments may be refused.
    A varied field that is set (--set channels=4 or --set 'channels=[2,4]') is explored over these values;
    with --vary these fields alone vary, of a system of any kind.
    """
    from cases.cli.inputs import varied
    from cases.study.files import front_figure, fronts_text, save_study, summary, whole_text
    from cases.study.screen import study_text
    from cases.study.study import Runs as StudyRuns
    from cases.study.study import explore_case
    from optimize.search.explore import span

    _require_study_directory(out)
    specs, given = reading.specs(spec, trace)
    seconds = budget_of(budget)
    if not seconds and (named := app.given_options(context, app.Runs, "replications")):
        raise ValueError(f"{', '.join(named)} must be left out with --budget 0, which allows no simulation")
    with app.progress_bars() as bars, app.interruptible():
        study = explore_case(
            specs,
            given=given,
            choices=varied(next(iter(specs.values())), vary or (), reading.settings or ()),
            goals={"minimize": minimize or (), "maximize": maximize or (), "subject_to": targets},
            budget_seconds=seconds,
            enough=ENOUGH if budget is None else None,
            runs=StudyRuns(
                packets=runs.packets, replications=replications, seed=runs.seed, workers=runs.workers
            ),
            out=out,
            progress=bars,
            then=f", then simulations for at most {span(seconds)}" if seconds else "",
        )
        paths = [*save_study(study, out), *([] if output.plot is None else [output.plot])]

    def text() -> str:
        return (
            whole_text(study, str(out)).rstrip() + app.listed(paths)
            if output.full
            else study_text(study, str(out))
        )

    forms = app.Forms(text, lambda: summary(study), lambda: fronts_text(study))
    output.show(forms, lambda: front_figure(study))
    return 130 if study.interrupted else 0


@app.command
def show(
    *,
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Directory of a study.")],
    design: Annotated[int, typer.Option("--design", metavar="N", help="Number of the design.")],
    workload: Annotated[
        str | None, typer.Option("--workload", help="Workload of the study; the main one if left out.")
    ] = None,
    workers: app.Workers = None,
    output: app.FullOutput,
) -> int:
    """Replay one design of a study: where its time goes, solved beside simulated, resources by load."""
    from dataclasses import replace

    from cases.study.files import load_study
    from cases.study.goals import choice_word

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


def _require_study_directory(out: Path) -> None:
    """Refuse to mix a study with other files."""
    from cases.study.files import SUMMARY
    from cases.study.study import SIMULATED, SOLVED
    from qmodels.systems.spec.whole import is_piece

    app.require_directory(out)
    ours = (SUMMARY, SIMULATED, SOLVED)
    others = out.is_dir() and not all(map(is_piece, out.iterdir()))
    if others and not any((out / name).exists() for name in ours):
        raise ValueError(
            f"--out must be a new or empty directory or a study, got {str(out)!r} with other files"
        )


Described = Mapping[str, tuple["TraceDescription", list[str]]]
"""Traces by name, with what of them will not fit."""


@app.command
def trace(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE... [SPEC.toml]",
            help="Captures (pcap, pcapng, ERF) or text traces, gzip or not; and the system they are for.",
        ),
    ],
    reading: app.Reading,
    as_json: app.Json = False,
    plot: app.Plot = None,
) -> int:
    """Describe traces: rate, bursts over time scales, steadiness, sizes, gaps; warn of what will not fit."""
    output = app.Output(as_json, False, plot)
    specs = [file for file in files if file.suffix == ".toml"]
    traces = [file for file in files if file.suffix != ".toml"]
    if len(specs) > 1 or not traces:
        raise ValueError(f"trace must be given traces and at most one SPEC.toml, got {len(specs)} specs")
    if len({file.absolute() for file in traces}) < len(traces):
        raise ValueError(f"trace must be given each file once, got {', '.join(map(str, traces))}")
    if plot is not None and len(traces) > 1:
        raise ValueError(f"--plot needs one trace, got {len(traces)}")
    if specs or reading.settings:
        said = _in_a_system(specs[0] if specs else None, traces, reading)
    else:
        said = _alone(traces, reading)
    first, _ = next(iter(said.values()))
    output.show(app.Forms(text=lambda: _traces_text(said), data=lambda: _traces_data(said)), first.plot)
    return 0


def _alone(traces: list[Path], reading: app.Reading) -> Described:
    """Describe traces as they are."""
    from cases.cli.inputs import reading_of
    from qmodels.systems.traffic.trace import read_trace

    said = {}
    for file in traces:
        found = read_trace(file, **reading_of(file, reading.interface, reading.columns, traces)).description
        said[str(file)] = found, found.warnings()
    return said


def _in_a_system(spec: Path | None, traces: list[Path], reading: app.Reading) -> Described:
    """Describe traces and what of them does not fit a system, whose capacity is the model's answer."""
    from cases.study.details import trace_warnings
    from qmodels import solve

    said = {}
    for one in reading.specs(spec, traces)[0].values():
        found: Any = one.workload.arrivals.trace.description
        said[found.source] = found, trace_warnings(one, solve(one)["saturation_data_rate"])
    return said


def _traces_text(said: Described) -> str:
    from cases.tables import text_table

    parts = []
    for found, warnings in said.values():
        table = text_table(["", "", "", ""], found.rows()).partition("\n")[2]
        lines = [f"Trace {found.source}", f"  {found.summary}", table]
        parts.append("\n".join([*lines, *(f"  warning: {line}" for line in warnings)]))
    return "\n\n".join(parts)


def _traces_data(said: Described) -> dict[str, Any]:
    traces = {
        name: {**found.to_dict(), "summary": found.summary, "warnings": warnings}
        for name, (found, warnings) in said.items()
    }
    return {"traces": traces}
