"""Draws from the laws of `qmodels.systems.laws.times` inside kernels: one table, one function.

Laws with an inverse distribution function in closed form or in a table are drawn by it, so that a
mirrored stream gives the antithetic draw; the others (Erlang, gamma, phase-type, MAP) use several
numbers of their stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, exp, floor, lgamma, log, log1p, pi, sqrt
from typing import Any, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from qmodels.systems.laws import times as law_types
from qmodels.systems.laws.kinds import require_law
from qmodels.systems.laws.times import Law
from validate.engine.histogram import BINS, FIRST, SHIFT
from validate.engine.jit import apart, jit, lean, lean_part, quick
from validate.engine.streams import new_streams, uniform

_LAST = BINS - 1
_BELOW = FIRST - 1


@lean_part
def bin_of(value: float) -> int:
    """Return the bin that `validate.engine.histogram.bins_of` gives for a value of the histogram's unit."""
    position = int(np.float64(value).view(np.int64) >> SHIFT) - _BELOW
    return 0 if position < 0 else _LAST if position > _LAST else position


_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
"""ln 2 in two parts; the product of the first with an exponent is exact."""
_ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)
_INTEGER_BITS = np.int64(0x4338000000000000)
_INTEGER_BASE = 6755399441055744.0  # 1.5 * 2**52: added to its bits, a small integer becomes a double


@lean_part
def _minus_log(values: Any, scale: float) -> None:
    """Replace each u in (0, 1) by -scale * log(u); without branches or calls, so that it runs in vectors.

    u = 2**k m with m around 1, and log m = 2 artanh s for s = (m - 1) / (m + 1), |s| < 0.172.
    """
    for i in range(values.size):
        shifted = np.float64(values[i]).view(np.int64) - _ROOT_HALF
        k = shifted >> 52
        m = np.int64(shifted - (k << 52) + _ROOT_HALF).view(np.float64)
        exponent = np.int64(k + _INTEGER_BITS).view(np.float64) - _INTEGER_BASE
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        tail = 1 / 15 + z * (1 / 17 + z * (1 / 19 + z * (1 / 21)))
        tail = 1 / 7 + z * (1 / 9 + z * (1 / 11 + z * (1 / 13 + z * tail)))
        tail = z * (1 / 3 + z * (1 / 5 + z * tail))
        values[i] = -scale * (exponent * _LN2_HIGH + (2 * s + (2 * s * tail + exponent * _LN2_LOW)))


@lean_part
def fill_exponential(streams: Any, stream: int, mean: float, out: Any) -> None:
    """Fill an array with the next exponential times of a stream."""
    for i in range(out.size):
        out[i] = uniform(streams, stream)
    _minus_log(out, mean)


CONSTANT, EXPONENTIAL, ERLANG, GAMMA, LOGNORMAL, POWER, LOG_POWER, UNIFORM = range(8)
GEOMETRIC, MIXTURE, PHASES, MARKOV, TABLE, SEQUENCE = range(8, 14)

ROW = np.dtype([("kind", "i8"), ("a", "f8"), ("b", "f8"), ("at", "i8"), ("size", "i8"), ("state", "i8")])
"""A law: its kind, two parameters, its stretch of the table of numbers, and where it stands.

``state`` is the phase of a MAP (-1 before its first arrival), the place in a recorded sequence, or that in
the block of exponential times drawn last.
"""
BLOCK = 32
"""Exponential times that are drawn at once."""

# Numerators and denominators of `normal_quantile` in the middle, the near and the far tail.
_CENTRE = (
    (
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
        3.3430575583588128105e4, 2.5090809287301226727e3,
    ),
    (
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2,
        5.3941960214247511077e3, 2.1213794301586595867e4, 3.9307895800092710610e4,
        2.8729085735721942674e4, 5.2264952788528545610e3,
    ),
)  # fmt: skip
_NEAR = (
    (
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4,
    ),
    (
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0,
        6.89767334985100004550e-1, 1.48103976427480074590e-1, 1.51986665636164571966e-2,
        5.47593808499534494600e-4, 1.05075007164441684324e-9,
    ),
)  # fmt: skip
_FAR = (
    (
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7,
    ),
    (
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
        1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
        1.42151175831644588870e-7, 2.04426310338993978564e-15,
    ),
)  # fmt: skip

