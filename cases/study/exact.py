"""The joint case as an exact program: its groups of fields, and a space too large to enumerate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cases.study.packet_processor import solved_columns
from optimize.exact.design import ExactDesign, exact_design
from optimize.spaces.space import Space

GROUPS = (
    ("interleaving_step", "channels", "alloc_trial_count"),
    ("channels", "link_width", "noc.clock_ghz"),
    ("slices", "slice_lines"),
)
"""Fields tabulated together: the allocator with the plane it works on, the network, the cache."""

SUMS = {
    "cost": (("channels", "link_width"), ("slices", "slice_lines"), ("segments",), ("alloc_trial_count",))
}
"""Metrics that are sums by their formula, checked at run time, and the fields of each term."""

FINE_CHOICES: dict[str, tuple[float, ...]] = {
    "interleaving_step": (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    "channels": tuple(range(1, 13)),
    "alloc_trial_count": tuple(range(1, 9)),
    "link_width": (4, 8, 16, 32, 64),
    "slices": (0, 1, 2, 4, 8, 16),
    "slice_lines": (64, 128, 256, 512, 1024, 2048),
    "banks": (2, 4, 8, 16, 32),
    "small_packet_segments": tuple(range(6)),
    "segments": tuple(int(2 ** (12 + quarter / 4)) for quarter in range(40)),
    "noc.clock_ghz": (0.8, 1.0, 1.25, 1.6),
    "free_list.clock_ghz": (0.8, 1.0, 1.25, 1.6),
}
"""Finer choices, and more fields: 3,981,312,000 designs."""


WIDE_CHOICES: dict[str, tuple[float, ...]] = {
    **FINE_CHOICES,
    "alloc_trial_count": tuple(range(1, 17)),
    "slice_lines": tuple(int(2 ** (6 + half / 2)) for half in range(12)),
    "segments": tuple(int(2 ** (12 + eighth / 8)) for eighth in range(80)),
    "vms1_share": tuple(eighth / 8 for eighth in range(8)),
    "llc.clock_ghz": (0.8, 1.0, 1.25, 1.6),
}
"""Finer still: 1,019,215,872,000 designs."""


def exact_case(
    space: Space, *, evaluate: Callable[[Any], object] = solved_columns, **options: Any
) -> ExactDesign:
    """Return the best design of a space of packet processors with a bound, see `optimize.exact.design`.

    ``space``: the designs, such as ``default_space(spec, choices=FINE_CHOICES)``; ``evaluate``: the model
    over sweeps; ``**options``: those of `optimize.exact_design`: ``minimize``, ``maximize``, ``subject_to``,
    ``gap``, ``time_limit``, ``evaluations`` and so on.
    """
    return exact_design(space, evaluate, groups=GROUPS, sums=SUMS, vectorized=True, **options)
