"""Conditions on metrics as one says them, ``packet_latency_p99 < 2us``, and values said back so."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qmodels import checks
from qmodels.systems.spec.docstrings import documentation
from qmodels.systems.spec.fields import field_paths, find_field, get_field
from qmodels.systems.spec.kind import metric_of
from qmodels.systems.spec.metrics import full_name

Range = tuple[float | None, float | None]
"""Least and most value of a metric, both allowed; None leaves a side open."""

FAMILIES: tuple[dict[str, int], ...] = (
    {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12},
    {"1/s": 1, "1/ms": 10**3, "1/us": 10**6, "1/ns": 10**9},
    {"kb/s": 10**3, "Mb/s": 10**6, "Gb/s": 10**9, "Tb/s": 10**12},
    {"kB/s": 8 * 10**3, "MB/s": 8 * 10**6, "GB/s": 8 * 10**9, "TB/s": 8 * 10**12},
    {"um2": 1, "mm2": 10**6, "cm2": 10**8},
    {"pJ": 1, "nJ": 10**3, "uJ": 10**6, "mJ": 10**9},
)
"""Units that measure the same, each in whole multiples of one: those of one line are said for each other."""

_RATES = FAMILIES[2] | FAMILIES[3]
_DURATIONS = {"s": 1.0, "min": 60.0, "h": 3600.0}
_QUANTITY = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf)\s*(\S*)")


def conditions(spec: Any, given: Mapping[str, Range] | Iterable[str] | str | None) -> dict[str, Range]:
    """Return the ranges of metrics that conditions state, in the units the metrics are declared in.

    Parameters
    ----------
    spec : dataclass instance
        The system whose metrics or fields are meant.
    given : mapping, str or sequence of str
        ``metric < value``, ``metric >= value`` or ``low <= metric < high``, values with or without a unit
        (ns, us, ms, s; Gb/s, Mb/s, GB/s; mm2; pJ, nJ, uJ; %); or ``{metric: (low, high)}`` as `explore` takes
        it, in the metric's own unit. Of several limits of one side the tightest counts.

    Raises
    ------
    ValueError
        For what is no condition, a name the system does not have, a unit that does not fit, or conditions
        that no value satisfies: in one line.

    Notes
    -----
    A strict limit excludes its value by the next number a computer has.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> conditions(PacketProcessor(), ["packet_latency_p99 <= 2us", "50 <= data_rate", "cost <= 0.2 cm2"])
    {'packet_latency_p99': (None, 2000.0), 'data_rate': (50.0, None), 'cost': (None, 20.0)}
    >>> conditions(PacketProcessor(), ["2 GB/s <= data_rate < 100Gb/s"])
    {'data_rate': (16.0, 99.99999999999999)}
    """
    if isinstance(given, Mapping):
        given = {metric_named(spec, metric): pair for metric, pair in given.items()}
        stated = [(metric, side, bound) for metric, pair in given.items() for side, bound in enumerate(pair)]
        require_metrics(spec, given, "subject_to")
    else:
        texts = [given] if isinstance(given, str) else given or ()
        stated = [one for text in texts for one in _stated(spec, text)]
    found: dict[str, Range] = {}
    for metric, side, bound in stated:
        low, high = found.get(metric, (None, None))
        if bound is not None and side == 0:
            low = bound if low is None else max(low, bound)
        elif bound is not None:
            high = bound if high is None else min(high, bound)
        if low is not None and high is not None and low > high:
            raise ValueError(
                f"the conditions on {metric} contradict each other: at least {quantity(spec, metric, low)} "
                f"and at most {quantity(spec, metric, high)}"
            )
        found[metric] = low, high
    return found


def metric_named(spec: Any, name: str) -> str:
    """Return the metric or field of a system that a name means, see `full_name`; unknown ones as they are.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> [metric_named(PacketProcessor(), name) for name in ("p99", "area", "channels")]
    ['packet_latency_p99', 'cost', 'channels']
    """
    try:
        find_field(spec, name)
    except ValueError:
        return full_name(name, type(spec).metric_names)
    return name


def require_metrics(spec: Any, names: Iterable[str], what: str) -> None:
    """Refuse a name that is neither a metric nor a field of a system, with the nearest.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> require_metrics(PacketProcessor(), ["packet_latency_p90"], "minimize")
    Traceback (most recent call last):
        ...
    ValueError: minimize must name a metric or field of a PacketProcessor, got 'packet_latency_p90'; did you mean 'packet_latency_p99'?
    """  # noqa: E501
    for name in names:
        unit_of(spec, name, what)


def unit_of(spec: Any, name: str, what: str = "a condition") -> str:
    """Return the unit of a metric of a system; "1" of a number without one, a field's too."""
    known = dict.fromkeys((*type(spec).metric_names.both, *type(spec).metric_names.model))
    if name.partition("[")[0] in known:
        return metric_of(spec, name).unit
    try:
        find_field(spec, name)
    except ValueError:
        fields = (path.rpartition(".")[2] for path in field_paths(spec))
        hint = checks.nearest(name, [*known, *fields]) or f"; its metrics are {', '.join(known)}"
        rule = f"{what} must name a metric or field of a {type(spec).__name__}"
        raise ValueError(f"{rule}, got {name!r}{hint}") from None
    return "1"