_FEW_PHASES = 16  # so many uniforms multiply without underflow


class LawTable(NamedTuple):
    """Laws for `draw`: rows, and the numbers they share."""

    rows: Any
    numbers: Any


def law_table(laws: Sequence[Law]) -> LawTable:
    """Return the laws as arrays; the law in row i draws from stream i."""
    rows = np.zeros(len(laws), dtype=ROW)
    stretches: list[npt.NDArray[np.float64]] = []
    at = 0
    for row, law in zip(rows, laws, strict=True):
        require_law("law", law)
        kind, a, b, numbers, size = _encoded(law)
        row["kind"], row["a"], row["b"], row["at"], row["size"] = kind, a, b, at, size
        row["state"] = {MARKOV: -1, EXPONENTIAL: BLOCK}.get(kind, 0)
        stretches.append(numbers)
        at += numbers.size
    return LawTable(rows=rows, numbers=np.concatenate([*stretches, np.zeros(1)]))


def sample(law: Law, *, size: int, seed: int) -> npt.NDArray[np.float64]:
    """Return successive times of a law."""
    times = np.empty(size)
    draw_block(*law_table([law]), new_streams(seed=seed, replication=0, sources=["times"]), 0, times)
    return times


def unit_gaps(arrivals: Any, rng: np.random.Generator, count: int) -> npt.NDArray[np.float64] | None:
    """Return gaps of mean 1 for arrivals that are a law of times, None for others, which draw their own."""
    if not isinstance(arrivals, get_args(Law)):
        return None
    return sample(arrivals, size=count, seed=int(rng.integers(2**62))) / arrivals.mean


def _encoded(law: Law) -> tuple[int, float, float, npt.NDArray[np.float64], int]:
    none = np.zeros(0)
    match law:
        case law_types.Deterministic():
            return CONSTANT, law.mean, 0.0, none, 0
        case law_types.Exponential():
            return EXPONENTIAL, law.mean, 0.0, np.zeros(BLOCK), BLOCK
        case law_types.Erlang():
            if law.phases <= _FEW_PHASES:
                return ERLANG, law.mean / law.phases, 0.0, none, law.phases
            return GAMMA, law.mean / law.phases, float(law.phases), none, 0
        case law_types.Gamma():
            return GAMMA, law.mean * law.scv, 1 / law.scv, none, 0
        case law_types.LogNormal():
            variance = log1p(law.scv)
            return LOGNORMAL, log(law.mean) - variance / 2, sqrt(variance), none, 0
        case law_types.Weibull():
            return LOG_POWER, law.mean / exp(lgamma(1 + 1 / law.shape)), 1 / law.shape, none, 0
        case law_types.Pareto():
            return POWER, law.mean * (law.shape - 1) / law.shape, -1 / law.shape, none, 0
        case law_types.Uniform():
            return UNIFORM, law.low, law.high - law.low, none, 0
        case law_types.Geometric():
            if law.mean == 1:
                return CONSTANT, 1.0, 0.0, none, 0
            return GEOMETRIC, 1 / log1p(-1 / law.mean), 0.0, none, 0
        case law_types.HyperExponential():
            numbers = np.concatenate([_cumulative(np.array(law.probabilities)), law.means])
            return MIXTURE, 0.0, 0.0, numbers, len(law.means)
        case law_types.PhaseType():
            numbers = _chain(np.array(law.initial), np.array(law.generator), None)
            return PHASES, 0.0, 0.0, numbers, len(law.initial)
        case law_types.MAP():
            return MARKOV, 0.0, 0.0, _chain(law.start, np.array(law.d0), np.array(law.d1)), len(law.d0)
        case law_types.Empirical():
            return TABLE, 0.0, 0.0, _guided(np.array(law.values), np.array(law.weights)), len(law.values)
        case law_types.Replay():
            return SEQUENCE, 0.0, 0.0, np.array(law.values), len(law.values)


