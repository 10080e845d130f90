"""Models of one family: their arguments stand, and are checked, in one function.

>>> def load(*, arrival_rate: float, service_rate: float = 1.0) -> float:
...     return arrival_rate / service_rate
>>> @takes(load)
... def mm1_wait(load: float) -> float:
...     return load / (1 - load)
>>> mm1_wait(arrival_rate=0.5), str(inspect.signature(mm1_wait)).replace("'", "")
(1.0, '(*, arrival_rate: float, service_rate: float = 1.0) -> float')
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import FunctionType
from typing import Any, ParamSpec, TypeVar, cast

P = ParamSpec("P")
Given = TypeVar("Given")
R = TypeVar("R")


def takes(arguments: Callable[P, Given]) -> Callable[[Callable[[Given], R]], Callable[P, R]]:
    """Return a decorator of a function of checked arguments; callers give it those of the check.

    Parameters
    ----------
    arguments : callable
        Checks its keyword arguments and returns what a model of the family starts from.
    """
    checks = cast(FunctionType, arguments)

    def family(model: Callable[[Given], R]) -> Callable[P, R]:
        # A check of the model's own name, which stands in the errors of a wrong call.
        own: Any = FunctionType(checks.__code__, checks.__globals__, model.__name__)
        own.__kwdefaults__, own.__qualname__ = checks.__kwdefaults__, model.__qualname__

        @wraps(model)
        def checked(*args: P.args, **named: P.kwargs) -> R:
            return model(own(*args, **named))

        signature = inspect.signature(arguments)
        given_back = inspect.signature(model).return_annotation
        checked.__annotations__ = {**checks.__annotations__, "return": given_back}
        checked.__signature__ = signature.replace(return_annotation=given_back)  # type: ignore[attr-defined]
        return checked

    return family
