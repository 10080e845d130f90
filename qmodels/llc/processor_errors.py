"""How far the model of the LLC-slice processor was found to be from its simulation, and where."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from qmodels.evidence.error_map import ErrorMap
from qmodels.systems.cache.llc_processor import LlcProcessor

ERRORS = ErrorMap(Path(__file__).with_name("processor_error_map.csv"))
NEARLY_FULL = (0.75, 1.1)
VARIED = {
    "cores": (4, 40),
    "slices": (1, 28),
    "capacity": (20, 400),
    "channels": (8, 48),
    "line_bytes": (2, 128),
    "load": (0.1, 1.2),
    "entries": (1000, 60_000),
    "exponent": (0.5, 1.1),
}
"""What was varied, and between which values; ``entries`` and ``exponent`` are those of the popularity."""


def nearly_full(llc_load: float) -> bool:
    """Return whether the LLC has long queues that come and go, where the model may be far off.

    ``llc_load``: what the LLC would have to do if no request were refused, over what it can do.
    """
    return NEARLY_FULL[0] < llc_load < NEARLY_FULL[1]


def region_of(architecture: str, llc_load: float) -> str:
    """Return the region of the error map in which a design lies.

    >>> error = ERRORS.at(region=region_of("shared", 0.3))["blocking_probability"]
    >>> error.unit, error.largest < 0.65
    ('points', True)
    """
    return f"{architecture}, LLC nearly full" if nearly_full(llc_load) else architecture


def is_validated(spec: LlcProcessor, *, llc_load: float) -> bool:
    """Return whether the model's error was measured in a range around a design.

    Every field that was varied is between two values that were tried, the others are as they were,
    and the LLC is not nearly full.
    """
    law = ("entries", "exponent")
    values = {name: getattr(spec.popularity if name in law else spec, name) for name in VARIED}
    inside = all(low <= values[name] <= high for name, (low, high) in VARIED.items())
    free = {*VARIED, "architecture", "popularity", "assignment", "time_unit_ns", "packet_bytes"}
    default = LlcProcessor()
    same = all(getattr(spec, f.name) == getattr(default, f.name) for f in fields(spec) if f.name not in free)
    return inside and same and spec.popularity.shift == 0 and not nearly_full(llc_load)
