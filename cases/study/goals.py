"""Goals of a study, checked before any work is done: objectives, limits, fields to vary; the joint case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cases.tables import BIAS, ERROR
from optimize import checks
from optimize.decisions.decision import Decision
from optimize.spaces.evaluation import LOAD, RESOURCE
from optimize.spaces.space import Space
from qmodels.systems.memory.dram_timing import PRESETS
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec import fields
from qmodels.systems.spec.conditions import conditions, metric_named, require_metrics
from qmodels.systems.spec.text.toml import document, from_toml, spec_from_toml, to_toml

if TYPE_CHECKING:
    from qmodels.systems.spec.answer import Answer


DATA = Path(__file__).parents[1] / "data"

WORKLOADS = ("small-packets", "large-packets")
"""The bundled workloads; the first is the default, fed by the bundled trace."""

CHOICES: dict[str, tuple[int, ...]] = {
    "interleaving_step": (1, 2, 4, 8, 16, 32),
    "channels": (1, 2, 3, 4, 6, 8),
    "alloc_trial_count": (1, 2, 3, 4, 5),
    "link_width": (8, 16, 32),
    "slices": (0, 1, 2, 4, 8),
}
"""The default space: 2,700 designs."""

MINIMIZE = ("cost", "packet_latency_p99")
MAXIMIZE = ("saturation_data_rate",)
SUBJECT_TO = {"overflow_probability": (None, 1e-3)}


def default_processor(workload: str = WORKLOADS[0]) -> PacketProcessor:
    """Return the packet processor of the joint case under a bundled workload."""
    if workload not in WORKLOADS:
        raise ValueError(f"workload must be one of {', '.join(WORKLOADS)}, got {workload!r}")
    return from_toml(DATA / f"{workload}.toml", PacketProcessor)


def default_choices(base: PacketProcessor) -> dict[str, tuple[int, ...]]:
    """Return the fields of the default space that a processor has, with their choices.

    Devices behind controllers have the step of their address map, and no interleaving step.
    """
    found = {}
    for name, values in CHOICES.items():
        try:
            fields.find_field(base, name)
        except ValueError:
            continue
        found[name] = values
    return found


def default_space(base: PacketProcessor, given: Iterable[str] = ()) -> Space:
    """Return the designs around a base spec, which has all that is not varied.

    Channel counts that leave no node for an initiator are left out; ``given``: varied fields for which the
    value in `base` is the only choice. Where a varied field holds an array in `base`, its elements are the
    choices anyway.
    """
    free = base.noc.topology.nodes - base.noc.initiators
    wanted: dict[str, Iterable[Any]] = dict(default_choices(base))
    if "channels" in wanted:
        wanted["channels"] = [channels for channels in wanted["channels"] if channels <= free]
    values = {name: fields.get_field(base, name) for name in wanted}
    own = {name for name, value in values.items() if isinstance(value, np.ndarray)} | set(given)
    wanted |= {name: np.atleast_1d(values[name]).tolist() for name in own}
    base = fields.replace_fields(base, {name: next(iter(wanted[name])) for name in own})
    for path, value in fields.array_fields(base).items():
        raise ValueError(f"{path} must be one number in an exploration, got an array of {value.size}")
    return Space(base, wanted)


def vectorized_fields(space: Space) -> list[str]:
    """Return the fields of a space that a spec may hold arrays of; devices behind controllers take none."""
    return [name for name in space.numeric if fields.takes_array(space.base, name)]


def along_axes(spec: PacketProcessor) -> PacketProcessor:
    """Return a spec whose swept fields lie along axes of their own, so that all combinations are solved.

    >>> changes = {"channels": np.array([2, 4]), "banks": np.array([4, 8])}
    >>> swept = fields.replace_fields(PacketProcessor(), changes)
    >>> [values.shape for values in fields.array_fields(along_axes(swept)).values()]
    [(2, 1), (1, 2)]
    """
    swept = fields.array_fields(spec)
    shapes = np.full((len(swept), len(swept)), 1)
    np.fill_diagonal(shapes, -1)
    pairs = zip(swept.items(), shapes, strict=True)
    return fields.replace_fields(spec, {path: values.reshape(shape) for (path, values), shape in pairs})


def solved_columns(spec: Any) -> dict[str, Any]:
    """Solve a spec of any kind (a sweep of them) and return the columns of a study for each design."""
    from qmodels import solve

    answer: Any = solve(spec)
    return {
        **answer.metrics,
        "stable": answer.stable,
        RESOURCE: answer.bottleneck,
        LOAD: answer.bottleneck_load,
        **error_columns(answer),
    }


def error_columns(answer: Answer) -> dict[str, Any]:
    """Return the stated error of every metric that has one, and whether the answer is validated.

    Explorations refuse NaN: infinite where nothing was measured.
    """
    stated = {ERROR + name: error.mean for name, error in answer.error.items()}
    stated |= {BIAS + name: error.bias for name, error in answer.error.items()}
    found = {name: np.nan_to_num(value, nan=np.inf) for name, value in stated.items()}
    return {"validated": answer.validated, **found}


GOALS = ("minimize", "maximize", "subject_to")

TRAFFIC = ("load_factor", "injection_rate", "rate", "arrival_rate")
"""Fields that scale what a system is offered: the first that a spec has."""


def goals_of(spec: Any, goals: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return goals as `optimize.explore` takes them.

    ``goals``: ``minimize``, ``maximize``: metrics; ``subject_to``: ``{metric: (low, high)}``, or conditions
    such as ``["packet_latency_p99 < 2us"]``. A packet processor has objectives of its own if none are given,
    and at most one segment in a thousand may be refused unless the goals limit that themselves. Whatever
    makes no sense is refused in one line.

    >>> goals_of(PacketProcessor(), {"minimize": "cost", "subject_to": ["packet_latency_p99 <= 2us"]})["subject_to"]
    {'overflow_probability': (None, 0.001), 'packet_latency_p99': (None, 2000.0)}
    """  # noqa: E501
    given = dict(goals or {})
    for name in given:
        checks.choice("goals", name, GOALS)
    named = (
        [metric_named(spec, name) for name in ([one] if isinstance(one, str) else one)]
        for one in (given.get("minimize", ()), given.get("maximize", ()))
    )
    minimize, maximize = checks.objectives(*named)
    limits = conditions(spec, given.get("subject_to"))
    require_metrics(spec, minimize, "minimize")
    require_metrics(spec, maximize, "maximize")
    if isinstance(spec, PacketProcessor):
        limits = SUBJECT_TO | limits
        if not minimize + maximize:
            minimize, maximize = MINIMIZE, MAXIMIZE
    elif not minimize + maximize:
        metrics = ", ".join(type(spec).metric_names.both)
        raise ValueError(f"--minimize or --maximize must name a metric, such as {metrics}, got none")
    return {"minimize": minimize, "maximize": maximize, "subject_to": limits}


