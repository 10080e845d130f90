"""Single answers of the command line: solved, swept, simulated or compared, each as text, JSON and CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.cli.app import Forms
from cases.study.details import LEGEND, cell, sweep_doubts, trace_note, trace_summary, trace_warnings
from cases.study.goals import error_columns, words
from cases.study.screen import LINES as SCREEN_LINES
from cases.study.screen import WIDTH as SCREEN_WIDTH
from cases.tables import columns_of, csv_text, many, text_table, unit
from qmodels.systems.spec.conditions import quantity
from qmodels.systems.spec.metrics import is_relative
from qmodels.systems.spec.store import said

if TYPE_CHECKING:
    from qmodels.systems.spec.result import Result
    from validate import Comparison

Columns = list[tuple[str, Mapping[str, Any]]]  # headings, and values by name
MOST_ROWS, PARTS, FULLEST = 12, 7, 2
"""Rows of a table below an answer; of a comparison's screen, parts of the latency, and resources."""
LOADS = ("resources", "traffic_intensity", "utilization")
MAIN = ("packet_latency", "packet_latency_p99", "saturation_data_rate", "cost", "energy_per_packet")
"""Metrics in the text table of a sweep of packet processors; of other kinds these are the first ones."""

WIDTH = 100  # columns of a terminal that the table of a sweep takes


def one_answer(result: Any) -> Forms:
    """Return the answer of a model or a simulation to one system."""
    verb = _verb(result)
    return Forms(
        text=lambda: "\n\n".join([repr(result), *_breakdown({verb: result}), *_trace(result)]),
        data=lambda: _data(result),
        csv=lambda: csv_text(_csv_columns(result)),
    )


def _verb(result: Any) -> str:
    return "simulated" if result.run else "analytic"


def _data(result: Any) -> dict[str, Any]:
    """Return an answer for a program: all that is saved but its spec, errors of a model, its trace."""
    saved = {name: getattr(result, name) for name in result.saved} | {"stable": said(result.stable)}
    found = {_verb(result): saved, "units": result.units}
    if not result.run:
        errors = result.error
        saved["measured_error"] = {name: error.mean for name, error in errors.items()}
        saved["bias"] = {name: error.bias for name, error in errors.items()}
        saved["doubts"] = list(result.notes)
        found["error_units"] = {name: error.unit for name, error in errors.items()}
    return found | _trace_data(result)


def _csv_columns(result: Any) -> dict[str, Any]:
    """Return one row per metric."""
    verb, names, trusted = _verb(result), ["low", "high"], {}
    if not result.run:
        names += ["error", "bias", "error_unit"]
        trusted = {"validated": result.validated, "doubts": "; ".join(result.notes)}
    return columns_of(
        {"metric": row["metric"], "unit": row["unit"], verb: row["value"]}
        | {name: row.get(name, "") for name in names}
        | trusted
        for row in result.rows()
    )


def swept_answer(fields: Mapping[str, Any], result: Any, *, full: bool = False) -> Forms:
    """Return answers over all combinations of swept fields, which are given by their paths.

    The text has the metrics that fit beside each other, with ``full`` all.
    """
    ends = [path.rpartition(".")[2] for path in fields]
    # Two parts may have fields of one name.
    names = [end if ends.count(end) == 1 else path for path, end in zip(fields, ends, strict=True)]
    columns = {
        **dict(zip(names, fields.values(), strict=True)),
        **result.metrics,
        "stable": result.stable,
        "bottleneck": result.bottleneck,
        **error_columns(result),
        "doubts": _doubts(result),
    }
    shape = np.shape(result.stable)
    columns = {name: np.ravel(np.broadcast_to(column, shape)) for name, column in columns.items()}
    units = {name: unit(name) for name in columns} | result.units
    return Forms(
        text=lambda: _sweep_text(columns, names, result, full),
        data=lambda: {"analytic": columns, "units": units, **_trace_data(result)},
        csv=lambda: csv_text(columns),
    )


def _doubts(result: Any) -> Any:
    """Return the doubts of each system of a sweep, joined."""
    found = np.full(np.shape(result.stable), "", dtype=object)
    for doubt, applies in result.against.items():
        found += np.where(applies, f"; {doubt}", "")
    return np.array([doubt.removeprefix("; ") for doubt in found.flat]).reshape(found.shape)


