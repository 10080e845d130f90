"""What is asked of a system: objectives, limits and the fields to vary, checked before any work is done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cases.study.packet_processor import CHOICES, MAXIMIZE, MINIMIZE, SUBJECT_TO
from optimize import checks
from optimize.decisions.decision import Decision
from optimize.decisions.reasons import Question
from optimize.spaces.space import Space
from qmodels.systems.packets.packet_processor import PacketProcessor
from qmodels.systems.spec.conditions import conditions, quantity, require_metrics
from qmodels.systems.spec.fields import find_field, find_fields, get_field

GOALS = ("minimize", "maximize", "subject_to")

TRAFFIC = ("load_factor", "injection_rate", "rate", "arrival_rate")
"""Fields that scale what a system is offered: the first that a spec has."""


def goals_of(spec: Any, goals: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return goals as `optimize.explore` takes them.

    Parameters
    ----------
    spec : dataclass instance
        The system, of any kind.
    goals : mapping, optional
        ``minimize``, ``maximize``: metrics; ``subject_to``: ``{metric: (low, high)}``, or conditions such as
        ``["packet_latency_p99 < 2us"]``. A packet processor has objectives of its own if none are given, and
        at most one segment in a thousand may be refused unless the goals limit that themselves.

    Raises
    ------
    ValueError
        For no objective, a metric nobody has, or conditions that make no sense: in one line.

    Examples
    --------
    >>> goals_of(PacketProcessor(), {"minimize": "cost", "subject_to": ["packet_latency_p99 <= 2us"]})["subject_to"]
    {'overflow_probability': (None, 0.001), 'packet_latency_p99': (None, 2000.0)}
    """  # noqa: E501
    given = dict(goals or {})
    for name in given:
        checks.choice("goals", name, GOALS)
    minimize, maximize = checks.objectives(given.get("minimize", ()), given.get("maximize", ()))
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


def chosen_space(spec: PacketProcessor, choices: Mapping[str, Iterable[Any]]) -> Space:
    """Return the designs of a packet processor in which only some fields vary.

    Fields of the default space keep their columns, with the value they have as their only choice.

    Examples
    --------
    >>> chosen_space(PacketProcessor(), {"dram.channels": [2, 4], "dram.banks": [4, 8]})
    Space(PacketProcessor: interleaving_step[1] x channels[2] x alloc_trial_count[1] x link_width[1] x slices[1] x dram.banks[2] = 4 designs)
    """  # noqa: E501
    paths = {find_field(spec, name): name for name in CHOICES}
    wanted: dict[str, Iterable[Any]] = {name: (get_field(spec, name),) for name in CHOICES}
    for name, path in find_fields(spec, choices, "--vary").items():
        wanted[paths.get(path, name)] = choices[name]
    return Space(spec, wanted)


def question_text(spec: Any, goals: Mapping[str, Any]) -> str:
    """Return what is asked in words.

    Examples
    --------
    >>> question_text(PacketProcessor(), goals_of(PacketProcessor(), {"minimize": "cost"}))
    'least cost, with overflow probability at most 0.001 (by default)'
    """
    wanted = [
        f"{word} {_listed(names)}"
        for word, names in (("least", goals["minimize"]), ("most", goals["maximize"]))
        if names
    ]
    limits = [
        f"{metric} {word} {quantity(spec, metric, bound)}{' (by default)' * (SUBJECT_TO.get(metric) == ends)}"
        for metric, ends in goals["subject_to"].items()
        for word, bound in zip(("at least", "at most"), ends, strict=True)
        if bound is not None
    ]
    text = " and ".join(wanted) + (f", with {_listed(limits)}" if limits else "")
    return text.replace("_", " ")


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def traffic_field(decision: Decision) -> str | None:
    """Return the field that scales the traffic of a decision; None if there is none, or it is varied."""
    space = decision.model.space
    for name in TRAFFIC:
        try:
            path = find_field(space.base, name)
        except ValueError:
            continue
        number = isinstance(get_field(space.base, path), (int, float))
        return path if number and path not in space.paths.values() else None
    return None


def question_of(decision: Decision) -> Question:
    """Return a decision with the cost as the main objective if it is one."""
    return Question(decision=decision, main="cost" if "cost" in decision.model.objectives else "")
