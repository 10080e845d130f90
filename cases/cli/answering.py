"""The commands that answer for one system of any kind: solve, simulate, compare, size."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cases.cli.app import (
    Csv,
    Json,
    Options,
    Packets,
    Plot,
    Replications,
    Seed,
    Settings,
    SpecFile,
    Targets,
    TraceFile,
    Workers,
    app,
    check_output,
)  # fmt: skip
from cases.cli.console import answer, put


@app.command()
def solve(
    spec: SpecFile = None,
    trace: TraceFile = None,
    settings: Settings = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Solve a system with the analytic model, or a sweep: --set 'load_factor=[0.5, 1.0, 1.5]'.

    Of several swept fields all combinations are solved. Every answer states its error.
    """
    from cases import plots
    from cases.cli import answers
    from cases.study.packet_processor import along_axes
    from cases.tables import csv_text
    from qmodels import solve as solve_spec
    from qmodels.systems.spec.fields import array_fields

    check_output(as_json, as_csv, plot)
    design = along_axes(_single(spec, trace, settings))
    swept = array_fields(design)
    if plot is not None and len(swept) > 1:
        raise ValueError(f"--plot needs one design or one swept field, got {', '.join(swept)}")
    result = solve_spec(design)
    columns = answers.sweep_columns(swept, result) if swept else {}
    if plot is not None:
        plots.save(plots.sweep_figure(columns) if swept and answers.is_joint(result) else result.plot(), plot)
    if as_csv:
        put(csv_text(columns) if swept else answers.solved_csv(result))
        return 0
    answer(
        as_json,
        lambda: {
            **(answers.sweep_json(columns, result) if swept else answers.solved_json(result)),
            **answers.trace_json(design),
        },
        lambda: (
            (answers.sweep_text(columns, result) if swept else answers.solved_text(result))
            + answers.trace_text(design)
        ),
    )
    return 0


@app.command()
def simulate(
    spec: SpecFile = None,
    trace: TraceFile = None,
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
    """Simulate one system: estimates with 95 % confidence intervals."""
    from cases import plots
    from cases.cli import answers

    check_output(as_json, as_csv, plot)
    design = _single(spec, trace, settings)
    result = _simulated(design, seed, packets, replications, options, workers)
    if plot is not None:
        plots.save(result.plot(), plot)
    if as_csv:
        put(answers.simulated_csv(result))
    else:
        answer(
            as_json,
            lambda: {**answers.simulated_json(result), **answers.trace_json(design)},
            lambda: answers.simulated_text(result) + answers.trace_text(design),
        )
    return 0


@app.command()
def compare(
    spec: SpecFile = None,
    trace: TraceFile = None,
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
    """Lay the analytic answer for one system beside the simulated one."""
    check_output(as_json, as_csv, plot)
    design = _single(spec, trace, settings)
    result = _simulated(design, seed, packets, replications, options, workers)
    return show_comparison(design, result, as_json, as_csv, plot, head={})


@app.command()
def size(
    spec: SpecFile = None,
    field: Annotated[str, typer.Option("--field", help="Field whose value is looked for.")] = "",
    within: Annotated[
        str, typer.Option("--within", metavar="LOW,HIGH", help="Its range; whole numbers or reals.")
    ] = "",
    targets: Targets = None,
    largest: Annotated[bool, typer.Option("--largest", help="The largest value, not the smallest.")] = False,
    settings: Settings = None,
    as_json: Json = False,
) -> int:
    """Find the smallest or largest value of a field with which the model meets its targets."""
    from cases.cli.inputs import choices_of, limits_of
    from optimize.analysis.sizing import size as size_spec
    from qmodels import solve as solve_spec

    design = _single(spec, None, settings)
    ends = choices_of(f"{field or '--field'}={within}")[1]
    if not field or len(ends) != 2:
        raise ValueError(f"size needs --field NAME and --within LOW,HIGH, got {field!r} and {within!r}")
    found = size_spec(
        design,
        lambda one: solve_spec(one).to_dict(),
        field,
        subject_to=limits_of(targets or ()),
        within=(ends[0], ends[1]),
        which="largest" if largest else "smallest",
    )
    said = {
        name: getattr(found, name) for name in ("status", "field", "value", "metrics", "misses", "message")
    }

    def text() -> str:
        values = ", ".join(f"{name} = {value:.6g}" for name, value in found.metrics.items())
        best = f"{field} = {found.best:.6g}"
        head = f"{best} is the {'largest' if largest else 'smallest'} that meets the targets"
        head = head if found.status == "met" else f"no value meets the targets; the nearest is {best}"
        return "\n".join([f"{head}: {values}", *([found.message] if found.message else [])])

    answer(as_json, lambda: said | {"best": found.best}, text)
    return 0


def show_comparison(
    design: Any, simulated: Any, as_json: bool, as_csv: bool, plot: Path | None, head: dict[str, Any]
) -> int:
    """Print a system solved beside simulated, below what identifies it."""
    from cases import plots
    from cases.cli import answers
    from validate import compare as compare_spec

    comparison = compare_spec(design, reference=simulated)
    if plot is not None:
        both = {"analytic": comparison.model, "simulated": comparison.reference}
        shares = {name: answers.shares(result) for name, result in both.items()}
        plots.save(plots.parts_figure(shares, "Where the time goes"), plot)
    if as_csv:
        put(answers.compared_csv(comparison))
        return 0
    title = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in head.items())
    answer(
        as_json,
        lambda: {**head, **answers.compared_json(comparison), **answers.trace_json(design)},
        lambda: (
            (f"{title}\n\n" if title else "") + answers.compared_text(comparison) + answers.trace_text(design)
        ),
    )
    return 0


def _single(spec: Path | None, trace: Path | None, settings: list[str] | None) -> Any:
    """Return the main spec of a command."""
    from cases.cli.inputs import read_specs

    return next(iter(read_specs(spec, trace, settings or ())[0].values()))


def _simulated(
    design: Any,
    seed: int,
    packets: int | None,
    replications: int,
    options: list[str] | None,
    workers: int | None,
) -> Any:
    """Simulate a system as the options of a command say."""
    import os
    from concurrent.futures import ThreadPoolExecutor

    from cases.cli.inputs import named_value
    from qmodels import checks
    from validate import simulate as simulate_spec
    from validate.simulators import simulator_of

    given: dict[str, Any] = {} if packets is None else {"packets": packets}
    given |= dict(named_value(option, "--option") for option in options or ())
    for name in given:
        checks.choice(
            f"option of the simulator of a {type(design).__name__}", name, simulator_of(design).options()
        )
    if workers is not None:
        checks.count("workers", workers)
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        return simulate_spec(design, seed=seed, replications=replications, executor=pool, **given)