def _sweep_text(columns: Mapping[str, Any], fields: list[str], result: Any, full: bool) -> str:
    """Return a row per system, in tables that are no wider than a terminal, and the doubts below."""
    left = [name for name in MAIN if name in result.metrics]
    left += [name for name in result.metrics if name not in left]
    rows = range(len(columns["stable"]))
    pairs = zip(columns["stable"], columns["validated"], strict=True)
    states = ["overloaded" if not stable else "" if valid else "doubtful" for stable, valid in pairs]
    last = [("bottleneck", columns["bottleneck"].tolist()), *([("", states)] if any(states) else [])]
    tables: list[str] = []
    while left and (full or not tables):
        shown, table = [(name.replace("_", " "), columns[name].tolist()) for name in fields], ""
        while left:
            name = left[0].replace("_", " ") if full else words(left[0])
            heading = f"{name} {unit(left[0]).removesuffix('1')}".rstrip()
            shown.append((heading, [cell(columns, left[0], row, signed=full) for row in rows]))
            heads, values = zip(*shown, *(last if not tables else ()), strict=True)
            wider = text_table(heads, zip(*values, strict=True))
            if table and max(map(len, wider.splitlines())) > WIDTH:
                break
            table, left = wider, left[1:]
        tables.append(table)
    doubts = sweep_doubts(result)
    legend = f"Analytic answer; {LEGEND if full else LEGEND.replace(' (signed mean)', '')}"
    more = [f"{many(len(left), 'more metric')}: --full, --csv"] if left else []
    first = "\n".join([legend, tables[0], *more])
    return "\n\n".join([first, *tables[1:], *([] if doubts is None else [doubts.text()]), *_trace(result)])


def compared_answer(comparison: Comparison, head: Mapping[str, Any], *, full: bool = False) -> Forms:
    """Return a system solved beside simulated, below what identifies it; the text is a screen or ``full``."""
    solved, simulated = comparison.model, comparison.reference
    return Forms(
        text=lambda: (_compared_text if full else _compared_screen)(comparison, head),
        data=lambda: {**head, "comparison": comparison.to_dict(), **_data(solved), **_data(simulated)},
        csv=lambda: csv_text(_compared_columns(comparison)),
    )


def _compared_text(comparison: Comparison, head: Mapping[str, Any]) -> str:
    """Return metrics, remarks, shares of the latency and loads side by side."""
    solved, simulated = comparison.model, comparison.reference
    remarks = [
        "\n".join([f"{name}: {result.title}", *(f"  {line}" for line in result.remarks())])
        for name, result in (("model", solved), ("reference", simulated))
    ]
    stated = [[name, str(error)] for name, error in solved.error.items() if error.known]
    title = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in head.items())
    parts = [
        *([title] if title else []),
        "\n".join(remarks),
        comparison.table(),
        *([text_table(["metric", "stated error of the model"], stated, indent="")] if stated else []),
        *_breakdown({"analytic": solved, "simulated": simulated}),
        *_trace(solved),
    ]
    return "\n\n".join(parts)


def _compared_screen(comparison: Comparison, head: Mapping[str, Any]) -> str:
    """Return the main metrics side by side, where the time goes, and the first warning: one screen."""
    solved, simulated = comparison.model, comparison.reference
    title = ", ".join(f"{words(name)} {value}" for name, value in head.items())
    above = [*_wrapped(title), *_wrapped(simulated.title)]
    states = {name: result.remarks()[0] for name, result in (("model", solved), ("simulated", simulated))}
    same = len(set(states.values())) == 1
    said = [states["model"]] if same else [f"{name}: {state}" for name, state in states.items()]
    above += [line for one in said for line in _wrapped(one)]
    both = {"model": solved, "simulated": simulated}
    tables = _beside("", "Where the time goes", _shares(both), most=PARTS)
    tables += _beside("", "Fullest resources", _loads(both, ("utilization",)), most=FULLEST)
    warnings = [
        *solved.remarks()[1:],
        *simulated.remarks()[1:],
        *trace_warnings(solved.spec, _capacity(solved)),
    ]
    more = f" ({len(warnings) - 1} more with --full)" if len(warnings) > 1 else ""
    below = [line for table in tables for line in table.splitlines() if not line.startswith("  and ")]
    below += [line for one in warnings[:1] for line in _wrapped(f"warning: {one}{more}")]
    below += ["--full: every metric, the model's stated errors, all resources and the trace"]
    room = SCREEN_LINES - len(above) - len(below) - 1
    return "\n".join([*above, *_compared_rows(comparison, room), *below])


