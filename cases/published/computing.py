"""What a paper's data names, and what is computed of it: systems, numbers, rows of tables, and fits.

Bundled papers and a user's own take this one path. Texts that begin with ``=`` are expressions; a key with
parentheses, ``"noc(channels, width=16)"``, is a function of these arguments.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib import import_module
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cases.published.numbers import Cell, Design, mean_and_largest, name_of, only, read_toml, select
from cases.published.tables import compiled, entry, evaluate, fill, loops
from qmodels import checks
from qmodels.systems.spec.fields import replace_fields
from qmodels.systems.spec.text.toml import spec_from_toml

Simulate = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]]  # simulates specs with options
FITTED = "calibrated.toml"
ENDS = {"model": "best", "simulated": "best", "low": "low", "high": "high"}


class LackingError(Exception):
    """One of model and simulation has no such metric."""


@dataclass(frozen=True)
class Metrics:
    """The metrics of a system, by name, as the model or the simulation has them."""

    answer: Any
    spec: Any
    end: str = "best"  # of an estimate

    def __getattr__(self, name: str) -> Any:
        found = self.answer.metrics
        if name in found:
            return float(getattr(found[name], self.end, found[name]))
        declared = type(self.spec).metric_names
        known = (*declared.both, *declared.model, *declared.simulation, *found)
        if name in known:
            raise LackingError
        if hasattr(self.answer, name):
            return getattr(self.answer, name)
        raise AttributeError(f"no metric {name!r}{checks.nearest(name, known)}")

    __getitem__ = __getattr__


@dataclass(frozen=True)
class Function:
    """A function that is named in a paper's data."""

    names: Mapping[str, Any]  # what its expressions may use beside its arguments
    arguments: Mapping[str, str]  # with the expressions of their defaults, empty if there is none
    body: Callable[[Mapping[str, Any], Mapping[str, Any]], Any]  # of all names, and of other arguments

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Return its value."""
        mine = dict(zip(self.arguments, values, strict=False))
        for name, default in self.arguments.items():
            if name in named:
                mine[name] = named.pop(name)
            elif name not in mine:
                if not default:
                    raise ValueError(f"{', '.join(self.arguments)} must all be given, {name} is not")
                mine[name] = evaluate(default, {**self.names, **mine})
        return self.body({**self.names, **mine}, named)


def signature(key: str) -> tuple[str, dict[str, str] | None]:
    """Return the name of a key and its arguments with their defaults, None if it is no function.

    >>> signature("noc(channels, width=16)"), signature("noc")
    (('noc', {'channels': '', 'width': '16'}), ('noc', None))
    """
    if not key.endswith(")"):
        return key, None
    (made,) = ast.parse(f"def {key}: pass").body
    assert isinstance(made, ast.FunctionDef)
    defaults = list(map(ast.unparse, made.args.defaults))
    every = [one.arg for one in made.args.args]
    return made.name, dict(zip(every, [""] * (len(every) - len(defaults)) + defaults, strict=True))


def names_of(data: Mapping[str, Any], folder: Path, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return what expressions of a paper may use: its own module's names, ``use``, ``names``, ``systems``.

    ``own``: names of its module, and ``designs_of``, which gives the systems of other papers by name.
    """
    names = {"said": data, "trace": None, "solved": solved, "saturation": saturation, **own}
    names |= {one.__name__: one for one in (select, only, mean_and_largest)}
    names["calibrated"] = read_toml(folder / FITTED) if (folder / FITTED).is_file() else {}
    names["fitted"] = cache(lambda name, without=(): fit(data, names, name, without))
    names["value"] = lambda given: entry(given, names)
    names["fields"] = lambda given: {name: entry(value, names) for name, value in given.items()}
    for module, wanted in data.get("use", {}).items():
        names |= {name: getattr(import_module(module), name) for name in wanted}
    for key, value in data.get("names", {}).items():
        name, arguments = signature(key)
        if arguments is None:
            names[name] = entry(value, names)
        else:
            made = Function(names, arguments, partial(_value, value))
            names[name] = made if arguments else cache(made)
    for key, one in data.get("systems", {}).items():
        name, arguments = signature(key)
        made = Function(names, arguments or {}, _system(one, folder))
        names[name] = cache(made) if arguments is None else made
    return names


def _value(text: str, names: Mapping[str, Any], others: Mapping[str, Any]) -> Any:
    if others:
        raise ValueError(f"expression {text!r} has no argument {', '.join(others)}")
    return evaluate(text, names)


def _system(one: Mapping[str, Any], folder: Path) -> Callable[[Mapping[str, Any], Mapping[str, Any]], Any]:
    """Return how a system is made: ``of`` a file, a published system or an expression, fields ``set``."""
    values, of = one.get("set", {}), str(one["of"])
    plain = {name: value for name, value in values.items() if not str(value).startswith("=")}

    @cache
    def base(designs_of: Callable[[str], Sequence[Design]]) -> Any:
        path = folder / of
        return spec_from_toml(path if path.suffix == ".toml" else designs_of(of)[0].text(), plain)

    def make(names: Mapping[str, Any], fields: Mapping[str, Any]) -> Any:
        found = evaluate(of[1:], names) if of.startswith("=") else base(names["designs_of"])
        given = {name: entry(value, names) for name, value in values.items() if name not in plain}
        changes = {**(plain if of.startswith("=") else {}), **given, **fields}
        return replace_fields(found, changes) if changes else found

    return make


