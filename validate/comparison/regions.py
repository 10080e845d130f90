"""Mean and largest error by region of load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

REGIONS = ((0.0, 0.3), (0.3, 0.5), (0.5, 0.65), (0.65, 0.8), (0.8, 1.0))
"""Loads above the first and up to the second number."""


@dataclass(frozen=True, kw_only=True)
class RegionError:
    """The size of the error over the points of a region."""

    # load_above, load_to: the region: loads above the one and up to the other.
    load_above: float
    load_to: float
    # mean, largest: of the sizes of the errors, in their unit.
    mean: float
    largest: float
    points: int  # points in the region with a finite error


def errors_by_region(
    error: npt.ArrayLike, load: npt.ArrayLike, *, regions: Sequence[tuple[float, float]] = REGIONS
) -> list[RegionError]:
    """Return mean and largest size of the error in each region of load that has a point.

    ``error``, ``load``: one value per point; infinite errors are left out; ``regions``: loads above the first
    and up to the second number.

    >>> errors_by_region([0.01, -0.03, 0.2], [0.1, 0.2, 0.9])[0]
    RegionError(load_above=0.0, load_to=0.3, mean=0.02, largest=0.03, points=2)
    """
    sizes, loads = np.abs(np.asarray(error, dtype=float)), np.asarray(load, dtype=float)
    found = []
    for low, high in regions:
        if not low < high:
            raise ValueError(f"regions must be pairs of ascending loads, got ({low!r}, {high!r})")
        chosen = sizes[np.isfinite(sizes) & (loads > low) & (loads <= high)]
        if chosen.size:
            found.append(
                RegionError(
                    load_above=low,
                    load_to=high,
                    mean=float(chosen.mean()),
                    largest=float(chosen.max()),
                    points=int(chosen.size),
                )
            )
    return found
