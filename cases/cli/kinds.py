"""The commands that describe, and those on papers: describe, init, schema, reproduce, conclusions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cases.cli import app
from cases.published import CASES

if TYPE_CHECKING:
    from qmodels.systems.spec.describe import FieldRow


KindName = Annotated[str, typer.Argument(metavar="KIND", help="A kind; `qmodels describe` lists them.")]
WIDTH = 100  # columns of what is described


@app.command
def describe(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Kind of system, a memory preset, or a published case; all are listed if left out.",
            autocompletion=app.kind_names,
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A part or a field of it, to be explained.")
    ] = None,
    as_json: app.Json = False,
) -> int:
    """List the kinds of systems, the parts and fields of one, or explain some: unit, default, rule, meaning.

    qmodels describe packet-processor dram. Of a published case its systems are listed, with their numbers.
    """
    from qmodels.systems.memory.dram_timing import PRESETS
    from qmodels.systems.spec.describe import describe as describe_fields

    output = app.Output(as_json)
    if kind is None:
        output.show(_kinds())
        return 0
    if name is not None and (kind in CASES or kind in PRESETS):
        raise ValueError(f"describe takes a NAME behind a kind of system, got {kind} {name}")
    if kind in CASES:
        output.show(_published(kind))
    elif kind in PRESETS:
        found = asdict(PRESETS[kind])
        output.show(app.Forms(lambda: "\n".join(_preset_lines(kind, found)), lambda: {kind: found}))
    else:
        rows = describe_fields(kind)
        chosen = rows if name is None else _named(kind, name, rows)
        said = partial(_overview, kind, rows) if name is None else partial(_explained, chosen)
        fields = [asdict(row) for row in chosen]
        output.show(app.Forms(lambda: "\n".join(said()), lambda: {"kind": kind, "fields": fields}))
    return 0


def _kinds() -> app.Forms:
    from cases.systems import system_files
    from cases.tables import text_table
    from qmodels.systems.memory.dram_timing import PRESETS
    from qmodels.systems.spec.kind import kinds

    found = {name: (one.spec().__doc__ or "").strip().partition("\n")[0] for name, one in kinds().items()}
    more = {
        "Fields of one": ("qmodels describe KIND",),
        "Memories (--set dram=NAME, qmodels describe NAME)": PRESETS,
        "Systems of parts to begin with (qmodels init NAME, qmodels solve NAME)": system_files(),
        "Published cases (qmodels describe CASE lists the systems of one, which are such names too)": CASES,
    }

    def listed() -> str:
        table = text_table(["kind", "what it is"], list(found.items()))
        lines = (line for what, names in more.items() for line in _listed(what, names))
        return "\n".join([table, "", *lines])

    return app.Forms(listed, lambda: found)


def _published(case: str) -> app.Forms:
    from cases.published.paper import designs_of
    from cases.tables import text_table

    numbers = [(f"{case}/{one.name}", one.published) for one in designs_of(case)]

    def systems() -> str:
        rows = [
            [name, ", ".join(f"{metric} {value:.4g}" for metric, value in said.items() if value is not None)]
            for name, said in numbers
        ]
        return text_table(["system", "published"], rows)

    return app.Forms(systems, lambda: dict(numbers))


def _preset_lines(name: str, preset: Mapping[str, Any]) -> Iterator[str]:
    yield from _listed(name, [preset["source"]])
    for part, value in preset.items():
        values = [f"{key} {one}" for key, one in value.items()] if isinstance(value, dict) else [str(value)]
        yield from _listed(f"  {part}", values) if part != "source" else ()


def _listed(what: str, names: Iterable[str]) -> list[str]:
    """Return names behind their heading, in as many lines as they take."""
    return wrap(f"{what}: {', '.join(names)}", WIDTH, subsequent_indent="    ", break_on_hyphens=False)


def _named(kind: str, name: str, rows: Sequence[FieldRow]) -> list[FieldRow]:
    """Return the fields that a name means: a part with all that is in it, a kind of part, or one field."""
    from qmodels import checks

    found = [row for row in rows if name == row.of or f".{name}." in f".{row.name}."]
    if not found:
        known = {end for row in rows for end in (row.of, *row.name.split("."))} - {"", "*"}
        raise ValueError(f"{kind} has no part or field {name!r}{checks.nearest(name, known)}")
    return found


def _explained(rows: Sequence[FieldRow]) -> Iterator[str]:
    for row in rows:
        facts = (row.type, row.unit and f"[{row.unit}]", row.of and f"of {row.of}")
        yield f"{row.name} = {row.default}  ({', '.join(fact for fact in facts if fact)})"
        yield from (f"    {words}" for words in (row.meaning, row.allowed) if words)


def _kinds_of_part(words: str) -> list[str]:
    """Return the kinds that the words on a type name.

    >>> _kinds_of_part("poisson, on-off or 13 others")
    ['poisson', 'on-off']
    """
    named = words.partition(": ")[2] or words
    return [one for one in re.split(r", | or ", named) if one and " " not in one]


def _overview(kind: str, rows: Sequence[FieldRow]) -> Iterator[str]:
    """Yield the parts of a kind, each with its fields; of one of several kinds those of its default.

    Memory presets stand below the parts that take them.
    """
    from qmodels.systems.memory.dram_timing import PRESETS

    default, of_type = ({row.name: getattr(row, one) for row in rows} for one in ("default", "type"))
    inside: dict[str, list[FieldRow]] = {}
    for row in rows:
        inside.setdefault(row.name.rpartition(".")[0], []).append(row)
    cells, shown = [], {""}
    for part, fields in inside.items():
        if part.replace(".*", "") not in shown:
            continue
        own = [row for row in fields if row.of in ("", default.get(part))]
        shown |= {row.name.replace(".*", "") for row in own}
        others = dict.fromkeys(_kinds_of_part(of_type.get(part, "")) if not own else ())
        others |= dict.fromkeys(row.of for row in fields if row not in own)
        said = [f"{row.name.rpartition('.')[2]}{f' [{row.unit}]' if row.unit else ''}" for row in own]
        cells += [(part or kind, ", ".join(said))] if said else []
        cells += (
            [("  or" if own else part, f"{'' if own else 'one of '}{', '.join(others)}")] if others else []
        )
    if any(row.name.endswith("timing") for row in rows):
        cells.append(("presets", ", ".join(PRESETS)))
    first = 2 + max(len(part) for part, _ in cells)
    for part, text in cells:
        lines = wrap(text, WIDTH - first, break_on_hyphens=False)
        yield from (f"{'' if k else part:{first}}{line}" for k, line in enumerate(lines))
    yield f"Details of a part, a kind of part or a field: qmodels describe {kind} NAME; of all: --json"


@app.command
def init(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A kind, or a system that `qmodels describe` lists.",
            autocompletion=app.kind_names,
        ),
    ],
) -> int:
    """Print a commented TOML file of a small example: qmodels init noc > noc.toml.

    Of a published system it is the file to change: qmodels init srp/table62-four-stealing-image-c > mine.toml
    """
    from cases.cli.inputs import published_text
    from cases.systems import system_files
    from qmodels.systems.spec.describe import init as init_file

    files = system_files()
    if kind.partition("/")[0] in CASES:
        app.put(published_text(kind))
    else:
        app.put(files[kind].read_text(encoding="utf-8") if kind in files else init_file(kind))
    return 0


@app.command
def schema(kind: KindName) -> int:
    """Print the JSON schema of a kind's files, with which editors complete and check them."""
    from qmodels.systems.spec.describe import json_schema

    app.put(json.dumps(json_schema(kind), indent=2) + "\n")
    return 0


