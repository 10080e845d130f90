"""The command ``qmodels``: explore, solve, simulate, compare, show, reproduce.

Heavy modules are imported inside the commands, so that ``qmodels --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from cases.cli.console import answer, fail, progress_bars, put
from cases.published.cases import CASES, published_case

app = typer.Typer(
    name="qmodels",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Analytic models of a packet processor and its memory system, explored and checked by simulation.",
)

SpecFile = Annotated[
    Path | None,
    typer.Argument(metavar="[SPEC.toml]", help="Spec of the system; the bundled case if left out."),
]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Packets from a capture (pcap, pcapng) or a text trace."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="FIELD=VALUE", help="Set a field, e.g. channels=8 or noc.link_width=32; repeatable."
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json", help="Print JSON. Infinite waits (of a saturated design) are null, with stable: false."
    ),
]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV with units.")]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Write a picture: .png, .svg or .pdf.")
]
Seed = Annotated[int, typer.Option("--seed", help="All randomness follows from it.")]
Packets = Annotated[int, typer.Option("--packets", help="Packets of each replication.")]
Replications = Annotated[int, typer.Option("--replications", help="Independent replications.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Threads; one per core if left out.")]


@app.command()
def explore(
    spec: SpecFile = None,
    trace: TraceFile = None,
    settings: Settings = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Directory of the study.")] = Path(
        "study"
    ),
    budget: Annotated[
        float | None,
        typer.Option(
            "--budget", metavar="MM2", help="Cost budget of the MILP choice; the knee's cost if left out."
        ),
    ] = None,
    simulate_points: Annotated[
        int, typer.Option("--simulate-points", help="Most points of the front to simulate.")
    ] = 12,
    no_simulate: Annotated[bool, typer.Option("--no-simulate", help="Solve only.")] = False,
    seed: Seed = 0,
    packets: Packets = 20_000,
    replications: Replications = 8,
    workers: Workers = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Explore all designs to the Pareto front and check it by simulation; resumes a study that was stopped.

    A varied field that is set (--set channels=4 or --set 'channels=[2,4]') is explored over these values.
    """
    from cases.cli.inputs import read_specs
    from cases.plots import require_format, save
    from cases.study.files import summary
    from cases.study.findings import study_text
    from cases.study.plots import front_figure
    from cases.study.run import STORE, explore_case
    from cases.study.tables import design_columns
    from cases.tables import csv_text

    _one_format(as_json, as_csv)
    if plot is not None:
        require_format(plot)
    _require_study_directory(out)
    specs, given = read_specs(spec, trace, settings or ())
    with progress_bars() as progress:
        study = explore_case(
            specs,
            given=given,
            runs=_runs(packets, replications, seed, workers),
            simulate=not no_simulate,
            points=simulate_points,
            budget=budget,
            store=out / STORE,
            progress=progress,
        )
    paths = study.save(out)
    if plot is not None:
        save(front_figure(study), plot)
        paths.append(plot)
    if as_csv:
        columns = design_columns(study.parts[0])
        put(csv_text({name: column[columns["front"]] for name, column in columns.items()}))
    else:
        files = "Files\n" + "\n".join(f"  {path}" for path in paths)
        answer(as_json, lambda: summary(study), lambda: f"{study_text(study)}\n\n{files}")
    return 130 if study.interrupted else 0


@app.command()
def solve(
    spec: SpecFile = None,
    trace: TraceFile = None,
    settings: Settings = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Solve a design with the analytic model, or a sweep: --set 'load_factor=[0.5, 1.0, 1.5]'.

    Of several swept fields all combinations are solved. Every answer states its error.
    """
    from cases import plots
    from cases.cli import answers
    from cases.study.packet_processor import along_axes
    from cases.tables import csv_text, unit
    from qmodels import solve as solve_spec
    from qmodels.systems.spec.fields import array_fields

    design = along_axes(_single(spec, trace, settings, as_json, as_csv, plot))
    swept = array_fields(design)
    if plot is not None and len(swept) > 1:
        raise ValueError(f"--plot needs one design or one swept field, got {', '.join(swept)}")
    result = solve_spec(design)
    columns = answers.sweep_columns(swept, result) if swept else {}
    if plot is not None:
        figure = (
            plots.sweep_figure(columns)
            if swept
            else plots.parts_figure({"analytic": answers.shares(result)}, "Where the time goes")
        )
        plots.save(figure, plot)
    if as_csv:
        put(csv_text(columns) if swept else answers.solved_csv(result))
    elif swept:
        answer(
            as_json,
            lambda: {
                "analytic": columns,
                "units": {name: unit(name) for name in columns},
                **answers.trace_json(design),
            },
            lambda: answers.sweep_text(columns) + answers.trace_text(design),
        )
    else:
        answer(
            as_json,
            lambda: {**answers.solved_json(result), **answers.trace_json(design)},
            lambda: answers.solved_text(result) + answers.trace_text(design),
        )
    return 0


@app.command()
def simulate(
    spec: SpecFile = None,
    trace: TraceFile = None,
    settings: Settings = None,
    seed: Seed = 0,
    packets: Packets = 20_000,
    replications: Replications = 8,
    workers: Workers = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Simulate one design: estimates with 95 % confidence intervals."""
    from cases import plots
    from cases.cli import answers

    design = _single(spec, trace, settings, as_json, as_csv, plot)
    result = _runs(packets, replications, seed, workers).simulate(design)
    if plot is not None:
        plots.save(plots.parts_figure({"simulated": answers.shares(result)}, "Where the time goes"), plot)
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
    packets: Packets = 20_000,
    replications: Replications = 8,
    workers: Workers = None,
    as_json: Json = False,
    as_csv: Csv = False,
    plot: Plot = None,
) -> int:
    """Lay the analytic answer for one design beside the simulated one."""
    design = _single(spec, trace, settings, as_json, as_csv, plot)
    return _compare(design, _runs(packets, replications, seed, workers), as_json, as_csv, plot, head={})


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

    from cases.plots import require_format
    from cases.study.files import load_study

    _one_format(as_json, as_csv)
    if plot is not None:
        require_format(plot)
    parts = {part.name: part for part in load_study(study)}
    chosen = next(iter(parts)) if workload is None else workload
    if chosen not in parts:
        raise ValueError(f"--workload must be one of {', '.join(parts)}, got {chosen!r}")
    part = parts[chosen]
    head = {"workload": chosen, "design": design, **part.space.point(design)}
    return _compare(
        part.space.spec(design), replace(part.runs, workers=workers), as_json, as_csv, plot, head=head
    )


