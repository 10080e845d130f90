"""The command on recorded traces."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cases.cli.app import Json, Plot, Reading, command
from cases.cli.console import Forms, Output

if TYPE_CHECKING:
    from qmodels.systems.traffic.description import TraceDescription

Described = Mapping[str, tuple["TraceDescription", list[str]]]
"""Traces by name, with what of them will not fit."""


@command
def trace(
    *,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE... [SPEC.toml]",
            help="Captures (pcap, pcapng, ERF) or text traces, gzip or not; and the system they are for.",
        ),
    ],
    reading: Reading,
    as_json: Json = False,
    plot: Plot = None,
) -> int:
    """Describe traces: rate, bursts over time scales, steadiness, sizes, gaps; warn of what will not fit."""
    output = Output(as_json, False, plot)
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
    output.show(Forms(text=lambda: _text(said), data=lambda: _data(said)), first.plot)
    return 0


def _alone(traces: list[Path], reading: Reading) -> Described:
    """Describe traces as they are."""
    from cases.cli.inputs import reading_of
    from qmodels.systems.traffic.trace import read_trace

    said = {}
    for file in traces:
        found = read_trace(file, **reading_of(file, reading.interface, reading.columns, traces)).description
        said[str(file)] = found, found.warnings()
    return said


def _in_a_system(spec: Path | None, traces: list[Path], reading: Reading) -> Described:
    """Describe traces and what of them does not fit a system, whose capacity is the model's answer."""
    from cases.study.stream import trace_warnings
    from qmodels import solve

    said = {}
    for one in reading.specs(spec, traces)[0].values():
        found: Any = one.workload.arrivals.trace.description
        said[found.source] = found, trace_warnings(one, solve(one)["saturation_data_rate"])
    return said


def _text(said: Described) -> str:
    from cases.tables import text_table

    parts = []
    for found, warnings in said.values():
        table = text_table(["", "", "", ""], found.rows()).partition("\n")[2]
        lines = [f"Trace {found.source}", f"  {found.summary}", table]
        parts.append("\n".join([*lines, *(f"  warning: {line}" for line in warnings)]))
    return "\n\n".join(parts)


def _data(said: Described) -> dict[str, Any]:
    traces = {
        name: {**found.to_dict(), "summary": found.summary, "warnings": warnings}
        for name, (found, warnings) in said.items()
    }
    return {"traces": traces}
