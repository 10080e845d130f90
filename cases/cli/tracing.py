"""The command on recorded traces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cases.cli.app import Columns, Interface, Json, Plot, Settings, app
from cases.cli.console import Forms, Output

if TYPE_CHECKING:
    from qmodels.systems.traffic.description import TraceDescription


@app.command()
def trace(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE... [SPEC.toml]",
            help="Captures (pcap, pcapng, ERF) or text traces, gzip or not; and the system they are for.",
        ),
    ],
    interface: Interface = None,
    columns: Columns = None,
    settings: Settings = None,
    as_json: Json = False,
    plot: Plot = None,
) -> int:
    """Describe traces: rate, bursts over time scales, steadiness, sizes, gaps; warn of what will not fit."""
    from cases.cli.inputs import read_specs, reading_of

    output = Output(as_json, False, plot)
    specs = [file for file in files if file.suffix == ".toml"]
    traces = [file for file in files if file.suffix != ".toml"]
    if len(specs) > 1 or not traces:
        raise ValueError(f"trace must be given traces and at most one SPEC.toml, got {len(specs)} specs")
    if plot is not None and len(traces) > 1:
        raise ValueError(f"--plot needs one trace, got {len(traces)}")
    said: dict[str, tuple[TraceDescription, Mapping[str, Any]]] = {}
    if specs or settings:
        for name, spec in read_specs(specs[0] if specs else None, traces, settings or (), interface, columns)[
            0
        ].items():
            said[name] = spec.workload.arrivals.trace.description, _limits(spec)
    else:
        from qmodels.systems.traffic.trace import read_trace

        for file in traces:
            said[str(file)] = read_trace(file, **reading_of(file, interface, columns, traces)).description, {}
    first, _ = next(iter(said.values()))
    output.show(Forms(text=lambda: _text(said), data=lambda: _data(said)), first.plot)
    return 0


def _limits(spec: Any) -> dict[str, Any]:
    """Return what of a system a trace is held against; its capacity is the model's answer."""
    from cases.study.stream import trace_limits
    from qmodels import solve

    return trace_limits(spec, solve(spec)["saturation_data_rate"])


def _text(said: Mapping[str, tuple[TraceDescription, Mapping[str, Any]]]) -> str:
    from cases.tables import text_table

    parts = []
    for found, limits in said.values():
        warnings = [f"  warning: {line}" for line in found.warnings(**limits)]
        table = text_table(["", "", "", ""], found.rows()).partition("\n")[2]
        parts.append("\n".join([f"Trace {found.source}", f"  {found.summary}", table, *warnings]))
    return "\n\n".join(parts)


def _data(said: Mapping[str, tuple[TraceDescription, Mapping[str, Any]]]) -> Any:
    return {
        "traces": {
            name: {**found.to_dict(), "summary": found.summary, "warnings": found.warnings(**limits)}
            for name, (found, limits) in said.items()
        }
    }
