"""The commands on kinds of systems: describe, init, schema."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from cases.cli.app import Json, app, kind_names
from cases.cli.console import Forms, Output, put
from cases.published import CASES

KindName = Annotated[str, typer.Argument(metavar="KIND", help="A kind; `qmodels describe` lists them.")]


@app.command()
def describe(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]",
            help="Kind of system, or a published case; all are listed if left out.",
            autocompletion=kind_names,
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the kinds of systems, or the fields of one: unit, default, what is allowed, meaning.

    Of a published case its systems are listed, each with the numbers of the paper.
    """
    from cases.systems import system_files
    from cases.tables import text_table
    from qmodels.systems.spec.describe import describe as describe_fields
    from qmodels.systems.spec.kind import kinds

    if kind is None:
        found = {name: (one.spec().__doc__ or "").strip().partition("\n")[0] for name, one in kinds().items()}
        examples = ", ".join(system_files())

        def listed() -> str:
            table = text_table(["kind", "what it is"], list(found.items()))
            how = "Systems of parts to begin with (qmodels init NAME, qmodels solve NAME)"
            papers = (
                "Published cases (qmodels describe CASE lists the systems of one, which are such names too)"
            )
            return f"{table}\n\n{how}: {examples}\n{papers}: {', '.join(CASES)}"

        Output(as_json).show(Forms(listed, lambda: found))
        return 0
    if kind in CASES:
        from cases.published.own import designs_of

        numbers = [(f"{kind}/{one.name}", one.published) for one in designs_of(kind)]

        def systems() -> str:
            rows = [
                [
                    name,
                    ", ".join(f"{metric} {value:.4g}" for metric, value in said.items() if value is not None),
                ]
                for name, said in numbers
            ]
            return text_table(["system", "published"], rows)

        Output(as_json).show(Forms(systems, lambda: dict(numbers)))
        return 0
    rows = [asdict(row) for row in describe_fields(kind)]

    def text() -> str:
        lines = []
        for row in rows:
            facts = (row["type"], row["unit"] and f"[{row['unit']}]", row["of"] and f"of {row['of']}")
            lines.append(f"{row['name']} = {row['default']}  ({', '.join(fact for fact in facts if fact)})")
            lines += [f"    {words}" for words in (row["meaning"], row["allowed"]) if words]
        return "\n".join(lines)

    Output(as_json).show(Forms(text, lambda: {"kind": kind, "fields": rows}))
    return 0


@app.command()
def init(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A kind, or a system that `qmodels describe` lists.",
            autocompletion=kind_names,
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
        put(published_text(kind))
    else:
        put(files[kind].read_text(encoding="utf-8") if kind in files else init_file(kind))
    return 0


@app.command()
def schema(kind: KindName) -> int:
    """Print the JSON schema of a kind's files, with which editors complete and check them."""
    from qmodels.systems.spec.text.schema import json_schema

    put(json.dumps(json_schema(kind), indent=2) + "\n")
    return 0
