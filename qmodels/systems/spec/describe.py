"""Fields of a kind of system, from the words, annotations and checks of its classes."""

from __future__ import annotations

import re
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from itertools import product
from textwrap import wrap
from typing import Any, get_args, get_origin

import numpy as np

from qmodels.systems.spec.docstrings import WIDTH, documentation, type_words
from qmodels.systems.spec.fields import field_names, is_spec, numeric_names, parts
from qmodels.systems.spec.kind import kind_named, kind_of
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import Kinds, NamedOf, alternatives, held, spec_types, spec_word
from qmodels.systems.spec.text.reading import further_keys, join, needed
from qmodels.systems.spec.text.toml import document, literal, to_plain, toml_lines


@dataclass(frozen=True, kw_only=True)
class FieldRow:
    """One field of a kind of system."""

    name: str  # dotted; ``*`` stands for the members of a list
    of: str = ""  # the word of the spec that the field is of, where several may stand in its place
    type: str  # what it holds
    unit: str  # empty for pure numbers and words
    default: str  # as in a file; "required" where there is none
    allowed: str  # the rule that the field's check states
    meaning: str  # in words


def describe(kind: str) -> list[FieldRow]:
    """List the fields of a kind of system, from the outside to the inside.

    The fields of a class that stands in several places are given at the first.

    Examples
    --------
    >>> rows = {row.name: row for row in describe("noc")}
    >>> row = rows["router.buffer_flits"]
    >>> row.type, row.unit, row.default, row.allowed
    ('whole number', 'flits', '8', 'a whole number from 1 to 32767')
    """
    starter = kind_named(kind).starter()
    return [row for _, row in _rows(type(starter), starter, "", "", set())]


def init(kind: str) -> str:
    """Return a TOML file of a small example in which every line is explained."""
    starter = kind_named(kind).starter()
    rows = {
        (cls, row.name.rpartition(".")[2]): row for cls, row in _rows(type(starter), starter, "", "", set())
    }
    owners = dict(_owners(starter, ""))
    nothing = (type(None), "")

    def remark(key: str) -> list[str]:
        head, _, last = key.rpartition(".")
        row = rows.get(owners.get(key, nothing))
        if row is None:
            row = rows.get(owners.get(head, nothing))
            return [f"# {row.type}"] if row is not None and last == "kind" else []
        unit = f" [{row.unit}]" if row.unit else ""
        rule = f" ({row.allowed})" if row.allowed else ""
        return [f"# {line}" for line in wrap(f"{row.meaning}{unit}{rule}", WIDTH)]

    lines = toml_lines(document(starter), remark)
    return "\n".join([f'kind = "{kind}"', "", *lines]) + "\n"


def _owners(value: Any, key: str) -> Iterator[tuple[str, tuple[type[Any], str]]]:
    """Yield the keys of a document with the class and the field that each is of."""
    for name, part in parts(value).items():
        here = join(key, "*" if type(value) is tuple else name)
        if is_spec(value):
            yield here, (type(value), name)
            if type(part) is Named:
                yield from ((join(here, one), (type(value), name)) for one in part)
        yield from _owners(part, here)


def _rows(
    cls: type[Any], spec: Any, prefix: str, of: str, seen: set[Any]
) -> Iterator[tuple[type[Any], FieldRow]]:
    """Yield the rows of a class and of those in it; `spec` is an example, or None."""
    seen.add(cls)
    documented = documentation(cls)
    inner = []
    for item in fields(cls):
        if not item.init:
            continue
        name, hint = join(prefix, item.name), held(cls)[item.name]
        meaning, unit = documented.get(item.name, ("", ""))
        row = FieldRow(
            name=name,
            of=of,
            type=type_words(hint, item.name in numeric_names(cls)),
            unit=unit,
            default=_default(item, hint),
            allowed=allowed(cls, spec, item.name),
            meaning=meaning,
        )
        yield cls, row
        inner.append((name, hint, getattr(spec, item.name, None)))
    for name, hint, value in inner:
        for place, classes in _inside(hint, name):
            new = {w: part for w, part in classes.items() if part not in seen}
            seen |= set(new.values())  # those that hold one another are all described here
            for word, part in new.items():
                if not hasattr(part, "__stable_text__"):
                    example = next((v for v in _members(value) if type(v) is part), None) or _starter(part)
                    yield from _rows(part, example, place, word if len(classes) > 1 else "", seen)


def _starter(cls: type[Any]) -> Any:
    """Return the example of a part that is a kind of system of its own, or None."""
    try:
        return kind_of(cls).starter()
    except TypeError:
        return None


def _inside(hint: Any, name: str) -> Iterator[tuple[str, dict[str, type[Any]]]]:
    """Yield where specs stand in what an annotation describes, and which."""
    found: dict[str, type[Any]] = {}
    for one in alternatives(hint):
        found |= spec_types(one)
    if found:
        yield name, found
    for one in alternatives(hint):
        if isinstance(one, NamedOf):
            yield from _inside(one.value, f"{name}.*")
        for member in dict.fromkeys(get_args(one) if get_origin(one) is tuple else ()):
            yield from _inside(member, f"{name}.*")


def _members(value: Any) -> Iterator[Any]:
    if type(value) in (tuple, Named):
        for member in parts(value).values():
            yield from _members(member)
    else:
        yield value


def _default(item: Any, hint: Any) -> str:
    if item.default is MISSING and item.default_factory is MISSING:
        return "required"
    value = item.default if item.default is not MISSING else item.default_factory()
    if value is None:
        return ""
    written = to_plain(value, hint)
    if is_spec(value):
        return written if isinstance(written, str) else spec_word(type(value))
    return literal(written)


PROBES = (float("nan"), -1, -1.5, "?")
"""Values that hardly any field takes: what the refusal says is the rule."""


def allowed(cls: type[Any], spec: Any, name: str) -> str:
    """Return the rule of a field as its own check words it; empty if it has none that is so found."""
    given = [one for one in alternatives(held(cls)[name]) if one is not types.NoneType]
    hint = given[0] if len(given) == 1 else None
    probes = PROBES[3:] if hint is str else PROBES[:3] if hint in (int, float, Any) else ()
    declared = cls.__dataclass_fields__[name].metadata.get("check")

    def made(probe: Any) -> Any:
        if spec is not None:
            return replace(spec, **{name: probe})
        return cls(**_samples(cls) | {name: probe})

    tries: list[Callable[[Any], Any]] = [made] if declared is None else [partial(declared, name), made]
    rules: list[str] = []
    for probe, attempt in product(probes, tries):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                attempt(probe)
            except Exception as error:
                rule = re.search(rf"\b{name}\b.* must be (.*?), got ", str(error))
                if rule and not any(rule[1] in known for known in rules):
                    rules = [known for known in rules if known not in rule[1]] + [rule[1]]
    return " and ".join(rules)


def example(cls: type[Any], given: Mapping[str, Any]) -> Any:
    """Return a spec of a class with the given fields as far as it takes them; others have small values."""
    try:
        return cls(**{**_samples(cls), **given})
    except (TypeError, ValueError):
        return _starter(cls) or cls(**_samples(cls))


def _samples(cls: type[Any]) -> dict[str, Any]:
    return {one: _sample(held(cls)[one], k) for k, one in enumerate(needed(cls), 2)}


def _sample(hint: Any, number: int) -> Any:
    """Return a value of an annotated type that many checks let pass."""
    hint = alternatives(hint)[0]
    if get_origin(hint) is tuple:
        return (_sample(get_args(hint)[0], number),)
    return "a" if hint is str else number


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