def _cumulative(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return cumulative probabilities; the last value with a weight, and all after it, get 1."""
    sums = np.cumsum(weights) / np.sum(weights)
    sums[np.flatnonzero(weights)[-1] :] = 1.0
    return sums


def _chain(
    initial: npt.NDArray[np.float64], quiet: npt.NDArray[np.float64], marked: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.float64]:
    """Return the start's cumulative law, then per phase its mean stay and cumulative moves.

    The moves are those without an event to each phase, then those with one: to each phase for a
    MAP, or the single absorption.
    """
    rates = -quiet.diagonal()
    moves = quiet - np.diag(quiet.diagonal())
    ends = np.maximum(rates - moves.sum(axis=1), 0.0)[:, None] if marked is None else marked
    both = np.hstack([moves, ends])
    rows = [np.concatenate([[1 / both[i].sum()], _cumulative(both[i])]) for i in range(rates.size)]
    return np.concatenate([_cumulative(initial), *rows])


def _guided(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ascending values, their cumulative weights, and where to start looking for each k / n."""
    order = np.argsort(values, kind="stable")
    sums = _cumulative(weights[order])
    guide = np.searchsorted(sums, np.arange(values.size) / values.size, side="left")
    return np.concatenate([values[order], sums, guide.astype(float)])


@lean
def draw_block(rows: Any, numbers: Any, streams: Any, law: int, out: Any) -> None:
    """Fill an array with the next times of a law; to be used instead of `draw`, not between its calls."""
    if rows[law]["kind"] == EXPONENTIAL:
        fill_exponential(streams, law, rows[law]["a"], out)
    else:
        for k in range(out.size):
            out[k] = draw(rows, numbers, streams, law)


@quick
def draw(rows: Any, numbers: Any, streams: Any, law: int) -> float:
    """Return the next time of a law, from the stream of the same number."""
    row = rows[law]
    kind = row["kind"]
    if kind == EXPONENTIAL:
        place = row["state"]
        if place == BLOCK:
            place = _refill(rows, numbers, streams, law)
        row["state"] = place + 1
        return numbers[row["at"] + place]
    if kind == CONSTANT:
        return row["a"]
    return _draw_other(rows, numbers, streams, law)


@apart
def _refill(rows: Any, numbers: Any, streams: Any, law: int) -> int:
    """Draw the next block of exponential times; return the place of the first."""
    row = rows[law]
    fill_exponential(streams, law, row["a"], numbers[row["at"] : row["at"] + BLOCK])
    return 0


@apart
def _draw_other(rows: Any, numbers: Any, streams: Any, law: int) -> float:
    row = rows[law]
    kind, a, b, at, size = row["kind"], row["a"], row["b"], row["at"], row["size"]
    if kind == ERLANG:
        product = 1.0
        for _ in range(size):
            product *= uniform(streams, law)
        return -a * log(product)
    if kind == GAMMA:
        return a * _gamma(b, streams, law)
    if kind == LOGNORMAL:
        return exp(a + b * normal_quantile(uniform(streams, law)))
    if kind == POWER:
        return a * uniform(streams, law) ** b
    if kind == LOG_POWER:
        return a * (-log(uniform(streams, law))) ** b
    if kind == UNIFORM:
        return a + b * uniform(streams, law)
    if kind == GEOMETRIC:
        return 1.0 + floor(a * log(uniform(streams, law)))
    if kind == MIXTURE:
        branch = _pick(numbers, at, uniform(streams, law))
        return -numbers[at + size + branch] * log(uniform(streams, law))
    if kind == PHASES:
        phase = _pick(numbers, at, uniform(streams, law))
        return _walk(rows, numbers, streams, law, phase, size + 1)
    if kind == MARKOV:
        phase = row["state"]
        if phase < 0:
            phase = _pick(numbers, at, uniform(streams, law))
        return _walk(rows, numbers, streams, law, phase, 2 * size)
    if kind == TABLE:
        u = uniform(streams, law)
        place = int(numbers[at + 2 * size + int(u * size)])
        while numbers[at + size + place] < u:
            place += 1
        return numbers[at + place]
    place = row["state"]
    row["state"] = place + 1 if place + 1 < size else 0
    return numbers[at + place]


@lean
def _pick(numbers: Any, at: int, u: float) -> int:
    """Return the first place whose cumulative probability reaches u."""
    place = 0
    while numbers[at + place] < u:
        place += 1
    return place


@lean
def _walk(rows: Any, numbers: Any, streams: Any, law: int, phase: int, moves: int) -> float:
    """Follow the chain from a phase to its next event; keep the phase after it."""
    size, at = rows[law]["size"], rows[law]["at"]
    time = 0.0
    while True:
        here = at + size + phase * (moves + 1)
        time -= numbers[here] * log(uniform(streams, law))
        move = _pick(numbers, here + 1, uniform(streams, law))
        if move >= size:
            rows[law]["state"] = move - size
            return time
        phase = move


@lean
def _gamma(shape: float, streams: Any, law: int) -> float:
    """Return a gamma time of scale 1 by rejection (Marsaglia and Tsang, 2000)."""
    boost = 1.0
    if shape < 1:
        boost = uniform(streams, law) ** (1 / shape)
        shape += 1.0
    d = shape - 1 / 3
    c = 1 / sqrt(9 * d)
    while True:
        radius = sqrt(-2 * log(uniform(streams, law)))
        x = radius * cos(2 * pi * uniform(streams, law))
        v = (1 + c * x) ** 3
        if v > 0 and log(uniform(streams, law)) < x * x / 2 + d - d * v + d * log(v):
            return boost * d * v


@lean
def _rational(x: float, above: Any, below: Any) -> float:
    top, bottom = 0.0, 0.0
    for k in range(7, -1, -1):
        top = top * x + above[k]
        bottom = bottom * x + below[k]
    return top / bottom


@lean
def normal_quantile(u: float) -> float:
    """Return the normal value that a standard normal variable stays below with probability u.

    References
    ----------
    .. [1] M. J. Wichura, "Algorithm AS 241: the percentage points of the normal distribution",
       Applied Statistics 37(3), 1988 (PPND16).
    """
    centre = u - 0.5
    if abs(centre) <= 0.425:
        return centre * _rational(0.180625 - centre * centre, _CENTRE[0], _CENTRE[1])
    r = sqrt(-log(min(u, 1 - u)))
    tail = _rational(r - 1.6, _NEAR[0], _NEAR[1]) if r <= 5 else _rational(r - 5, _FAR[0], _FAR[1])
    return tail if centre > 0 else -tail


def alias_table(weights: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int32]]:
    """Return for each of some weights of mean 1 the probability to keep it, and what is taken otherwise.

    References
    ----------
    .. [1] M. D. Vose, "A linear algorithm for generating random numbers with a given distribution", IEEE
       Transactions on Software Engineering 17(9), 1991; the method is A. J. Walker's, 1977.

    Examples
    --------
    >>> alias_table(np.array([0.5, 1.5]))
    (array([0.5, 1. ]), array([1, 1], dtype=int32))
    """
    keep, other = np.array(weights, dtype=float), np.arange(len(weights), dtype=np.int32)
    _fill_alias(keep, other)
    return keep, other


@jit
def _fill_alias(keep: Any, other: Any) -> None:
    small, large = np.empty(keep.size, dtype=np.int64), np.empty(keep.size, dtype=np.int64)
    smalls = larges = 0
    for k in range(keep.size):
        if keep[k] < 1.0:
            small[smalls] = k
            smalls += 1
        else:
            large[larges] = k
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        low, high = small[smalls], large[larges - 1]
        other[low] = high
        keep[high] -= 1.0 - keep[low]
        if keep[high] < 1.0:
            larges -= 1
            small[smalls] = high
            smalls += 1
    keep[small[:smalls]] = 1.0
    keep[large[:larges]] = 1.0
