r"""Intervals of what a simulation would show, around the values of a model.

Locally weighted split conformal prediction [1]_ on the log ratio :math:`r` of simulation to model. With the
features :math:`x` of a system, a centre :math:`c \cdot x` and a scale :math:`e^{s \cdot x}` that were fitted
to drawn systems, the scores :math:`u = (r - c \cdot x) / e^{s \cdot x}` of systems that the fit did not see
have quantiles, and around the model's value :math:`m`

.. math:: m \exp(c \cdot x + u_{low} e^{s \cdot x}) \text{ to } m \exp(c \cdot x + u_{high} e^{s \cdot x})

covers the simulated value of a system drawn alike with the probability of the quantiles, whatever the law of
the errors. Quantiles are those of the systems with the same sort of fullest resource, or with recorded
arrivals, where enough were drawn, and else of all of the kind. Made by ``python -m cases.evidence report``.

References
----------
.. [1] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman, "Distribution-free predictive
   inference for regression", Journal of the American Statistical Association 113(523), 2018, Section 5.2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.features import UPWARDS, Features, features, is_exact
from qmodels.systems.spec.answer import Answer, Deferred, Later
from qmodels.systems.spec.fields import array_fields
from qmodels.systems.spec.kind import kind_of, metric_of
from qmodels.systems.spec.metrics import is_relative

FILE = Path(__file__).with_name("intervals.json")
LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Levels of the intervals."""
OFFSET = 1e-3
"""Added to shares and probabilities, so that those near 0 have a ratio."""
ALIKE = 0.75
"""Part of the pairs of designs that the simulation separates which a model must order alike, for its
direction along a field to count as right."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredError:
    """The error of one metric against simulation on systems like one's own, model minus simulation.

    Numbers, or arrays of one value per design; NaN where nothing was measured.
    """

    metric: str  # the metric
    unit: str  # "%" of the simulated value, or "points": percentage points of a probability
    systems: int  # how many were simulated
    bias: Any  # median: below 0 where the model is too low
    mean: Any  # which half of the errors do not exceed
    largest: Any  # which 95 % of the errors do not exceed

    @property
    def known(self) -> Any:
        """Whether anything was measured on such a design."""
        return np.isfinite(self.largest)

    def __str__(self) -> str:
        """Return the usual error, bias and the largest of 95 %; of a single design."""
        if not self.known:
            return "not known"
        mean, bias, largest = (
            f"{round(float(value), 1 if abs(value) >= 1 else 2):{sign}g}"
            for value, sign in ((self.mean, ""), (self.bias, "+"), (self.largest, ""))
        )
        return f"{mean} {self.unit}, bias {bias}, at most {largest}"


@cache
def measured() -> dict[str, Any]:
    """Return the measurements by kind: ranges and words drawn; by metric centre, scale, ends, values."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def stem_of(metric: str) -> str:
    """Return the name of a metric of a place without the place.

    >>> stem_of("visit_latency[dram]"), stem_of("latency")
    ('visit_latency[]', 'latency')
    """
    name, bracket, _ = metric.partition("[")
    return name + ("[]" if bracket else "")


def offset_of(spec: Any, metric: str) -> float:
    """Return the constant added to a metric before the ratio."""
    return OFFSET if metric_of(spec, metric).unit in ("1", "%") else 0.0


def columns(found: Features, sorts: Sequence[str]) -> FloatArray:
    """Return the features as numbers, the last axis: those of the centre and the scale.

    1; load and the logarithm of its pole; logarithm of dispersion, alone and times load; whether there are
    doubts; the logarithms of the kind's own numbers; and whether the fullest resource, or a word of the
    system, is each of ``sorts``.
    """
    own = dict(found.numbers)
    load = np.minimum(np.asarray(own.pop("load"), dtype=float), 0.999)
    bursts = np.log(np.maximum(np.asarray(own.pop("dispersion"), dtype=float), 1.0))
    parts = [1.0, load, -np.log1p(-load), bursts, bursts * load, found.doubted]
    parts += [np.log1p(np.asarray(value, dtype=float)) for value in own.values()]
    parts += [np.equal(found.resource, one) | (one in found.words) for one in sorts]
    with np.errstate(invalid="ignore"):
        whole = np.broadcast_arrays(*(np.asarray(part, dtype=float) for part in parts))
    return np.stack(whole, axis=-1)


