"""The application ``qmodels`` and what its commands share: options and their checks, output, errors.

Heavy modules are imported inside the commands, so that ``qmodels --help`` answers at once.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn, TypeVar, get_type_hints

import typer

from cases.study import PACKETS

Command = TypeVar("Command", bound=Callable[..., int])

app = typer.Typer(
    name="qmodels",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Analytic models of on-chip memory systems, packet processors and networks of queues, explored and "
    "checked by simulation. Work beyond 4 GB of memory or ten million designs is refused before it starts: "
    "QMODELS_LIMIT=10 in the environment allows ten times as much.",
)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            found = version("qmodels-toolkit")
        except PackageNotFoundError:
            found = "(of a source tree that is not installed)"
        print(f"qmodels {found}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which one this is.")
    ] = False,
) -> None:
    pass


def case_names(incomplete: str) -> list[str]:
    """Complete the name of a published case, and those of its systems behind a slash."""
    from cases.published import CASES
    from cases.published.paper import designs_of

    case, slash, _ = incomplete.partition("/")
    names = [f"{case}/{one.name}" for one in designs_of(case)] if slash and case in CASES else CASES
    return [name for name in names if name.startswith(incomplete)]


def kind_names(incomplete: str) -> list[str]:
    """Complete the name of a kind, of a system of parts, or of a published case or system."""
    from cases.systems import system_files
    from qmodels.systems.spec.kind import kinds

    names = [*kinds(), *system_files()]
    return [*(name for name in names if name.startswith(incomplete)), *case_names(incomplete)]


SpecFile = Annotated[
    Path | None,
    typer.Argument(metavar="[SPEC.toml]", help="Spec of a system of any kind; the bundled case if left out."),
]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace", metavar="FILE", help="Packets from a capture (pcap, pcapng, ERF) or a text trace."
    ),
]
TraceFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--trace",
        metavar="FILE",
        help="Packets from a capture (pcap, pcapng, ERF) or a text trace; several are explored together.",
    ),
]
Interface = Annotated[
    str | None,
    typer.Option("--interface", help="Of a pcapng or ERF trace: number or name of an interface, or all."),
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="time=N,bytes=N", help="Of a text trace: columns from 1, and unit=us; flow=N."
    ),
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
Full = Annotated[
    bool, typer.Option("--full", help="Show all that was found: every metric of a sweep, all of a study.")
]
Seed = Annotated[int, typer.Option("--seed", help="All randomness follows from it.")]
Packets = Annotated[
    int | None,
    typer.Option(
        "--packets",
        help="Length of each replication of any kind, in its packets, jobs, accesses or requests; the "
        f"simulator's own if left out, of `explore` {PACKETS:,} packets of a packet processor. A trace is "
        "simulated whole.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="Option of the simulator, e.g. packets=5000; repeatable."
    ),
]
Replications = Annotated[int, typer.Option("--replications", help="Independent replications.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Threads; one per core if left out.")]


@dataclass(frozen=True)
class Reading:
    """Options on the fields of a system and on its traces."""

    interface: Interface = None
    columns: Columns = None
    settings: Settings = None

    def specs(self, spec: Path | None, traces: Any) -> tuple[dict[str, Any], list[str]]:
        """Return the specs that a command means, see `read_specs`."""
        from cases.cli.inputs import read_specs

        return read_specs(spec, traces, self.settings or (), self.interface, self.columns)


@dataclass(frozen=True)
class System:
    """Options on the one system that a command answers for."""

    spec: SpecFile = None
    trace: TraceFile = None
    reading: Reading = Reading()

    def sweep(self) -> Any:
        """Return its spec, in which fields may be swept."""
        return next(iter(self.reading.specs(self.spec, self.trace)[0].values()))

    def one(self) -> Any:
        """Return its spec without swept fields."""
        from qmodels.systems.spec.fields import array_fields

        found = self.sweep()
        for path, value in array_fields(found).items():
            raise ValueError(f"{path} must be one number here, got {value.tolist()}; `solve` takes a sweep")
        return found


@dataclass(frozen=True)
class Runs:
    """Options on simulations."""

    seed: Seed = 0
    packets: Packets = None
    workers: Workers = None

    @property
    def threads(self) -> int:
        """Number of threads."""
        from qmodels import checks

        if self.workers is not None:
            checks.count("workers", self.workers)
        return self.workers or os.cpu_count() or 1


@dataclass(frozen=True)
class Simulation:
    """Options on the simulation of one system."""

    runs: Runs = Runs()
    replications: Replications = 8
    options: Options = None

    def of(self, design: Any) -> Any:
        """Return the simulation of a system."""
        from concurrent.futures import ThreadPoolExecutor

        from cases.cli.inputs import named_values
        from validate import simulate
        from validate.campaigns.simulate import own_options

        runs = self.runs
        words = [f"packets={runs.packets}"] if runs.packets is not None else []
        own = named_values([*words, *(self.options or ())], option="--option")
        try:
            own_options(design, own)
        except TypeError as error:
            raise ValueError(str(error)) from None
        with ThreadPoolExecutor(runs.threads) as pool:
            return simulate(design, executor=pool, seed=runs.seed, replications=self.replications, **own)


def command(function: Command) -> Command:
    """Make a function a command; a parameter that is one of the dataclasses above stands for its options."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    given = signature(function).parameters.values()
    options = [option for one in given for option in _options(one.name, hints[one.name], one.default)]

    @wraps(function)
    def unfolded(**values: Any) -> int:
        made = {name: _made(group, values) for name, group in groups.items()}
        return function(**made, **{name: values[name] for name in hints if name in values})

    unfolded.__signature__ = Signature(options)  # type: ignore[attr-defined]
    unfolded.__annotations__ = {one.name: one.annotation for one in options}
    app.command()(unfolded)
    return function


