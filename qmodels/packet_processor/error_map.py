"""The measured error of the model, and whether it orders the choices as the simulation does.

Both maps are data, made by ``python -m cases.joint_errors.accuracy``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from qmodels.checks import FloatArray

FILE = Path(__file__).with_name("error_map.csv")
DIRECTIONS = Path(__file__).with_name("direction_map.csv")

FEWEST, AGREED = 3, 0.75
"""Pairs that the simulation separates, and the part of them that the model must order alike, for its
direction to count as right."""

RANKED = (
    "packet_latency",
    "packet_latency_p99",
    "write_conflict_probability",
    "energy_per_packet",
    "saturation_throughput",
)
"""What designs are chosen by: a wrong direction in one of these takes an answer's validation away. That of
the read conflicts is measured as well and stands in `MeasuredError.agreement`."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredError:
    """The error of one metric against simulation at loads and arrivals like a design's.

    Numbers, or arrays of one value per design; infinite where nothing was measured. Errors are
    model minus simulation, in ``unit``; the relative ones are in % of the simulated value.

    Parameters
    ----------
    unit : str
        "%" of the simulated value, or "points": percentage points of a probability.
    bias : float or array
        Signed mean: below 0 where the model is too low.
    mean, largest : float or array
        Of the sizes of the errors.
    relative_bias, relative_mean, relative_largest : float or array
        The same in %; for a probability over the designs that have one above a thousandth.
    load_above, load_to, dispersion_above, dispersion_to : float or array
        The region they were measured in: load of the fullest resource, and dispersion of the arrivals
        (`qmodels.packet_processor.burstiness`).
    designs : float or array
        How many designs were measured there.
    agreement : float or array
        Part of the pairs of designs, one decision apart, that the simulation separates in this metric
        at such loads and interleaving steps, and that the model orders alike; not a number where
        none was separated.
    """

    unit: str
    bias: Any
    mean: Any
    largest: Any
    relative_bias: Any
    relative_mean: Any
    relative_largest: Any
    load_above: Any
    load_to: Any
    dispersion_above: Any
    dispersion_to: Any
    designs: Any
    agreement: Any


NUMBERS = ("bias", "mean", "largest", "relative_bias", "relative_mean", "relative_largest")
REGION = ("load_above", "load_to", "dispersion_above", "dispersion_to", "designs")


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    words = ("metric", "unit", "decision")
    with open(file, newline="", encoding="utf-8") as text:
        for row in csv.DictReader(text):
            yield {name: value if name in words else float(value) for name, value in row.items()}


@cache
def _errors() -> dict[str, tuple[str, dict[str, FloatArray]]]:
    """Return for each metric its unit and the columns of its regions."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(FILE):
        found.setdefault(row["metric"], []).append(row)
    return {
        metric: (rows[0]["unit"], {name: np.array([row[name] for row in rows]) for name in NUMBERS + REGION})
        for metric, rows in found.items()
    }


@cache
def _directions() -> tuple[dict[str, Any], ...]:
    """Return the rows of the map of directions."""
    return tuple(_rows(DIRECTIONS))


def measured_errors(
    *, load: FloatArray, dispersion: FloatArray, step: FloatArray
) -> dict[str, MeasuredError]:
    """Return the errors measured on designs like these, by metric.

    Parameters
    ----------
    load, dispersion, step : ndarray
        Load of the fullest resource, dispersion of the arrivals and interleaving step of each design.

    Examples
    --------
    >>> one = np.ones(1)
    >>> latency = measured_errors(load=0.5 * one, dispersion=one, step=one)["packet_latency"]
    >>> latency.unit, bool(abs(latency.bias[0]) <= latency.mean[0] <= latency.largest[0])
    ('%', True)
    """
    return {
        metric: MeasuredError(
            unit=unit,
            **_at(table, np.where(load < 1.0, load, np.inf), dispersion),
            agreement=_agreement(metric, load, step),
        )
        for metric, (unit, table) in _errors().items()
    }


def _at(table: dict[str, FloatArray], load: FloatArray, dispersion: FloatArray) -> dict[str, FloatArray]:
    region = np.full(load.shape, -1)
    for k in range(table["mean"].size):
        here = _inside(load, table["load_above"][k], table["load_to"][k])
        region[here & _inside(dispersion, table["dispersion_above"][k], table["dispersion_to"][k])] = k
    # The last entry is that of no region.
    return {
        name: np.append(table[name], np.inf if name in NUMBERS else np.nan)[region]
        for name in NUMBERS + REGION
    }


def _inside(value: FloatArray, above: float, to: float) -> Mask:
    """Return what is in a region."""
    return np.asarray((value > above) & (value <= to))


def _agreement(metric: str, load: FloatArray, step: FloatArray) -> FloatArray:
    separated, agree = np.zeros(load.shape), np.zeros(load.shape)
    for row in _directions():
        if row["metric"] == metric:
            here = _in_region(row, load, step)
            separated += here * row["separated"]
            agree += here * row["agree"]
    return np.divide(agree, separated, out=np.full(load.shape, np.nan), where=separated > 0)


def _in_region(row: dict[str, Any], load: FloatArray, step: FloatArray) -> Mask:
    return _inside(load, row["load_above"], row["load_to"]) & (
        (step > row["step_above"]) & (step <= row["step_to"])
    )


def wrong_directions(*, load: FloatArray, step: FloatArray) -> dict[str, Mask]:
    """Return, in words, the directions that are wrong somewhere among designs, and for which.

    A direction is wrong in a region of load and interleaving step where the model orders fewer than
    three quarters (`AGREED`) of the pairs that the simulation separates as it does. A choice it is
    blind to counts as ordered wrongly. Only what designs are chosen by (`RANKED`) counts.
    """
    wrong: dict[str, Mask] = {}
    for row in _directions():
        few = row["separated"] < FEWEST or row["metric"] not in RANKED
        if few or row["agree"] >= AGREED * row["separated"]:
            continue
        here = _in_region(row, load, step)
        if here.any():
            words = f"{row['metric']} along {row['decision']} is ordered against the simulation at such loads"
            wrong[words] = wrong.get(words, np.zeros(load.shape, dtype=bool)) | here
    return wrong


def measured_dispersion() -> float:
    """Return the largest dispersion of arrivals on which errors were measured."""
    tables = (table for _, table in _errors().values())
    return float(max(table["dispersion_to"][table["designs"] > 0].max(initial=0.0) for table in tables))
