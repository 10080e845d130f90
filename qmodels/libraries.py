"""Libraries that are slow to load, imported when something of them is first used.

>>> float(special.gammainc(1.0, 0.0))
0.0
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Library:
    def __init__(self, name: str, extra: str = "") -> None:
        self._name, self._extra = name, extra

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(import_module(self._name), name)
        except ModuleNotFoundError as error:
            if not self._extra or error.name != self._name:
                raise
            needed = f"{self._name} is not installed: pip install 'qmodels-toolkit[{self._extra}]'"
            raise ImportError(needed, name=self._name) from error
        setattr(self, name, found)
        return found


sparse: Any = _Library("scipy.sparse")
special: Any = _Library("scipy.special")
sympy: Any = _Library("sympy", "symbolic")
