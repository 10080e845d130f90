"""What the fuzzers share: bad values, how long a call may take, and what counts as a bad answer."""

import contextlib
import datetime
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

import qmodels as qm

LONGEST = 20
"""Seconds after which a call counts as hanging (others may use the machine)."""

BAD: tuple[Any, ...] = (
    float("nan"), float("inf"), -float("inf"), -1, 0, 0.5, 1e308, 1e100, 1e-300, 5e-324, 2**63, -(2**63),
    10**400, 10**9, "x", "", b"1", None, True, 1j, Decimal("NaN"), Decimal("1e500"), object(), {}, (),
    [1, [2]], [[1, 2], [3]], np.array([]), np.array([1.0, np.nan]),
    np.ma.array([0.1, 0.2], mask=[0, 1]), np.datetime64("2020"),
    np.zeros((2, 2, 2)), lambda: 1, 1e-320, 2**64, [], datetime.datetime(2020, 1, 1), np.float64(-2),
    np.int64(-5), np.array("x"), np.array([None]), int, "a\nb", {"kind": "x"}, (object(),), (1, "x"), ((),),
    range(3),
)  # fmt: skip


class Late(BaseException):
    """Not an Exception, so that nothing below takes it for one of its own."""


@contextlib.contextmanager
def limited(seconds: int = LONGEST) -> Iterator[None]:
    def ring(*_: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
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
        ours = str(Path(qm.__file__).parents[1]) in traceback.extract_tb(error.__traceback__)[-1].filename
        if "\n" in str(error):
            return f"more than a line: {error}"
        if not ours or (isinstance(error, TypeError) and "must be" not in str(error)):
            return f"not worded by us: {type(error).__name__}: {error}"
    except Late:
        return "hangs"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None
