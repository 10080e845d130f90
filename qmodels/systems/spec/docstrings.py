"""Docstrings of specs: fields say what they mean where they are declared, and a class repeats it."""

from __future__ import annotations

import ast
import inspect
import re
import types
from collections.abc import Iterator
from itertools import chain, groupby
from textwrap import dedent, wrap
from typing import Any, Self, get_args, get_origin

from qmodels.checks import FloatArray, IntArray
from qmodels.systems.spec.fields import field_names, numeric_names, of_a_class, replace_fields
from qmodels.systems.spec.nested import Kinds, NamedOf, alternatives, held, spec_types

WORDS: dict[Any, str] = {
    **{bool: "true or false", int: "whole number", float: "number", str: "text", Any: "number"},
    **dict.fromkeys((FloatArray, IntArray), "array"),
}

WIDTH = 100
"""Characters of a line of explanation."""

MOST_WORDS = 5
"""Alternatives of a type that are named."""

FOR_TOOLS = re.compile(r" *# (type: ignore|fmt: skip|noqa)")
"""Comments that are not for readers."""


def type_words(hint: Any, numeric: bool) -> str:
    """Return an annotation in words."""
    if numeric:
        return "number or array"
    words = []
    for one in alternatives(hint):
        if get_origin(one) is tuple:
            members = get_args(one)
            if members[-1] is Ellipsis:
                words.append(f"list of {type_words(members[0], False)}")
            else:
                words.append(f"list of ({', '.join(type_words(member, False) for member in members)})")
        elif isinstance(one, NamedOf):
            words.append(f"by name: {type_words(one.value, False)}")
        elif isinstance(one, Kinds):
            words.append(", ".join(spec_types(one)))
        elif one is not types.NoneType:
            words.append(WORDS[one] if one in WORDS else next(iter(spec_types(one)), one.__name__))
    if len(words) > MOST_WORDS:
        words = [*words[: MOST_WORDS - 1], f"{len(words) - MOST_WORDS + 1} others"]
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else words[0]


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
    types = {name: type_words(held(cls)[name], name in numeric_names(cls)) for name in field_names(cls)}
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


class _Docstring:
    """The docstring of a class with its fields as they are declared, put together when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, instance: object, owner: type[Any]) -> str:
        if "__match_args__" not in vars(owner):  # a dataclass in the making asks whether there is one
            return self.text
        return with_fields(owner, self.text)


class Documented:
    """A dataclass whose docstring has as parameters what its fields say where they are declared.

    >>> from qmodels.systems.traffic.popularity import Zipf
    >>> "shift : number" in (Zipf.__doc__ or "")
    True
    """

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        text = vars(cls).get("__doc__")
        if text:
            cls.__doc__ = _Docstring(text)  # type: ignore[assignment]


class Replaceable(Documented):
    """Method of the specs of systems that changes fields however deep they are."""

    def replace(self, **changes: Any) -> Self:
        """Return the same system with fields replaced, by their dotted names or unique ends of these.

        Examples
        --------
        >>> from qmodels.systems.packets.packet_processor import PacketProcessor
        >>> changed = PacketProcessor().replace(channels=8, **{"noc.link_width": 32})
        >>> changed.dram.channels, changed.noc.link_width
        (8, 32)
        """
        return replace_fields(self, changes)
