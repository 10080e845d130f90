"""The commands that answer for one system of any kind: solve, simulate, compare, size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from cases.cli.app import (
    Columns,
    Csv,
    Interface,
    Json,
    Options,
    Packets,
    Plot,
    Replications,
    Seed,
    Settings,
    SpecFile,
    TraceFile,
    Workers,
    app,
)  # fmt: skip
from cases.cli.console import Output

REPLICATIONS = 8
"""Replications of a simulation unless a number is given."""

LONGEST = 12
"""Runs made elsewhere of which each has a line; all are in the CSV."""


@app.command()
def solve(
    spec: SpecFile = None,
    trace: TraceFile = None,
    interface: Interface = None,
    columns: Columns = None,
    settings: Settings = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Solve a system with the analytic model, or a sweep: --set 'load_factor=[0.5, 1.0, 1.5]'.

    Of several swept fields all combinations are solved. Every answer states its error.
    """
    from cases.cli.answers import Solved, Swept
    from cases.cli.inputs import read_specs
    from cases.study.packet_processor import along_axes
    from qmodels import solve as solve_spec
    from qmodels.systems.spec.fields import array_fields

    output = Output(as_json, as_csv, plot)
    read = read_specs(spec, trace, settings or (), interface, columns)[0]
    design = along_axes(next(iter(read.values())))
    swept = array_fields(design)
    if plot is not None and len(swept) > 2:
        raise ValueError(f"--plot needs one design, or one or two swept fields, got {', '.join(swept)}")
    result = solve_spec(design)
    output.show(Swept(swept, result) if swept else Solved(result), result.plot)
    return 0


@app.command()
def simulate(
    spec: SpecFile = None,
    trace: TraceFile = None,
    interface: Interface = None,
    columns: Columns = None,
    settings: Settings = None,
    seed: Seed = 0,
    packets: Packets = None,
    replications: Replications = REPLICATIONS,
    options: Options = None,
    workers: Workers = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Simulate one system: estimates with 95 % confidence intervals."""
    from cases.cli.answers import Simulated
    from cases.cli.inputs import one_spec

    output = Output(as_json, as_csv, plot)
    design = one_spec(spec, settings or (), trace, interface, columns)
    result = _simulated(design, packets, options, workers, seed=seed, replications=replications)
    output.show(Simulated(result), result.plot)
    return 0


@app.command()
def compare(
    spec: SpecFile = None,
    trace: TraceFile = None,
    interface: Interface = None,
    columns: Columns = None,
    settings: Settings = None,
    reference: Annotated[
        Path | None,
        typer.Option(
            "--reference",
            metavar="RUNS.csv",
            help="Runs made elsewhere, a row each: columns are fields and metrics, METRIC_low and "
            "METRIC_high the ends of an interval. Nothing is simulated.",
        ),
    ] = None,
    seed: Seed = 0,
    packets: Packets = None,
    replications: Replications = REPLICATIONS,
    options: Options = None,
    workers: Workers = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Lay the analytic answer for one system beside the simulated one, or beside runs made elsewhere."""
    from cases.cli.inputs import one_spec

    output = Output(as_json, as_csv, plot)
    design = one_spec(spec, settings or (), trace, interface, columns)
    if reference is not None:
        given = {"--seed": seed, "--packets": packets, "--option": options, "--workers": workers}
        given["--replications"] = replications != REPLICATIONS
        if named := [name for name, value in given.items() if value]:
            raise ValueError(f"{', '.join(named)} must be left out with --reference: nothing is simulated")
        show_runs(design, reference, settings or (), output)
        return 0
    result = _simulated(design, packets, options, workers, seed=seed, replications=replications)
    show_comparison(design, result, output, {})
    return 0


def _simulated(
    design: Any, packets: int | None, options: list[str] | None, workers: int | None, **given: Any
) -> Any:
    """Return the simulation of one system, on several threads."""
    import os
    from concurrent.futures import ThreadPoolExecutor

    from cases.cli.inputs import named_values
    from qmodels import checks
    from validate import simulate as simulate_spec
    from validate.simulators import own_options

    words = [f"packets={packets}"] if packets is not None else []
    own = named_values([*words, *(options or ())], option="--option")
    try:
        own_options(design, own)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if workers is not None:
        checks.count("workers", workers)
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return simulate_spec(design, executor=pool, **given, **own)


@app.command()
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
    from cases.cli.inputs import one_spec
    from cases.cli.sizing import sized

    if len(words) > 2:
        raise ValueError(f"size takes [SPEC.toml] FIELD, got {' '.join(words)!r}")
    design = one_spec(Path(words[0]) if len(words) == 2 else None, settings or ())
    found = sized(design, words[-1], until or (), within=within, which="largest" if largest else "smallest")
    Output(as_json).show(found)
    return 0


def show_comparison(design: Any, simulated: Any, output: Output, head: Mapping[str, Any]) -> None:
    """Print a system solved beside simulated, below what identifies it."""
    from cases.cli.answers import Compared, plain
    from cases.plots import parts_figure
    from validate import compare as compare_spec

    compared = Compared(compare_spec(design, reference=simulated), head)

    def figure() -> Any:
        model = compared.comparison.model
        what, unit, of = "busy fractions", "1", "utilization"
        if model.latency_parts:
            what, unit, of = f"mean {model.main.replace('_', ' ')}", model.units[model.main], "latency_parts"
        shares = {name: plain(getattr(one, of)) for name, one in compared.both.items()}
        return parts_figure(shares, "Where the time goes", what=what, unit=unit)

    output.show(compared, figure)


def show_runs(design: Any, path: Path, changed: Iterable[str], output: Output) -> None:
    """Print a system solved at the settings of runs made elsewhere, beside them."""
    from cases.cli.console import Forms
    from cases.tables import csv_text, heading, text_table
    from qmodels.systems.spec.fields import replace_fields
    from validate import compare as compare_runs
    from validate import read_table

    runs = read_table(path)
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
