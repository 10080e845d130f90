"""Results in files: JSON that every language reads, written atomically, and read back without loss."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from qmodels import checks
from qmodels.systems.spec.estimate import Estimate
from qmodels.systems.spec.whole import whole

UNDECIDED = "undecided"
"""Word in files and tables where ``stable`` is None."""
FORMAT = 1
"""Of saved results."""


def said(stable: Any) -> Any:
    """Return whether a system keeps up as files and tables have it: a truth value or `UNDECIDED`."""
    return UNDECIDED if stable is None else stable


def write(result: Any, path: Path) -> Path:
    """Write a result; see `Result.save`."""
    from qmodels.systems.spec.text.toml import to_toml

    document = {
        "format": FORMAT,
        "result": result.saved_as,
        "title": result.title,
        "notes": list(result.notes),
        "spec": None if result.spec is None else to_toml(result.spec, kind=True),
        "units": result.units,
        **{name: _plain(getattr(result, name)) for name in result.saved},
        "stable": _plain(said(result.stable)),
    }
    with whole(path) as part:
        part.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def read(path: Path, made: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Rebuild a saved result."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: not a saved result: {error}") from None
    if not isinstance(document, dict) or document.get("result") not in ("answer", "simulation"):
        found = document.get("result", "something else") if isinstance(document, dict) else "something else"
        raise ValueError(f"{path}: must hold answer or simulation, got {found}")
    if document.get("format") != FORMAT:
        raise ValueError(f"{path}: must have format {FORMAT}, got {checks.shown(document.get('format'))}")
    try:
        return made(document)
    except KeyError as error:
        raise ValueError(f"{path}: {error.args[0]} is missing") from None
    except (TypeError, AttributeError, LookupError) as error:
        raise ValueError(f"{path}: damaged: {' '.join(str(error).split())}") from None


def spec_of(document: Mapping[str, Any]) -> Any:
    """Return the spec of a saved result."""
    from qmodels.systems.spec.text.toml import spec_from_toml

    return None if document["spec"] is None else spec_from_toml(document["spec"])


def _plain(value: Any) -> Any:
    """Return a value in JSON's types; numbers that JSON has not are words, estimates are tables."""
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if hasattr(value, "best"):
        parts = ("low", "best", "high", "confidence", "doubt")
        return {"estimate": {name: _plain(getattr(value, name)) for name in parts}}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def numbers(value: Any) -> Any:
    """Restore numbers, words and arrays that `write` made plain.

    >>> numbers({"read_latency": [1.0, "inf"]})
    {'read_latency': array([ 1., inf])}
    """
    if isinstance(value, dict):
        if set(value) == {"estimate"}:
            return Estimate(**numbers(value["estimate"]))
        return {name: numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        found = [numbers(one) for one in value]
        return np.array(found)
    return float(value) if value in ("inf", "-inf", "nan") else None if value == UNDECIDED else value
