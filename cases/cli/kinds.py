"""The commands on kinds of systems: describe, init, schema."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from cases.cli.app import Json, app
from cases.cli.console import Forms, Output, put

KindName = Annotated[str, typer.Argument(metavar="KIND", help="A kind; `qmodels describe` lists them.")]


@app.command()
def describe(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="Kind of system; all are listed if left out.")
    ] = None,
    as_json: Json = False,
) -> int:
    """List the kinds of systems, or the fields of one: unit, default, what is allowed, meaning."""
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
            return f"{table}\n\n{how}: {examples}"

        Output(as_json).show(Forms(listed, lambda: found))
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
        str, typer.Argument(metavar="NAME", help="A kind, or a system of parts that `describe` lists.")
    ],
) -> int:
    """Print a commented TOML file of a small example: qmodels init noc > noc.toml."""
    from cases.systems import system_files
    from qmodels.systems.spec.describe import init as init_file

    files = system_files()
    put(files[kind].read_text(encoding="utf-8") if kind in files else init_file(kind))
    return 0


@app.command()
def schema(kind: KindName) -> int:
    """Print the JSON schema of a kind's files, with which editors complete and check them."""
    from qmodels.systems.spec.text.schema import json_schema

    put(json.dumps(json_schema(kind), indent=2) + "\n")
    return 0
