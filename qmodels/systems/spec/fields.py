"""From a spec with array fields to one spec per point, and from settings to the spec they describe."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from qmodels import checks


def is_spec(value: object) -> bool:
    """Return whether a value is a dataclass instance."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _parts(value: Any) -> list[tuple[str, Any, bool]]:
    """Return the parts of a spec or tuple: name, value, and whether it may be an array.

    A part of a tuple goes by its own name, or by its number if it has none; tuples of numbers and
    words have no parts.
    """
    if is_spec(value):
        return [
            (item.name, getattr(value, item.name), str(item.type).rpartition(".")[2] == "Numeric")
            for item in dataclasses.fields(value)
            if item.init
        ]
    if isinstance(value, tuple) and any(is_spec(part) or isinstance(part, tuple) for part in value):
        return [(str(getattr(part, "name", k)), part, False) for k, part in enumerate(value)]
    return []


def _walk(value: Any, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    for name, part, numeric in _parts(value):
        yield prefix + name, part, numeric
        yield from _walk(part, f"{prefix}{name}.")


def find_path(spec: Any, name: str) -> str:
    """Return the dotted path of the field of a spec that a name means: a path or the unique end of one.

    Parts of tuples go by their name, or else their number: ``stations.disk.servers``.

    Raises
    ------
    ValueError
        If no field or more than one has that name.
    """
    paths = [path for path, _, _ in _walk(spec)]
    if name in paths:
        return name
    ends = [path for path in paths if path.endswith(f".{name}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise ValueError(
            f"field {name!r} is ambiguous in {type(spec).__name__}: it may be {' or '.join(ends)}"
        )
    names = paths if "." in name else [path.rpartition(".")[2] for path in paths]
    raise ValueError(f"{type(spec).__name__} has no field {name!r}{checks.nearest(name, names)}")


def with_fields(spec: Any, values: Mapping[str, Any]) -> Any:
    """Return a copy of a spec with fields replaced, by the names that `find_path` takes.

    Each dataclass on the way is rebuilt once with all its new values.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> with_fields(PacketProcessor(), {"offered_gbps": 55.0, "noc.link_width": 8}).workload.offered_gbps
    55.0
    """
    return _replaced(spec, {find_path(spec, name): value for name, value in values.items()})


def _replaced(value: Any, paths: Mapping[str, Any]) -> Any:
    if "" in paths:
        return paths[""]
    inner: dict[str, dict[str, Any]] = {}
    for path, new in paths.items():
        name = next(n for n, _, _ in _parts(value) if path == n or path.startswith(f"{n}."))
        inner.setdefault(name, {})[path[len(name) + 1 :]] = new
    changed = {n: _replaced(part, inner[n]) for n, part, _ in _parts(value) if n in inner}
    if is_spec(value):
        return dataclasses.replace(value, **changed)
    return tuple(changed.get(name, part) for name, part, _ in _parts(value))


def swept_fields(spec: Any) -> dict[str, Any]:
    """Return the fields of a spec that hold arrays where one number is usual, broadcast to one shape.

    These are the fields that their dataclass annotates with ``Numeric``.

    Examples
    --------
    >>> from qmodels.systems.traffic.workload import Workload
    >>> swept_fields(Workload(load_factor=np.array([0.5, 1.0])))
    {'load_factor': array([0.5, 1. ])}
    """
    found = {path: np.asarray(value) for path, value, numeric in _walk(spec) if numeric and np.ndim(value)}
    shape = np.broadcast_shapes(*(value.shape for value in found.values())) if found else ()
    return {path: np.broadcast_to(value, shape) for path, value in found.items()}


def takes_array(spec: Any, name: str) -> bool:
    """Return whether a field, by the name that `find_path` takes, may hold an array."""
    path = find_path(spec, name)
    return any(numeric for one, _, numeric in _walk(spec) if one == path)


def points_of_runs(
    spec: Any, runs: Sequence[Mapping[str, Any]], varied: Sequence[str]
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the settings and the spec of each of some runs made elsewhere.

    Parameters
    ----------
    spec : dataclass instance
        The system. Arrays in it are the points at which runs were made: of each run the one whose
        values are its settings, or, where the runs do not say, one after the other.
    runs : sequence of mapping
        Settings of each run.
    varied : sequence of str
        Names of those that differ between runs.

    Raises
    ------
    ValueError
        If a run was made at none of the points, or it is not known at which.

    Examples
    --------
    >>> from qmodels.systems.traffic.workload import Workload
    >>> load = Workload(load_factor=np.array([0.5, 1.0]))
    >>> rows, specs = points_of_runs(load, [{"load_factor": 1.0}, {"load_factor": 0.5}], ["load_factor"])
    >>> [one.load_factor for one in specs]
    [1.0, 0.5]
    """
    rows = [{name: run[name] for name in varied if name in run} for run in runs]
    swept = swept_fields(spec)
    if not swept:
        return rows, [with_fields(spec, row) for row in rows]
    named = {path: _setting_of(spec, path, runs) for path in swept}
    points, _ = points_of(spec)
    for k, run in enumerate(runs):
        at = [
            point
            for point in points
            if all(np.isclose(run[n], point[path], rtol=1e-9) for path, n in named.items() if n)
        ]
        if not at:
            which = ", ".join(f"{n} = {run[n]!r}" for n in named.values() if n)
            raise ValueError(f"runs must be made at the points of the arrays in the spec, got one at {which}")
        if all(named.values()):
            rows[k] |= {n: run[n] for n in named.values()}
        elif len(points) == len(runs):
            rows[k] = points[k] | {n: v for n, v in rows[k].items() if n not in named.values()}
        else:
            lacking = next(path for path, n in named.items() if not n)
            raise ValueError(
                f"runs must have the setting {lacking}, or be as many as the {len(points)} points of the "
                f"spec, got {len(runs)} without it"
            )
    return rows, [with_fields(spec, row) for row in rows]


def _setting_of(spec: Any, path: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the name by which all runs give a field of the spec, empty if they do not."""
    for name in runs[0]:
        if path == name or path.endswith(f".{name}"):
            if find_path(spec, name) == path and all(name in run for run in runs):
                return name
    return ""


def points_of(spec: Any) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the settings and the spec of each point of a spec with array fields."""
    swept = swept_fields(spec)
    columns = {path: value.ravel().tolist() for path, value in swept.items()}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows, [with_fields(spec, row) for row in rows]
