"""Public names of a package, imported when they are first used (PEP 562): importing it stays light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def attached(
    package: str, homes: Mapping[str, str], groups: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``homes``: the names that each module gives; those of the package itself are its modules; ``groups``:
    packages in it where a name that it has not is looked for, to say so.
    """
    home = {name: module for module, names in homes.items() for name in names.split()}

    def look_up(name: str) -> Any:
        if name not in home:
            hint = "" if name.startswith("_") or find_spec(f"{package}.{name}") else elsewhere(name)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        module = home[name]
        value = (
            import_module(f"{module}.{name}") if module == package else getattr(import_module(module), name)
        )
        setattr(sys.modules[package], name, value)
        return value

    def elsewhere(name: str) -> str:
        found = [group for group in groups if name in import_module(f"{package}.{group}").__all__]
        return f"; it is {package}.{found[0]}.{name}" if found else ""

    return look_up, lambda: sorted(home), sorted(home)
