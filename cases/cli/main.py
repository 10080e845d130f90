"""The command ``qmodels``: one verb for each thing that can be done with a system, of whatever kind."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer

from cases.cli import answering, kinds, studies
from cases.cli.app import app, fail

COMMANDS = (studies, answering, kinds)  # modules whose commands the application has


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line: exit code 0, 2 for bad input, 1 for a model that fails, 130 after Ctrl-C."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        refuse_repeated(words)
        code = app(args=words or ["--help"], standalone_mode=False, prog_name="qmodels")
    except BrokenPipeError:
        # The reader has gone, as in `qmodels solve | head`; keep the interpreter from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (KeyboardInterrupt, typer.Abort):
        fail("interrupted", 130)
    except ValueError as error:
        fail(_with_notes(error))
    except OSError as error:
        fail(f"{error.filename or 'file'}: {error.strerror or error}")
    except RuntimeError as error:
        fail(_with_notes(error), 1)
    except MemoryError as error:
        fail(f"not enough memory: {error}", 1)
    except Exception as error:
        # Typer's parser has no public base class for what it refuses.
        usage = getattr(error, "format_message", None)
        if usage is None:
            raise
        fail(usage())
    sys.exit(code or 0)


def refuse_repeated(words: Sequence[str]) -> None:
    """Refuse an option given twice where one value counts: the last would hide the others."""
    commands: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    command = commands.get(words[0]) if words else None
    for option in command.params if command else ():
        if getattr(option, "multiple", True) or getattr(option, "is_flag", True):
            continue
        names = option.opts
        times = sum(word.partition("=")[0] in names for word in words[1:])
        if times > 1:
            several = "; `explore` and `diff` take several" if "--trace" in names else ""
            raise ValueError(f"{names[0]} must be given once to {words[0]}, got it {times} times{several}")


def _with_notes(error: Exception) -> str:
    return "; ".join([str(error), *getattr(error, "__notes__", ())])


if __name__ == "__main__":
    main()
