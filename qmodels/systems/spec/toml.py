"""Specs to TOML and back, and the hash that names a spec in a store."""

from __future__ import annotations

import inspect
import json
import os
import re
import tomllib
import types
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from qmodels import checks
from qmodels.systems.traffic.arrivals import Recorded
from qmodels.systems.traffic.sizes import LAWS, SizeLaw, imix
from qmodels.systems.traffic.trace import Trace, read_trace
from qmodels.systems.traffic.workload import Workload

Spec = TypeVar("Spec")


def from_toml(
    source: str | Path,
    spec_type: type[Spec],
    *,
    base_dir: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Spec:
    """Return the spec a TOML document describes.

    Parameters
    ----------
    source : str or Path
        TOML text, or the path of a file as a `Path`.
    spec_type : type
        A frozen spec dataclass.
    base_dir : path, optional
        Folder that relative trace paths start from: left out, that of the file, or the
        working directory for text.
    overrides : mapping, optional
        Values that replace those of the document, by dotted key: ``{"dram.channels": 8}``.

    Returns
    -------
    spec_type
        Keys left out have the dataclasses' defaults.

    Raises
    ------
    ValueError
        One line with the dotted key: not TOML, an unknown key (with the nearest valid one), a
        missing key, a value of the wrong type; or what the spec itself rejects.

    Notes
    -----
    A spec in a spec is a table. A field that may be one of several specs says which by ``kind``,
    the class name in kebab case; None is a field left out. Arrays in numeric fields are sweeps. A
    `SizeLaw` is a name (``"imix"``), a table with a ``law`` and its parameters, or the ``bytes``
    and their ``probability``. A `Trace` is the ``path`` of its file.

    Examples
    --------
    >>> text = '''
    ... offered_gbps = 100
    ... sizes = { law = "bimodal", small = 64, large = 1500, small_fraction = 0.5 }
    ... [arrivals]
    ... kind = "on-off"
    ... on_packets = 20
    ... peak_to_mean = 4
    ... '''
    >>> workload = from_toml(text, Workload, overrides={"load_factor": 0.5})
    >>> workload.arrivals, workload.sizes.bytes, workload.load_factor
    (OnOff(on_packets=20, peak_to_mean=4), (64, 1500), 0.5)
    """
    text, where = source, "TOML"
    if isinstance(source, Path):
        where = str(source)
        base_dir = source.parent if base_dir is None else base_dir
        try:
            text = source.read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{where}: cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ValueError(f"{where}: not a text file") from None
    try:
        table = tomllib.loads(str(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: not valid TOML: {error}") from None
    for key, value in (overrides or {}).items():
        _set(table, key, value)
    spec: Spec = _spec(table, spec_type, "", Path(base_dir or "."))
    return spec


def to_toml(spec: Any) -> str:
    """Return a spec as TOML that `from_toml` reads back to an equal spec; every field is written.

    Raises
    ------
    ValueError
        If a trace in it did not come from a file.

    Examples
    --------
    >>> to_toml(Workload().popularity).splitlines()[:2]
    ['entries = 20000', 'exponent = 0.83']
    """
    return "\n".join(_lines(_table(spec, ""), "")).lstrip("\n") + "\n"


def read_value(text: str) -> Any:
    """Return the value of a TOML expression; what is none is the text itself, so bare words need no quotes.

    Examples
    --------
    >>> [read_value(text) for text in ("8", "0.5", "true", "closed", '"8"', "[1, 2]")]
    [8, 0.5, True, 'closed', '8', [1, 2]]
    """
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = table.pop("value")
    return text if table or not isinstance(value, int | float | bool | str | list | dict) else value


# Reading: a TOML value, the annotation of the field it is for, and its dotted key.


def _set(table: dict[str, Any], key: str, value: Any) -> None:
    *parents, last = key.split(".")
    for depth, name in enumerate(parents):
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ValueError(f"{'.'.join(parents[: depth + 1])} must be a table to set {key}, got {table!r}")
    table[last] = deepcopy(value)


def _spec(table: Any, cls: type[Any], key: str, base_dir: Path) -> Any:
    hints = held(cls)
    parts = {_key(name, hints[name]): name for name in (f.name for f in fields(cls) if f.init)}
    _table_with_keys(table, parts, key)
    required = (
        f.name for f in fields(cls) if f.init and f.default is MISSING and f.default_factory is MISSING
    )
    _require(table, (_key(name, hints[name]) for name in required), key)
    values = {parts[k]: _value(v, hints[parts[k]], _join(key, k), base_dir) for k, v in table.items()}
    return cls(**values)


def _value(value: Any, hint: Any, key: str, base_dir: Path) -> Any:
    if hint is SizeLaw:
        return _size_law(value, key, base_dir)
    if hint is Trace:
        return read_trace(base_dir / _typed(value, str, key))
    if is_dataclass(hint) and isinstance(hint, type):
        return _spec(value, hint, key, base_dir)
    if get_origin(hint) in (Union, types.UnionType):
        return _one_of(value, get_args(hint), key, base_dir)
    if get_origin(hint) is tuple:
        return _tuple(value, get_args(hint), key, base_dir)
    return _typed(value, hint, key)


def _one_of(value: Any, options: tuple[Any, ...], key: str, base_dir: Path) -> Any:
    plain = {str: str, tuple: list}
    for option in options:
        if isinstance(value, plain.get(get_origin(option) or option, ())):
            return _value(value, option, key, base_dir)
    specs: list[Any] = [option for option in options if is_dataclass(option)]
    kinds = {_kind(option): option for option in specs}
    if isinstance(value, dict) and "kind" not in value and len(kinds) == 1:
        value = {"kind": next(iter(kinds)), **value}
    if not isinstance(value, dict) or "kind" not in value:
        raise ValueError(f"{key} must be a table with kind = one of {', '.join(kinds)}, got {value!r}")
    kind = checks.choice(_join(key, "kind"), value["kind"], kinds)
    return _spec({k: v for k, v in value.items() if k != "kind"}, kinds[kind], key, base_dir)


def _size_law(value: Any, key: str, base_dir: Path) -> SizeLaw:
    if isinstance(value, str):
        value = {"law": value}
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be the name of a law or a table, got {value!r}")
    if "law" not in value:
        _table_with_keys(value, ("law", *(f.name for f in fields(SizeLaw))), key)
        law: SizeLaw = _spec(value, SizeLaw, key, base_dir)
        return law
    make = LAWS[checks.choice(_join(key, "law"), value["law"], LAWS)]
    parameters = inspect.signature(make, eval_str=True).parameters
    _table_with_keys(value, ("law", *parameters), key)
    _require(value, (name for name, p in parameters.items() if p.default is p.empty), key)
    return make(
        **{k: _typed(v, parameters[k].annotation, _join(key, k)) for k, v in value.items() if k != "law"}
    )


def _tuple(value: Any, items: tuple[Any, ...], key: str, base_dir: Path) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list, got {value!r}")
    if items[-1] is Ellipsis:
        items = items[:1] * len(value)
    if len(items) != len(value):
        raise ValueError(f"{key} must be a list of {len(items)} values, got {value!r}")
    return tuple(_value(v, hint, key, base_dir) for v, hint in zip(value, items, strict=True))


_IS: dict[Any, tuple[str, Callable[[Any], bool]]] = {
    bool: ("true or false", lambda v: isinstance(v, bool)),
    int: ("a whole number", lambda v: isinstance(v, int) and not isinstance(v, bool)),
    float: ("a number", lambda v: isinstance(v, int | float) and not isinstance(v, bool)),
    str: ("a text in quotes", lambda v: isinstance(v, str)),
}


def _typed(value: Any, hint: Any, key: str) -> Any:
    """Return a plain value of the annotated type; `Any` marks a numeric field, where a list is a sweep."""
    if hint is Any:
        if isinstance(value, list) and value and all(_IS[float][1](v) for v in value):
            return np.array(value)
        rule, good = "a number or a list of numbers", _IS[float][1](value)
    else:
        rule, test = _IS[hint]
        good = test(value)
    if not good:
        raise ValueError(f"{key} must be {rule}, got {value!r}")
    return value


def _table_with_keys(table: Any, known: Iterable[str], key: str) -> None:
    if not isinstance(table, dict):
        raise ValueError(f"{key} must be a table, got {table!r}")
    known = list(known)
    for name in table:
        if name not in known:
            raise ValueError(f"unknown key {_join(key, name)}{checks.nearest(name, known)}")


def _require(table: Mapping[str, Any], names: Iterable[str], key: str) -> None:
    for name in names:
        if name not in table:
            raise ValueError(f"{_join(key, name)} is missing")


# Writing.


def _table(spec: Any, key: str) -> dict[str, Any]:
    hints = held(type(spec))
    table: dict[str, Any] = {}
    for item in fields(spec):
        if not item.init or (
            isinstance(spec, Workload) and item.name == "sizes" and isinstance(spec.arrivals, Recorded)
        ):
            continue  # a recorded trace brings its own sizes
        if getattr(spec, item.name) is None and item.default is None:
            continue  # TOML has no word for nothing: left out
        name = _key(item.name, hints[item.name])
        table[name] = _plain(getattr(spec, item.name), hints[item.name], _join(key, name))
    return table


def _plain(value: Any, hint: Any, key: str) -> Any:
    if isinstance(value, SizeLaw) and value == imix():
        return "imix"
    if isinstance(value, Trace):
        if not os.path.isfile(value.source):
            raise ValueError(
                f"{key} cannot be written: the trace is from {value.source!r}, which is not a file"
            )
        return os.path.abspath(value.source)
    options = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if is_dataclass(value):
        several = sum(is_dataclass(option) for option in options) > 1
        return ({"kind": _kind(type(value))} if several else {}) | _table(value, key)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        items = next((get_args(option) for option in options if get_origin(option) is tuple), (None, ...))
        items = items[:1] * len(value) if items[-1] is Ellipsis else items
        return [_plain(v, item, key) for v, item in zip(value, items, strict=True)]
    return value


def _lines(table: dict[str, Any], key: str) -> list[str]:
    lines, blocks = [], []
    for name, value in table.items():
        here = _join(key, name)
        if isinstance(value, dict):
            blocks += ["", f"[{here}]", *_lines(value, here)]
        elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            for inner in value:
                blocks += [
                    "",
                    f"[[{here}]]",
                    *(f"{k} = {_literal(v, _join(here, k))}" for k, v in inner.items()),
                ]
        else:
            lines.append(f"{name} = {_literal(value, here)}")
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
        return f"{{ {', '.join(f'{k} = {_literal(v, _join(key, k))}' for k, v in value.items())} }}"
    raise ValueError(f"{key} cannot be written to TOML, got {value!r}")


# Both ways.


def held(cls: type[Any]) -> dict[str, Any]:
    """Return what every field of a spec holds once it is made.

    That is its annotation, or what its metadata says it ``holds`` where the constructor takes more.
    """
    hints = get_type_hints(cls)
    return {f.name: f.metadata.get("holds", hints[f.name]) for f in fields(cls)}


def _kind(cls: type[Any]) -> str:
    """Return a class name in kebab case: ``OnOff`` is ``on-off``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", cls.__name__).lower()


def _key(name: str, hint: Any) -> str:
    return "path" if hint is Trace else name


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name
