"""Public names of a package that are imported when they are first used, so that importing it stays light."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def attached(
    package: str, path: str, names: Sequence[str], groups: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    ``package``, ``path``: its ``__name__`` and ``__file__``. What stands there below ``if TYPE_CHECKING``
    says where each name is from: readers, type checkers and this function read the same lines; ``groups``:
    packages in it where a name that it has not is looked for, to say so.
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
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{_elsewhere(package, path, groups, name)}"
            )
        home = homes()[name]
        value = import_module(f"{home}.{name}") if home == package else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return look_up, lambda: sorted(names)


def _elsewhere(package: str, path: str, groups: Sequence[str], name: str) -> str:
    """Return in which group a name is, in words."""
    folder = Path(path).parent
    if name.startswith("_") or (folder / name).exists() or (folder / f"{name}.py").exists():
        return ""  # "from qmodels import checks" asks for an attribute first
    found = [group for group in groups if name in import_module(f"{package}.{group}").__all__]
    return f"; it is {package}.{found[0]}.{name}" if found else ""
