"""The commands that answer for systems of any kind: solve, simulate, compare, size, serve, diff."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cases.cli import app

LONGEST = 12  # runs made elsewhere of which each has a line; all are in the CSV


@app.command
def solve(system: app.System, output: app.FullOutput) -> int:
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


@app.command
def simulate(system: app.System, simulation: app.Simulation, output: app.Output) -> int:
    """Simulate one system: estimates with 95 % confidence intervals."""
    from cases.cli.answers import one_answer

    result = simulation.of(system.one())
    output.show(one_answer(result), result.plot)
    return 0


@app.command
def compare(
    context: typer.Context,
    *,
    system: app.System,
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
    simulation: app.Simulation,
    output: app.FullOutput,
) -> int:
    """Lay the analytic answer for one system beside the simulated one, or beside runs made elsewhere."""
    design = system.one()
    if reference is None:
        show_comparison(design, simulation.of(design), output, {})
        return 0
    if named := app.given_options(context, app.Simulation):
        raise ValueError(f"{', '.join(named)} must be left out with --reference: nothing is simulated")
    show_runs(design, reference, system.reading.settings or (), output)
    return 0


@app.command
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
    settings: app.Settings = None,
    as_json: app.Json = False,
) -> int:
    """Find the smallest or largest value of a field with which conditions are met, and why not another."""
    from cases.cli.sizing import sized

    if len(words) > 2:
        raise ValueError(f"size takes [SPEC.toml] FIELD, got {' '.join(words)!r}")
    spec = Path(words[0]) if len(words) == 2 else None
    design = app.System(spec, reading=app.Reading(settings=settings)).one()
    found = sized(design, words[-1], until or (), within=within, which="largest" if largest else "smallest")
    app.Output(as_json).show(found)
    return 0


@app.command
def serve(
    system: app.System,
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
        with app.interruptible(), Server(session, port) as server:
            app.put(f"{server.url}\nOnly for this machine; Ctrl-C ends it.\n")
            if browser:
                webbrowser.open(server.url)
            server.serve_forever()
    except KeyboardInterrupt:
        pass
    if session.simulating:  # what compiles or simulates cannot be interrupted
        sys.stdout.flush()
        os._exit(0)
    return 0


def show_comparison(design: Any, simulated: Any, output: app.FullOutput, head: Mapping[str, Any]) -> None:
    """Print a system solved beside simulated, below what identifies it."""
    from cases.cli.answers import compared_answer
    from validate import compare as compare_spec

    found = compare_spec(design, reference=simulated)
    output.show(compared_answer(found, head, full=output.full), found.plot)


def show_runs(design: Any, path: Path, changed: Iterable[str], output: app.Output) -> None:
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
    output.show(app.Forms(text, lambda: columns, lambda: csv_text(columns)), found.plot)


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


MOST = 8  # metrics that are shown; the others are in the JSON
CAUSES, ALIKE = 3, 0.05
"""Most features in which two traces are said to differ, and the log ratio from which they do."""

MAIN = (
    "cost", "packet_latency", "packet_latency_p99", "saturation_data_rate", "energy_per_packet",
    "overflow_probability",
)  # fmt: skip
"""Metrics of a packet processor that are shown."""


@app.command
def diff(
    *,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[A.toml] [B.toml]", help="The systems, or one for both.")
    ] = None,
    first: Annotated[
        list[str] | None, typer.Option("--a", metavar="'FIELD=VALUE ...'", help="Fields of A; repeatable.")
    ] = None,
    second: Annotated[
        list[str] | None, typer.Option("--b", metavar="'FIELD=VALUE ...'", help="Fields of B; repeatable.")
    ] = None,
    trace: app.TraceFiles = None,
    reading: app.Reading,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="METRIC", help="What to compare; repeatable.")
    ] = None,
    pairs: Annotated[int, typer.Option("--pairs", help="Pairs of runs.")] = 8,
    runs: app.Runs,
    output: app.Output,
) -> int:
    """Simulate A beside B with the same random numbers: each difference with its interval, and a verdict.

    qmodels diff a.toml b.toml, or --a 'channels=4 link_width=8' --b 'channels=2 link_width=16', or two
    --trace of which the second is of B: then it also says in what these differ most.
    """
    from concurrent.futures import ThreadPoolExecutor

    from cases.study.details import rescaled
    from cases.tables import columns_of, csv_text
    from validate.comparison.paired import compare_pair

    names, (a, b) = _both(files or [], [first or [], second or []], trace or [], reading)
    options: dict[str, Any] = {} if runs.packets is None else {"packets": runs.packets}
    if a == b:
        raise ValueError("A and B must differ: two files, --a or --b, or two traces; got one system twice")
    with ThreadPoolExecutor(runs.threads) as pool:
        found = compare_pair(a, b, metrics=metrics, pairs=pairs, seed=runs.seed, executor=pool, **options)
    names_of = [name for name in MAIN if name in found.rows] or list(found.rows)[:MOST]
    other = [name for name in names_of if found[name].first != found[name].second]
    chosen = [found[name] for name in metrics or other or names_of]
    brief = replace(found, rows={one.metric: one for one in chosen})
    heads = [
        f"{letter}  {name}{rescaled(spec)}" for letter, name, spec in zip("AB", names, (a, b), strict=True)
    ]
    output.show(
        app.Forms(
            text=lambda: "\n".join([*heads, str(brief), *_traffic(a, b)]),
            data=lambda: {"a": names[0], "b": names[1], **found.to_dict()},
            csv=lambda: csv_text(columns_of(_csv_rows(found))),
        ),
        lambda: _figure(brief),
    )
    return 0


def _both(
    files: list[Path], sides: list[list[str]], traces: list[Path], reading: app.Reading
) -> tuple[list[str], list[Any]]:
    """Return the names of A and B, and their specs."""
    if len(files) > 2 or len(traces) > 2:
        raise ValueError(f"diff must be given two files and two traces at most, got {len(files + traces)}")
    names, specs = [], []
    for k, words in enumerate(sides):
        own = [one for text in words for one in _settings(text)]
        file, trace = (some[k] if len(some) > k else some[0] if some else None for some in (files, traces))
        mine = replace(reading, settings=[*(reading.settings or ()), *own])
        specs.append(app.System(file, trace, mine).one())
        names.append(", ".join(map(str, filter(None, [file, trace, " ".join(own)]))) or "as it is")
    return names, specs


def _settings(text: str) -> list[str]:
    """Return the settings in a text, ``channels=4 link_width=8``: a value goes on until the next field.

    >>> _settings("channels=4 topology=mesh 4 4"), _settings("channels = 4")
    (['channels=4', 'topology=mesh 4 4'], ['channels = 4'])
    """
    import re

    starts = [found.start() for found in re.finditer(r"(?<!\S)[\w.]+\s*=", text)]
    ends = [*starts[1:], len(text)]
    return [text[at:end].strip() for at, end in zip(starts or [0], ends, strict=False)]


def _traffic(*specs: Any) -> list[str]:
    """Return in what the traces of two systems differ most, in a sentence; nothing of other traffic."""
    from math import log
    from textwrap import wrap

    from cases.tables import number
    from qmodels.systems.traffic.arrivals import Recorded
    from qmodels.systems.traffic.description import PART

    arrivals = [getattr(getattr(spec, "workload", None), "arrivals", None) for spec in specs]
    traces = [one.trace.description for one in arrivals if isinstance(one, Recorded)]
    if len({one.source for one in traces}) < len(specs):
        return []
    statistics = [one.statistics for one in traces]
    features: dict[str, list[Any]] = {
        "bytes of a packet": [one.mean_bytes for one in traces],
        f"bytes of the busiest {PART} over the mean": [one.peak_to_mean for one in statistics],
        "longest-scale dispersion of bytes": [one.byte_dispersion[-1:].sum() for one in statistics],
        "longest-scale dispersion of packets": [one.packet_dispersion[-1:].sum() for one in statistics],
    }
    sizes = {name: abs(log(b / a)) for name, (a, b) in features.items() if a > 0 and b > 0}
    most = sorted((name for name in sizes if sizes[name] > ALIKE), key=lambda name: -sizes[name])[:CAUSES]
    said = "; ".join(
        f"{name} {number(features[name][0])} in A, {number(features[name][1])} in B" for name in most
    )
    return wrap(f"Traces: {said or 'alike in sizes and bursts'}.", 80, subsequent_indent="  ")


def _csv_rows(found: Any) -> Iterator[dict[str, Any]]:
    for name, one in found.rows.items():
        ends = one.difference and one.difference.difference
        values = {"metric": name, "unit": one.unit, "first": one.first, "second": one.second}
        interval = {"difference": ends and ends.best, "low": ends and ends.low, "high": ends and ends.high}
        yield values | interval | {"better": one.better}


def _figure(found: Any) -> Any:
    """Return each relative difference with its interval."""
    from cases.tables import BLUE, GREEN, GREY, ORANGE, new_figure

    rows = [one for one in found.rows.values() if one.share is not None][::-1]
    figure, axes = new_figure(8, 1.4 + 0.5 * max(len(rows), 1))
    colours = {"second": GREEN, "first": ORANGE, "alike": GREY, "": BLUE}
    for place, one in enumerate(rows):
        low, best, high = (100 * value for value in one.share)
        error = [[best - low], [high - best]]
        axes[0, 0].errorbar(best, place, xerr=error, fmt="o", ms=8, capsize=4, color=colours[one.better])
    axes[0, 0].axvline(0, color="black", lw=1)
    axes[0, 0].set_yticks(range(len(rows)), [one.metric.replace("_", " ") for one in rows], fontsize=12)
    axes[0, 0].set_xlabel(f"B against A [%], {100 * found.confidence:.0f} % interval; green: B is better")
    return figure