def _stated(spec: Any, text: str) -> Iterator[tuple[str, int, float]]:
    """Yield metric, side (0 for least, 1 for most) and bound of what a condition says."""
    words = [word.strip() for word in re.split(r"(<=|>=|<|>)", str(text))]
    values, signs = words[::2], words[1::2]
    names = [k for k, word in enumerate(values) if word and not _QUANTITY.fullmatch(word)]
    if len(signs) not in (1, 2) or len(names) != 1 or "" in values or len({sign[0] for sign in signs}) != 1:
        raise ValueError(
            f'a condition must be "metric < value", "metric >= value" or "low < metric < high", got {text!r}'
        )
    if len(signs) == 2 and names != [1]:
        raise ValueError(f"the metric of a range must stand in its middle, got {text!r}")
    name = metric_named(spec, values[names[0]])
    unit = unit_of(spec, name)
    for k, sign in enumerate(signs):
        before = k >= names[0]  # the metric stands before the sign, its limit behind
        bound = _in_unit(name, unit, values[k + 1] if before else values[k], text)
        side = int((sign[0] == "<") == before)
        yield name, side, bound if "=" in sign else math.nextafter(bound, -math.inf if side else math.inf)


def _in_unit(metric: str, unit: str, text: str, whole: str) -> float:
    found = _QUANTITY.fullmatch(text)
    assert found is not None
    value, given = float(found[1]), found[2].replace("µ", "u")
    allowed = {"%": 1, "": 100} if unit == "1" else _like(unit) or {unit: 1}
    own = "" if unit == "1" else unit
    if given and given not in allowed:
        units = ", ".join(filter(None, allowed))
        plain = "is a number without unit" if unit == "1" else f"is in {unit}"
        raise ValueError(f"{metric} {plain} and takes {units}, got {given!r} in {whole!r}")
    return value * allowed[given or own] / allowed[own]


def _like(unit: str) -> dict[str, int]:
    """Return the units that may stand for one."""
    if unit in _RATES:
        return _RATES
    return next((family for family in FAMILIES if unit in family), {})


def unit_factor(given: str, own: str) -> float | None:
    """Return one unit in multiples of another; None where they measure different things.

    >>> unit_factor("us", "ns"), unit_factor("GB/s", "Gb/s"), unit_factor("%", "1"), unit_factor("us", "mm2")
    (1000.0, 8.0, 0.01, None)
    """
    units = {"%": 1, "1": 100} if own == "1" else _like(own) or {own: 1}
    return units[given] / units[own] if given in units else None


def in_field_unit(spec: Any, path: str, value: Any) -> Any:
    """Return a value for a field of a spec: a quantity, ``100Gb/s``, as a number in the field's unit.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> in_field_unit(PacketProcessor(), "workload.offered_gbps", "100 Gb/s")
    100.0
    """
    given = _QUANTITY.fullmatch(value) if isinstance(value, str) and spec is not None else None
    if given is None or not re.match(r"[a-zA-Zµ%]", given[2]):
        return value
    *inside, name = path.split(".")
    owner = get_field(spec, ".".join(inside)) if inside else spec
    try:
        own = getattr(owner, name)
    except AttributeError:
        return value
    if isinstance(own, (bool, str)) or not isinstance(own, (int, float)):
        return value
    number = _in_unit(path, documentation(type(owner)).get(name, ("", ""))[1] or "1", value, value)
    return int(number) if isinstance(own, int) and number.is_integer() else number


def quantity(spec: Any, metric: str, value: float) -> str:
    """Return a value of a metric in the unit that reads best, in three digits.

    Examples
    --------
    >>> from qmodels.systems.packets.packet_processor import PacketProcessor
    >>> [quantity(PacketProcessor(), *one) for one in (("packet_latency", 2314.0), ("cost", 23.04), ("channels", 8))]
    ['2.31 us', '23 mm2', '8']
    """  # noqa: E501
    unit = unit_of(spec, metric)
    family = next((family for family in FAMILIES if unit in family), {})
    if unit == "1" or not math.isfinite(value):
        return plain(value)
    size = abs(value) * (1 + 1e-9) * family.get(unit, 1)
    fits = [one for one, least in family.items() if size >= least and one not in ("um2", "cm2")]
    best = max(fits, key=lambda one: family[one]) if fits and value else unit
    scale = family[unit] / family[best] if family else 1.0
    return f"{plain(value * scale)} {best}"


def plain(value: float) -> str:
    """Return a number in three digits, whole ones in full.

    >>> [plain(value) for value in (12345, 1234.5, 2.3149, 3e-7, 0.5, 100.0, math.inf)]
    ['12345', '1234', '2.31', '3e-07', '0.5', '100', 'inf']
    """
    number = float(value)
    return f"{number:.0f}" if 100 <= abs(number) < 1e15 else f"{number:.3g}"


def seconds(text: str, name: str = "budget") -> float:
    """Return the seconds of a time: ``60s``, ``2min``, ``1h``, or 0.

    Examples
    --------
    >>> [seconds(text) for text in ("60s", "1.5 min", "0", "200ms")]
    [60.0, 90.0, 0.0, 0.2]
    """
    found = _QUANTITY.fullmatch(str(text).strip())
    value, unit = (float(found[1]), found[2]) if found else (math.nan, "")
    sizes = _DURATIONS | {"ms": 1e-3, "": 1.0 if value == 0 else math.nan}
    result = value * sizes.get(unit, math.nan)
    if not 0 <= result < math.inf:
        raise ValueError(f"{name} must be a time such as 60s, 2min or 0, got {text!r}")
    return result
