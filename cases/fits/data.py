"""The data of fits: ``tests/reference``, with the modules that say what is in it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

FOLDER = "tests/reference"
ROOT = Path(__file__).parents[2]


def reference(name: str) -> Any:
    """Return a module of the folder; they are no package, since tests are not installed."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / FOLDER / f"{name}.py")
        if spec is None or spec.loader is None:
            raise ImportError(f"{FOLDER} must be in the repository beside the packages, got no {name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
