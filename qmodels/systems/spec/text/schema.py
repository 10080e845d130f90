"""A JSON schema of each kind of system, with which editors complete and check TOML files."""

from __future__ import annotations

import types
from typing import Any, get_args, get_origin

from qmodels.systems.spec.describe import allowed, documentation
from qmodels.systems.spec.fields import field_names, numeric_names
from qmodels.systems.spec.kind import kind_named
from qmodels.systems.spec.nested import Kinds, NamedOf, alternatives, held, spec_types
from qmodels.systems.spec.text.reading import further_keys, needed

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: dict[Any, dict[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    Any: {"type": "number"},
}
Defs = dict[type[Any], dict[str, Any]]
_SWEEP: dict[str, Any] = {"anyOf": [_PLAIN[float], {"type": "array", "items": _PLAIN[float], "minItems": 1}]}


def json_schema(kind: str) -> dict[str, Any]:
    """Return the JSON schema (draft 2020-12) of the TOML files of a kind of system.

    What a class takes beside its fields (a preset, the words of a topology) is let through unseen.
    """
    starter = kind_named(kind).starter()
    defs: Defs = {}
    top = _table(type(starter), starter, defs)
    if hasattr(type(starter), "__from_toml__"):  # which may fill in what parts of it require
        for part in defs.values():
            part.pop("required", None)
    top["properties"] = {"kind": {"const": kind}} | top["properties"]
    return {"$schema": DRAFT, "title": kind, **top, "$defs": {_name(c, defs): one for c, one in defs.items()}}


def _table(cls: type[Any], example: Any, defs: Defs) -> dict[str, Any]:
    """Return the schema of the table of a class."""
    hints, texts = held(cls), documentation(cls)
    properties: dict[str, Any] = {name: {} for name in further_keys(cls)}
    for name in field_names(cls):
        meaning, unit = texts.get(name, ("", ""))
        about = f"{meaning} [{unit}]" if unit else meaning
        part = (
            _SWEEP if name in numeric_names(cls) else _value(hints[name], getattr(example, name, None), defs)
        )
        rule = allowed(cls, example, name) if hints[name] is str else ""
        words = {"enum": rule.removeprefix("one of ").split(", ")} if rule.startswith("one of ") else {}
        properties[name] = {**part, **words, "description": about}
    table = {"type": "object", "properties": properties, "additionalProperties": False}
    return table if hasattr(cls, "__from_toml__") else {**table, "required": needed(cls)}


def _value(hint: Any, example: Any, defs: Defs) -> dict[str, Any]:
    """Return the schema of what an annotation describes."""
    several = [one for one in alternatives(hint) if one is not types.NoneType]
    if len(several) > 1:
        words = [word for one in several for word in spec_types(one)]
        options = [_value(one, example, defs) for one in several]
        return {"anyOf": [*options, {"enum": words}] if words else options}
    (hint,) = several
    if isinstance(hint, NamedOf):
        return {"type": "object", "additionalProperties": _value(hint.value, None, defs)}
    if isinstance(hint, Kinds):
        return {"anyOf": [_spec(word, cls, None, defs) for word, cls in spec_types(hint).items()]}
    if get_origin(hint) is tuple:
        items = get_args(hint)
        members = example if type(example) is tuple else ()
        if items[-1] is Ellipsis:
            return {"type": "array", "items": _value(items[0], next(iter(members), None), defs)}
        parts = [_value(item, None, defs) for item in items]
        return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
    for word, cls in spec_types(hint).items():
        return _PLAIN[str] if hasattr(cls, "__stable_text__") else _spec(word, cls, example, defs)
    return _PLAIN[hint]


def _spec(word: str, cls: type[Any], example: Any, defs: Defs) -> dict[str, Any]:
    """Return a reference to the schema of a class, which may hold itself."""
    if cls not in defs:
        defs[cls] = {}
        table = _table(cls, example if type(example) is cls else None, defs)
        table["properties"] = {"kind": {"const": word}} | table["properties"]
        if hasattr(cls, "__from_toml__"):  # a word, or a table that is not only of its fields
            others = [{"type": "object", "required": [key]} for key in further_keys(cls)]
            table = {"anyOf": [table, _PLAIN[str], *others]}
        defs[cls] = table
    return {"$ref": f"#/$defs/{_name(cls, defs)}"}


def _name(cls: type[Any], defs: Defs) -> str:
    """Return the name of a class, with a number if one before it has the same."""
    same = [one for one in defs if one.__name__ == cls.__name__]
    return f"{cls.__name__}{same.index(cls) + 1}" if same[0] is not cls else cls.__name__
