"""A design as Python code that makes it."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np

import qmodels as qm
from qmodels.systems.spec.fields import field_names, is_branch, is_spec
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.text.writing import document

WIDTH = 100
Imports = dict[str, set[str]]
GROUPS = ("traffic", "laws", "noc", "memory", "packets", "parts", "steps")


def python_text(spec: Any) -> str:
    """Return code that makes a spec as ``spec``; fields that are as they are by default are left out.

    Raises
    ------
    ValueError
        If a trace in it did not come from a file.

    Examples
    --------
    >>> from qmodels.systems.noc.spec import Noc
    >>> print(python_text(Noc(injection_rate=0.02, link_width=32)), end="")
    import qmodels as qm
    <BLANKLINE>
    spec = qm.Noc(injection_rate=0.02, link_width=32)
    answer = qm.solve(spec)
    """
    imports: Imports = {}
    text = _text(spec, imports, "")
    needed = [f"from {module} import {', '.join(sorted(imports[module]))}" for module in sorted(imports)]
    head = "\n".join(["import qmodels as qm", *needed])
    return f"{head}\n\nspec = {text}\nanswer = qm.solve(spec)\n"


def _text(value: Any, imports: Imports, indent: str) -> str:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if is_spec(value) and not hasattr(type(value), "__stable_text__"):
        fields = type(value).__dataclass_fields__
        given = [name for name in field_names(type(value)) if not _usual(value, fields[name])]
        items = [(f"{name}=", getattr(value, name)) for name in given]
        return _listed(f"{_called(type(value), imports)}(", items, ")", imports, indent)
    if isinstance(value, Named):
        return _listed("{", [(f"{name!r}: ", one) for name, one in value.items()], "}", imports, indent)
    if type(value) is tuple and is_branch(value):
        tail = ",)" if len(value) == 1 else ")"
        return _listed("(", [("", one) for one in value], tail, imports, indent)
    if hasattr(type(value), "__stable_text__"):  # a trace
        where = document(value)
        return f"qm.read_trace({where if isinstance(where, str) else where['file']!r})"
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def _listed(head: str, items: list[tuple[str, Any]], tail: str, imports: Imports, indent: str) -> str:
    """Return items in brackets, on one line if they fit there."""
    inner = indent + "    "
    texts = [name + _text(value, imports, inner) for name, value in items]
    line = f"{head}{', '.join(texts)}{tail}"
    if "\n" not in line and len(indent) + len(line) <= WIDTH:
        return line
    return "\n".join([head, *(f"{inner}{text}," for text in texts), indent + tail.lstrip(",")])


def _usual(spec: Any, field: Any) -> bool:
    """Return whether a field has its default, or what the spec itself puts in the place of None."""
    value = getattr(spec, field.name)
    made = field.default_factory() if callable(field.default_factory) else field.default
    if type(made) is type(value):
        return bool(np.all(made == value))
    try:
        return made is None and replace(spec, **{field.name: None}) == spec
    except (TypeError, ValueError):
        return False


def _called(cls: type[Any], imports: Imports) -> str:
    """Return what a class is called, by its public name where it has one."""
    name = cls.__name__
    for prefix in ("", *GROUPS):
        module = import_module(f"qmodels.{prefix}") if prefix else qm
        if name in module.__all__ and getattr(module, name) is cls:
            return f"qm.{prefix}.{name}" if prefix else f"qm.{name}"
    imports.setdefault(cls.__module__, set()).add(name)
    return name