@app.command
def reproduce(
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE[/SYSTEM]",
            autocompletion=app.case_names,
            help=f"Published case: {', '.join(CASES)}; systems of it (qmodels describe CASE); or a paper of "
            "your own, a TOML file.",
        ),
    ],
    spec: Annotated[
        Path | None, typer.Argument(metavar="[SPEC.toml]", help="The one system CASE/SYSTEM, edited.")
    ] = None,
    settings: app.Settings = None,
    trace: app.TraceFile = None,
    simulate_anew: Annotated[
        bool, typer.Option("--simulate", help="Compute all anew, also what takes longer than a minute.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write text, CSV and plots there; a killed run resumes."),
    ] = None,
    as_json: app.Json = False,
    as_csv: app.Csv = False,
) -> int:
    """Print a published case's tables: published | model | simulated; what takes minutes was kept.

    With --set, or a file, its systems are solved as published and with what was changed, and simulated so
    with --simulate: qmodels reproduce llc3d/slices --set slices=14
    """
    from cases.published.paper import paper_of
    from cases.study.study import SIMULATED
    from cases.tables import csv_text
    from validate import CampaignInterrupted

    output = app.Output(as_json, as_csv)
    if settings or spec is not None or ("/" in case and not case.endswith(".toml")):
        from cases.cli.inputs import named_values
        from cases.published.paper import changed

        if trace is not None or out is not None:
            raise ValueError("--trace and --out are of a whole case: no --set, no SYSTEM and no SPEC.toml")
        values = named_values(settings or ())
        output.show(changed(case, values, other=spec, simulated=simulate_anew))
        return 0
    chosen = paper_of(case)
    if out is not None:
        app.require_directory(out)
    try:
        if trace is None and not simulate_anew:
            result = chosen.today()
        else:
            with app.interruptible():
                result = chosen.reproduce(trace, store=None if out is None else out / SIMULATED)
    except CampaignInterrupted as interrupt:
        app.fail(f"interrupted: {interrupt}", 130)
    paths = [] if out is None else result.save(out)
    output.show(
        app.Forms(
            text=lambda: result.table() + app.listed(paths),
            data=result.to_dict,
            csv=lambda: csv_text(result.columns()),
        )
    )
    return 0


