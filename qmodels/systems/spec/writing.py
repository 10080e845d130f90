"""From specs to the tables of a document, and their text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args, get_origin

import numpy as np

from qmodels.systems.spec.fields import is_spec
from qmodels.systems.spec.nested import alternatives, held, spec_types, spec_word
from qmodels.systems.spec.reading import join


def to_table(spec: Any, key: str = "") -> dict[str, Any]:
    """Return the fields of a spec as the table of a document."""
    hints = held(type(spec))
    table = {}
    for item in fields(spec):
        value = getattr(spec, item.name)
        if item.init and not (value is None and item.default is None):  # TOML has no word for nothing
            table[item.name] = to_plain(value, hints[item.name], join(key, item.name))
    return table


def to_plain(value: Any, hint: Any, key: str = "") -> Any:
    """Return what a document has for a value that an annotation describes."""
    if is_spec(value):
        written = document(value, key)
        if isinstance(written, dict) and sum(len(spec_types(one)) for one in alternatives(hint)) > 1:
            return {"kind": spec_word(type(value))} | written
        return written
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        lists = (get_args(one) for one in alternatives(hint) if get_origin(one) is tuple)
        items = next(lists, (None, ...))
        items = items[:1] * len(value) if items[-1] is Ellipsis else items
        return [to_plain(v, item, key) for v, item in zip(value, items, strict=True)]
    return value


def document(spec: Any, key: str = "") -> Any:
    """Return what a spec is written as: the table of its fields, or what its class says."""
    if hasattr(type(spec), "__to_toml__"):
        return spec.__to_toml__(lambda: to_table(spec, key), key)
    return to_table(spec, key)


def toml_lines(
    table: dict[str, Any], remark: Callable[[str], list[str]] = lambda key: [], key: str = "", shown: str = ""
) -> list[str]:
    """Return the lines of a TOML document.

    Parameters
    ----------
    table : dict
        What it says.
    remark : callable
        Takes a dotted key, with ``*`` for the places in a list, and returns lines to put before it.
    key, shown : str
        Where the table stands, for remarks and in headings.
    """
    lines, blocks = [], []
    for name, value in table.items():
        here, heading = join(key, name), join(shown, name)
        if isinstance(value, dict):
            blocks += ["", *remark(here), f"[{heading}]", *toml_lines(value, remark, here, heading)]
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for number, inner in enumerate(value):
                blocks += ["", *(remark(here) if not number else []), f"[[{heading}]]"]
                for k, v in inner.items():
                    blocks += [
                        *(remark(f"{here}.*.{k}") if not number else []),
                        f"{k} = {_literal(v, join(here, k))}",
                    ]
        else:
            lines += [*remark(here), f"{name} = {_literal(value, here)}"]
    return lines + blocks


def _literal(value: Any, key: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(_literal(v, key) for v in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{k} = {_literal(v, join(key, k))}' for k, v in value.items())} }}"
    raise ValueError(f"{key} cannot be written to TOML, got {value!r}")
