"""Every public function, called as in the example of its docstring with one argument turned bad.

A bad argument ends in one line of a ``ValueError`` or ``TypeError`` of ours, or in an answer: no warning, no
foreign error, no hang. Functions are found in the public namespaces.
"""

import contextlib
import doctest
import inspect
import io
import re
import signal
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import qmodels as qm

sys.path.append(str(Path(__file__).parent))
from hostile import BAD, problem  # noqa: E402

OTHERS = ("birth_death_infinite", "largest_rate", "smallest_whole", "fluid_fixed_point", "fluid_trajectory")
"""They call functions of the user, whose errors are the user's."""


def public() -> dict[str, Callable[..., Any]]:
    """Return the functions of the public namespaces by name."""
    found = {}
    for space in dir(qm):
        room = getattr(qm, space)
        if isinstance(room, types.ModuleType) and space not in ("optimize", "validate", "cases"):
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


RULES = Path(__file__).parent / "reference" / "argument_rules.txt"
"""Public functions and what their arguments must be; ``python tests/test_hostile.py`` writes it."""

PROBES = (float("nan"), float("inf"), -1, 0, 0.5, 1.5, "?")


def rules(name: str) -> str:
    """Return what a function says that its arguments must be, when each is given values it may not take."""
    function, found = public()[name], {}
    args, named = example(function) or ((), {})
    for key in [*range(len(args)), *named]:
        for bad in PROBES:
            given = (*args[:key], bad, *args[key + 1 :]) if isinstance(key, int) else args
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*given, **named if isinstance(key, int) else {**named, key: bad})
            except (ValueError, TypeError) as error:
                rule = re.match(r"([^/]*?must be .*?), got ", str(error))
                if rule and not re.search("number or an array|another kind", rule[1]):
                    found[rule[1]] = None
    return "; ".join([name, *found])


def test_the_rules_of_arguments_are_those_of_the_table() -> None:
    assert [rules(name) for name in sorted(public())] == RULES.read_text().splitlines()


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")
@pytest.mark.parametrize("name", public())
def test_a_bad_argument_is_answered_in_a_line(name: str) -> None:
    assert problems(name) == []


def test_the_fuzzer_finds_a_function_that_answers_badly() -> None:
    def divides(*, rate: float) -> float:
        return 1 / rate

    assert problem(divides, (), {"rate": 0}) == "ZeroDivisionError: division by zero"
    assert "not worded by us" in str(problem(divides, (), {"rate": "x"}))


if __name__ == "__main__":
    RULES.write_text("\n".join(rules(name) for name in sorted(public())) + "\n")
