"""Checks of nested specs against the annotations of their fields."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from qmodels import checks
from qmodels.checks import shown
from qmodels.systems.spec.fields import numeric_names, of_a_class


@dataclass(frozen=True)
class Kinds:
    """Field type for specs of several kinds, to which others may add theirs."""

    types: Callable[[], Mapping[str, type[Any]]]  # returns the classes by the words that files use for them


@dataclass(frozen=True)
class NamedOf:
    """Field type for a `Named`."""

    value: Any  # what goes by each name


@of_a_class
def held(cls: type[Any]) -> Mapping[str, Any]:
    """Return the type of every field of a spec.

    That is its annotation, or what its metadata says it ``holds`` where the constructor takes more.
    """
    hints = get_type_hints(cls)
    return {f.name: f.metadata.get("holds", hints[f.name]) for f in fields(cls)}


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone."""
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def spec_types(hint: Any) -> dict[str, type[Any]]:
    """Return the specs that an annotation allows, by the words that files use for them."""
    if isinstance(hint, Kinds):
        return dict(hint.types())
    return {spec_word(one): one for one in alternatives(hint) if isinstance(one, type) and is_dataclass(one)}


def spec_word(cls: type[Any]) -> str:
    """Return a class name in kebab case: ``OnOff`` is ``on-off``, ``MAP`` is ``map``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", cls.__name__).lower()


def word_of(value: Any, hint: Any) -> str | None:
    """Return the word by which files tell the kind of a spec; None where only one may stand."""
    words = {cls: word for one in alternatives(hint) for word, cls in spec_types(one).items()}
    return words.get(type(value), spec_word(type(value))) if len(words) > 1 else None


def check_parts(spec: Any, prefix: str = "") -> None:
    """Require every field to hold what its annotation says: a spec, a word, numbers, or a tuple of these.

    Called first in ``__post_init__``, so that what is wrong is refused before it is used. What is right in
    another form is kept in the annotated one: 3.0 as 3, NumPy's numbers as Python's, a list as a tuple, or as
    an array where a sweep may stand.

    ``prefix``: what the names of the fields start with in messages, such as ``"workload."``.

    >>> from qmodels.systems.cache.spec import CacheLevel
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> PacketProcessor(llc=CacheLevel(lines=8))
    Traceback (most recent call last):
        ...
    ValueError: llc must be a Llc, got CacheLevel(lines=8, ...
    """
    for name, check in _checks(type(spec)).items():
        value = getattr(spec, name)
        kept = check(prefix + name, value)
        if kept is not value:
            object.__setattr__(spec, name, kept)


Check = Callable[[str, Any], Any]
"""Takes name and value of a field and returns the value as it is kept."""


def _part(kinds: tuple[type, ...], several: bool, name: str, value: Any) -> Any:
    members = value if several and isinstance(value, tuple) else (value,)
    if several != isinstance(value, tuple) or not all(isinstance(one, kinds) for one in members):
        raise ValueError(f"{name} must be {_allowed(kinds, several)}, got {shown(value)}")
    return value


def _number(hint: Any, name: str, value: Any) -> Any:
    if type(value) is hint and abs(value) < checks.LARGEST_COUNT:
        return value
    number = checks.numbers(name, value)
    checks.one_number(name, value)
    plain = value.item() if isinstance(value, np.generic | np.ndarray) else value
    if hint is int:
        return int(plain) if float(number).is_integer() and abs(number) <= checks.LARGEST_COUNT else plain
    return plain if isinstance(plain, int) and abs(plain) <= checks.LARGEST_COUNT else float(number)


def _sweep(optional: bool, name: str, value: Any) -> Any:
    """Require a number or an array of them, see `checks.Numeric`; or nothing, where that is the default."""
    if optional and value is None:
        return value
    if type(value) is float or (type(value) is int and abs(value) < checks.LARGEST_COUNT):
        return value
    array = checks.numbers(name, value)
    if not array.size:
        raise ValueError(f"{name} must hold a number, got {shown(value)}")
    if not array.ndim:
        return _number(float, name, value)
    given = np.asarray(value)
    return given if given.dtype.kind in "iuf" else array


def instance(kinds: tuple[type, ...], rule: str, name: str, value: Any) -> Any:
    """Require an instance of some types, which a rule words."""
    if not isinstance(value, kinds):
        raise ValueError(f"{name} must be {rule}, got {shown(value)}")
    return bool(value) if isinstance(value, np.bool_) else value


def _sequence(hint: Any, name: str, value: Any) -> tuple[Any, ...]:
    """Require a list of what an annotation says; many numbers are checked at once."""
    words = {int: " of whole numbers", float: " of numbers", str: " of texts"}.get(hint, "")
    flat = isinstance(value, tuple | list | range)
    if hint in (int, float) and flat and len(value):
        flat = checks.numbers(name, value).ndim == 1
    if not flat:
        raise ValueError(f"{name} must be a tuple{words}, got {shown(value)}")
    if hint in (int, float):
        plain = (int,) if hint is int else (int, float)
        return (
            value
            if type(value) is tuple and all(type(one) in plain for one in value)
            else tuple(_number(hint, name, one) for one in value)
        )
    check = _check(hint)
    if check is None:
        return tuple(value)
    kept = tuple(check(f"{name}[{k}]", one) for k, one in enumerate(value))
    return value if kept == value else kept


def _either(hints: tuple[Any, ...], name: str, value: Any) -> Any:
    """Require what one of several annotations says; the last but none words the refusal."""
    if isinstance(value, tuple(one for one in hints if one in (str, types.NoneType))):
        return value
    check = _check(next((one for one in hints if one not in (str, types.NoneType)), str))
    return check(name, value) if check else value


def _check(hint: Any) -> Check | None:
    """Return the check of what an annotation without specs says; None where it says too little."""
    several = alternatives(hint)
    if len(several) > 1:
        return partial(_either, several)
    if get_origin(hint) is tuple:
        return partial(_sequence, get_args(hint)[0])
    if hint in (int, float):
        return partial(_number, hint)
    if hint is bool:
        return partial(instance, (bool, np.bool_), "true or false")
    return partial(instance, (str,), "a text") if hint is str else None


def _allowed(kinds: tuple[type, ...], several: bool) -> str:
    names = ["None" if kind is types.NoneType else kind.__name__ for kind in kinds]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    if several:
        return f"a tuple of {listed}"
    return listed if len(names) > 1 else f"{'an' if listed[0] in 'AEIOU' else 'a'} {listed}"


@of_a_class
def _parts(spec_type: Any) -> dict[str, tuple[tuple[type, ...], bool]]:
    """Return the kinds allowed in every field that holds specs, and whether it holds a tuple of them."""
    hints = get_type_hints(spec_type)
    found = {}
    for field in fields(spec_type):
        hint = hints[field.name]
        several = get_origin(hint) is tuple and get_args(hint)[-1] is Ellipsis
        hint = get_args(hint)[0] if several else hint
        if spec_types(hint) and all(isinstance(kind, type) for kind in alternatives(hint)):
            found[field.name] = (alternatives(hint), several)
    return found


@of_a_class
def _checks(spec_type: Any) -> dict[str, Check]:
    """Return the check of every field whose annotation says what it holds; a choice words its own."""
    hints, of_specs, sweeps = get_type_hints(spec_type), _parts(spec_type), numeric_names(spec_type)
    found: dict[str, Check] = {}
    for field in fields(spec_type):
        name, hint = field.name, hints[field.name]
        if name in of_specs:
            found[name] = partial(_part, *of_specs[name])
        elif name in sweeps:
            found[name] = partial(_sweep, field.default is None)
        elif not (hint is str and "check" in field.metadata) and (check := _check(hint)):
            found[name] = check
    return found