@app.command
def conclusions(
    case: Annotated[
        str | None,
        typer.Argument(
            metavar="[CASE]",
            help=f"Published case: {', '.join(CASES)}; all if left out.",
            autocompletion=app.case_names,
        ),
    ] = None,
    settings: app.Settings = None,
    as_json: app.Json = False,
    plot: app.Plot = None,
) -> int:
    """Say whether the conclusions of published papers hold, by how much, and where they turn.

    The models' margins and flips are computed now; simulations beside them are kept, and left out where they
    are of other systems. With --set the systems of one paper are others than it has: its models alone answer.
    """
    from cases.cli.inputs import named_values
    from cases.published.conclusions import changed, conclusions_of, found_of
    from cases.published.plots import conclusions_figure
    from cases.published.words import data, text

    output = app.Output(as_json, False, plot)
    if plot is not None and case is None:
        raise ValueError(f"--plot needs one CASE: {', '.join(CASES)}")
    wanted = [case] if case is not None else list(CASES)
    for one in wanted:
        conclusions_of(one)
    note, left = "", dict[str, str]()
    if settings:
        if case is None:
            raise ValueError(f"--set needs one CASE: {', '.join(CASES)}")
        found, left = changed(case, named_values(settings))
        findings = {case: found}
        note = f"With {', '.join(settings)}: the paper's numbers do not apply, nothing is simulated.\n\n"
    else:
        findings = {one: found_of(one) for one in wanted}
    last = "".join(f"\n  left out: {name}: {why}" for name, why in left.items())
    output.show(
        app.Forms(
            text=lambda: note + text(findings) + last,
            data=lambda: data(findings) | ({"set": settings, "left_out": left} if settings else {}),
        ),
        lambda: conclusions_figure(wanted[0], findings[wanted[0]]),
    )
    return 0
