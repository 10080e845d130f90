"""The steps a process of a message-passing program takes, as words: ``"send 0 16"``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qmodels import checks

PRIORITIES = 8
"""Fixed priorities of the switches: 0 is served first, 7 last."""

FORMS = {
    "compute": "compute CYCLES",
    "send": "send PROCESS WORDS",
    "receive": "receive PROCESS",
    "signal": "signal PROCESS",
    "wait": "wait PROCESS",
    "open": "open PROCESS",
    "close": "close PROCESS",
    "priority": "priority LEVEL",
}
"""The steps and how they are written.

``send`` and ``receive`` pass a message with its header; ``signal`` and ``wait`` pass a
notification through a synchronisation module, one word without a header. Both are matched in the
order in which they are sent, for each pair of processes apart. ``open`` reserves a circuit to a
process, over which what is sent there travels until ``close``. ``priority`` sets that of all the
process sends from then on.
"""

PAIRED = {"receive": "send", "wait": "signal"}
"""Event that each waiting step waits for."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step, read from its words."""

    action: str  # one of `FORMS`
    peer: int = -1  # the other process, -1 where there is none
    words: int = 0  # payload of a message [words]
    cycles: float = 0.0  # computing time [cycles]
    level: int = -1  # priority that is set, -1 where none is


def compute(cycles: float) -> str:
    """Return the step that computes for n cycles."""
    return f"compute {float(cycles):g}" if float(cycles).is_integer() else f"compute {float(cycles)!r}"


def send(to: int, *, words: int) -> str:
    """Return the step that sends a message of n words."""
    return f"send {to} {words}"


def receive(source: int) -> str:
    """Return the step that waits for the next message of a process and reads it."""
    return f"receive {source}"


def signal(to: int) -> str:
    """Return the step that notifies a process."""
    return f"signal {to}"


def wait(source: int) -> str:
    """Return the step that waits for the next notification of a process."""
    return f"wait {source}"


def join(*parts: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the processes that take the steps of several programs one after the other."""
    sizes = sorted({len(part) for part in parts})
    if len(sizes) > 1:
        raise ValueError(f"joined programs must have equally many processes, got {sizes}")
    return tuple(tuple(step for part in parts for step in part[k]) for k in range(sizes[0] if sizes else 0))


def read_steps(steps: Iterable[str], *, process: int, processes: int) -> tuple[Step, ...]:
    """Return the steps of one process.

    ``steps``: their words; ``process``, ``processes``: number of the process, and how many there are.

    Raises
    ------
    ValueError
        One line with the step: what it must look like, or what its process must be.

    Examples
    --------
    >>> read_steps(["send 1 16"], process=0, processes=2)[0].words
    16
    >>> read_steps(["sent 1 16"], process=0, processes=2)
    Traceback (most recent call last):
        ...
    ValueError: steps of process 0 must be one of compute, send, receive, signal, wait, open, close, priority, got 'sent'; did you mean 'send'?
    """  # noqa: E501
    found = []
    for text in steps:
        step = _read(text, process)
        if step.peer >= processes or step.peer == process:
            raise ValueError(
                f"step {text!r} of process {process} must name another process in 0..{processes - 1}, "
                f"got {step.peer}"
            )
        found.append(step)
    return tuple(found)


@lru_cache(maxsize=65536)
def _read(text: str, process: int) -> Step:
    if not isinstance(text, str):
        raise ValueError(f"steps of process {process} must be words such as 'send 0 16', got {text!r}")
    action, *numbers = text.split() or [""]
    checks.choice(f"steps of process {process}", action, FORMS)
    form = FORMS[action]
    name = f"step {text!r} of process {process}"
    try:
        values = [float(number) for number in numbers]
    except ValueError:
        values = []
    if len(values) != len(form.split()) - 1:
        raise ValueError(f"{name} must have the form '{form}', got {len(numbers)} values: {numbers}")
    if action == "compute":
        return Step(action=action, cycles=float(checks.nonnegative(f"cycles of {name}", values[0])))
    if action == "priority":
        level = checks.count(f"level of {name}", values[0], minimum=0, maximum=PRIORITIES - 1)
        return Step(action=action, level=int(level))
    peer = int(checks.count(f"process of {name}", values[0], minimum=0))
    words = int(checks.count(f"words of {name}", values[1], minimum=0)) if action == "send" else 0
    return Step(action=action, peer=peer, words=words)