def space_of(
    spec: Any, choices: Mapping[str, Iterable[Any]] | None = None, given: Iterable[str] = ()
) -> Space:
    """Return the designs in which some fields vary; without any the default space of a packet processor.

    Fields of that default space keep their columns, with the value they have as their only choice.

    >>> space_of(PacketProcessor(), {"dram.channels": [2, 4], "dram.banks": [4, 8]})
    Space(PacketProcessor: interleaving_step[1] x channels[2] x alloc_trial_count[1] x link_width[1] x slices[1] x dram.banks[2] = 4 designs)
    """  # noqa: E501
    found = {fields.find_field(spec, name): list(values) for name, values in (choices or {}).items()}
    if not found and not isinstance(spec, PacketProcessor):
        raise ValueError("--vary must name a field and its choices, such as --vary link_width=8,16, got none")
    if not found:
        return default_space(spec, given)
    for path in fields.array_fields(spec):
        raise ValueError(f"{path} must be one number beside --vary, or one of the fields that vary")
    if not isinstance(spec, PacketProcessor):
        return Space(spec, choices)
    wanted: dict[str, Iterable[Any]] = {}
    for name in default_choices(spec):
        path = fields.find_field(spec, name)
        if not any(path.startswith(f"{part}.") for part in found):
            wanted[name] = (fields.get_field(spec, path),)
    paths = {fields.find_field(spec, name): name for name in wanted}
    for name, path in fields.find_fields(spec, choices or {}, "--vary").items():
        wanted[paths.get(path, name)] = (choices or {})[name]
    return Space(spec, wanted)


