"""Libraries that are slow to load, imported when something of them is first used.

>>> float(special.gammainc(1.0, 0.0))
0.0
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _Library:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        found = getattr(import_module(self._name), name)
        setattr(self, name, found)
        return found


sparse: Any = _Library("scipy.sparse")
special: Any = _Library("scipy.special")
sympy: Any = _Library("sympy")