def _options(name: str, hint: Any, default: Any) -> Iterator[Parameter]:
    """Yield the option of a name, or those of the dataclass that it is."""
    if is_dataclass(hint):
        for one in signature(hint).parameters.values():  # type: ignore[arg-type]
            hints = get_type_hints(hint, include_extras=True)
            yield from _options(one.name, hints[one.name], one.default)
    else:
        yield Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def _made(group: Any, values: Mapping[str, Any]) -> Any:
    """Return a dataclass of options with its values."""
    hints = get_type_hints(group)
    return group(
        **{name: _made(hint, values) if is_dataclass(hint) else values[name] for name, hint in hints.items()}
    )


def given_options(context: typer.Context, group: Any, *more: str) -> list[str]:
    """Return which options of a dataclass, and of more names, were given, also at their default."""
    names = {*more, *(one.name for one in _options("", group, None))}
    sources = {one: context.get_parameter_source(one.name or "") for one in context.command.params}
    return [
        one.opts[0]
        for one, source in sources.items()
        if one.name in names and source is not None and source.name == "COMMANDLINE"
    ]


def require_directory(out: Path) -> None:
    """Refuse a file where a directory is wanted."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a directory, got the file {str(out)!r}")


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise `KeyboardInterrupt` in work that keeps what is finished; elsewhere it ends all."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bars() -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield what draws progress bars on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def show_progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield show_progress


@dataclass(frozen=True)
class Output:
    """Form of a command's answer: text, JSON or CSV, and a picture; refused before anything is computed."""

    as_json: Json = False
    as_csv: Csv = False
    plot: Plot = None

    def __post_init__(self) -> None:
        if self.as_json and self.as_csv:
            raise ValueError("--json and --csv exclude each other")
        if self.plot is not None:
            from cases.tables import require_format

            require_format(self.plot)

    def show(self, answer: Any, figure: Callable[[], Any] | None = None) -> None:
        """Write the picture, and print the one form of an answer (see `Forms`) that is asked for."""
        if self.plot is not None and figure is not None:
            from cases.tables import save

            save(figure(), self.plot)
        if self.as_csv:
            put(answer.csv())
        elif self.as_json:
            from cases.tables import json_text

            put(json_text(answer.data()))
        else:
            put(answer.text() + "\n")


@dataclass(frozen=True)
class FullOutput(Output):
    """The same, of a text that shows all only where that is asked for."""

    full: Full = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.full and (self.as_json or self.as_csv):
            raise ValueError(
                "--full is of the text: leave it out with --json and --csv, which have all of it"
            )


class Forms(NamedTuple):
    """The forms of an answer: only that one is made that is printed."""

    text: Callable[[], str]
    data: Callable[[], Any]
    csv: Callable[[], str] = str


def listed(paths: Sequence[Path]) -> str:
    """Return the files that were written, to stand below an answer."""
    return "\n\nFiles\n" + "\n".join(f"  {path}" for path in paths) if paths else ""


def put(text: str) -> None:
    """Write to standard output at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def fail(message: str, code: int = 2) -> NoReturn:
    """Say in one line on standard error what is wrong."""
    print("qmodels: error: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(code)
