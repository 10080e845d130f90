"""Trials with closed pages, where a block's bank is also busy with its own row."""

from __future__ import annotations

from typing import Any

from qmodels.numerics.kernels import part
from qmodels.packet_processor.numbers import AGAIN, TRIALS


@part
def chain(z: Any, rejected: Any) -> Any:
    """Return mean and variance of an allocation's accesses, and whether its block is on a busy bank.

    The first block is on a busy bank with probability ``rejected``, each further one with that of the chain.
    """
    again = min(max(z[AGAIN] + (1.0 - z[AGAIN]) * rejected, 0.0), 1.0)
    mean, square, reached, taken = 0.0, 0.0, 1.0, 0.0
    for number in range(int(z[TRIALS])):
        taken = reached * (again if number else rejected)
        onward = taken if number + 1.0 < z[TRIALS] else 0.0
        accesses = number + 1.0 + (number > 0)
        mean += (reached - onward) * accesses
        square += (reached - onward) * accesses * accesses
        reached = onward
    return mean, max(square - mean * mean, 0.0), taken