def designs(data: Mapping[str, Any], names: Mapping[str, Any]) -> Iterator[Design]:
    """Yield the systems of a paper, each with the numbers that are a metric of it."""
    for one in data.get("designs", ()):
        for known in loops(one.get("for", {}), names):
            given = one.get("published", {})
            given = evaluate(given, known) if isinstance(given, str) else given
            said = {name: evaluate(value, known) for name, value in given.items()}
            system = evaluate(one["system"], known)
            yield Design(name=name_of(name=fill(one["name"], known)), spec=system, published=said)
    for name in () if "designs" in data else [one for one in data["systems"] if not one.endswith(")")]:
        plain = re.compile(rf"{re.escape(name)}\.(\w+)")
        matches = [(plain.fullmatch(one["of"]), one["published"]) for one in data["numbers"]]
        said = {match[1]: number for match, number in matches if match}
        yield Design(name=name, spec=names[name](), published=said)


@dataclass(frozen=True)
class _Asked:
    """An entry of a paper's data in one turn of its loops: what is asked of which systems."""

    one: Mapping[str, Any]
    known: Mapping[str, Any]

    @cached_property
    def systems(self) -> dict[str, Any]:
        """Its systems, those that are given or that its expression names."""
        if "systems" in self.one:
            return {name: evaluate(text, self.known) for name, text in self.one["systems"].items()}
        used = set(compiled(self.one["of"]).co_names) if "of" in self.one else set[str]()
        alone = (name for name in self.known["said"].get("systems", {}) if name in used)
        return {name: self.known[name]() for name in alone}

    @property
    def names(self) -> Mapping[str, Any]:
        """Names that its expressions may use."""
        return {**self.known, "specs": self.systems}

    @property
    def options(self) -> dict[str, Any]:
        """Options of its simulations."""
        given = self.one.get("options", self.names["said"].get("options", {}))
        return {name: entry(value, self.names) for name, value in given.items()}

    def views(self, answers: Iterable[Any], end: str = "best") -> dict[str, Metrics]:
        """Return the metrics of its systems by their names."""
        return {
            name: Metrics(answer, self.systems[name], end)
            for name, answer in zip(self.systems, answers, strict=True)
        }


def _asked(entries: Iterable[Mapping[str, Any]], names: Mapping[str, Any]) -> Iterator[_Asked]:
    """Yield the entries with their loops gone through; systems are given, or those that are named."""
    for one in entries:
        for known in loops(one.get("for", {}), names):
            if evaluate(one.get("if", True), known):
                yield _Asked(one, known)


def saturation(spec: Any, **options: Any) -> tuple[float, float, float]:
    """Return the simulated saturation rate of a network, which is found by bisection, with its interval."""
    from validate.noc.saturation import saturation_rate

    found = saturation_rate(spec, **options)
    return found.rate, found.low, found.high


@cache
def solved(spec: Any) -> Any:
    """Return the model's answer, found once."""
    from qmodels import solve

    return solve(spec)


def computed(
    data: Mapping[str, Any], names: Mapping[str, Any], kept: Any = None, simulate: Simulate | None = None
) -> dict[str, Any]:
    """Return the cells and the tables of a paper: models solved, simulations done or as they are kept."""
    rows: dict[str, tuple[dict[str, Any], ...]] = {}
    for name, one in data.get("rows", {}).items():
        if "call" in one:
            found = kept.tables[name] if kept else tuple(map(dict, evaluate(one["call"], {**names, **rows})))
        else:
            found = _rows(one, names, kept and kept.tables[name], simulate)
        rows[name] = found
    known = {frozenset(cell.place.items()): cell for cell in kept.cells} if kept else {}
    every = list(_asked(data["numbers"], {**names, **rows}))
    if simulate:
        _simulate_at_once(every, simulate)
    return {"cells": tuple(_cell(asked, known, simulate) for asked in every), "tables": rows}


def _simulate_at_once(every: Iterable[_Asked], simulate: Simulate) -> None:
    """Simulate all systems with the same options in one call, which keeps the results."""
    groups: dict[str, tuple[dict[str, Any], dict[Any, None]]] = {}
    for asked in every:
        if asked.one.get("only") != "model" and "simulated" not in asked.one:
            group = groups.setdefault(repr(asked.options), (asked.options, {}))
            group[1].update(dict.fromkeys(asked.systems.values()))
    for options, specs in groups.values():
        simulate(list(specs), options)


