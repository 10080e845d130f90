"""How far the DRAM model may be trusted: errors measured against simulators, as data beside it."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from qmodels.evidence.error_map import ErrorMap, MeasuredError
from qmodels.systems.memory.dram_map import Interleaved
from qmodels.systems.memory.dram_presets import PRESETS
from qmodels.systems.memory.dram_system import DramSystem
from qmodels.systems.memory.dram_timing import DramTiming, abstract
from qmodels.systems.memory.dram_traffic import (
    AddressTrace,
    DramTraffic,
    Packets,
    RandomBlocks,
    StridedBlocks,
)

RANDOM = ErrorMap(Path(__file__).with_name("random_error_map.csv"))
PATTERNS = ErrorMap(Path(__file__).with_name("pattern_error_map.csv"))
KINDS = ("random", "packets", "spread packets", "stream", "trace")
SYSTEMS = 10
"""Systems drawn for each region of `PATTERNS`; it has fewer where some are overloaded in the simulation."""
MOST_WAIT, MOST_CONFLICTS = 5.0, 2.0
"""Largest error of the mean wait, in %, and of the conflicts, in points, of what counts as validated."""
_ROUNDING = 1e-9


def refreshing(refresh: bool) -> str:
    """Return the last words of a region."""
    return "refresh" if refresh else "no refresh"


def random_region(spec: DramSystem) -> str:
    """Return the region of `RANDOM` in which a system lies: page policy, ranks, refresh."""
    ranks = spec.geometry.ranks
    plural = "s" if ranks > 1 else ""
    return f"{spec.page_policy} pages, {ranks} rank{plural}, {refreshing(spec.timing.t_rfc > 0)}"


def kind_of(traffic: DramTraffic) -> str:
    """Return which of `KINDS` a traffic is."""
    if isinstance(traffic, Packets):
        return "spread packets" if traffic.spacing and traffic.blocks > 1 else "packets"
    return {RandomBlocks: "random", StridedBlocks: "stream", AddressTrace: "trace"}[type(traffic)]


SAMPLED = ("DDR3-1600", "DDR4-3200", "HBM2", "HMC-vaults", "LPDDR4-2400", "gem5-DDR2-800")
"""The presets that `PATTERNS` was measured on."""


@cache
def _timings(preset: str) -> tuple[DramTiming, DramTiming]:
    """Return the timing of a preset, and without refresh."""
    timing = PRESETS[preset].timing
    return timing, replace(timing, t_refi=0, t_rfc=0)


def _only_banks(t: DramTiming) -> bool:
    return t == abstract(burst=t.burst, bank_busy=t.t_rc, latency=t.cl, clock_ghz=t.clock_ghz)


def _drawn(spec: DramSystem) -> bool:
    """Return whether a system is one of those that `PATTERNS` was measured on a sample of."""
    t, g, plan, traffic = spec.timing, spec.geometry, spec.address_map, spec.traffic
    banks = g.groups, g.banks
    preset = any(
        t in _timings(name) and banks == (PRESETS[name].geometry.groups, PRESETS[name].geometry.banks)
        for name in SAMPLED
    )
    return (
        (preset or (banks == (1, 8) and 2 <= t.t_rc / t.burst <= 5 and _only_banks(t)))
        and traffic.write_fraction == 0
        and g.ranks == 1
        and g.channels <= 4
        and (
            isinstance(traffic, RandomBlocks)
            or (isinstance(plan, Interleaved) and plan.step <= 8 and plan.bank_step <= 32)
        )
        and (not isinstance(traffic, Packets) or (traffic.blocks <= 24 and traffic.spacing <= 6))
        and (not isinstance(traffic, StridedBlocks) or traffic.stride <= 16)
        # Those drawn are random; what others do to banks may be anything.
        and not isinstance(traffic, AddressTrace)
    )


def measured_error(spec: DramSystem, load: Any) -> tuple[Any, dict[str, MeasuredError]]:
    """Return whether loads are in the measured range, and the errors at the nearest above, by metric.

    Measured are random reads of DDR4-3200, its row hits not counted, with closed and open pages, one and
    two ranks, with and without refresh, oldest ready first or row hits first. Of other random reads, packets
    and streams a sample was measured; its loads count as in the range where all of it was within `MOST_WAIT`
    and `MOST_CONFLICTS` and none was overloaded in the simulation.
    """
    load = np.asarray(load, dtype=float)
    below = np.maximum(load - _ROUNDING, 0.0)
    t = spec.timing
    like = (
        isinstance(spec.traffic, RandomBlocks)
        and spec.traffic.write_fraction == 0
        and spec.traffic.row_hit_probability == 0
        and spec.scheduler != "in-order"
        and t in _timings("DDR4-3200")
        and (spec.geometry.groups, spec.geometry.banks) == (4, 4)
    )
    errors = RANDOM.at(region=random_region(spec), load=below) if like else {}
    if errors:
        return errors["read_latency"].known, errors
    scheduler = "in-order" if spec.scheduler == "in-order" else "ready"
    region = f"{scheduler}, {kind_of(spec.traffic)}, {refreshing(t.t_rfc > 0)}"
    errors = PATTERNS.at(region=region, load=below) if _drawn(spec) else {}
    if not errors:
        return np.zeros(load.shape, dtype=bool), {}
    inside = (
        (errors.pop("wait").largest <= MOST_WAIT)
        & (errors["read_conflict_probability"].largest <= MOST_CONFLICTS)
        & (errors["read_latency"].designs == SYSTEMS)
    )
    return inside, errors
