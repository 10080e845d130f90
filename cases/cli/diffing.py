"""The command that lays two systems beside each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from cases.cli.app import Forms, Output, Reading, Runs, System, TraceFiles, command

MOST = 8  # metrics that are shown; the others are in the JSON
CAUSES, ALIKE = 3, 0.05
"""Most features in which two traces are said to differ, and the log ratio from which they do."""

MAIN = (
    "cost", "packet_latency", "packet_latency_p99", "saturation_data_rate", "energy_per_packet",
    "overflow_probability",
)  # fmt: skip
"""Metrics of a packet processor that are shown."""


@command
def diff(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[A.toml] [B.toml]", help="The systems, or one for both."),
    ] = None,
    first: Annotated[
        list[str] | None, typer.Option("--a", metavar="'FIELD=VALUE ...'", help="Fields of A; repeatable.")
    ] = None,
    second: Annotated[
        list[str] | None, typer.Option("--b", metavar="'FIELD=VALUE ...'", help="Fields of B; repeatable.")
    ] = None,
    trace: TraceFiles = None,
    reading: Reading,
    metrics: Annotated[
        list[str] | None, typer.Option("--metric", metavar="METRIC", help="What to compare; repeatable.")
    ] = None,
    pairs: Annotated[int, typer.Option("--pairs", help="Pairs of runs.")] = 8,
    runs: Runs,
    output: Output,
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
        Forms(
            text=lambda: "\n".join([*heads, str(brief), *_traffic(a, b)]),
            data=lambda: {"a": names[0], "b": names[1], **found.to_dict()},
            csv=lambda: csv_text(columns_of(_csv_rows(found))),
        ),
        lambda: _figure(brief),
    )
    return 0


def _both(
    files: list[Path], sides: list[list[str]], traces: list[Path], reading: Reading
) -> tuple[list[str], list[Any]]:
    """Return the names of A and B, and their specs."""
    if len(files) > 2 or len(traces) > 2:
        raise ValueError(f"diff must be given two files and two traces at most, got {len(files + traces)}")
    names, specs = [], []
    for k, words in enumerate(sides):
        own = [one for text in words for one in _settings(text)]
        file, trace = (some[k] if len(some) > k else some[0] if some else None for some in (files, traces))
        mine = replace(reading, settings=[*(reading.settings or ()), *own])
        specs.append(System(file, trace, mine).one())
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
