"""Memory of a function's results, within a size in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from threading import Lock
from typing import Any


class Remembered:
    """A function whose results are kept, the last used ones, up to a size in bytes.

    Arrays that a million designs leave behind are no small cache when only their number is limited.
    """

    def __init__(self, function: Callable[..., Any], most: int, size: Callable[[Any], int]) -> None:
        update_wrapper(self, function)
        self.function, self.most, self.size = function, most, size
        self.kept: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self.bytes, self._lock = 0, Lock()

    def __call__(self, *key: Any) -> Any:
        """Return the function's result, from memory if it is there."""
        with self._lock:
            if key in self.kept:
                self.kept.move_to_end(key)
                return self.kept[key][0]
        found = self.function(*key)
        with self._lock:
            if key not in self.kept:
                self.kept[key] = found, self.size(found)
                self.bytes += self.kept[key][1]
            while self.bytes > self.most and len(self.kept) > 1:
                self.bytes -= self.kept.popitem(last=False)[1][1]
        return found

    def cache_clear(self) -> None:
        """Forget all."""
        with self._lock:
            self.kept.clear()
            self.bytes = 0


def remembered(most: int, size: Callable[[Any], int]) -> Callable[[Callable[..., Any]], Remembered]:
    """Return a decorator: keep results up to ``most`` bytes in all; ``size`` gives those of one.

    >>> import numpy as np
    >>> squares = remembered(100, lambda found: found.nbytes)(lambda n: np.arange(n) ** 2)
    >>> [squares(n).size for n in (4, 8, 4, 6)], len(squares.kept), squares.bytes
    ([4, 8, 4, 6], 2, 80)
    """
    return lambda function: Remembered(function, most, size)
