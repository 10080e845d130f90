"""Every public function, called as in the example of its docstring with one argument turned bad.

A bad argument ends in one line of a ``ValueError`` or ``TypeError`` of ours, or in an answer: no warning, no
foreign error, no hang. Functions are found in the public namespaces.
"""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qmodels as qm

LONGEST = 20
"""Seconds after which a call counts as hanging (others may use the machine)."""

BAD: tuple[Any, ...] = (
    float("nan"), float("inf"), -float("inf"), -1, 0, 0.5, 1e308, 1e100, 1e-300, 5e-324, 2**63, -(2**63),
    10**400, 10**9, "x", "", b"1", None, True, 1j, Decimal("NaN"), Decimal("1e500"), object(), {}, (),
    [1, [2]], [[1, 2], [3]], np.array([]), np.array([1.0, np.nan]),
    np.ma.array([0.1, 0.2], mask=[0, 1]), np.datetime64("2020"),
    np.zeros((2, 2, 2)), lambda: 1,
)  # fmt: skip

OTHERS = ("birth_death_infinite", "largest_rate", "smallest_whole", "fluid_fixed_point", "fluid_trajectory")
"""They call functions of the user, whose errors are the user's."""


class Late(BaseException):
    """Not an Exception, so that nothing below takes it for one of its own."""


def public() -> dict[str, Callable[..., Any]]:
    """Return the functions of the public namespaces by name."""
    found = {}
    for space in dir(qm):
        room = getattr(qm, space)
        if isinstance(room, types.ModuleType):
            for name in dir(room):
                function = getattr(room, name)
                if inspect.isfunction(function) and function.__module__.startswith("qmodels"):
                    found[f"{space}.{name}"] = function
    return {name: f for name, f in found.items() if f.__name__ not in OTHERS}


def example(function: Callable[..., Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return the arguments of the first call in the examples of a docstring."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def recorded(*args: Any, **named: Any) -> Any:
        calls.append((args, named))
        return function(*args, **named)

    names = {**vars(sys.modules[function.__module__]), function.__name__: recorded}
    with contextlib.redirect_stdout(io.StringIO()):
        for part in doctest.DocTestParser().get_examples(inspect.getdoc(function) or ""):
            # Some examples show an error.
            with contextlib.suppress(Exception):
                exec(compile(part.source, "example", "single"), names)
    return calls[0] if calls else None


@contextlib.contextmanager
def limited() -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(LONGEST)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def problem(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> str | None:
    """Return what is wrong with how a call ends."""
    try:
        with limited(), warnings.catch_warnings():
            warnings.simplefilter("error")
            function(*args, **named)
    except (ValueError, TypeError) as error:
        ours = str(Path(qm.__file__).parent) in traceback.extract_tb(error.__traceback__)[-1].filename
        if "\n" in str(error):
            return f"more than a line: {error}"
        if not ours or (isinstance(error, TypeError) and "must be" not in str(error)):
            return f"not worded by us: {type(error).__name__}: {error}"
    except Late:
        return "hangs"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def problems(name: str) -> list[str]:
    function = public()[name]
    call = example(function)
    if call is None:
        return [f"{name} has no example that calls it"]
    args, named = call
    found = []
    for key in [*range(len(args)), *named]:
        for bad in BAD:
            if isinstance(key, int):
                said = problem(function, (*args[:key], bad, *args[key + 1 :]), named)
            else:
                said = problem(function, args, {**named, key: bad})
            if said:
                found.append(f"{name}({key}={bad!r}): {said}")
    return found


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")
@pytest.mark.parametrize("name", public())
def test_a_bad_argument_is_answered_in_a_line(name: str) -> None:
    assert problems(name) == []


def test_the_fuzzer_finds_a_function_that_answers_badly() -> None:
    def divides(*, rate: float) -> float:
        return 1 / rate

    assert problem(divides, (), {"rate": 0}) == "ZeroDivisionError: division by zero"
    assert "not worded by us" in str(problem(divides, (), {"rate": "x"}))
