r"""Intervals of what a simulation would show, around the values of a model.

Locally weighted split conformal prediction [1]_ on the log ratio :math:`r` of simulation to model. With the
features :math:`x` of a system, a centre :math:`c \cdot x` and a scale :math:`e^{s \cdot x}` that were fitted
to drawn systems, the scores :math:`u = (r - c \cdot x) / e^{s \cdot x}` of systems that the fit did not see
have quantiles, and around the model's value :math:`m`

.. math:: m \exp(c \cdot x + u_{low} e^{s \cdot x}) \text{ to } m \exp(c \cdot x + u_{high} e^{s \cdot x})

covers the simulated value of a system drawn alike with the probability of the quantiles, whatever the law of
the errors. Made by ``python -m cases.evidence report``.

References
----------
.. [1] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani and L. Wasserman, "Distribution-free predictive
   inference for regression", Journal of the American Statistical Association 113(523), 2018, Section 5.2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.evidence.error_map import MeasuredError
from qmodels.evidence.features import Features, features, is_exact
from qmodels.systems.spec.answer import Answer, Later
from qmodels.systems.spec.kind import kind_of, metric_of
from qmodels.systems.spec.metrics import is_relative

FILE = Path(__file__).with_name("intervals.json")
LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Levels of the intervals."""
OFFSET = 1e-3
"""Added to shares and probabilities, so that those near 0 have a ratio."""


@cache
def measured() -> dict[str, Any]:
    """Return what was measured, by kind: ranges and sorts drawn; by metric centre, scale, ends, values."""
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
    """Return what is added to a metric before the ratio."""
    return OFFSET if metric_of(spec, metric).unit in ("1", "%") else 0.0


def columns(found: Features, sorts: Sequence[str]) -> FloatArray:
    """Return the features as numbers, the last axis: those of the centre and the scale.

    1; load and the logarithm of its pole; logarithm of dispersion, alone and times load; whether packets are
    recorded and whether there are doubts; and whether the fullest resource, or the variant of the kind, is
    each of ``sorts``.
    """
    load = np.minimum(found.load, 0.999)
    bursts = np.log(np.maximum(found.dispersion, 1.0))
    parts = [1.0, load, -np.log1p(-load), bursts, bursts * load, found.recorded, found.doubted]
    parts += [np.equal(found.resource, one) | (found.variant == one) for one in sorts]
    return np.stack(np.broadcast_arrays(*(np.asarray(part, dtype=float) for part in parts)), axis=-1)


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
    if "_at" not in answer.__dict__:
        found = features(answer)
        outside = (found.load > kind["load"]) | (found.dispersion > kind["dispersion"])
        answer.__dict__["_at"] = columns(found, kind["sorts"]), outside
    at, outside = answer.__dict__["_at"]
    if known["values"]:  # of a share
        least, most = known["values"]
        outside = outside | (value < least) | (value > most)
    centre, scale = at @ np.array(known["centre"]), np.exp(at @ np.array(known["scale"]))
    extra = offset_of(answer.spec, metric)

    def end(score: float) -> Any:
        with np.errstate(invalid="ignore", over="ignore"):
            ratio = np.exp(centre + score * scale)
            return np.where(outside, np.nan, np.maximum((value + extra) * ratio - extra, 0.0))[()]

    low, high = known["ends"][LEVELS.index(level)]
    return end(low), end(high)


class Evidence:
    """What an answer asks of the systems that were drawn."""

    interval = staticmethod(interval)

    @staticmethod
    def not_measured(answer: Answer, metric: str) -> str:
        """Return why a metric of a single system has no interval, in words; empty where it has one."""
        if is_exact(answer, metric):
            return ""
        name = kind_of(answer.spec).name
        kind = measured().get(name)
        if kind is None or stem_of(metric) not in kind["metrics"]:
            return f"not measured: too few systems were simulated for {metric} of a {name}"
        found = features(answer)
        ends = [(one, float(np.max(getattr(found, one))), 0.0, kind[one]) for one in ("load", "dispersion")]
        if values := kind["metrics"][stem_of(metric)]["values"]:
            ends.append((metric, float(answer[metric]), *values))
        for feature, value, least, most in ends:
            if not least <= value <= most:
                span = f"from {least:.3g} " if least > 0 else ""
                return f"not measured: {feature} is {value:.3g}, drawn {span}up to {round(most, 6):.3g}"
        return ""


def with_evidence(answer: Answer) -> Answer:
    """Give an answer of a model its intervals, and the errors that they amount to; return it."""
    object.__setattr__(answer, "evidence", Evidence)
    kind = measured().get(kind_of(answer.spec).name)
    late = "error" in answer.__dict__["_late"]
    if kind is not None and not late and not answer.error and np.any(answer.stable):
        names = [
            name for name in answer.metrics if stem_of(name) in kind["metrics"] and not is_exact(answer, name)
        ]
        object.__setattr__(answer, "error", Later(names, lambda name: _error(answer, name)))
    return answer


def _error(answer: Answer, metric: str) -> MeasuredError:
    """Return the error of a metric: half and 95 % of the simulations of such systems are as near."""
    relative, value = is_relative(metric), np.asarray(answer[metric], dtype=float)
    (low, high), ends = interval(answer, metric, LEVELS[0]), interval(answer, metric, LEVELS[-1])
    with np.errstate(invalid="ignore", divide="ignore"):
        off = [100.0 * (value - one) / (one if relative else 1.0) for one in (low, high, *ends)]
    return MeasuredError(
        metric=metric,
        unit="%" if relative else "points",
        region="drawn systems",
        designs=measured()[kind_of(answer.spec).name]["metrics"][stem_of(metric)]["systems"],
        bias=(off[0] + off[1]) / 2.0,
        mean=np.abs(off[0] - off[1]) / 2.0 + np.abs(off[0] + off[1]) / 2.0,
        largest=np.maximum(np.abs(off[2]), np.abs(off[3])),
    )
