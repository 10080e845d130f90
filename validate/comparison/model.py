"""A model's answer beside the simulated or imported one, metric by metric: ``compare``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, overload

import numpy as np

from qmodels import checks
from qmodels.checks import FloatArray
from qmodels.systems.spec.answer import Answer
from qmodels.systems.spec.conditions import unit_factor
from qmodels.systems.spec.fields import (
    find_field,
    is_spec,
    points_of,
    replace_fields,
    swept_fields,
    takes_array,
    varied_fields,
)
from validate.campaigns.experiment import Campaign
from validate.comparison.metrics import answered, load_of, measured, signed_error
from validate.comparison.paired import PairComparison, compare_pair
from validate.comparison.result import REGIONS, Comparison, Curve, Row, SweepComparison, row
from validate.readers.run_set import Run, RunSet

__all__ = ["Comparison", "Row", "SweepComparison", "compare", "signed_error"]


@overload
def compare(spec: Sequence[Any] | RunSet | Campaign, **options: Any) -> SweepComparison: ...
@overload
def compare(
    spec: Any, *, reference: RunSet | Campaign | Sequence[Any], **options: Any
) -> SweepComparison: ...
@overload
def compare(spec: Any, *, reference: Answer, **options: Any) -> Comparison: ...
@overload
def compare(spec: Any, other: Any, **options: Any) -> PairComparison: ...
@overload
def compare(spec: Any, **options: Any) -> Any: ...
def compare(
    spec: Any,
    other: Any = None,
    *,
    model: Any = None,
    reference: Any = None,
    metrics: Iterable[str] | None = None,
    load: str | Sequence[float] | None = None,
    regions: Sequence[tuple[float, float]] = REGIONS,
    **simulate_options: Any,
) -> Any:
    """Lay a model's answers beside simulations of the same systems, or beside runs made elsewhere.

    Parameters
    ----------
    spec : spec, sequence of specs, or results
        One design; a sweep: a spec with arrays in its numeric fields, or several specs; or results
        instead: a `Campaign`, a `RunSet` or one result, which ``model`` is laid beside.
    other : spec, optional
        A second design: both are simulated under common random numbers, see `compare_pair`.
    model : callable or answer, optional
        What to compare: takes the spec (without a spec: the settings of each run of a `RunSet` by
        name) and returns a result or a mapping; or such an answer. Otherwise ``qmodels.solve``.
    reference : result, RunSet, Campaign or sequence of results, optional
        What was simulated or measured before; otherwise the specs are simulated. With a `RunSet`
        and one spec, the settings that differ between runs replace the fields of their name; arrays in
        the spec are the points at which the runs were made, found by these settings or else in order.
        Its units become the model's: us become ns, and so do cycles where the spec has a clock.
    metrics : iterable of str, optional
        Which metrics; otherwise all that both have.
    load : str or sequence of float, optional
        Load of each point: the name of a setting or of a metric of the model, or numbers.
        Otherwise that of the busiest resource in the model's answer.
    regions : sequence of pairs
        Regions of load of the error map.
    **simulate_options
        For `validate.simulate`.

    Returns
    -------
    Comparison or SweepComparison
        For one design a row for every metric; for several the points, their error by region of
        load, and ``plot``. Two infinite values agree: their errors are 0.

    Raises
    ------
    ValueError
        If options for a simulation come with a reference, the settings of a run are no fields of
        the spec, the units differ, or there is no metric in common.

    Examples
    --------
    Packets through a channel modelled as M/D/1, beside three runs made elsewhere:

    >>> runs = RunSet.from_columns(
    ...     settings={"rate": [0.2, 0.5, 0.8]}, metrics={"latency": [11.3, 15.0, 29.7]})
    >>> def channel(rate):
    ...     return {"latency": 10 + 5 * rate / (1 - rate), "utilization": rate}
    >>> sweep = compare(runs, model=channel)
    >>> [round(one.relative_error, 3) for one in sweep["latency"]]
    [-0.004, 0.0, 0.01]
    >>> print(sweep)
    model beside reference at 3 points, 3 of them stable; size of the error, mean / largest, by load
    metric                               unit            0%-30%         30%-50%         65%-80%    inside
    latency                              %          0.44 / 0.44           0 / 0         1 / 1
    """
    if other is not None:
        if not is_spec(other) or not is_spec(spec):
            rule = "compare(spec, spec) takes two designs; runs go to reference=, a model to model="
            raise TypeError(f"{rule}; got a {type(spec).__name__} and a {type(other).__name__}")
        given = {"model": model, "reference": reference, "load": load}
        if named := [name for name, value in given.items() if value is not None]:
            raise ValueError(f"{', '.join(named)} must be left out when two designs are compared")
        return compare_pair(spec, other, metrics=metrics, **simulate_options)
    if _is_reference(spec) and is_spec(model) and reference is None and not isinstance(model, Answer):
        spec, reference, model = model, spec, None  # the model's answer to a spec beside runs
    if _is_reference(spec):
        if reference is not None:
            raise ValueError("reference must be left out when results are compared, got both")
        spec, reference = _spec_of(spec), spec
    if reference is not None and simulate_options:
        raise ValueError(
            f"simulate options must be left out when a reference is given, got {sorted(simulate_options)}"
        )
    vectorised = model is None
    if model is None and spec is None:
        raise ValueError("model must be given when results without specs are compared, got none")
    model = default_model() if model is None else model
    settings, specs, sweep = _points(spec, reference)
    if reference is None:
        from validate import simulate

        reference = simulate(specs if sweep else specs[0], **simulate_options)
    results = _results(reference)
    if len(results) != len(specs):
        raise ValueError(f"reference must have a result for each of {len(specs)} specs, got {len(results)}")
    answers = _answers(model, spec, specs, settings)
    wanted = None if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    units = reference.units if isinstance(reference, RunSet) else {}
    pairs = zip(answers, results, strict=True)
    points = tuple(_compare(answer, result, wanted, units) for answer, result in pairs)
    if not sweep:
        return points[0]
    return SweepComparison(
        points=points,
        settings=tuple(settings),
        loads=_loads(load, settings, answers),
        stable=np.array([bool(np.all(getattr(result, "stable", True))) for result in results]),
        regions=regions,
        curve=_curve(model, spec, specs, settings, vectorised),
    )


def default_model() -> Any:
    """Return the library's own answer to a spec."""
    from qmodels import solve

    return solve