def ends_of(known: Mapping[str, Any], found: Features, level: float) -> tuple[Any, Any]:
    """Return the low and high score of a metric, of each design."""
    groups, k = known["ends"], LEVELS.index(level)
    if found.recorded and "recorded" in groups:
        low, high = groups["recorded"][k]
        return low, high
    low, high = groups[""][k]
    for sort, ends in groups.items():
        here = np.equal(found.resource, sort)
        low, high = np.where(here, ends[k][0], low), np.where(here, ends[k][1], high)
    return low, high


def outside(found: Features, kind: Mapping[str, Any]) -> dict[str, Any]:
    """Return which features lie outside all that was drawn of a kind, in words, and for which designs."""
    masks = {}
    for name, (least, most) in kind["drawn"].items():
        value = np.asarray(found.numbers.get(name, least), dtype=float)
        low, high = (value < least) & (name not in UPWARDS), value > most
        if np.any(low | high):
            worst = np.max(value, initial=-np.inf) if np.any(high) else np.min(value)
            span = f"from {least:.3g} " if name not in UPWARDS else ""
            masks[f"not measured: {name} is {worst:.3g}, drawn {span}up to {most:.3g}"] = low | high
    names = np.unique(np.asarray(found.resource, dtype=str)).tolist()
    unknown = [name for name in names if name not in kind["resources"]]
    if unknown:
        words = f"not measured: the fullest resource is {unknown[0]!r}, drawn {_list(kind['resources'])}"
        masks[words] = np.isin(np.asarray(found.resource, dtype=str), unknown)
    for one in found.words:
        if one not in kind["words"]:
            masks[f"not measured: {one!r}, drawn {_list(kind['words'])}"] = np.True_
    return masks


def _list(words: Sequence[str]) -> str:
    return ", ".join(repr(word) for word in words) or "none"


def _place(answer: Answer) -> tuple[Features, FloatArray, dict[str, Any], Any]:
    """Return features and columns of an answer, what lies outside in words, and for which designs any."""
    if "_at" not in answer.__dict__:
        kind, found = measured()[kind_of(answer.spec).name], features(answer)
        masks = outside(found, kind)
        beyond = np.any(np.broadcast_arrays(np.False_, *masks.values()), axis=0)
        answer.__dict__["_at"] = found, columns(found, kind["sorts"]), masks, beyond
    place: tuple[Features, FloatArray, dict[str, Any], Any] = answer.__dict__["_at"]
    return place


def interval(answer: Any, metric: str, level: float = 0.9) -> tuple[Any, Any]:
    """Return the interval that holds the simulated value of systems like this with a probability.

    Parameters
    ----------
    answer : Answer
        Of a model.
    metric : str
        One of its metrics.
    level : {0.5, 0.8, 0.9, 0.95}
        The probability.

    Returns
    -------
    low, high : float or array
        NaN where no system like it was drawn (`Evidence.not_measured`); the value where the model is exact.

    Raises
    ------
    KeyError
        If the answer has no such metric.
    ValueError
        If the level is none of these.

    Examples
    --------
    >>> import qmodels
    >>> answer = qmodels.solve(qmodels.PacketProcessor())
    >>> low, high = interval(answer, "packet_latency")
    >>> bool(0.8 * answer.packet_latency < low < high < 1.2 * answer.packet_latency)
    True
    """
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(map(str, LEVELS))}, got {level!r}")
    value = np.asarray(answer[metric], dtype=float)
    if is_exact(answer, metric):
        return value[()], value[()]
    kind = measured().get(kind_of(answer.spec).name, {"metrics": {}})
    known = kind["metrics"].get(stem_of(metric))
    if known is None:
        nothing = np.full(value.shape, np.nan)[()]
        return nothing, nothing
    found, at, _, beyond = _place(answer)
    if known["values"]:  # of a share
        least, most = known["values"]
        beyond = beyond | (value < least) | (value > most)
    with np.errstate(invalid="ignore"):  # what is overloaded has no place among the drawn
        centre, scale = at @ np.array(known["centre"]), np.exp(at @ np.array(known["scale"]))
    extra = offset_of(answer.spec, metric)

    def end(score: Any) -> Any:
        with np.errstate(invalid="ignore", over="ignore"):
            ratio = np.exp(centre + score * scale)
            return np.where(beyond, np.nan, np.maximum((value + extra) * ratio - extra, 0.0))[()]

    low, high = ends_of(known, found, level)
    return end(low), end(high)