def _cell(asked: _Asked, known: Mapping[Any, Cell], simulate: Simulate | None) -> Cell:
    one, only = asked.one, asked.one.get("only", "")
    values: dict[str, Any] = dict.fromkeys(ENDS)
    template = one.get("place") or {"what": fill(one["what"], asked.known)}
    given: dict[str, Any] = {name: one[name] for name in ("points",) if name in one}
    given |= {name: evaluate(one.get(name), asked.known) for name in ("published", "published_high")}
    given["group"] = fill(one.get("group", ""), asked.known)
    kept = bool(known) and one.get("kept", False)
    specs, names = ([], asked.known) if kept else (list(asked.systems.values()), asked.names)
    if only != "simulated" and not kept:
        names = {**names, **asked.views(map(solved, specs))}
        values["model"] = value_of(one.get("model", one.get("of")), names)
    place = {name: entry(value, names) for name, value in template.items()}
    if known:
        before = known[frozenset(place.items())]
        values |= {name: getattr(before, name) for name in ENDS if name != "model" or kept}
    elif simulate and "simulated" in one:
        values |= dict(zip(list(ENDS)[1:], evaluate(one["simulated"], asked.names), strict=True))
    elif simulate and only != "model":
        results = simulate(specs, asked.options)
        for name in list(ENDS)[1:2] if one.get("exact") else list(ENDS)[1:]:
            values[name] = value_of(one["of"], {**asked.names, **asked.views(results, ENDS[name])})
    return Cell(place=place, **given, **values)


def _rows(
    one: Mapping[str, Any], names: Mapping[str, Any], kept: Any, simulate: Simulate | None
) -> tuple[dict[str, Any], ...]:
    """Return rows of a table: expressions of systems, which have ``model`` and ``simulated`` metrics."""
    every, found = list(_asked([one], names)), []
    if simulate:
        _simulate_at_once(every, simulate)
    for k, asked in enumerate(every):
        specs = list(asked.systems.values())
        model = SimpleNamespace(**asked.views(map(solved, specs)))
        results = SimpleNamespace(**asked.views(simulate(specs, asked.options))) if simulate else None
        known = {**asked.names, "model": model, "simulated": results}
        found.append(
            {
                name: kept[k][name] if kept and "simulated" in str(value) else entry(value, known)
                for name, value in one["columns"].items()
            }
        )
    return tuple(found)


def value_of(expression: Any, names: Mapping[str, Any]) -> float | None:
    """Return an expression's value, None where the source lacks a metric of it."""
    try:
        value = evaluate(expression, names)
        return None if value is None else float(value)
    except LackingError:
        return None
    except TypeError as error:
        raise ValueError(f"expression {expression!r}: {error}") from None


def fit(
    data: Mapping[str, Any], names: Mapping[str, Any], name: str, without: Sequence[int] = ()
) -> dict[str, float]:
    """Return parameters that a paper's data fits: least squares of ``errors``, or the ``least`` of a grid.

    ``start`` has their first values, ``limits`` the ends of those that are bounded; ``without``: errors that
    are left out.
    """
    import numpy as np
    from scipy.optimize import least_squares

    one = data["fits"][name]
    if "grid" in one:
        choices = {key: [float(v) for v in evaluate(values, names)] for key, values in one["grid"].items()}
        every = [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]
        return min(every, key=lambda chosen: evaluate(one["least"], {**names, **chosen}))
    start = {key: float(evaluate(value, names)) for key, value in one["start"].items()}

    def errors(values: Any) -> Any:
        known = {**names, **dict(zip(start, map(float, values), strict=True))}
        return [float(error) for k, error in enumerate(evaluate(one["errors"], known)) if k not in without]

    ends = [one.get("limits", {}).get(key, (0.0, np.inf)) for key in start]
    first = list(start.values())
    options: dict[str, Any] = {"diff_step": one.get("step", 1e-3), "xtol": 1e-6, "ftol": 1e-6}
    found = least_squares(errors, first, x_scale=first, bounds=tuple(zip(*ends, strict=True)), **options)
    return dict(zip(start, map(float, found.x), strict=True))


def interval(paper: Any, name: str) -> dict[str, dict[str, float]]:
    r"""Return the ends of the intervals of 95 % of fitted parameters, from fits without each of m errors.

    The jackknife's: :math:`t_{m-1} \sqrt{\tfrac{m-1}{m} \sum_k (\theta_k - \bar\theta)^2}` on either side.
    """
    import numpy as np
    from scipy.special import stdtrit

    best = paper.names["fitted"](name)
    count = len(evaluate(paper.data["fits"][name]["errors"], {**paper.names, **best}))
    values = np.array([list(paper.names["fitted"](name, (k,)).values()) for k in range(count)])
    spread = (count - 1) / count * ((values - values.mean(axis=0)) ** 2).sum(axis=0)
    half = stdtrit(count - 1, 0.975) * np.sqrt(spread)
    found = zip(best, best.values(), half.tolist(), strict=True)
    ends = [(key, value - more, value + more) for key, value, more in found]
    return {"low": {key: low for key, low, _ in ends}, "high": {key: high for key, _, high in ends}}