def read_choices(spec: Any, choices: Mapping[str, Iterable[Any]]) -> dict[str, list[Any]]:
    """Return choices in which parts that are written by a word, such as ``dram=DDR5-6400``, are parts.

    >>> found = read_choices(PacketProcessor(), {"dram": ["DDR5-6400", "DDR4-3200"]})
    >>> [one.preset for one in found["dram"]]
    ['DDR5-6400', 'DDR4-3200']
    """
    found: dict[str, list[Any]] = {}
    for name, values in choices.items():
        path = fields.find_field(spec, name)
        part = fields.is_branch(fields.get_field(spec, path))
        found[name] = [
            value
            if fields.is_spec(value) or not part
            else fields.get_field(with_values(spec, {path: value}), path)
            for value in values
        ]
    return found


def with_values(spec: Any, values: Mapping[str, Any]) -> Any:
    """Return a spec with fields set to what a file would hold, by their names.

    A packet processor with another memory, ``dram = "DDR5-6400"``, keeps the number of its channels.
    """
    return spec_from_toml(to_toml(spec, kind=True), technology(spec, values))


def technology(spec: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in which a memory that is a word has the channels of the one it stands for."""
    found = dict(values)
    word = found.get("dram")
    if isinstance(spec, PacketProcessor) and isinstance(word, str) and word in PRESETS:
        channels = next((found.pop(name) for name in ("channels", "dram.channels") if name in found), None)
        count = int(spec.channels) if channels is None else channels
        found["dram"] = {"kind": "dram-system", "preset": word, "geometry": {"channels": count}}
    return found


def choice_word(value: Any) -> Any:
    """Return a choice as a table has it: a part by its preset, or by the word that a file has for it."""
    if not fields.is_spec(value):
        return value.item() if isinstance(value, np.generic) else value
    written = document(value)
    return getattr(value, "preset", "") or (written if isinstance(written, str) else str(value))


def choice_tables(space: Space) -> dict[str, list[Any]]:
    """Return the choices of a space as `read_choices` reads them from a file."""
    found = {}
    for name, values in space.choices.items():
        wholes = [document(fields.replace_paths(space.base, {space.paths[name]: value})) for value in values]
        parts = any(map(fields.is_spec, values))
        found[name] = (
            [reduce(getitem, space.paths[name].split("."), one) for one in wholes] if parts else list(values)
        )
    return found


def traffic_field(decision: Decision) -> str | None:
    """Return the field that scales the traffic of a decision; None if there is none, or it is varied."""
    space = decision.model.space
    path = traffic_of(space.base)
    return None if path in space.paths.values() else path


def traffic_of(spec: Any) -> str | None:
    """Return the field that scales what a system is offered, the first of `TRAFFIC` that it has."""
    for name in TRAFFIC:
        try:
            path = fields.find_field(spec, name)
        except ValueError:
            continue
        return path if isinstance(fields.get_field(spec, path), (int, float)) else None
    return None


def words(name: str) -> str:
    """Return a field or metric in words, without units."""
    short = {
        "cost": "area", "packet_latency": "latency", "packet_latency_p99": "latency p99",
        "saturation_data_rate": "saturates", "link_width": "link bytes", "interleaving_step": "step",
        "alloc_trial_count": "trials",
    }  # fmt: skip
    stem = name.rpartition(".")[2]
    return short.get(stem, stem).replace("_", " ")
