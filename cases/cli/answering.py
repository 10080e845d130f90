"""The commands that answer for one system of any kind: solve, simulate, compare, size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


def simulator_command(show: Callable[[Any, Any, Output], None]) -> Callable[..., int]:
    """Make a command of what is shown of a system and its simulation: all such commands take the same."""

    def command(
        spec: SpecFile = None,
        trace: TraceFile = None,
        interface: Interface = None,
        columns: Columns = None,
        settings: Settings = None,
        seed: Seed = 0,
        packets: Packets = None,
        replications: Replications = 8,
        options: Options = None,
        workers: Workers = None,
        as_json: Json = False,
        as_csv: Csv = False,
        plot: Plot = None,
    ) -> int:
        import os
        from concurrent.futures import ThreadPoolExecutor

        from cases.cli.inputs import named_values, one_spec
        from qmodels import checks
        from validate import simulate
        from validate.simulators import own_options

        output = Output(as_json, as_csv, plot)
        design = one_spec(spec, settings or (), trace, interface, columns)
        own = [f"packets={packets}"] if packets is not None else []
        given = named_values([*own, *(options or ())], option="--option")
        try:
            own_options(design, given)
        except TypeError as error:
            raise ValueError(str(error)) from None
        if workers is not None:
            checks.count("workers", workers)
        with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
            result = simulate(design, seed=seed, replications=replications, executor=pool, **given)
        show(design, result, output)
        return 0

    command.__doc__ = show.__doc__
    return app.command(show.__name__)(command)


@simulator_command
def simulate(design: Any, result: Any, output: Output) -> None:
    """Simulate one system: estimates with 95 % confidence intervals."""
    from cases.cli.answers import Simulated

    output.show(Simulated(result), result.plot)


@simulator_command
def compare(design: Any, result: Any, output: Output) -> None:
    """Lay the analytic answer for one system beside the simulated one."""
    show_comparison(design, result, output, {})


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
