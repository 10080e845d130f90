"""Errors of formulas in the words of their arguments: shapes that do not fit, empty arrays, overflow.

A formula that overflows gives ``inf``, without a warning; where that would lead to a NaN, and where NumPy
would speak of shapes, the error names the arguments.

>>> @guarded
... def spare(*, arrival_rate, service_rate):
...     return np.divide(arrival_rate, service_rate) - np.multiply(arrival_rate, 1e200)
>>> spare(arrival_rate=[1.0, 2.0], service_rate=[1.0, 2.0, 3.0])
Traceback (most recent call last):
...
ValueError: arrival_rate and service_rate must have shapes that go together, got (2,) and (3,)
>>> spare(arrival_rate=1e200, service_rate=1e-200)
Traceback (most recent call last):
...
ValueError: arrival_rate must be of a size that the formula can carry, got 1e+200
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from qmodels.checks import shown

EXTREME = 250
"""Decades from 1 from which a number may be what was wrong, whatever the error."""
FAR = 8
"""The same where arithmetic or memory gave out: nearer to 1 doubles carry it."""
LARGE = 3
"""Decades of a size for which there may be no memory."""
NEARER = 8
"""A number is tried again with its decades from 1 divided by this."""

NUMBERS = int, float, np.number, np.ndarray

F = TypeVar("F", bound=Callable[..., Any])


def guarded(function: F) -> F:
    """Wrap a formula: errors of its arithmetic name the argument that causes them."""

    @wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        try:
            with np.errstate(over="ignore", under="ignore", divide="raise", invalid="raise"):
                return function(*args, **named)
        except (ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
            given = _by_name(function, args, named)
            worded = _worded(error, given, lambda name, value: function(**{**given, name: value}))
            worded = worded or _of_another_kind(error, given)
            if worded is None:
                raise
            raise ValueError(worded) from error

    return wrapper  # type: ignore[return-value]


def of_spec(function: Callable[[Any], Any], spec: Any) -> Any:
    """Solve a spec; where the model leaves the range of a float, the error names the field."""
    from qmodels.systems.spec.cost import afford
    from qmodels.systems.spec.fields import array_fields, is_spec

    def answer() -> Any:
        swept = array_fields(spec) if is_spec(spec) else {}
        if swept:
            most = max(swept, key=lambda name: swept[name].size)
            shape = np.broadcast_shapes(*(values.shape for values in swept.values()))
            afford(f"values of {most}", swept[most].size, designs=math.prod(shape))
        return function(spec)

    return explain_error(answer, spec, function)


def explain_error(part: Callable[[], Any], spec: Any, again: Callable[[Any], Any]) -> Any:
    """Return a part of what a model says of a spec, see `of_spec`; ``again``: the same of another spec."""
    from qmodels.systems.spec.fields import field_paths, is_spec, replace_paths

    try:
        with np.errstate(over="ignore", under="ignore", divide="raise", invalid="raise"):
            return part()
    except (ValueError, ArithmeticError, LookupError, TypeError, MemoryError) as error:
        fields = field_paths(spec) if is_spec(spec) else {}
        # Only numbers can be too large, or of shapes that do not fit; an empty tuple is a field left out.
        given = {name: value for name, value in fields.items() if isinstance(value, NUMBERS)}
        worded = _worded(error, given, lambda name, value: again(replace_paths(spec, {name: value})))
        if worded is None:
            raise
        raise ValueError(worded) from error


def _by_name(
    function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments of a call by name, those of ``**`` too; nothing where the call does not fit."""
    try:
        given = inspect.signature(function).bind(*args, **named).arguments
    except TypeError:
        return {}
    return {name: value for name, value in given.items() if name not in ("args", "named")} | dict(named)


def _worded(error: Exception, given: Mapping[str, Any], again: Callable[[str, Any], Any]) -> str | None:
    """Return an error in the words of the arguments; None where it is in such words, or not about them.

    ``again``: the same with one argument changed: no size is blamed unless a change of it cures.
    """
    said = str(error)
    if isinstance(error, ValueError) and "\n" in said:  # of the name of a file
        return " ".join(said.split())
    if isinstance(error, ValueError) and any(name in said for name in given):
        return None
    shapes = {name: shape for name, value in given.items() if (shape := _shape(value))}
    empty = [name for name, shape in shapes.items() if 0 in shape]
    if empty:
        return f"{empty[0]} must hold a number, got an empty array"
    if "broadcast" in said and shapes:
        names, found = _listed(list(shapes)), _listed([str(shape) for shape in shapes.values()])
        return f"{names} must have shapes that go together, got {found}"
    ragged = [name for name, shape in shapes.items() if shape == (-1,)]
    if ragged:
        return f"{ragged[0]} must be numbers in rows of one length, got {shown(given[ragged[0]])}"
    if re.search("0-dimensional|length-1 arrays", said) and shapes:
        name, shape = next(iter(shapes.items()))
        return f"{name} must be one number, got an array of shape {shape}"
    name = max(given, key=lambda name: _decades(given[name]), default="")
    arithmetic = isinstance(error, ArithmeticError | np.linalg.LinAlgError)
    least = LARGE if isinstance(error, MemoryError) else FAR if arithmetic else EXTREME
    if name and _decades(given[name]) > least and _cures(error, name, given[name], again):
        return f"{name} must be of a size that the formula can carry, got {shown(given[name])}"
    return None


def _of_another_kind(error: Exception, given: Mapping[str, Any]) -> str | None:
    """Return an error of the kind of an argument in its words; the fields of a spec have been checked."""
    said = str(error)
    if isinstance(error, TypeError | AttributeError):
        words = set(re.findall(r"\w+", said))
        for name, value in given.items():
            inside = value if isinstance(value, list | tuple) else ()
            lone = isinstance(value, np.ndarray) and not value.ndim
            if lone or any(type(one).__name__ in words for one in (value, *inside)):
                return f"{name} must be of another kind ({said}), got {shown(value)}"
    return None


def _cures(error: Exception, name: str, value: Any, again: Callable[[str, Any], Any]) -> bool:
    """Return whether the error is gone where a number is much nearer to 1."""
    if isinstance(value, int) and not math.isfinite(_decades(value)):
        return True
    numbers = np.asarray(value, dtype=float)
    nearer = np.sign(numbers) * np.abs(numbers) ** (1 / NEARER)
    if np.asarray(value).dtype.kind in "iu":
        nearer = np.rint(nearer).astype(np.int64)
    try:
        with np.errstate(over="ignore", under="ignore", divide="raise", invalid="raise"):
            again(name, nearer if np.ndim(value) else nearer.item())
    except Exception as other:
        return type(other) is not type(error)
    return True


def _decades(value: Any) -> float:
    """Largest distance of an argument's numbers from 1, in powers of ten."""
    try:
        sizes = np.abs(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        return 0.0
    except OverflowError:
        return np.inf
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    return float(np.max(np.abs(np.log10(sizes)), initial=0.0))


def _shape(value: Any) -> tuple[int, ...]:
    try:
        return np.shape(value)
    except ValueError:  # ragged
        return (-1,)


def _listed(words: list[str]) -> str:
    return " and ".join([*filter(None, [", ".join(words[:-1])]), *words[-1:]])
