"""The LLC-slice case: the designs of its figures, and the capacities its authors could not simulate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cases.published.rows import published
from qmodels.systems.cache.llc_processor import LlcProcessor
from qmodels.systems.spec.fields import replace_fields

NAMES = {"slices": "LLC slices", "none": "no LLC", "shared": "shared LLC"}
"""The paper's Proposed, Without LLC and With LLC."""

READING = "reading"
BASE = "as in the case"
FEWER = "16 slices"
EXPONENTS = (0.64, 0.83, 0.95)
"""The three exponents of figs. 16 to 18 stand in the pictures alone: 0.83 is the paper's default, the others
are our choice."""

REALISTIC_SCALE = 7168
"""28 MiB of LLC over the paper's 4096 bytes."""


def places() -> Iterator[tuple[dict[str, Any], LlcProcessor]]:
    """Yield every point of figs. 13 to 25 with its design: which figures, curve, what x is, and x."""
    axes, base = published("llc3d")["axes"], LlcProcessor()
    for architecture, name in NAMES.items():
        design = replace(base, architecture=architecture)
        for x in axes["entries_per_line"]:
            place = {"figures": "13-15", "curve": name, "variable": "entries per line", "x": x}
            yield place, replace(design, line_bytes=x * base.entry_bytes)
    for exponent in EXPONENTS:
        for x in axes["slices"]:
            place = {"figures": "16-18", "curve": f"exponent {exponent}", "variable": "slices", "x": x}
            yield place, replace_fields(base, {"slices": x, "exponent": exponent})
    curves = {f"{n} slices": replace(base, slices=n) for n in axes["slices_by_cores"]}
    curves |= {NAMES[name]: replace(base, architecture=name) for name in ("none", "shared")}
    for name, design in curves.items():
        for x in axes["cores"]:
            yield {"figures": "19-21", "curve": name, "variable": "cores", "x": x}, replace(design, cores=x)
    for architecture, name in NAMES.items():
        for x in axes["entries"]:
            place = {"figures": "22-25", "curve": name, "variable": "entries", "x": x}
            yield place, replace_fields(base, {"architecture": architecture, "entries": x})


def every_point() -> list[tuple[dict[str, Any], LlcProcessor]]:
    """Return the points of the figures, and those of every reading of the text."""
    others = [
        ({"figures": reading, "curve": name, "variable": READING, "x": 0}, spec)
        for reading, specs in readings().items()
        for name, spec in specs.items()
    ]
    return [*places(), *others]


def readings() -> dict[str, dict[str, LlcProcessor]]:
    """Return what the text leaves open, each with the designs by the curves they are points of.

    They are the three architectures, where the reading changes them, and the slices when 16 are assigned.
    """
    base = LlcProcessor()
    named = {
        BASE: base,
        "a line found in the LLC leaves it": replace(base, llc_hit="remove"),
        "all slices together hold whole lines": replace(base, whole_lines="total"),
        "slices round up to 3 lines": replace(base, slice_bytes=192),
        "entries of neighbouring ranks share a line": replace(base, assignment="consecutive"),
    }
    alone = [name for name, spec in named.items() if (spec.slice_bytes, spec.whole_lines) != (146, "slice")]
    return {
        name: {NAMES[a]: replace(spec, architecture=a) for a in NAMES if a == "slices" or name not in alone}
        | {FEWER: replace(spec, slices=16)}
        for name, spec in named.items()
    }


def realistic(architecture: str) -> LlcProcessor:
    """Return a design with the capacities of sec. V-B and entries in proportion to the LLC."""
    base = LlcProcessor(
        architecture=architecture,
        l1_bytes=64 * 1024,
        l2_bytes=512 * 1024,
        slice_bytes=1024**2,
        llc_bytes=28 * 1024**2,
    )
    return replace_fields(base, {"entries": base.popularity.entries * REALISTIC_SCALE})
