"""Fields of a kind of system, from the words, annotations and checks of its classes."""

from __future__ import annotations

import ast
import inspect
import re
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial
from itertools import chain, groupby, product
from textwrap import dedent, wrap
from typing import Any, get_args, get_origin

import numpy as np

from qmodels.systems.spec.fields import field_names, is_spec, numeric_names, of_a_class, parts
from qmodels.systems.spec.kind import kind_named, kind_of
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import Kinds, NamedOf, alternatives, held, spec_types, spec_word
from qmodels.systems.spec.text.reading import further_keys, join, needed
from qmodels.systems.spec.text.toml import document, literal, to_plain, toml_lines

WORDS = {bool: "true or false", int: "whole number", float: "number", str: "text", Any: "number"}


WIDTH = 100
"""Characters of a line of explanation."""

MOST_WORDS = 5
"""Alternatives of a type that are named."""

FOR_TOOLS = re.compile(r" *# (type: ignore|fmt: skip|noqa)")
"""Comments that are not for readers."""


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
            type=_type(hint, item.name in numeric_names(cls)),
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


def _type(hint: Any, numeric: bool) -> str:
    """Return an annotation in words."""
    if numeric:
        return "number or array"
    words = []
    for one in alternatives(hint):
        if get_origin(one) is tuple:
            members = get_args(one)
            if members[-1] is Ellipsis:
                words.append(f"list of {_type(members[0], False)}")
            else:
                words.append(f"list of ({', '.join(_type(member, False) for member in members)})")
        elif isinstance(one, NamedOf):
            words.append(f"by name: {_type(one.value, False)}")
        elif isinstance(one, Kinds):
            words.append(", ".join(spec_types(one)))
        elif one is not types.NoneType:
            words.append(WORDS[one] if one in WORDS else next(iter(spec_types(one)), str(one)))
    if len(words) > MOST_WORDS:
        words = [*words[: MOST_WORDS - 1], f"{len(words) - MOST_WORDS + 1} others"]
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]


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


def _each(units: list[str], count: int) -> list[str]:
    return units if len(units) == count else [", ".join(units)] * count


@of_a_class
def documentation(cls: Any) -> dict[str, tuple[str, str]]:
    """Return the meaning and the unit of each field of a class.

    From the parameters of its docstring, or comments behind fields or above them; several fields are named.

    Examples
    --------
    >>> from qmodels.systems.memory.dram_map import DramGeometry
    >>> documentation(DramGeometry)["block_bytes"]
    ('What one burst moves', 'bytes')
    """
    found: dict[str, tuple[str, str]] = {}
    for names, text in (
        *chain.from_iterable(map(_remarks, reversed(cls.__mro__))),
        *_parameters(_own_text(cls)),
    ):
        words = " ".join(text.split())
        unit = re.search(r"\[([^\[\]]+)\]\.?$", words)
        units = unit[1].split(", ") if unit else [""]
        meaning = (words[: unit.start()] if unit else words).strip().rstrip(".")
        # Of several fields described together each may have a unit of its own.
        for name, own in zip(names, _each(units, len(names)), strict=True):
            found[name] = (meaning, own)
    return found


def with_fields(cls: type[Any], text: str) -> str:
    """Return the docstring of a class with what its fields say as parameters, unless it has some itself."""
    text, told = inspect.cleandoc(text), documentation(cls)
    if not told or re.search(r"^Parameters\n-+$", text, re.M):
        return text
    types = {name: _type(held(cls)[name], name in numeric_names(cls)) for name in field_names(cls)}
    for name in types:
        check = cls.__dataclass_fields__[name].metadata.get("check")
        if choices := getattr(check, "keywords", {}).get("allowed"):
            types[name] = f"one of {', '.join(choices)}"
    lines = ["Parameters", "----------"]
    for (kind, meaning), group in groupby(types, lambda name: (types[name], told.get(name, ("", ""))[0])):
        names = list(group)
        units = dict.fromkeys(told[name][1] for name in names if meaning)
        said = f"{meaning}. [{', '.join(units)}]" if any(units) else f"{meaning}." if meaning else ""
        words = wrap(said, WIDTH, break_on_hyphens=False)
        lines += [f"{', '.join(names)} : {kind}", *(f"    {line}" for line in words)]
    section = re.search(r"^\w[\w ]*\n-+$", text, re.M)
    end = section.start() if section else len(text)
    return "\n\n".join(filter(None, [text[:end].rstrip(), "\n".join(lines), text[end:]]))


def _own_text(cls: Any) -> str:
    """Return the docstring of a class as it is written."""
    written = getattr(vars(cls).get("__doc__"), "text", None)
    return inspect.cleandoc(written) if written else inspect.getdoc(cls) or ""


def _parameters(text: str) -> Iterator[tuple[list[str], str]]:
    """Yield names and text of each entry of a docstring's parameters."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.M | re.S)
    for entry in re.finditer(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)*)", section[1] if section else "", re.M):
        yield [name.strip() for name in entry[1].partition(" : ")[0].split(",")], entry[2]


def _remarks(cls: Any) -> Iterator[tuple[list[str], str]]:
    """Yield names and text of the comments at the fields of a class."""
    try:
        source = dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # made by a program, or built in
        return
    lines, known = source.splitlines(), set(getattr(cls, "__dataclass_fields__", ()))
    for node in ast.parse(source).body[0].body:  # type: ignore[attr-defined]
        if not isinstance(node, ast.AnnAssign) or getattr(node.target, "id", "") not in known:
            continue
        above = node.lineno - 1
        while lines[above - 1].lstrip().startswith("#"):
            above -= 1
        behind = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()  # type: ignore[operator]
        remarks = [*lines[above : node.lineno - 1], behind]
        text = " ".join(one.strip("# ") for one in remarks if not FOR_TOOLS.match(one))
        several = re.match(r"((?:\w+, )+\w+): ", text)
        names = several[1].split(", ") if several else []
        if several and known.issuperset(names):
            yield names, text[several.end() :]
        elif text.strip():
            yield [node.target.id], text  # type: ignore[union-attr]


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
        others = {one: _sample(held(cls)[one], k) for k, one in enumerate(needed(cls), 2)}
        return cls(**others | {name: probe})

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
    samples = {one: _sample(held(cls)[one], k) for k, one in enumerate(needed(cls), 2)}
    try:
        return cls(**{**samples, **given})
    except (TypeError, ValueError):
        return _starter(cls) or cls(**samples)


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
