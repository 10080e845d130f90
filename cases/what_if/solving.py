"""Answers from a process of its own, which may be ended: too long, too much memory, no longer wanted."""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import time
from typing import Any, NoReturn

import numpy as np

from cases.what_if.answering import answer_data
from qmodels.dispatch import solve
from qmodels.numerics.kernels import another_python
from qmodels.systems.spec.cost import LIMITS, factor

CODE = (
    "from qmodels.beside import package; package('cases'); from cases.what_if.solving import serve; serve()"
)
NO_MEMORY = 77
"""How a process ends that needed more than it may have."""
CODE_BYTES = 1.5e9
"""Of addresses that are reserved for libraries and threads which a first answer brings. [bytes]"""


class CancelledError(Exception):
    """Somebody asked something else meanwhile."""


def solved(spec: Any) -> dict[str, Any]:
    """Return the answer to a design for a page, with the time that it took, by this process."""
    started = time.perf_counter()
    with np.errstate(all="ignore"):
        found = answer_data(solve(spec), spec)
    return {**found, "milliseconds": 1e3 * (time.perf_counter() - started)}


class Aside:
    """Does the same in a process that stays for the next design, and is started again after it was ended.

    ``seconds``: longest time of an answer; what is allowed (`qmodels.systems.spec.cost`) if left out.

    Examples
    --------
    >>> import qmodels as qm
    >>> with Aside() as aside:
    ...     aside(qm.Noc(injection_rate=0.02))["stable"]
    True
    """

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds = LIMITS["seconds"] * factor() if seconds is None else seconds
        self._process = self._started()
        self._cancelled: subprocess.Popen[bytes] | None = None

    def __call__(self, spec: Any) -> dict[str, Any]:
        """Return the answer; a `CancelledError` if it was ended."""
        if self._process.poll() is not None:
            self._end()
            self._process = self._started()
        process = self._process
        asked, told = process.stdin, process.stdout
        assert asked is not None and told is not None
        try:
            asked.write(pickle.dumps((spec, self.seconds)))
            asked.flush()
            answer = pickle.load(told)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._end()
            if process is self._cancelled:
                raise CancelledError("not answered: something else was asked meanwhile") from None
            most = f"{_memory():.3g} bytes" if process.returncode == NO_MEMORY else f"{self.seconds:.3g} s"
            raise ValueError(f"the answer must take at most {most}, got more") from None
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found

    def cancel(self) -> None:
        """End the answer that is under way."""
        self._cancelled = self._process
        self._cancelled.kill()
        self._cancelled.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        return another_python(CODE, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Aside:
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._end()

    def _end(self) -> None:
        """Close what an ended process leaves."""
        with contextlib.suppress(OSError):  # what was asked last is not read
            self._process.communicate()


def _memory() -> float:
    return LIMITS["bytes"] * factor()


def serve() -> NoReturn:
    """Answer the designs that are asked on standard input, until it ends."""
    import faulthandler

    told = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what prints must not mix with answers
    _limit_memory()
    with open(os.devnull, "w") as nowhere:
        while True:
            try:
                spec, seconds = pickle.load(sys.stdin.buffer)
            except EOFError:
                os._exit(0)
            faulthandler.dump_traceback_later(seconds, exit=True, file=nowhere)  # whatever holds Python up
            try:
                answer: Any = solved(spec)
            except MemoryError:
                os._exit(NO_MEMORY)
            except Exception as error:
                answer = error
            faulthandler.cancel_dump_traceback_later()
            try:
                words = pickle.dumps(answer)
                pickle.loads(words)
            except Exception:
                words = pickle.dumps(RuntimeError(f"{type(answer).__name__}: {answer}"))
            told.write(words)
            told.flush()


def _limit_memory() -> None:
    """Allow as many bytes as an answer may take, beside code."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        most = int(used + CODE_BYTES + _memory())
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
