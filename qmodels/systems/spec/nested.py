"""Parts of a spec: what the annotation of each field says it holds, and the refusal of anything else."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from qmodels.checks import shown
from qmodels.systems.spec.fields import of_a_class


@dataclass(frozen=True)
class Kinds:
    """What a field holds that takes specs of several kinds, to which others may add theirs.

    Parameters
    ----------
    types : callable
        Returns the classes by the words that files use for them.
    """

    types: Callable[[], Mapping[str, type[Any]]]


@dataclass(frozen=True)
class NamedOf:
    """What a field holds that is a `Named`.

    Parameters
    ----------
    value : annotation or Kinds
        What goes by each name.
    """

    value: Any


@of_a_class
def held(cls: type[Any]) -> Mapping[str, Any]:
    """Return what every field of a spec holds once it is made.

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
    """Require every field that holds a spec, or a tuple of specs, to be of the annotated kind.

    Called first in ``__post_init__``, so that a wrong part is refused before it is used.

    Parameters
    ----------
    spec : dataclass instance
        Fields of any other annotation are not looked at.
    prefix : str
        What the names of the fields start with in messages, such as ``"workload."``.

    Raises
    ------
    ValueError
        Naming the field, what is allowed and the value.

    Examples
    --------
    >>> from qmodels.systems.cache.spec import CacheLevel
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> PacketProcessor(llc=CacheLevel(lines=8))
    Traceback (most recent call last):
        ...
    ValueError: llc must be a Llc, got CacheLevel(lines=8, ...
    """
    for name, (kinds, several) in _parts(type(spec)).items():
        value = getattr(spec, name)
        members = value if several and isinstance(value, tuple) else (value,)
        if several != isinstance(value, tuple) or not all(isinstance(one, kinds) for one in members):
            raise ValueError(f"{prefix}{name} must be {_allowed(kinds, several)}, got {shown(value)}")


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
