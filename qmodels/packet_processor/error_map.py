"""The measured error of the model by region of load, made by ``python -m cases.accuracy``."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import numpy as np

from qmodels._check import FloatArray

FILE = Path(__file__).with_name("error_map.csv")


@cache
def _regions() -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return for each metric the upper ends of the regions and the mean size of the error in them."""
    table: dict[str, list[tuple[float, float]]] = {}
    with open(FILE, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            table.setdefault(row["metric"], []).append((float(row["load_to"]), float(row["mean"])))
    return {
        metric: (np.array(ends), np.array(means))
        for metric, rows in table.items()
        for ends, means in [zip(*rows, strict=True)]
    }


def measured_error(load: FloatArray) -> dict[str, FloatArray]:
    """Return the mean size of the error measured at loads like these, by metric.

    Percent of the simulated value, or percentage points of a probability; infinite at a load of
    1 and more, where nothing was measured.

    Examples
    --------
    >>> at_half = measured_error(np.array([0.5]))
    >>> bool(at_half["packet_latency"][0] < 10)
    True
    """
    answer = {}
    for metric, (ends, means) in _regions().items():
        region = np.minimum(np.searchsorted(ends, load), len(means) - 1)
        answer[metric] = np.where(load < 1.0, means[region], np.inf)
    return answer
