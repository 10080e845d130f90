"""Public names of a package that are imported when they are first used, so that importing it stays light."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

GROUPS = ("queues", "networks", "markov", "laws", "traffic", "noc", "memory", "packets")
"""Where a name that the package itself has not is looked for, to say so."""


def attached(
    package: str, path: str, names: Sequence[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package, path : str
        Its ``__name__`` and ``__file__``. What stands there below ``if TYPE_CHECKING`` says where each
        name is from: readers, type checkers and this function read the same lines.
    names : sequence of str
        Its ``__all__``.
    """

    @cache
    def homes() -> dict[str, str]:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
        return {
            alias.asname or alias.name: node.module or ""
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}{_elsewhere(package, name)}")
        home = homes()[name]
        value = import_module(f"{home}.{name}") if home == package else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return look_up, lambda: sorted(names)


def _elsewhere(package: str, name: str) -> str:
    """Return in which group a name of the whole toolkit is, in words."""
    if package != "qmodels" or name.startswith("_") or (Path(__file__).parent / name).exists():
        return ""
    if Path(__file__).with_name(f"{name}.py").exists():
        return ""  # "from qmodels import checks" asks for an attribute first
    found = [group for group in GROUPS if name in import_module(f"qmodels.{group}").__all__]
    return f"; it is qmodels.{found[0]}.{name}" if found else ""
