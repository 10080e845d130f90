"""The specs of runs that were made elsewhere, from their settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from qmodels.systems.spec.fields import find_field, points_of, replace_fields, swept_fields


def points_of_runs(
    spec: Any, runs: Sequence[Mapping[str, Any]], varied: Sequence[str]
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the settings and the spec of each of some runs made elsewhere.

    ``runs``: settings of each run; ``varied``: names of those that differ between runs.

    >>> from qmodels.systems.traffic.workload import Workload
    >>> load = Workload(load_factor=np.array([0.5, 1.0]))
    >>> rows, specs = points_of_runs(load, [{"load_factor": 1.0}, {"load_factor": 0.5}], ["load_factor"])
    >>> [one.load_factor for one in specs]
    [1.0, 0.5]
    """
    rows = [{name: run[name] for name in varied if name in run} for run in runs]
    swept = swept_fields(spec)
    if not swept:
        return rows, [replace_fields(spec, row) for row in rows]
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
    return rows, [replace_fields(spec, row) for row in rows]


def _setting_of(spec: Any, path: str, runs: Sequence[Mapping[str, Any]]) -> str:
    """Return the name by which all runs give a field of the spec, empty if they do not."""
    for name in runs[0]:
        if path == name or path.endswith(f".{name}"):
            if find_field(spec, name) == path and all(name in run for run in runs):
                return name
    return ""
