"""The last of writes that come together, in the chain of waiting writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qmodels.checks import FloatArray
from qmodels.numerics.kernels import compiled


@dataclass(frozen=True, kw_only=True, eq=False)
class LastWrites:
    """The chain of waiting writes of `write_queue`, and in it the last of writes that come together."""

    law: FloatArray  # probabilities of 0, 1, 2, ... waiting writes
    # arrivals, batch: rate of the batches [1/cycle], and writes of one.
    arrivals: float
    batch: int
    # pace, begins, drain: by the number that waits: rate at which one of them is written, rate at which reads
    # leave room for all but ``low`` of them, and how long these take [1/cycle, 1/cycle, cycles].
    pace: FloatArray
    begins: FloatArray
    drain: FloatArray
    low: int  # writes that are left then
    each: float  # time of the channel for a write [cycles]

    def of(self, number: int, rows: float) -> tuple[float, float]:
        """Wait of the last of n beyond the mean wait of all, and its variance.

        Those of a row are written together, rows in the order of their arrival; later ones come as they do on
        average.
        """
        each = max(round(number / rows), 1)
        first, second = self._stays(each)
        high, coming = first.shape[1], -(-number // each)
        law = np.bincount(-(-np.arange(self.law.size) // each), self.law, minlength=high)
        last = last2 = of_all = 0.0
        for before, share in enumerate(law.tolist()):
            total = before + coming
            places = np.arange(before + 1, total + 1)
            if total < high:
                stays, square = first[places, total], second[total, total]
            else:
                # So many are written at once, but for the last.
                out, left = self.drain[-1] + (total - high) * each * self.each, max(self.low // each, 1)
                behind = np.maximum(places - (total - left), 0)
                stays = np.where(behind, out + first[behind, left], out * places / (total - left))
                square = second[left, left] + 2 * out * first[left, left] + out**2
            last, last2 = last + share * stays[-1], last2 + share * square
            of_all += share * float(stays.mean())
        return max(last - of_all, 0.0), max(last2 - last**2, 0.0)

    def _stays(self, each: int) -> tuple[FloatArray, FloatArray]:
        """Time for which rows of n writes stay, (place, number of rows): mean and mean square."""
        writes = np.arange(0, self.pace.size, each)
        low, batch = max(self.low // each, 1), max(self.batch // each, 1)
        pace, begins, drain = self.pace[writes] / each, self.begins[writes], self.drain[writes]
        found: tuple[FloatArray, FloatArray] = _stays(self.arrivals, batch, pace, begins, drain, low)
        return found


@compiled
def _stays(arrivals: Any, batch: Any, pace: Any, begins: Any, drain: Any, low: Any) -> Any:
    high = pace.size
    first, second = np.zeros((high + 1, high)), np.zeros((high + 1, high))
    left = min(low, high - 1)
    for place in range(1, high):
        for number in range(high - 1, place - 1, -1):
            beginning = begins[number] if number > low else 0.0
            total = pace[number] + beginning + arrivals
            mean = pace[number] / total * first[place - 1, number - 1]
            square = pace[number] / total * second[place - 1, number - 1]
            grown = number + batch
            # All but ``low`` of them are written where reads leave room, and where there are too many.
            for way in range(2):
                rate, of = (beginning, number) if way == 0 else (arrivals, grown)
                if way == 1 and grown < high:
                    mean += rate / total * first[place, grown]
                    square += rate / total * second[place, grown]
                elif rate > 0.0:
                    out = max(of - low, 1)
                    time = drain[min(of, high - 1)] * min(place / out, 1.0)
                    later, later2 = first[max(place - out, 0), left], second[max(place - out, 0), left]
                    mean += rate / total * (time + later)
                    square += rate / total * (time * time + 2 * time * later + later2)
            first[place, number] = 1 / total + mean
            second[place, number] = 2 / total * first[place, number] + square
    return first, second
