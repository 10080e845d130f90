"""The application ``qmodels`` and what its commands share: arguments, options and their checks.

Heavy modules are imported inside the commands, so that ``qmodels --help`` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
Seed = Annotated[int, typer.Option("--seed", help="All randomness follows from it.")]
Packets = Annotated[
    int | None,
    typer.Option(
        "--packets",
        help="Length of each replication of any kind, in its packets, jobs, accesses or requests; "
        "the simulator's own if left out.",
    ),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="Option of the simulator, e.g. packets=5000; repeatable."
    ),
]
Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--subject-to",
        metavar="CONDITION",
        help='Limit of a metric or field, such as "packet_latency_p99 < 2us"; repeatable.',
    ),
]
Replications = Annotated[int, typer.Option("--replications", help="Independent replications.")]
Workers = Annotated[int | None, typer.Option("--workers", help="Threads; one per core if left out.")]


def require_directory(out: Path) -> None:
    """Refuse a file where a directory is wanted."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a directory, got the file {str(out)!r}")
