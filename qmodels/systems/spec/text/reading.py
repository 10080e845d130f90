"""From the tables of a document to specs, by the annotations of their fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args, get_origin

import numpy as np

from qmodels import checks
from qmodels.systems.spec.fields import field_names, is_spec
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import Kinds, NamedOf, alternatives, held, spec_types

_IS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    bool: ("true or false", lambda v: isinstance(v, bool)),
    int: ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    float: ("a number", lambda v: isinstance(v, int | float) and not isinstance(v, bool)),
    str: ("a text in quotes", lambda v: isinstance(v, str)),
}


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a value of a document stands.

    A spec that can be written in other ways than by its fields says so itself: its class method
    ``__from_toml__(value, place)`` returns an instance, or the table of its fields, and
    ``__toml_keys__`` names the further keys that it takes, ``__toml_words__`` the words that stand for it.
    Of the classes that may stand in a place the one
    with ``__toml_default__`` is meant by a table that says no ``kind`` and fits no single one, unless others
    may add classes (`Kinds`). What a spec is written as is what its method ``__to_toml__(table, key)``
    returns, where ``table`` gives the table of its fields.
    """

    key: str = ""  # the dotted key, for messages
    folder: Path = Path()  # where the paths of files in the document start from

    def at(self, name: str) -> Place:
        """Return the place of a key in the table that stands here."""
        return replace(self, key=join(self.key, name))

    def read(self, value: Any, hint: Any) -> Any:
        """Return a value as an annotation says; `Any` marks a number, where a list is a sweep."""
        several = alternatives(hint)
        if len(several) > 1 or isinstance(hint, Kinds):
            return self._one_of(value, several)
        if isinstance(hint, NamedOf):
            self.check(value, value if isinstance(value, dict) else ())
            return Named({name: self.at(name).read(one, hint.value) for name, one in value.items()})
        if isinstance(hint, type) and is_dataclass(hint):
            return self.spec(value, hint)
        if get_origin(hint) in (tuple, Sequence):
            return self._list(value, get_args(hint))
        if hint is Any:
            rule, good = "a number or a list of numbers", _is_sweep(value)
            value = np.array(value) if good and isinstance(value, list) else value
        else:
            rule, test = _IS[hint]
            good = test(value)
        if not good:
            raise ValueError(f"{self.key} must be {rule}, got {value!r}")
        return value

    def spec(self, value: Any, cls: type[Any]) -> Any:
        """Return the spec of a class that a value says."""
        if hasattr(cls, "__from_toml__"):
            value = cls.__from_toml__(value, self)
            if isinstance(value, cls):
                return value
        names, hints = field_names(cls), held(cls)
        self.check(value, (*names, *further_keys(cls)), needed(cls))
        return cls(**{name: self.at(name).read(one, hints[name]) for name, one in value.items()})

    def changed(self, spec: Any, table: Any) -> Any:
        """Return a spec with the values of a table laid over its own."""
        hints = held(type(spec))
        self.check(table, field_names(type(spec)))
        values = {}
        for name, value in table.items():
            old, here = getattr(spec, name), self.at(name)
            over = is_spec(old) and isinstance(value, dict) and set(value) <= set(field_names(type(old)))
            values[name] = here.changed(old, value) if over else here.read(value, hints[name])
        return replace(spec, **values)

    def made(self, value: Any, make: Callable[..., Any], word: str = "") -> Any:
        """Call a function with the parameters in a table; `word` is a key that is none."""
        signature = inspect.signature(make, eval_str=True).parameters
        parameters = {name: one for name, one in signature.items() if one.kind is not one.VAR_KEYWORD}
        own = (word,) if word else ()
        self.check(value, (*own, *parameters), (n for n, p in parameters.items() if p.default is p.empty))
        return make(
            **{k: self.at(k).read(v, parameters[k].annotation) for k, v in value.items() if k not in own}
        )

    def named(self, value: Any, word: str, makers: Mapping[str, Callable[..., Any]]) -> Any:
        """Call the function that a word names; return a table without the word as it is.

        The value is the name, or a table with the name under the key ``word`` and its parameters.
        """
        if isinstance(value, str):
            value = {word: value}
        if not isinstance(value, dict):
            raise ValueError(f"{self.key} must be the name of a {word} or a table, got {value!r}")
        if word not in value:
            return value
        return self.made(value, makers[checks.choice(join(self.key, word), value[word], makers)], word)

    def check(self, table: Any, known: Iterable[str], required: Iterable[str] = ()) -> None:
        """Require a table with known keys, the required ones among them."""
        if not isinstance(table, dict):
            raise ValueError(f"{self.key} must be a table, got {table!r}")
        known = list(known)
        for name in table:
            if name not in known:
                raise ValueError(f"unknown key {join(self.key, name)}{checks.nearest(name, known)}")
        for name in required:
            if name not in table:
                raise ValueError(f"{join(self.key, name)} is missing")

    def _one_of(self, value: Any, options: tuple[Any, ...]) -> Any:
        for option in options:
            if (option in _IS and _IS[option][1](value)) or (
                get_origin(option) is tuple and isinstance(value, list)
            ):
                return self.read(value, option)
        specs: dict[str, type[Any]] = {}
        for option in options:
            specs |= spec_types(option)
        if len(specs) == 1:
            ((word, cls),) = specs.items()
            named = isinstance(value, dict) and value.get("kind") == word and "kind" not in field_names(cls)
            return self.spec({k: v for k, v in value.items() if k != "kind"} if named else value, cls)
        named = (
            [cls for cls in specs.values() if value in getattr(cls, "__toml_words__", ())]
            if isinstance(value, str)
            else []
        )
        if named:
            return self.spec(value, named[0])
        if isinstance(value, str) and value in specs:
            value = {"kind": value}
        if isinstance(value, dict) and "kind" not in value:
            fitting = [word for word, cls in specs.items() if _fits(value, cls)]
            if len(fitting) != 1 and not any(isinstance(option, Kinds) for option in options):
                # What is meant where nothing is said.
                fitting = [word for word, cls in specs.items() if getattr(cls, "__toml_default__", False)]
            value = {"kind": fitting[0], **value} if len(fitting) == 1 else value
        if not isinstance(value, dict) or "kind" not in value:
            rules = [_IS[option][0] for option in options if option in _IS]
            rules += ["a list"] if any(get_origin(option) is tuple for option in options) else []
            words = [word for cls in specs.values() for word in getattr(cls, "__toml_words__", ())]
            rules += [f"one of {', '.join(words)}"] if words and not isinstance(value, dict) else []
            rules += [f"a table with kind = one of {', '.join(specs)}"] if specs else []
            raise ValueError(f"{self.key} must be {' or '.join(rules)}, got {value!r}")
        kind = checks.choice(join(self.key, "kind"), value["kind"], specs)
        return self.spec({k: v for k, v in value.items() if k != "kind"}, specs[kind])

    def _list(self, value: Any, items: tuple[Any, ...]) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{self.key} must be a list, got {value!r}")
        if len(items) == 1 or items[-1] is Ellipsis:
            items = items[:1] * len(value)
        if len(items) != len(value):
            raise ValueError(f"{self.key} must be a list of {len(items)} values, got {value!r}")
        return tuple(self.read(v, hint) for v, hint in zip(value, items, strict=True))


def _is_sweep(value: Any) -> bool:
    """Return whether a value is a number, or a list of numbers or of equally long lists of them."""
    if not isinstance(value, list):
        return _IS[float][1](value)
    lengths = {len(one) if isinstance(one, list) else -1 for one in value}
    return len(lengths) == 1 and all(map(_is_sweep, value))


def join(key: str, name: str) -> str:
    """Return a dotted key."""
    return f"{key}.{name}" if key else name


def needed(cls: type[Any]) -> list[str]:
    """Return the fields of a class without a default."""
    own = (f for f in fields(cls) if f.init)
    return [f.name for f in own if f.default is MISSING and f.default_factory is MISSING]


def further_keys(cls: type[Any]) -> tuple[str, ...]:
    """Return the keys that a class takes in a document beside those of its fields."""
    keys: tuple[str, ...] = getattr(cls, "__toml_keys__", ())
    return keys


def _fits(table: Mapping[str, Any], cls: type[Any]) -> bool:
    """Return whether a table can be meant for a class by its keys."""
    extra = further_keys(cls)
    complete = set(needed(cls)) <= set(table) or not set(extra).isdisjoint(table)
    return bool(table) and complete and set(table) <= {*field_names(cls), *extra}
