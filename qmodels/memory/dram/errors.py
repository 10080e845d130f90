"""Errors of the DRAM model, measured against simulators, as data beside it."""

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
PRESET = ErrorMap(Path(__file__).with_name("preset_error_map.csv"))
KINDS = ("random", "packets", "spread packets", "stream", "trace")
SYSTEMS = 10
"""Systems drawn for each region of `PATTERNS`; it has fewer where some are overloaded in the simulation."""
MOST_WAIT, MOST_CONFLICTS, MOST_LATENCY = 5.0, 2.0, 10.0
"""Largest error of the mean wait, in %, of the conflicts, in points, and, of presets, of the mean latencies,
in %, of what counts as validated."""
MOST_HITS = 0.5
WRITES = (0.2, 0.5)
"""Row hits at most, and writes at least and at most, of random accesses that `PRESET` was measured on."""
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


def preset_region(spec: DramSystem) -> str:
    """Return the region of `PRESET` in which a system lies, empty for none: preset, reads alone or not."""
    traffic, usual = spec.traffic, DramSystem(timing=spec.timing)
    names = ("row_hit_cap", "write_high", "write_low")[: 3 if traffic.write_fraction else 1]
    like = (
        isinstance(traffic, RandomBlocks)
        and traffic.row_hit_probability <= MOST_HITS
        and spec.scheduler != "in-order"
        and spec.geometry.ranks == 1
        and all(getattr(spec, name) == getattr(usual, name) for name in names)
    )
    some = WRITES[0] <= traffic.write_fraction <= WRITES[1]
    if not like or not (some or traffic.write_fraction == 0):
        return ""
    banks = spec.geometry.groups, spec.geometry.banks
    found = (
        name
        for name, preset in PRESETS.items()
        if spec.timing == preset.timing and banks == (preset.geometry.groups, preset.geometry.banks)
    )
    name = next(found, "")
    return name and f"{name}, {'reads and writes' if some else 'reads'}"


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


def measured_error(spec: DramSystem, load: Any) -> tuple[Any, Any, dict[str, MeasuredError]]:
    """Return whether loads were measured, and found good, and the errors at the nearest above, by metric.

    Measured are random reads of DDR4-3200, its row hits not counted, with closed and open pages, one and
    two ranks, with and without refresh, oldest ready first or row hits first. So are random accesses of all
    presets, reads alone and with writes; they count as good where all mean latencies were within
    `MOST_LATENCY`. Of other random reads, packets and streams a sample was measured; its loads count as good
    where all of it was within `MOST_WAIT` and `MOST_CONFLICTS` and none was overloaded in the simulation.
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
        known = errors["read_latency"].known
        return known, known, errors
    region = preset_region(spec)
    errors = PRESET.at(region=region, load=below) if region else {}
    if errors:
        known = errors["read_latency"].known
        means = [error.largest for name, error in errors.items() if name.endswith("latency")]
        return known, known & (np.max(means, axis=0) <= MOST_LATENCY), errors
    scheduler = "in-order" if spec.scheduler == "in-order" else "ready"
    region = f"{scheduler}, {kind_of(spec.traffic)}, {refreshing(t.t_rfc > 0)}"
    errors = PATTERNS.at(region=region, load=below) if _drawn(spec) else {}
    if not errors:
        none = np.zeros(load.shape, dtype=bool)
        return none, none, {}
    good = (
        (errors.pop("wait").largest <= MOST_WAIT)
        & (errors["read_conflict_probability"].largest <= MOST_CONFLICTS)
        & (errors["read_latency"].designs == SYSTEMS)
    )
    return errors["read_latency"].known, good, errors
