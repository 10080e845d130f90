"""The command line, from its own declarations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from cases.cli import main
from cases.cli.app import app

assert main  # its commands are registered when it is imported


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of all commands."""
    group: Any = typer.main.get_command(app)
    lines = ["# The command line", "", group.help or "", ""]
    for name, command in group.commands.items():
        lines += [f"## `qmodels {name}`", "", "```text", _usage(name, command), "```", ""]
        lines += [(command.help or "").replace("\b\n", "").strip(), ""]
        rows = [_row(one) for one in command.params if not getattr(one, "hidden", False)]
        if rows:
            lines += ["| argument or option | holds | default | meaning |", "|---|---|---|---|", *rows, ""]
    yield "commands.md", "\n".join(lines) + "\n"


def _usage(name: str, command: Any) -> str:
    arguments = [one.metavar or f"[{one.name.upper()}]" for one in command.params if not _option(one)]
    return " ".join(["qmodels", name, "[OPTIONS]", *arguments])


def _option(one: Any) -> bool:
    return bool(one.param_type_name == "option")


def _row(one: Any) -> str:
    named = ", ".join(f"`{word}`" for word in (*one.opts, *one.secondary_opts))
    named = named if _option(one) else f"`{one.name.upper()}`"
    default = "" if one.default in (None, (), [], False) or callable(one.default) else f"`{one.default}`"
    holds = f"`{one.metavar}`" if one.metavar else ""
    holds += " (may be repeated)" if one.multiple else ""
    return (
        "| " + " | ".join(text.replace("|", "\\|") for text in (named, holds, default, one.help or "")) + " |"
    )