@app.command()
def reproduce(
    case: Annotated[str, typer.Argument(metavar="CASE", help=f"Published case: {', '.join(CASES)}.")],
    trace: TraceFile = None,
    simulate_anew: Annotated[
        bool, typer.Option("--simulate", help="Simulate anew, not only with a trace: takes minutes.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write text, CSV and plots there; a killed run resumes."),
    ] = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> int:
    """Print a published case's tables: published | simulated | model, from the data that are kept."""
    from cases.study.run import STORE
    from cases.tables import csv_text
    from validate import CampaignInterrupted

    _one_format(as_json, as_csv)
    chosen = published_case(case)
    if out is not None:
        _require_directory(out)
    try:
        if trace is None and not simulate_anew:
            result = chosen.kept()
        else:
            result = chosen.reproduce(trace, store=None if out is None else out / STORE)
    except CampaignInterrupted as interrupt:
        fail(f"interrupted: {interrupt}", 130)
    paths = [] if out is None else result.save(out)
    if as_csv:
        put(csv_text(result.columns()))
    else:
        files = "\n\nFiles\n" + "\n".join(f"  {path}" for path in paths) if paths else ""
        answer(as_json, result.to_dict, lambda: result.table() + files)
    return 0


def _compare(
    design: Any, runs: Any, as_json: bool, as_csv: bool, plot: Path | None, head: dict[str, Any]
) -> int:
    """Print a design solved beside simulated, below what identifies it."""
    from cases import plots
    from cases.cli import answers
    from validate import compare as compare_spec

    comparison = compare_spec(design, reference=runs.simulate(design))
    if plot is not None:
        shares = {
            "analytic": answers.shares(comparison.model),
            "simulated": answers.shares(comparison.reference),
        }
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


def _single(
    spec: Path | None,
    trace: Path | None,
    settings: list[str] | None,
    as_json: bool,
    as_csv: bool,
    plot: Path | None,
) -> Any:
    """Return the main spec of a command after looking at its options for output."""
    from cases.cli.inputs import read_specs
    from cases.plots import require_format

    _one_format(as_json, as_csv)
    if plot is not None:
        require_format(plot)
    specs, _ = read_specs(spec, trace, settings or ())
    return next(iter(specs.values()))


def _runs(packets: int, replications: int, seed: int, workers: int | None) -> Any:
    from cases.study.check import Runs

    return Runs(packets=packets, replications=replications, seed=seed, workers=workers)


def _one_format(as_json: bool, as_csv: bool) -> None:
    if as_json and as_csv:
        raise ValueError("--json and --csv exclude each other")


def _require_study_directory(out: Path) -> None:
    """Refuse to mix a study with other files."""
    from cases.study.files import SUMMARY
    from cases.study.run import STORE

    _require_directory(out)
    if out.is_dir() and any(out.iterdir()) and not any((out / name).exists() for name in (SUMMARY, STORE)):
        raise ValueError(
            f"--out must be a new or empty directory or a study, got {str(out)!r} with other files"
        )


def _require_directory(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a directory, got the file {str(out)!r}")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line: exit code 0, 2 for bad input, 1 for a model that fails, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=words or ["--help"], standalone_mode=False, prog_name="qmodels")
    except BrokenPipeError:
        # The reader has gone, as in `qmodels solve | head`; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted", 130)
    except ValueError as error:
        fail(_with_notes(error))
    except OSError as error:
        fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except RuntimeError as error:
        fail(_with_notes(error), 1)
    except Exception as error:
        # Typer's parser has no public base class for what it refuses.
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        fail(usage())
    sys.exit(code or 0)


def _with_notes(error: Exception) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


if __name__ == "__main__":
    main()
