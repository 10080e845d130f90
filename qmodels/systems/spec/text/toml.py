"""Specs to TOML and back."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin

import numpy as np

from qmodels import checks
from qmodels.systems.spec.fields import field_names, find_field, get_field, is_spec, replace_paths
from qmodels.systems.spec.kind import kind_named, kind_of, kinds
from qmodels.systems.spec.named import Named
from qmodels.systems.spec.nested import alternatives, held, word_of
from qmodels.systems.spec.text.reading import Place, further_keys, join


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


Spec = TypeVar("Spec")

USUAL_KIND = "packet-processor"
"""Kind of a document that does not say its kind."""


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
        Folder that relative paths of files start from: left out, that of the file, or the
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
    the class name in kebab case; a word alone is the kind of one that needs no more, and keys that
    only one of them has need no kind. None is a field left out. Arrays in numeric fields are sweeps.
    Some specs have shorter forms: ``sizes = "imix"``, a table with a ``law`` and its parameters, or the
    ``bytes`` and their ``probability``; ``topology = "mesh 8 8"``; ``trace = "capture.pcap"``; for DRAM a
    ``preset``, over which all other keys are laid.

    Examples
    --------
    >>> from qmodels.systems.traffic.arrivals import Workload
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
    table, folder = _document(source, base_dir)
    if "kind" in table and "kind" not in field_names(spec_type):
        known = [kind.name for kind in kinds().values() if issubclass(spec_type, kind.spec())]
        if known:
            checks.choice("kind", table.pop("kind"), known)
    for key, value in (overrides or {}).items():
        _set(table, key, value, None)
    return _read(table, spec_type, folder)


def spec_from_toml(
    source: str | Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    base_dir: str | os.PathLike[str] | None = None,
) -> Any:
    r"""Return the spec of whatever kind a TOML document describes: it says ``kind = "noc"`` at its top.

    Parameters
    ----------
    source : str or Path
        TOML text, or the path of a file as a `Path`. One without a kind describes a packet processor.
    overrides : mapping, optional
        Values that replace those of the document, by names of fields as `find_field` takes them, or
        by other keys that the kind takes at its top, such as ``preset``.
    base_dir : path, optional
        As for `from_toml`.

    Examples
    --------
    >>> spec = spec_from_toml('kind = "dram"\npreset = "HBM2"', {"channels": 4})
    >>> spec.geometry.channels, spec.timing.t_rcd
    (4, 14)
    """
    table, folder = _document(source, base_dir)
    spec_type = kind_named(table.pop("kind", USUAL_KIND)).spec()
    named = overrides or {}
    own = {name: value for name, value in named.items() if name in further_keys(spec_type)}
    table |= deepcopy(own)
    spec = _read(table, spec_type, folder)
    if len(own) == len(named):
        return spec
    whole, inside = document(spec), {}
    # Parts that are replaced come first: others may name fields that only these have.
    parts = [name for name in named if name not in own and _is_part(spec, name)]
    for name in parts:
        own[name] = named[name]
        _set(table, find_field(spec, name), named[name], whole)
    if parts and len(own) < len(named):
        with suppress(ValueError):  # the others may mend it
            spec = _read(table, spec_type, folder)
            whole = document(spec)
    for name, value in named.items():
        if name in own:
            continue
        path = _path(spec, name)
        if _in_text(whole, path):
            inside[path] = value
        else:
            _set(table, path, value, whole)
    return (
        replace_paths(_read(table, spec_type, folder), inside) if inside else _read(table, spec_type, folder)
    )


def _path(spec: Any, name: str) -> str:
    """Return the path that a name means: of a field, or of a further key of a spec inside, as a preset is."""
    outer, _, last = name.rpartition(".")
    try:
        return find_field(spec, name)
    except ValueError:
        path = find_field(spec, outer) if outer else ""
        if not path or last not in further_keys(type(get_field(spec, path))):
            raise
        return f"{path}.{last}"


def _is_part(spec: Any, name: str) -> bool:
    """Return whether a name is that of a spec inside; unknown ones are refused where they are set."""
    try:
        return is_spec(get_field(spec, find_field(spec, name)))
    except ValueError:
        return False


def _in_text(whole: Any, path: str) -> bool:
    """Return whether a path leads into what a document has as text."""
    for name in path.split(".")[:-1]:
        if not isinstance(whole, dict | list):
            return isinstance(whole, str)
        whole = whole.get(name) if isinstance(whole, dict) else whole[_place(whole, name)]
    return isinstance(whole, str)


def to_toml(spec: Any, *, kind: bool = False) -> str:
    """Return a spec as TOML that `from_toml` reads back to an equal spec; every field is written.

    Parameters
    ----------
    spec : dataclass instance
        The spec.
    kind : bool
        Whether the text begins with the kind of system, as `spec_from_toml` reads it.

    Raises
    ------
    ValueError
        If a trace in it did not come from a file.

    Examples
    --------
    >>> from qmodels.systems.traffic.popularity import Zipf
    >>> to_toml(Zipf(entries=100, exponent=0.83)).splitlines()[:2]
    ['entries = 100', 'exponent = 0.83']
    """
    first = {"kind": kind_of(spec).name} if kind else {}
    written = document(spec)
    table = written if isinstance(written, dict) else to_table(spec)
    return "\n".join(toml_lines({**first, **table})).lstrip("\n") + "\n"


def read_value(text: str) -> Any:
    """Return the value of a TOML expression; what is none is the text itself, so bare words need no quotes.

    Examples
    --------
    >>> [read_value(text) for text in ("8", "0.5", "true", "closed", '"8"', "[1, 2]", "mesh 8 8")]
    [8, 0.5, True, 'closed', '8', [1, 2], 'mesh 8 8']
    """
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    value = table.pop("value")
    return text if table or not isinstance(value, int | float | bool | str | list | dict) else value


def _document(source: str | Path, base_dir: str | os.PathLike[str] | None) -> tuple[dict[str, Any], Path]:
    """Return the table of a document, and the folder that its paths start from."""
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
        return tomllib.loads(str(text)), Path(base_dir or ".")
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: not valid TOML: {error}") from None


def _read(table: dict[str, Any], spec_type: type[Spec], folder: Path) -> Spec:
    spec: Spec = Place(folder=folder).spec(table, spec_type)
    return spec


def _set(table: dict[str, Any], key: str, value: Any, whole: Any) -> None:
    """Set a dotted key of a document; members of lists go by their name or their number.

    What is written there by a word, or not at all, is taken from the whole document, if that is given.
    """
    *parents, last = key.split(".")
    inside: Any = table
    for depth, name in enumerate(parents):
        place: Any = _place(inside, name)
        if isinstance(whole, dict) and name not in whole:
            left = ".".join(parents[: depth + 1])
            raise ValueError(
                f"{key} cannot be set: {left} follows from the rest, as sizes of a recorded trace do"
            )
        whole = whole[_place(whole, name)] if whole is not None else None
        if isinstance(inside, dict):
            shown = isinstance(inside.get(place), dict | list)
            if not shown and isinstance(whole, dict | list):
                inside[place] = deepcopy(whole)
            inside.setdefault(place, {})
        inside = inside[place]
        if not isinstance(inside, dict | list):
            raise ValueError(f"{'.'.join(parents[: depth + 1])} must be a table to set {key}, got {inside!r}")
    inside[_place(inside, last)] = deepcopy(value)


def _place(inside: Any, name: str) -> Any:
    """Return the key of a table as it is, or the number of the member of a list that a name means."""
    if isinstance(inside, dict):
        return name
    names = [str(one.get("name", k)) if isinstance(one, dict) else str(k) for k, one in enumerate(inside)]
    if name not in names:
        raise ValueError(f"{name!r} must be one of {', '.join(names)}")
    return names.index(name)