def _is_reference(value: Any) -> bool:
    simulated = isinstance(value, Answer) and bool(value.run)
    return simulated or isinstance(value, RunSet | Campaign | Run)


def _spec_of(results: Any) -> Any:
    """Spec that results belong to; None of imported runs."""
    return list(results.specs) if isinstance(results, Campaign) else getattr(results, "spec", None)


def _points(spec: Any, reference: Any) -> tuple[list[dict[str, Any]], list[Any], bool]:
    """Return the settings and the spec of each point, and whether it is a sweep."""
    if isinstance(reference, RunSet) and (spec is None or is_spec(spec)):
        if spec is None:
            rows = [dict(run.settings) for run in reference]
            return rows, rows, True
        return *points_of_runs(spec, [run.settings for run in reference], reference.varied), True
    if spec is None:
        return [{}], [None], False
    if is_spec(spec):
        if swept_fields(spec):
            return *points_of(spec), True
        return [{}], [spec], False
    if not isinstance(spec, Sequence) or isinstance(spec, str) or not spec:
        raise TypeError(f"compare needs a spec, specs or results, got {spec!r}")
    specs = list(spec)
    columns = varied_fields(specs)
    return [{name: values[k] for name, values in columns.items()} for k in range(len(specs))], specs, True


def _results(reference: Any) -> list[Any]:
    if isinstance(reference, RunSet | Campaign | Sequence):
        return list(reference)
    return [reference]


def _answers(model: Any, spec: Any, specs: list[Any], settings: list[dict[str, Any]]) -> list[Any]:
    if callable(model):
        return [model(**values) for values in settings] if spec is None else [model(one) for one in specs]
    answers = list(model) if isinstance(model, Sequence) else [model]
    if len(answers) != len(specs):
        raise ValueError(f"model must have an answer for each of {len(specs)} points, got {len(answers)}")
    return answers