class Evidence:
    """Query of an answer to the systems that were drawn."""

    interval = staticmethod(interval)

    @staticmethod
    def outside(answer: Answer) -> dict[str, Any]:
        """Return the features of a system outside all that was drawn, in words, and the designs."""
        name = kind_of(answer.spec).name
        if answer.details.get("kind") == "exact" or "exact" in answer.model:
            return {}
        if not measured().get(name, {"metrics": {}})["metrics"]:
            return {f"not measured: too few systems were simulated of a {name}": np.True_}
        return _place(answer)[2]

    @staticmethod
    def not_measured(answer: Answer, metric: str) -> str:
        """Return why a metric of a single system has no interval, in words; empty where it has one."""
        if is_exact(answer, metric):
            return ""
        name = kind_of(answer.spec).name
        known = measured().get(name, {"metrics": {}})["metrics"].get(stem_of(metric))
        if known is None:
            return f"not measured: too few systems were simulated for {metric} of a {name}"
        for words in Evidence.outside(answer):
            return words
        value = float(answer[metric])
        least, most = known["values"] or (-np.inf, np.inf)
        if not least <= value <= most:
            span = f"from {least:.3g} " if least > 0 else ""
            return f"not measured: {metric} is {value:.3g}, drawn {span}up to {round(most, 6):.3g}"
        return ""

    @staticmethod
    def wrong_directions(answer: Answer) -> list[str]:
        """Return which metrics are often ordered against the simulation along the fields of a sweep."""
        known = measured().get(kind_of(answer.spec).name, {}).get("directions", {})
        return [
            f"{metric} along {path}: the model orders {alike} of {separated} neighbours as simulations do"
            for path in (array_fields(answer.spec) if known else ())
            for metric, (alike, separated) in known.get(path, {}).items()
            if alike < ALIKE * separated
        ]


def with_evidence(answer: Answer) -> Answer:
    """Give an answer of a model its intervals, what they amount to, and whether it lies inside; return it."""
    object.__setattr__(answer, "evidence", Evidence)
    late = answer.__dict__["_late"]
    for name, value in (("error", _errors), ("validated", _validated)):
        answer.__dict__.pop(name, None)
        late[name] = Deferred(partial(value, answer))
    return answer


def _validated(answer: Answer) -> Any:
    """Return whether nothing speaks against an answer, and systems like it were drawn."""
    return answer.undoubted(*Evidence.outside(answer).values())


def _errors(answer: Answer) -> Mapping[str, MeasuredError]:
    kind = measured().get(kind_of(answer.spec).name, {"metrics": {}})
    if not np.any(answer.stable):
        return {}
    known = [name for name in answer.metrics if stem_of(name) in kind["metrics"]]
    return Later((name for name in known if not is_exact(answer, name)), partial(_error, answer))


def _error(answer: Answer, metric: str) -> MeasuredError:
    """Return the error of a metric: half and 95 % of the simulations of such systems are as near."""
    relative, value = is_relative(metric), np.asarray(answer[metric], dtype=float)
    (low, high), ends = interval(answer, metric, LEVELS[0]), interval(answer, metric, LEVELS[-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        off = [100.0 * (value - one) / (one if relative else 1.0) for one in (low, high, *ends)]
    return MeasuredError(
        metric=metric,
        unit="%" if relative else "points",
        systems=measured()[kind_of(answer.spec).name]["metrics"][stem_of(metric)]["systems"],
        bias=(off[0] + off[1]) / 2.0,
        mean=np.abs(off[0] - off[1]) / 2.0 + np.abs(off[0] + off[1]) / 2.0,
        largest=np.maximum(np.abs(off[2]), np.abs(off[3])),
    )
