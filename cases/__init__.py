"""The joint case, its studies and reports, and the command line: the floor that joins the other packages."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

MARK = "# A package of qmodels-toolkit: `import cases` looks for this line."
"""Stands in our packages: another distribution may write its own file into the very place of ours."""


def _require_siblings(names: tuple[str, ...] = ("qmodels", "optimize", "validate")) -> None:
    """Refuse to work with a foreign module that happens to have the name of one of our packages."""
    here = Path(__file__).resolve().parent.parent
    for name in names:
        ours = here / name / "__init__.py"
        spec = find_spec(name)
        origin = Path(spec.origin).resolve() if spec and spec.origin else None
        if origin is None:
            raise ImportError(
                f"{ours} of qmodels is missing, as after another distribution that had overwritten it was "
                "removed: install qmodels-toolkit again"
            )
        if origin != ours:
            raise ImportError(
                f"the module {name!r} that Python finds, {origin}, is not the package of qmodels in {here}: "
                "rename it, or start from another directory"
            )
        if MARK not in ours.read_text(encoding="utf-8", errors="replace"):
            raise ImportError(
                f"another distribution has overwritten {ours}, as configobj does with its own 'validate': "
                "remove that distribution and install qmodels-toolkit again"
            )


def _started_as_command() -> bool:
    """Return whether this is the command ``qmodels``, rather than Python code that imports us."""
    return Path(sys.argv[0] if sys.argv else "").stem == "qmodels" or "cases.cli.main" in sys.orig_argv[:4]


def _stop(*_: object) -> None:
    """End the command on Ctrl-C: while it imports, and wherever nothing is to be kept."""
    os.write(2, b"qmodels: error: interrupted\n")
    os._exit(130)


if _started_as_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _stop)
try:
    _require_siblings()
except ImportError as error:
    if not _started_as_command():
        raise
    # The command's own errors are one line; it cannot catch this one, as it is not imported yet.
    print(f"qmodels: error: {error}", file=sys.stderr)
    sys.exit(2)
