"""From specs to the tables of a document, and their text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, get_args, get_origin

import numpy as np

from qmodels.systems.spec.fields import is_spec
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import alternatives, held, word_of
from qmodels.systems.spec.text.reading import join


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
    """Write a value that an annotation describes."""
    if is_spec(value):
        written, word = document(value, key), word_of(value, hint)
        return {"kind": word} | written if isinstance(written, dict) and word else written
    if isinstance(value, Named):
        return {name: to_plain(one, hint.value, join(key, name)) for name, one in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        lists = (get_args(one) for one in alternatives(hint) if get_origin(one) is tuple)
        items = next(lists, (None, ...))
        items = items[:1] * len(value) if items[-1] is Ellipsis else items
        return [to_plain(v, item, key) for v, item in zip(value, items, strict=True)]
    return value


def document(spec: Any, key: str = "") -> Any:
    """Write a spec: the table of its fields, or the form its class gives."""
    if hasattr(type(spec), "__to_toml__"):
        return spec.__to_toml__(lambda: to_table(spec, key), key)
    return to_table(spec, key)


def toml_lines(
    table: dict[str, Any], remark: Callable[[str], list[str]] = lambda key: [], key: str = "", shown: str = ""
) -> list[str]:
    """Return the lines of a TOML document.

    ``remark``: takes a dotted key, with ``*`` for the places in a list, and returns lines to put before it;
    ``key``, ``shown``: where the table stands, for remarks and in headings.
    """
    lines, blocks = [], []
    for name, value in table.items():
        here, heading = join(key, name), join(shown, _key(name))
        if isinstance(value, dict):
            own = not value or any(not isinstance(one, dict) for one in value.values())
            head = ["", *remark(here), f"[{heading}]"] if own else []
            blocks += [*head, *toml_lines(value, remark, here, heading)]
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for number, inner in enumerate(value):
                blocks += ["", *(remark(here) if not number else []), f"[[{heading}]]"]
                for k, v in inner.items():
                    blocks += [
                        *(remark(f"{here}.*.{k}") if not number else []),
                        f"{_key(k)} = {literal(v, join(here, k))}",
                    ]
        else:
            lines += [*remark(here), f"{_key(name)} = {literal(value, here)}"]
    return lines + blocks


def _key(name: str) -> str:
    """Return a key, in quotes where it is no plain word."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def literal(value: Any, key: str = "") -> str:
    """Return a plain value as TOML has it; a text of several lines as it is read, line by line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        if "\n" in value:
            lines = [_text(line)[1:-1] for line in value.split("\n")]
            return "\n".join(['"""', *lines[:-1], f'{lines[-1]}"""'])
        return _text(value)
    if isinstance(value, list):
        return f"[{', '.join(literal(v, key) for v in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(k)} = {literal(v, join(key, k))}' for k, v in value.items())} }}"
    raise ValueError(f"{key} cannot be written to TOML, got {value!r}")