def _compare(answer: Any, result: Any, metrics: list[str] | None, units: Mapping[str, str]) -> Comparison:
    values, references = answered(answer), measured(result)
    common = [name for name in references if name in values]
    for name in metrics or ():
        if name not in common:
            raise ValueError(
                f"metrics must be in model and reference, got {name!r}{checks.nearest(name, common)}"
            )
    if not common:
        raise ValueError(
            f"model and reference must have a metric in common, got {', '.join(list(values)[:6])} and "
            f"{', '.join(list(references)[:6])}: rename those of the reference"
        )
    rows = {}
    known_units, units = getattr(answer, "units", {}), getattr(result, "units", units)
    for name in common if metrics is None else metrics:
        estimate, known, unit = references[name], known_units.get(name, ""), units.get(name, "")
        clock = getattr(getattr(answer, "spec", None), "clock_ghz", None)
        if clock is not None and known == "ns" and _singular(unit) == "cycle":
            estimate, unit = estimate.scaled(1 / clock), known
        if unit and known and _singular(unit) != _singular(known):
            factor = unit_factor(unit, known)
            if factor is None:
                raise ValueError(
                    f"{name} must have one unit, got {known} in the model and {unit} in the reference: "
                    "convert it"
                )
            estimate, unit = estimate.scaled(factor), known
        rows[name] = row(name, unit or known, values[name], estimate)
    return Comparison(rows=rows, model=answer, reference=result)


def _singular(unit: str) -> str:
    """Return a unit with its words in the singular: tools say cycle or cycles."""
    return re.sub(r"(?<=[a-z]{3})s\b", "", unit)


def _loads(load: str | Sequence[float] | None, settings: list[dict[str, Any]], answers: list[Any]) -> Any:
    if load is None:
        found = [load_of(answer) for answer in answers]
        return None if None in found else np.array(found, dtype=float)
    if not isinstance(load, str):
        numbers = checks.nonnegative("load", load)
        if np.shape(numbers) != (len(settings),):
            rule = f"one number for each of {len(settings)} points"
            raise ValueError(f"load must be {rule}, got {np.size(numbers)}")
        return numbers
    if all(load in values for values in settings):
        return np.array([values[load] for values in settings], dtype=float)
    metrics = [answered(answer) for answer in answers]
    for values in metrics:
        if load not in values:
            raise ValueError(
                f"load must be a setting or a metric, got {load!r}{checks.nearest(load, values)}"
            )
    return np.array([values[load] for values in metrics])


def _curve(
    model: Any, spec: Any, specs: list[Any], settings: list[dict[str, Any]], vectorised: bool
) -> Curve | None:
    """Return the model along one setting, where the settings say all in which the points differ."""
    if not callable(model):
        return None
    if spec is None:
        return lambda base, axis, xs: _columns([answered(model(**{**base, axis: float(x)})) for x in xs])
    first = specs[0]
    try:
        if any(replace_fields(first, values) != one for one, values in zip(specs, settings, strict=True)):
            return None
    except ValueError:
        # Specs that hold arrays have no truth value of their equality.
        return None

    def along(base: Mapping[str, Any], axis: str, xs: FloatArray) -> Mapping[str, FloatArray]:
        if vectorised and takes_array(first, axis):
            with suppress(ValueError):  # a law takes arrays, a network of stations does not
                answer = model(replace_fields(first, {**base, axis: xs}))
                return {name: np.broadcast_to(values, xs.shape) for name, values in answer.metrics.items()}
        return _columns([answered(model(replace_fields(first, {**base, axis: float(x)}))) for x in xs])

    return along


def _columns(rows: list[dict[str, float]]) -> dict[str, FloatArray]:
    return {name: np.array([values.get(name, np.nan) for values in rows]) for name in rows[0]}


def points_of_runs(
    spec: Any, runs: Sequence[Mapping[str, Any]], varied: Sequence[str]
) -> tuple[list[dict[str, Any]], list[Any]]:
    """Return the settings and the spec of each of some runs made elsewhere.

    ``runs``: settings of each run; ``varied``: names of those that differ between runs.

    >>> from qmodels.systems.traffic.arrivals import Workload
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
