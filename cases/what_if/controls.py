"""The fields of any kind of system as what a hand can change: numbers, choices, flags and texts."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, get_args, get_origin

from qmodels.systems.spec.describe import allowed, example
from qmodels.systems.spec.docstrings import documentation
from qmodels.systems.spec.fields import array_fields, field_names, is_branch, is_spec, parts, replace_paths
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import NamedOf, alternatives, held, spec_types, word_of
from qmodels.systems.spec.text.reading import Place, join
from qmodels.systems.spec.text.toml import document, literal, read_value, to_plain

RUNGS = 24  # steps of a slider to either side
FEW = 16  # counts up to this go by one
NONE = "none"  # the choice of a part that may be left out

_RULES: dict[tuple[type[Any], str], str] = {}
"""What the checks of fields say that they allow: to ask them takes some time."""


@dataclass(frozen=True, kw_only=True)
class Control:
    """One field of one design."""

    path: str  # Dotted name; of the choice between several kinds of part that of the part and ``.kind``
    type: str  # How it is changed
    value: str  # As a file has it; the text of a field that holds text
    # unit, meaning, rule: As `qmodels.systems.spec.describe` has them
    unit: str = ""
    meaning: str = ""
    rule: str = ""
    # What may be chosen; of a number the places of its slider, its value among them
    choices: tuple[str, ...] = ()
    # hint, held: What the field may hold, and does
    hint: Any
    held: Any
    swaps: bool = False  # Whether it chooses the kind of a part
    optional: bool = False  # Whether it may be left empty
    owner: Any = None  # What writes the field as a text of its own, as a flow does its program

    def data(self) -> dict[str, Any]:
        """Return it for a page."""
        names = ("path", "type", "value", "unit", "meaning", "rule", "choices", "swaps")
        return {name: getattr(self, name) for name in names}

    def neighbours(self) -> tuple[str, ...]:
        """Return the values one step away: the next choices of a number or of a word."""
        if self.type == "flag":
            return ("false" if self.held else "true",)
        if self.type not in ("number", "choice") or self.value not in self.choices or self.swaps:
            return ()
        at = self.choices.index(self.value)
        return tuple(self.choices[k] for k in (at - 1, at + 1) if 0 <= k < len(self.choices))


def controls(spec: Any) -> dict[str, Control]:
    """Return the controls of every field of a spec by path, from the outside to the inside.

    >>> from qmodels.systems.noc.spec import Noc
    >>> found = controls(Noc(injection_rate=0.02))
    >>> found["link_width"].choices[:3], found["link_width"].neighbours(), found["routing"].type
    (('1', '2', '4'), ('8', '32'), 'choice')
    """
    return {one.path: one for one in _inside(spec, type(spec), "")}


def changed(spec: Any, values: Mapping[str, str], known: Mapping[str, Control] | None = None) -> Any:
    """Return a spec with fields set to what a hand has written, by the path of their controls.

    ``known`` are its controls, if they are at hand.

    Raises ValueError, in one line, if there is no such field, or it does not take the value.
    """
    known = controls(spec) if known is None else known
    for path in values:
        if path not in known:
            raise ValueError(f"{type(spec).__name__} has no field {path!r}")
    made = replace_paths(spec, dict(_read(known[path], text) for path, text in values.items()))
    for path, value in array_fields(made).items():
        raise ValueError(f"{path} must be one number here, got {value.tolist()}")
    return made


def _read(control: Control, text: str) -> tuple[str, Any]:
    """Return the replaced fields and their new values."""
    path, hint = control.path, control.hint
    if control.swaps:
        return path.removesuffix(".kind"), _swapped(control, text)
    given = [one for one in alternatives(hint) if one is not types.NoneType]
    if control.optional and not text.strip():
        return path, None
    if control.owner is not None:
        outer, _, name = path.rpartition(".")
        table = {**document(control.owner), name: text}
        return outer, Place(key=outer).spec(table, type(control.owner))
    return path, Place(key=path).read(text if given == [str] else read_value(text.strip()), hint)


def _swapped(control: Control, word: str) -> Any:
    """Return a part of another kind; fields that both have keep their values, others get examples."""
    if word == NONE and NONE in control.choices:
        return None
    kinds = {name: cls for one in alternatives(control.hint) for name, cls in spec_types(one).items()}
    if word not in kinds:
        raise ValueError(f"{control.path} must be one of {', '.join(control.choices)}, got {word!r}")
    kept = {name: value for name, value in parts(control.held).items() if name in field_names(kinds[word])}
    return example(kinds[word], kept)


def _inside(value: Any, hint: Any, path: str) -> Iterator[Control]:
    """Yield the controls of what is in a part."""
    if type(value) in (tuple, Named):
        for number, (name, part) in enumerate(parts(value).items()):
            yield from _control(part, _member(hint, number), join(path, name), None, "")
        return
    own = document(value) if hasattr(type(value), "__to_toml__") else {}
    for name in field_names(type(value)):
        part, hint, here = getattr(value, name), held(type(value))[name], join(path, name)
        if is_branch(part) and not is_spec(part) and isinstance(own.get(name), str):
            meaning, unit = documentation(type(value)).get(name, ("", ""))
            about = {"meaning": meaning, "unit": unit, "hint": hint, "held": part, "owner": value}
            yield Control(path=here, type="text", value=own[name], **about)
        else:
            yield from _control(part, hint, here, value, name)


def _member(hint: Any, number: int) -> Any:
    """Return the annotation of a member of a list, or of a part by name."""
    for one in alternatives(hint):
        if isinstance(one, NamedOf):
            return one.value
        if get_origin(one) is tuple:
            members = get_args(one)
            return members[0 if members[-1] is Ellipsis else number]
    return hint


def _control(value: Any, hint: Any, path: str, owner: Any, name: str) -> Iterator[Control]:
    meaning, unit = documentation(type(owner)).get(name, ("", "")) if owner is not None else ("", "")
    about: dict[str, Any] = {"unit": unit, "meaning": meaning, "hint": hint, "held": value}
    words = tuple(word for one in alternatives(hint) for word in spec_types(one))
    optional = types.NoneType in alternatives(hint) or (
        owner is not None and type(owner).__dataclass_fields__[name].default is None
    )
    about["optional"] = optional
    written = None if value is None else to_plain(value, hint, path)
    if (is_spec(value) and isinstance(written, dict)) or (value is None and words):
        if len(words) + optional > 1:
            known = (NONE, *words) if optional else words
            word = NONE if value is None else str(word_of(value, hint) or words[0])
            yield Control(path=f"{path}.kind", type="choice", value=word, choices=known, swaps=True, **about)
        if value is not None:
            yield from _inside(value, type(value), path)
    elif is_branch(value) and not is_spec(value):
        yield from _inside(value, hint, path)
    else:
        yield _leaf(written, path, owner, name, about)


def _leaf(written: Any, path: str, owner: Any, name: str, about: dict[str, Any]) -> Control:
    rule = "" if owner is None else _rule(owner, name)
    given = [one for one in alternatives(about["hint"]) if one is not types.NoneType]
    text = "" if written is None else written if isinstance(written, str) else literal(written)
    about |= {"path": path, "value": text, "rule": rule}
    if isinstance(written, bool):
        return Control(type="flag", **about)
    if rule.startswith("one of ") and isinstance(written, str):
        words = tuple(rule.removeprefix("one of ").split(", "))
        return Control(type="choice", choices=words if text in words else (text, *words), **about)
    number = isinstance(written, int | float) and isfinite(written) and given in ([int], [float], [Any])
    if number:
        places = ladder(written, *bounds(rule), whole=given == [int] or "whole number" in rule)
        return Control(type="number", choices=tuple(map(literal, places)), **about)
    if isinstance(written, str) and given != [str] and read_value(text) != text:
        about["value"] = literal(written)
    return Control(type="text", **about)


def _rule(owner: Any, name: str) -> str:
    key = type(owner), name
    if key not in _RULES:
        _RULES[key] = allowed(type(owner), owner, name)
    return _RULES[key]


def bounds(rule: str) -> tuple[float, float]:
    """Return the least and the largest value that the words of a rule allow, endless where it says none.

    >>> bounds("a whole number from 1 to 64"), bounds("in [0, 1]"), bounds("finite and >= 0"), bounds("")
    ((1.0, 64.0), (0.0, 1.0), (0.0, inf), (-inf, inf))
    """
    number = r"(-?[\d.]+(?:e[+-]?\d+)?)"
    both = re.search(rf"from {number} to {number}|in [\[(]{number}, {number}[\])]", rule)
    if both:
        low, high = (float(one) for one in both.groups() if one is not None)
        return low, high
    least, most = re.search(rf"(?:>=?|above) {number}", rule), re.search(rf"(?:<=?|at most) {number}", rule)
    return float(least[1]) if least else -inf, float(most[1]) if most else inf


def ladder(value: float, low: float, high: float, *, whole: bool) -> list[float]:
    """Return a number's places on its slider: itself, and steps down and up from it.

    Powers of two are doubled and halved, small counts go by one, shares by a twentieth, all else by a tenth.

    >>> ladder(8, 1, 64, whole=True), ladder(3, 1, 5, whole=True), ladder(0.5, 0, 1, whole=False)[9:12]
    ([1, 2, 4, 8, 16, 32, 64], [1, 2, 3, 4, 5], [0.45, 0.5, 0.55])
    """
    found = [value]
    for way in (-1, 1):
        for _ in range(RUNGS):
            last = found[0 if way < 0 else -1]
            new = min(max(_step(last, way, low, high, whole), low), high)
            if new == last:
                break
            found.insert(0 if way < 0 else len(found), int(new) if whole else new)
    return found


def _step(value: float, way: int, low: float, high: float, whole: bool) -> float:
    if whole:
        count = int(value)
        if count >= 4 and count & (count - 1) == 0 and high > FEW:
            return count * 2 if way > 0 else count // 2
        return count + way * (1 if abs(count) <= FEW else round(abs(count) / 10))
    if high - low <= 1:
        stride = (high - low) / 20
        fine = 0 < value < stride if way > 0 else value < stride
        return float(f"{value * 2.0**way if fine else value + way * stride:.3g}")
    return float(f"{value * 1.1**way if value else way:.3g}")
