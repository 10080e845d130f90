"""Constraints between fields, decided for a million designs at once.

A constraint is a plain function of one point. Which fields it reads is found by running it: it is
followed through its choices like a decision tree, and its answer kept as a table over the fields
it reads. A constraint on three fields is called once per combination of their choices, however
many designs there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Point = dict[str, Any]
Constraint = Callable[[Point], bool]
Mask = npt.NDArray[np.bool_]

CALLS = 100_000
"""Calls after which a constraint counts as one that reads too much for a table."""

SPOT_CHECKS = 64
"""Designs for which a constraint called with arrays is compared with itself called one by one."""


class _Unread(BaseException):
    """Asks for the value of a field; no Exception, so that no constraint handles it."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Partial(Mapping[str, Any]):
    """A point of which only some fields are known yet."""

    def __init__(self, names: Sequence[str], known: Mapping[str, Any]) -> None:
        self._names, self._known = names, known

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        if name in self._names:
            raise _Unread(name)
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def tabulate(
    constraint: Constraint, choices: Mapping[str, tuple[Any, ...]]
) -> tuple[tuple[int, ...], Mask] | None:
    """Return the axes a constraint reads and its answers over their choices.

    None if it takes too many calls, or cannot be asked with a point that is no dict.
    """
    axes = {name: axis for axis, name in enumerate(choices)}
    leaves: list[tuple[dict[str, int], bool]] = []
    stack: list[dict[str, int]] = [{}]
    for _ in range(CALLS):
        if not stack:
            break
        digits = stack.pop()
        known = {name: choices[name][digit] for name, digit in digits.items()}
        try:
            leaves.append((digits, bool(constraint(_Partial(tuple(choices), known)))))  # type: ignore[arg-type]
        except _Unread as unread:
            stack.extend(digits | {unread.name: digit} for digit in range(len(choices[unread.name])))
        except Exception:  # the same call with a real point tells the user
            return None
    if stack:
        return None
    read = sorted({axes[name] for digits, _ in leaves for name in digits})
    names = list(choices)
    if np.prod([float(len(choices[names[axis]])) for axis in read]) > 64 * CALLS:
        return None
    table = np.zeros([len(choices[names[axis]]) for axis in read], dtype=bool)
    for digits, answer in leaves:
        table[tuple(digits.get(names[axis], slice(None)) for axis in read)] = answer
    return tuple(read), table


def answer(
    constraint: Constraint, columns: Mapping[str, npt.NDArray[Any]], point: Callable[[int], Point], count: int
) -> Mask:
    """Return the answers of a constraint that has no table for `count` points.

    It is called with the columns in place of a point if that gives one answer per design, the same
    as for single points where that is checked; else with one point after the other.
    """
    sample = np.unique(np.linspace(0, count - 1, SPOT_CHECKS).astype(int)) if count else range(0)
    try:
        result = np.asarray(constraint(dict(columns)))
        if result.shape == (count,) and result.dtype == bool:
            if all(bool(constraint(point(k))) == result[k] for k in sample):
                return result
    except Exception:  # it takes no arrays, or fails for single points too, which is shown below
        pass
    return np.array([bool(constraint(point(k))) for k in range(count)], dtype=bool)