def _compared_rows(comparison: Comparison, most: int) -> list[str]:
    """Return the first metrics of a comparison with the error that is found, and the one that was stated."""
    solved, simulated = comparison.model, comparison.reference
    names = [name for name in MAIN if name in comparison.rows]
    names += [name for name in comparison.rows if name not in names]
    rows = []
    for name in names[:most]:
        one, stated = comparison.rows[name], solved.error.get(name)
        values = one.model, one.reference.best, one.reference.low, one.reference.high
        model, *found = (quantity(solved.spec, name, value) for value in values)
        if {value.partition(" ")[2] for value in found} == {model.partition(" ")[2]}:
            found = [value.partition(" ")[0] for value in found]  # in the unit of the model's
        error = f"{one.stated_error:+.1f} {'%' if is_relative(name) else 'pts'}"
        known = stated is not None and stated.known and stated.mean
        rows.append(
            [
                words(name),
                model,
                found[0],
                " to ".join(dict.fromkeys(found[1:])),
                error if np.isfinite(one.stated_error) else "",
                f"{stated.mean:.1f} {stated.unit.replace('points', 'pts')}" if known else "",
            ]
        )
    heads = ["", "model", "simulated", f"{100 * simulated.confidence:.3g} % interval", "error", "stated"]
    while max(map(len, text_table(heads, rows, indent="").splitlines())) > SCREEN_WIDTH:
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return text_table(heads, rows, indent="").splitlines()


def _wrapped(text: str) -> list[str]:
    return wrap(text, SCREEN_WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _compared_columns(comparison: Comparison) -> dict[str, Any]:
    """Return model and simulation side by side, one row per metric."""
    error = comparison.model.error
    return columns_of(
        {
            "metric": name,
            "unit": row.unit,
            "analytic": row.model,
            "simulated": row.reference.best,
            "low": row.reference.low,
            "high": row.reference.high,
            "error": row.error,
            "relative_error": row.relative_error,
            "stated_error": getattr(error.get(name), "mean", ""),
            "stated_unit": getattr(error.get(name), "unit", ""),
            "inside": row.inside,
        }
        for name, row in comparison.rows.items()
    )


def _trace(result: Any) -> list[str]:
    """Return the trace of a system in a sentence and what of it does not fit; nothing without a trace."""
    note = trace_note(result.spec, _capacity(result))
    if note is None:
        return []
    played = ["each replication plays whole rotations of it, however few --packets"] * bool(result.run)
    return [replace(note, lines=[*note.lines, *played]).text()]


def _trace_data(result: Any) -> dict[str, Any]:
    found = trace_summary(result.spec, _capacity(result))
    return {} if found is None else {"trace": found}


def _capacity(result: Any) -> Any:
    """Return the throughput that a system sustains [Gb/s], by whichever verb, if the answer has it."""
    found = result.metrics.get("saturation_data_rate")
    return getattr(found, "best", found)


def _breakdown(results: Mapping[str, Result]) -> list[str]:
    """Return where the time goes, and the resources by load, as far as the results say so."""
    return [
        *_beside("Where the time goes", "share of the latency", _shares(results)),
        *_beside("Resources by load", "resource", _loads(results)),
    ]


def _shares(results: Mapping[str, Result]) -> Columns:
    """Return the parts of the latency of each result, and their shares."""
    shares: Columns = []
    for name, result in results.items():
        parts = _numbers(result.latency_parts)
        total = sum(parts.values())
        finite = parts if np.isfinite(total) else {}
        percent = {part: f"{100 * value / total:.0f} %" for part, value in finite.items()}
        shares += [(f"{name} {result.units[result.main]}", parts), ("", percent)]
    return shares


def _loads(results: Mapping[str, Result], places: Sequence[str] = LOADS) -> Columns:
    """Return the loads of the resources of each result, the fullest first, as the first place has them."""
    loads: Columns = []
    for name, result in results.items():
        busy = _numbers(next(filter(None, (getattr(result, place, None) for place in places)), {}))
        fullest = sorted(busy, key=lambda resource: -busy[resource])
        loads.append((f"{name} load", {resource: f"{100 * busy[resource]:.1f} %" for resource in fullest}))
    return loads


def _beside(title: str, what: str, columns: Columns, most: int = MOST_ROWS) -> list[str]:
    """Return values by name side by side, in the order of the first column; nothing if that is empty."""
    names = list(columns[0][1])
    rows = [[name, *(column.get(name, "") for _, column in columns)] for name in names[:most]]
    more = [f"  and {len(names) - most} more"] if len(names) > most else []
    table = text_table([what, *(heading for heading, _ in columns)], rows)
    return ["\n".join([*([title] if title else []), table, *more])] if names else []


def _numbers(values: Any) -> dict[str, float]:
    return {str(name): float(value) for name, value in values.items()} if isinstance(values, Mapping) else {}
